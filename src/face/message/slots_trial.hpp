// Two copies through a slot, or an announcement and one copy: which is quicker from which size on, found out once or twice for a machine.
//
// Who calls this : the api_world*.cpp files, when a world has been made and before its program has it.
// Threads        : one.
// Ownership      : none; messages that it sends are not counted, and what it found is kept in the file of collective/learned_copies.hpp.
// Errors         : of a call that failed, as where memory runs out: then there is no world. A rank that is lost ends it, which later calls tell.
//
// The first two ranks of a host send each other messages of 24 to 128 KiB, whose bytes were just written, alone and 16 in a row, as
// `isthmus model fit` does (docs/messages.md#one-copy-or-two), for some hundredths of a second.
#pragma once

#include "face/message/handles.hpp"

namespace ist {

// Nothing where World::slots_trial_with() is nobody.
Status try_slots(ist_world world);

}  // namespace ist
