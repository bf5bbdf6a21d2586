// What the calls on symmetric heaps have in common: handles, addresses and PEs checked.
//
// Who calls this : api_heap*.cpp.
// Threads        : any.
// Ownership      : none.
// Errors         : reported with the call's name.
#pragma once

#include "face/heap/collective_heap.hpp"
#include "face/heap/one_sided_copies.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"

namespace ist {

int null_argument(const char* call, const char* argument);

// Status what(CollectiveHeap&)
template <class What>
int in_heap(const char* call, ist_heap heap, const What& what) {
  World* world = nullptr;
  if (CollectiveHeap* const found = find(heap, world); found != nullptr) [[likely]] {
    const Status done = what(*found);
    return done.ok() ? IST_OK : report(in_call(call, done));
  }
  return report(in_call(call, look_up(heap).status()));
}

// So many bytes at the caller's own address, and whose copy of it is meant.
struct Named {
  const void* address;
  Bytes size;
  int pe;
};
inline Result<PlaceInHeap> place_in(const CollectiveHeap& heap, const Named& named) {
  const SymmetricHeap& memory = heap.memory();
  IST_TRY(memory.check(named.pe));
  const auto offset = memory.locate(named.address, named.size);
  if (!offset.ok()) return offset.status();
  return PlaceInHeap{Pe{named.pe}, *offset};
}

}  // namespace ist
