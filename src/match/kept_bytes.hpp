// The bytes of a message that came before they could be delivered, out of the room they came in.
//
// Who calls this : match, and request/engine, whose transfers read them.
// Threads        : values; room is taken and given back by any.
// Ownership      : owns its bytes.
// Errors         : throws std::bad_alloc.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "memory/host/handing_copy.hpp"

namespace ist {

// Room for that many bytes, and back. From 32 to 256 KiB it is kept for the next message, up to 2 MiB of each power of two, 8 in all: an allocator gives as much back to the system, whose
// new pages take ten times as long as the copy into them. Windows of 64 messages of 128 KiB both ways, of which some come before their receives are started, took
// 4 to 30 us a message so, 3.5 where none does (AMD EPYC, Zen 5, 2026-11-30).
void* take_kept_room(std::size_t size);  // throws std::bad_alloc
void give_kept_room(void* where, std::size_t size) noexcept;
Bytes kept_room();  // that nobody has

// Leaves new elements as they are: they are copied over at once.
template <typename T>
struct Unwritten {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  using value_type = T;
  Unwritten() = default;
  template <typename Other>
  explicit Unwritten(const Unwritten<Other>& /*other*/) noexcept {}
  T* allocate(std::size_t count) { return static_cast<T*>(take_kept_room(count * sizeof(T))); }
  void deallocate(T* where, std::size_t count) noexcept { give_kept_room(where, count * sizeof(T)); }
  bool operator==(const Unwritten& /*other*/) const { return true; }
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
