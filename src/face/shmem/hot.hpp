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
  int pe = -1;
  int pes = 0;
  std::uintptr_t begin = 0;           // this PE's own part
  std::atomic<std::size_t> bytes{0};  // of each part
  std::byte* first = nullptr;         // PE 0's part
  std::size_t stride = 0;
  // There is a heap of device memory, so that an address of the caller's may be one that a processor cannot read.
  std::atomic<bool> devices{false};
};
extern Hot hot;

// Where PE `pe` has its copy of `bytes` bytes of the heap in host memory; null: it is none of that, or there is no such PE.
inline std::byte* reach(const volatile void* address, std::size_t bytes, int pe) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - hot.begin;
  const std::size_t there = hot.bytes.load(std::memory_order_relaxed);
  if (offset < there && bytes <= there - offset && static_cast<unsigned>(pe) < static_cast<unsigned>(hot.pes)) [[likely]]
    return hot.first + static_cast<std::size_t>(pe) * hot.stride + offset;
  return nullptr;
}

}  // namespace ist::shmem
