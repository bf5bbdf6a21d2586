// What a message or a call in a stream is made of, in words that travel beside it, where the setting check asks for that. Whoever gives a
// note says what its words mean.
//
// Who calls this : face/message; channels.hpp, meetings.hpp; kernels, which compare the first two words.
// Threads        : plain data.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <cstdint>

namespace ist {

struct StreamNote {
  std::uint64_t hash = 0;   // two with the same of both are the same
  std::uint64_t types = 0;  // 0: nothing is known, and nothing compared
  std::uint64_t rest[22] = {};
};
static_assert(sizeof(StreamNote) == 192);

// Two that are not the same, for whoever gave them to judge.
struct UnlikeNotes {
  std::uint64_t message = 0;  // of a channel: the last such message, counted from 0
  int member = 0;             // of a meeting: whose the first note is
  StreamNote sent;
  StreamNote received;
};

}  // namespace ist
