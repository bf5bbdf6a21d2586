// What every one-sided call looks at: who this is, and where the PEs' parts of the symmetric heap and of the program's variables lie.
//
// Who calls this : all of face/shmem.
// Threads        : set while one thread is inside shmem_init or shmem_finalize; read by any. `bytes` grows inside shmem_malloc.
// Ownership      : looks at the memory that world.hpp owns.
// Errors         : none here; whoever gets null asks find() of regions.hpp, which says what is wrong.
#pragma once

#define SHMEMX_NO_GENERICS
#include <shmem.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ist::shmem {

// Memory that every PE has: PE p's copy is p strides behind PE 0's.
struct Span {
  std::uintptr_t begin = 0;            // this PE's own, where the program has it
  std::atomic<std::size_t> bytes{0};   // of each PE; 0: there is none such
  std::atomic<std::size_t> direct{0};  // `bytes`, or 0 where local addresses may be ones that a processor cannot read
  std::byte* first = nullptr;          // PE 0's
  std::size_t stride = 0;
};

// The heap is the first span; behind it are the segments of variables, of which nearly all programs have one: calls look at these two by
// themselves.
constexpr std::size_t kMostSpans = 9;

// What a call of the heap looks at is in one line of the cache.
struct alignas(64) Hot {
  int pes = 0;
  int pe = -1;
  // There is a heap of device memory.
  std::atomic<bool> devices{false};
  std::array<Span, kMostSpans> spans;
  const Span& heap() const { return spans[0]; }
};
extern Hot hot;

// How far behind the beginning; more than there is where it is elsewhere.
[[gnu::always_inline]] inline std::uintptr_t offset_in(const Span& span, const volatile void* address) {
  return reinterpret_cast<std::uintptr_t>(address) - span.begin;
}
[[gnu::always_inline]] inline std::byte* copy_at(const Span& span, std::uintptr_t offset, int pe) {
  return span.first + static_cast<std::size_t>(pe) * span.stride + offset;
}

template <auto Size>
[[gnu::always_inline]] inline std::byte* reach_in(const Span& span, const volatile void* address, std::size_t bytes,
                                                  int pe) {
  const std::size_t there = (span.*Size).load(std::memory_order_relaxed);
  const std::uintptr_t offset = offset_in(span, address);
  if (offset < there && bytes <= there - offset && static_cast<unsigned>(pe) < static_cast<unsigned>(hot.pes)) [[likely]]
    return copy_at(span, offset, pe);
  return nullptr;
}
template <auto Size>
[[gnu::always_inline]] inline std::byte* reach_in(const volatile void* address, std::size_t bytes, int pe) {
  if (std::byte* const at = reach_in<Size>(hot.spans[0], address, bytes, pe); at != nullptr) [[likely]]
    return at;
  std::byte* const at = reach_in<Size>(hot.spans[1], address, bytes, pe);
  // A copy whose two sides overlap has to see that they do.
  return at != nullptr && pe == hot.pe ? const_cast<std::byte*>(static_cast<const volatile std::byte*>(address)) : at;
}
// Where PE `pe` has its copy of `bytes` symmetric bytes in host memory; null: they are none, or there is no such PE, or find() knows. This
// PE's own are where the program has them.
[[gnu::always_inline]] inline std::byte* reach(const volatile void* address, std::size_t bytes, int pe) {
  return reach_in<&Span::bytes>(address, bytes, pe);
}
// The same for copies whose other side is memory of the caller's: null also where that has to be looked up.
[[gnu::always_inline]] inline std::byte* reach_directly(const volatile void* address, std::size_t bytes, int pe) {
  return reach_in<&Span::direct>(address, bytes, pe);
}

}  // namespace ist::shmem
