// What a word of a heap is waited for, checked.
//
// Who calls this : api_heap_words.cpp, api_heap_streams.cpp.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : IST_ERR_ARGUMENT, with what was given and what would do.
#pragma once

#include "face/heap/heap_calls.hpp"

namespace ist {

struct Condition {
  const void* address;
  ist_type type;
  ist_compare compare;
  std::int64_t value;
};

Status check_aligned(const void* address, std::uint64_t size);
// Where the word is.
Result<Offset> check_condition(const CollectiveHeap& heap, const Condition& wanted);

// A word that a put raises.
struct Signal {
  std::uint64_t* address;
  std::uint64_t value;
  ist_signal operation;
};

// Where it is; IST_ERR_UNSUPPORTED where it is to be added to and cannot.
Result<PlaceInHeap> place_of(CollectiveHeap& heap, const Signal& signal, int pe);

}  // namespace ist
