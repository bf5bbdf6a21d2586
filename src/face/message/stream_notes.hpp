// Notes of what messages and calls in streams are made of, and in words what differs between two of them.
//
// Who calls this : stream_messages.cpp, stream_channels.cpp, api_stream_collective.cpp, stream_meetings.cpp, where the setting check is 1.
// Threads        : any; pure functions.
// Ownership      : none.
// Errors         : none; what differs is told in words.
#pragma once

#include <string>
#include <vector>

#include "collective/alike.hpp"
#include "memory/stream_note.hpp"

namespace ist {

// Of a message or a receive.
StreamNote stream_note(const Layout& types);
// Of a call, by what all ranks give alike, its name among it.
StreamNote stream_note(const GivenAlike& given);

// Empty: what differs is no error, since one side is shorter, or untyped.
std::string unlike_messages(const std::vector<UnlikeNotes>& notes);
// `first_is`: of the member whose notes are the first ones; none: each says it. `own`: of this rank.
std::string unlike_calls(const std::vector<UnlikeNotes>& notes, std::optional<int> first_is, int own);

}  // namespace ist
