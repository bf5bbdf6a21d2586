// What every one-sided call looks at: who this is, and where the parts of the symmetric heap lie.
//
// Who calls this : all of face/shmem.
// Threads        : set while one thread is inside shmem_init or shmem_finalize; read by any. `bytes` grows inside shmem_malloc.
// Ownership      : looks at the heap that world.hpp owns.
// Errors         : none here; whoever gets null asks find() of regions.hpp, which says what is wrong.
#pragma once

#define SHMEMX_NO_GENERICS
#include <shmem.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ist::shmem {

struct Hot {
  std::uintptr_t begin = 0;            // this PE's own part
  std::atomic<std::size_t> direct{0};  // `bytes`, or 0 where local addresses may be ones that a processor cannot read
  std::byte* first = nullptr;          // PE 0's part
  std::size_t stride = 0;
  int pes = 0;
  int pe = -1;
  std::atomic<std::size_t> bytes{0};  // of each part
  // There is a heap of device memory.
  std::atomic<bool> devices{false};
};
extern Hot hot;

[[gnu::always_inline]] inline std::byte* reach_in(std::size_t there, const volatile void* address, std::size_t bytes,
                                                  int pe) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - hot.begin;
  if (offset < there && bytes <= there - offset && static_cast<unsigned>(pe) < static_cast<unsigned>(hot.pes)) [[likely]]
    return hot.first + static_cast<std::size_t>(pe) * hot.stride + offset;
  return nullptr;
}
// Where PE `pe` has its copy of `bytes` bytes of the heap in host memory; null: it is none of that, or there is no such PE.
[[gnu::always_inline]] inline std::byte* reach(const volatile void* address, std::size_t bytes, int pe) {
  return reach_in(hot.bytes.load(std::memory_order_relaxed), address, bytes, pe);
}
// The same for copies whose other side is memory of the caller's: null also where that has to be looked up.
[[gnu::always_inline]] inline std::byte* reach_directly(const volatile void* address, std::size_t bytes, int pe) {
  return reach_in(hot.direct.load(std::memory_order_relaxed), address, bytes, pe);
}

}  // namespace ist::shmem
