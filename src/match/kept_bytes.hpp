// The bytes of a message that came before they could be delivered, out of the room they came in.
//
// Who calls this : match, and request/engine, whose transfers read them.
// Threads        : values.
// Ownership      : owns its bytes.
// Errors         : throws std::bad_alloc.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "memory/host/handing_copy.hpp"

namespace ist {

// Leaves new elements as they are: they are copied over at once.
template <typename T>
struct Unwritten : std::allocator<T> {
  template <typename Other>
  struct rebind {
    using other = Unwritten<Other>;
  };
  template <typename Element>
  void construct(Element* place) noexcept {
    ::new (static_cast<void*>(place)) Element;
  }
  template <typename Element, typename... Arguments>
  void construct(Element* place, Arguments&&... arguments) {
    std::construct_at(place, std::forward<Arguments>(arguments)...);
  }
};
using KeptBytes = std::vector<std::byte, Unwritten<std::byte>>;

// Another processor has just written them.
inline KeptBytes keep_bytes(std::span<const std::byte> from) {
  KeptBytes kept(from.size());
  if (!from.empty()) copy_across(kept.data(), from.data(), from.size());
  return kept;
}

}  // namespace ist
