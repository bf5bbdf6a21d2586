// What the files of Heap share: how one word is named.
//
// Who calls this : heap.cpp, heap_copies.cpp and heap_words.cpp.
// Threads        : the caller holds the GIL.
// Ownership      : a OneWord holds what its memory belongs to.
// Errors         : raised.
#pragma once

#include <string>

#include "heap.hpp"
#include "region.hpp"
#include "words.hpp"

namespace isthmus_python {

inline void* far_address(const Region& region) { return reinterpret_cast<void*>(region.place.object + region.place.offset); }

// What a heap's calls take for their own copy; an address of it.
inline Region far_region(nb::handle object, Access access, Views views = Views::refused) {
  if (nb::isinstance<SymmetricArray>(object))
    if (const auto& array = nb::cast<const SymmetricArray&>(object); array.is_opencl())
      return read_array_interface(object, array.named(), false);
  return to_region(object, access, {}, views);
}

struct OneWord {
  Region region;
  void* address;
  WordType type() const { return {region.type, region.item_size}; }
};

// One integer of 4 or 8 bytes; `name` is that of the call.
OneWord word_in(nb::handle object, const char* name);

}  // namespace isthmus_python
