// Loads and stores of channels with the order they need, for kernels and, with the same meaning, for a processor that plays one:
// the only file with PTX.
//
// Who calls this : channel_protocol.hpp, worker_protocol.hpp.
// Threads        : each thread for itself.
// Ownership      : none.
// Errors         : none.
//
// `relaxed` is volatile in PTX: a whole word at a time, seen by other devices, in no order with other words. `acquire` and `release`
// are of the whole system. A packet needs no order: it says itself whether it is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define IST_KERNEL_CODE __device__ __forceinline__
// Out of the way of the code that always runs: what is not fetched does not hold up a kernel that is over in a microsecond.
#define IST_KERNEL_RARE inline __device__ __noinline__
#define IST_KERNEL_NUMBER __host__ __device__ constexpr
#else
#include <sched.h>
#include <time.h>
#include <unistd.h>
#define IST_KERNEL_CODE inline
#define IST_KERNEL_RARE inline
#define IST_KERNEL_NUMBER constexpr
#endif

namespace ist::channel {

// 16 bytes, as a thread moves them at once.
struct alignas(16) Quad {
  std::uint64_t low;
  std::uint64_t high;
};

// Two words of eight bytes, each by itself whole.
IST_KERNEL_CODE Quad load_relaxed(const Quad* from) {
  Quad value;
#if defined(__CUDA_ARCH__)
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(from) : "memory");
#else
  value.low = __atomic_load_n(&from->low, __ATOMIC_RELAXED);
  value.high = __atomic_load_n(&from->high, __ATOMIC_RELAXED);
#endif
  return value;
}

IST_KERNEL_CODE void store_relaxed(Quad* to, const Quad& value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(value.low), "l"(value.high) : "memory");
#else
  __atomic_store_n(&to->low, value.low, __ATOMIC_RELAXED);
  __atomic_store_n(&to->high, value.high, __ATOMIC_RELAXED);
#endif
}

IST_KERNEL_CODE std::uint64_t load_relaxed(const std::uint64_t* from) {
#if defined(__CUDA_ARCH__)
  std::uint64_t value;
  asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
#else
  return __atomic_load_n(from, __ATOMIC_RELAXED);
#endif
}

IST_KERNEL_CODE void store_relaxed(std::uint64_t* to, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.volatile.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#else
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
#endif
}

IST_KERNEL_CODE std::uint32_t load_relaxed(const std::uint32_t* from) {
#if defined(__CUDA_ARCH__)
  std::uint32_t value;
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
#else
  return __atomic_load_n(from, __ATOMIC_RELAXED);
#endif
}

IST_KERNEL_CODE void store_relaxed(std::uint32_t* to, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#else
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
#endif
}

// A single byte, past whatever the multiprocessor remembers of its neighbourhood.
IST_KERNEL_CODE std::uint32_t load_relaxed(const std::byte* from) {
#if defined(__CUDA_ARCH__)
  std::uint32_t value;
  asm volatile("ld.volatile.global.u8 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
#else
  return __atomic_load_n(reinterpret_cast<const unsigned char*>(from), __ATOMIC_RELAXED);
#endif
}

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

IST_KERNEL_CODE std::uint64_t load_acquire(const std::uint64_t* from) {
#if defined(__CUDA_ARCH__)
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
#else
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
#endif
}

IST_KERNEL_CODE void store_release(std::uint64_t* to, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#else
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
}

IST_KERNEL_CODE void store_release(std::uint32_t* to, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
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
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  store_relaxed(to, value);
#else
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
}

// Both ways in order; gives what was there before.
IST_KERNEL_CODE std::uint32_t add(std::uint32_t* to, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  std::uint32_t before;
  asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(to), "r"(value) : "memory");
  return before;
#else
  return __atomic_fetch_add(to, value, __ATOMIC_ACQ_REL);
#endif
}

IST_KERNEL_CODE bool exchange_if(std::uint64_t* at, std::uint64_t& expected, std::uint64_t wanted) {
#if defined(__CUDA_ARCH__)
  std::uint64_t before;
  asm volatile("atom.acq_rel.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(at), "l"(expected), "l"(wanted)
               : "memory");
  const bool done = before == expected;
  expected = before;
  return done;
#else
  return __atomic_compare_exchange_n(at, &expected, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
#endif
}

// Nanoseconds of a clock that all threads of a device share; it may move in steps of a microsecond.
IST_KERNEL_CODE std::uint64_t nanoseconds() {
#if defined(__CUDA_ARCH__)
  std::uint64_t value;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(value));
  return value;
#else
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000U + static_cast<std::uint64_t>(now.tv_nsec);
#endif
}

// Between two looks that found nothing. A processor that plays a kernel may be the one that the other side needs, which gets it for sure
// only when this one sleeps.
IST_KERNEL_CODE void between_looks() {
#if !defined(__CUDA_ARCH__)
  static thread_local unsigned looks = 0;
  if (++looks % 64 == 0)
    ::usleep(20);
  else
    ::sched_yield();
#endif
}

}  // namespace ist::channel
