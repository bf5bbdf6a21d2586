// Loads and stores of channels with the order they need, for kernels and, with the same meaning, for a processor that plays one: those of
// isthmus/device/words.cuh and packet.cuh under this room's names, and what channels need beside them.
//
// Who calls this : channel_protocol.hpp, worker_protocol.hpp.
// Threads        : each thread for itself.
// Ownership      : none.
// Errors         : none.
//
// A packet needs no order: it says itself whether it is there.
#pragma once

#include <isthmus/device/packet.cuh>

#define IST_KERNEL_CODE IST_DEVICE_CODE
#define IST_KERNEL_RARE IST_DEVICE_RARE
#define IST_KERNEL_NUMBER IST_DEVICE_NUMBER

namespace ist::channel {

using device::between_looks;
using device::bytes_in;
using device::has_come;
using device::load_acquire;
using device::load_relaxed;
using device::nanoseconds;
using device::packed;
using device::store_relaxed;
using device::store_release;
using Quad = device::Pair;

// A value that was loaded elsewhere: whoever finds it here may write there. A device has the value before it stores it; a processor
// that plays one must be told so.
IST_KERNEL_CODE void store_taken(Quad* to, const Quad& value) {
#if defined(__CUDA_ARCH__)
  store_relaxed(to, value);
#else
  __atomic_store_n(&to->low, value.low, __ATOMIC_RELEASE);
  __atomic_store_n(&to->high, value.high, __ATOMIC_RELEASE);
#endif
}

// A packet of a mailbox, whose place is told to be free afterwards: on a processor that plays a device, the loads must be known to be
// over by then, and the bytes' writer be known to whoever gets them.
IST_KERNEL_CODE Quad load_mail(const Quad* from) {
#if defined(__CUDA_ARCH__)
  return load_relaxed(from);
#else
  return {__atomic_load_n(&from->low, __ATOMIC_ACQUIRE), __atomic_load_n(&from->high, __ATOMIC_ACQUIRE)};
#endif
}

// A word that says that something was loaded, and nothing of what was stored.
IST_KERNEL_CODE void store_taken(std::uint64_t* to, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  store_relaxed(to, value);
#else
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
}

// A word after which this device's own memory is read, past what a multiprocessor keeps, so that a device needs no order; a processor that
// plays one does.
IST_KERNEL_CODE std::uint64_t load_word(const std::uint64_t* from) {
#if defined(__CUDA_ARCH__)
  return load_relaxed(from);
#else
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
#endif
}

// A word by which the processor learns that what was stored before is done for all of this device.
IST_KERNEL_CODE void store_word(std::uint64_t* to, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  device::fence_here();
  store_relaxed(to, value);
#else
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
}

// Both ways in order; gives what was there before.
IST_KERNEL_CODE std::uint32_t add(std::uint32_t* to, std::uint32_t value) { return device::fetch_sum_in_order(to, value); }

IST_KERNEL_CODE bool exchange_if(std::uint64_t* at, std::uint64_t& expected, std::uint64_t wanted) {
  const std::uint64_t before = device::fetch_compare_swap_in_order(at, expected, wanted);
  const bool done = before == expected;
  expected = before;
  return done;
}

}  // namespace ist::channel
