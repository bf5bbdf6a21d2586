// What is visible when, and that all have come.
//
// Who calls this : setup, memory, ordering.cpp's calls, locks.
// Threads        : any; barrier_all one at a time.
// Ownership      : none.
// Errors         : by fail().
#pragma once

#include "face/shmem/hot.hpp"

namespace ist::shmem {

// Of all heaps of device memory; false where it failed, and fail() was called.
bool quiet_devices(const char* call);
bool fence_devices(const char* call);
// Host memory is written by this processor, at once; others see it in order.
inline void quiet(const char* call = "shmem_quiet") {
  if (hot.devices.load(std::memory_order_relaxed)) [[unlikely]]
    quiet_devices(call);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
inline void fence(const char* call = "shmem_fence") {
  if (hot.devices.load(std::memory_order_relaxed)) [[unlikely]]
    fence_devices(call);
  std::atomic_thread_fence(std::memory_order_release);
}
bool sync_all(const char* call);
bool barrier_all(const char* call);

}  // namespace ist::shmem
