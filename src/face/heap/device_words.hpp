// Words of a heap on a device, which the device itself changes: a processor's change would not be atomic with those of kernels.
//
// Who calls this : api_heap_words.cpp, api_heap_copies.cpp.
// Threads        : any; the caller waits for its own.
// Ownership      : none.
// Errors         : IST_ERR_UNSUPPORTED where no atomic operation crosses the link to that PE; the device's.
#pragma once

#include "face/heap/heap_calls.hpp"
#include "memory/word_changes.hpp"

namespace ist {

// Why no word of that PE's part can be changed; ok where one can.
Status can_change_on_device(CollectiveHeap& heap, Pe pe);
// What was there. `size` is 4 or 8, and divides the place.
Result<std::uint64_t> change_on_device(CollectiveHeap& heap, const PlaceInHeap& place, Bytes size, const WordChange& change);

}  // namespace ist
