// Isthmus in kernels: loads, stores, fences and atomics with the order they need, for devices and, with the same meaning, for
// processors that play them. The only file with PTX but for bulk.cuh: the library's own kernels take theirs from here, too.
//
// Who calls this : the other headers of isthmus/device/; src/memory/cuda/channel_memory.hpp.
// Threads        : each thread for itself.
// Ownership      : none.
// Errors         : none.
//
// `relaxed` is a whole word at a time, seen by every device, in no order with other words. `acquire` and `release` are of the whole
// system, or of one device where the name says so; both are cumulative: what a thread learned of before, by a barrier of its block
// or by an acquire, is ordered, too. Addresses are of global memory, or of host memory that kernels reach.
#ifndef ISTHMUS_DEVICE_WORDS_CUH
#define ISTHMUS_DEVICE_WORDS_CUH

#if defined(__cplusplus) && __cplusplus < 201703L
#error "isthmus/device.cuh is C++17 or later: compile with -std=c++17"
#endif

#include "isthmus/team.h"

#ifndef __CUDACC_RTC__
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#else
// NVRTC, by which CuPy compiles kernels, has no standard library: a few names stand for it there, inside of ist::device alone.

namespace ist::device::std {

using int32_t = ::int32_t;
using uint32_t = ::uint32_t;
using int64_t = ::int64_t;
using uint64_t = ::uint64_t;
using uintptr_t = ::uint64_t;
enum class byte : unsigned char {};

template <bool kFirst, class First, class Second>
struct conditional {
  using type = First;
};
template <class First, class Second>
struct conditional<false, First, Second> {
  using type = Second;
};
template <bool kFirst, class First, class Second>
using conditional_t = typename conditional<kFirst, First, Second>::type;

template <class T>
struct is_integral {
  static constexpr bool value = false;
};
template <class T>
struct is_floating_point {
  static constexpr bool value = false;
};
#define IST_DEVICE_TRAIT(TRAIT, TYPE)   \
  template <>                           \
  struct TRAIT<TYPE> {                  \
    static constexpr bool value = true; \
  };
IST_DEVICE_TRAIT(is_integral, bool)
IST_DEVICE_TRAIT(is_integral, char)
IST_DEVICE_TRAIT(is_integral, signed char)
IST_DEVICE_TRAIT(is_integral, unsigned char)
IST_DEVICE_TRAIT(is_integral, short)
IST_DEVICE_TRAIT(is_integral, unsigned short)
IST_DEVICE_TRAIT(is_integral, int)
IST_DEVICE_TRAIT(is_integral, unsigned)
IST_DEVICE_TRAIT(is_integral, long)
IST_DEVICE_TRAIT(is_integral, unsigned long)
IST_DEVICE_TRAIT(is_integral, long long)
IST_DEVICE_TRAIT(is_integral, unsigned long long)
IST_DEVICE_TRAIT(is_floating_point, float)
IST_DEVICE_TRAIT(is_floating_point, double)
#undef IST_DEVICE_TRAIT
template <class T>
struct is_arithmetic {
  static constexpr bool value = is_integral<T>::value || is_floating_point<T>::value;
};

}  // namespace ist::device::std

#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define IST_DEVICE_CODE __device__ __forceinline__
// Out of the way of the code that always runs: what is not fetched does not hold up a kernel that is over in a microsecond.
#define IST_DEVICE_RARE inline __device__ __noinline__
#define IST_DEVICE_NUMBER __host__ __device__ constexpr
// A loop that mostly goes round once: copies of its body are code that has to be fetched, and tests that have to be passed.
#define IST_DEVICE_LOOP_ONCE _Pragma("unroll 1")
#else
#include <sched.h>
#include <time.h>
#include <unistd.h>
#define IST_DEVICE_CODE inline
#define IST_DEVICE_RARE inline
#define IST_DEVICE_NUMBER constexpr
#define IST_DEVICE_LOOP_ONCE
#endif

namespace ist::device {

// That is hardly ever so: the compiler puts what is done then behind everything else, so that the usual way is read without a jump.
IST_DEVICE_CODE bool rarely(bool is) { return __builtin_expect(static_cast<long>(is), 0L) != 0; }

// Two packets, or 16 bytes of data, as a thread moves them at once.
struct alignas(16) Pair {
  std::uint64_t low;
  std::uint64_t high;
};

// Each half is whole by itself. Nothing relies on both arriving together.
IST_DEVICE_CODE Pair load_relaxed(const Pair* from) {
  Pair value;
#if defined(__CUDA_ARCH__)
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(from) : "memory");
#else
  value.low = __atomic_load_n(&from->low, __ATOMIC_RELAXED);
  value.high = __atomic_load_n(&from->high, __ATOMIC_RELAXED);
#endif
  return value;
}

IST_DEVICE_CODE void store_relaxed(Pair* to, const Pair& value) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(value.low), "l"(value.high) : "memory");
#else
  __atomic_store_n(&to->low, value.low, __ATOMIC_RELAXED);
  __atomic_store_n(&to->high, value.high, __ATOMIC_RELAXED);
#endif
}

// A single byte, past whatever the multiprocessor remembers of its neighbourhood.
IST_DEVICE_CODE std::uint32_t load_relaxed(const std::byte* from) {
#if defined(__CUDA_ARCH__)
  std::uint32_t value;
  asm volatile("ld.volatile.global.u8 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
#else
  return __atomic_load_n(reinterpret_cast<const unsigned char*>(from), __ATOMIC_RELAXED);
#endif
}

// A load and a store of one order; on processors `kOrder` of the same meaning.
#if defined(__CUDA_ARCH__)
#define IST_DEVICE_LOAD(NAME, WORD, PTX, LETTER, ORDER)                              \
  IST_DEVICE_CODE WORD NAME(const WORD* from) {                                      \
    WORD value;                                                                      \
    asm volatile("ld." PTX " %0, [%1];" : "=" LETTER(value) : "l"(from) : "memory"); \
    return value;                                                                    \
  }
#define IST_DEVICE_STORE(NAME, WORD, PTX, LETTER, ORDER)                      \
  IST_DEVICE_CODE void NAME(WORD* to, WORD value) {                           \
    asm volatile("st." PTX " [%0], %1;" ::"l"(to), LETTER(value) : "memory"); \
  }
#else
#define IST_DEVICE_LOAD(NAME, WORD, PTX, LETTER, ORDER) \
  IST_DEVICE_CODE WORD NAME(const WORD* from) { return __atomic_load_n(from, ORDER); }
#define IST_DEVICE_STORE(NAME, WORD, PTX, LETTER, ORDER) \
  IST_DEVICE_CODE void NAME(WORD* to, WORD value) { __atomic_store_n(to, value, ORDER); }
#endif

IST_DEVICE_LOAD(load_relaxed, std::uint32_t, "volatile.global.u32", "r", __ATOMIC_RELAXED)
IST_DEVICE_LOAD(load_relaxed, std::uint64_t, "volatile.global.u64", "l", __ATOMIC_RELAXED)
IST_DEVICE_LOAD(load_acquire, std::uint32_t, "acquire.sys.global.u32", "r", __ATOMIC_ACQUIRE)
IST_DEVICE_LOAD(load_acquire, std::uint64_t, "acquire.sys.global.u64", "l", __ATOMIC_ACQUIRE)
IST_DEVICE_LOAD(load_acquire_here, std::uint64_t, "acquire.gpu.global.u64", "l", __ATOMIC_ACQUIRE)
IST_DEVICE_STORE(store_relaxed, std::uint32_t, "volatile.global.u32", "r", __ATOMIC_RELAXED)
IST_DEVICE_STORE(store_relaxed, std::uint64_t, "volatile.global.u64", "l", __ATOMIC_RELAXED)
IST_DEVICE_STORE(store_release, std::uint32_t, "release.sys.global.u32", "r", __ATOMIC_RELEASE)
IST_DEVICE_STORE(store_release, std::uint64_t, "release.sys.global.u64", "l", __ATOMIC_RELEASE)
IST_DEVICE_STORE(store_release_here, std::uint64_t, "release.gpu.global.u64", "l", __ATOMIC_RELEASE)
// A word that says that packets were read, and orders nothing that was stored: a device has loaded before it stores, and does not
// store before the branch that allows it; a processor that plays one must be told so.
IST_DEVICE_LOAD(load_taken, std::uint32_t, "relaxed.sys.global.u32", "r", __ATOMIC_ACQUIRE)
IST_DEVICE_LOAD(load_taken, std::uint64_t, "relaxed.sys.global.u64", "l", __ATOMIC_ACQUIRE)
IST_DEVICE_STORE(store_taken, std::uint32_t, "relaxed.sys.global.u32", "r", __ATOMIC_RELEASE)
IST_DEVICE_STORE(store_taken, std::uint64_t, "relaxed.sys.global.u64", "l", __ATOMIC_RELEASE)
#undef IST_DEVICE_LOAD
#undef IST_DEVICE_STORE

// Earlier stores of this thread, and of whoever it has heard of, come before its later ones, for everybody.
IST_DEVICE_CODE void fence_system() {
#if defined(__CUDA_ARCH__)
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#else
  __sync_synchronize();
#endif
}
// For this device alone.
IST_DEVICE_CODE void fence_here() {
#if defined(__CUDA_ARCH__)
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#else
  __sync_synchronize();
#endif
}
// And before its later loads.
IST_DEVICE_CODE void fence_system_total() {
#if defined(__CUDA_ARCH__)
  asm volatile("fence.sc.sys;" ::: "memory");
#else
  __sync_synchronize();
#endif
}

// Atomics of the whole system, relaxed, as OpenSHMEM's are. `b` is signed or not alike: sums and exchanges do not care.
#if defined(__CUDA_ARCH__)
#define IST_DEVICE_ATOMIC(NAME, OPERATION, BUILTIN, WORD, TYPE, LETTER)         \
  IST_DEVICE_CODE WORD fetch_##NAME(WORD* at, WORD value) {                     \
    WORD before;                                                                \
    asm volatile("atom.relaxed.sys.global." OPERATION "." TYPE " %0, [%1], %2;" \
                 : "=" LETTER(before)                                           \
                 : "l"(at), LETTER(value)                                       \
                 : "memory");                                                   \
    return before;                                                              \
  }
#define IST_DEVICE_REDUCE(NAME, OPERATION, WORD, TYPE, LETTER)                                                   \
  IST_DEVICE_CODE void only_##NAME(WORD* at, WORD value) {                                                       \
    asm volatile("red.relaxed.sys.global." OPERATION "." TYPE " [%0], %1;" ::"l"(at), LETTER(value) : "memory"); \
  }
#else
#define IST_DEVICE_ATOMIC(NAME, OPERATION, BUILTIN, WORD, TYPE, LETTER) \
  IST_DEVICE_CODE WORD fetch_##NAME(WORD* at, WORD value) { return BUILTIN(at, value, __ATOMIC_RELAXED); }
#define IST_DEVICE_REDUCE(NAME, OPERATION, WORD, TYPE, LETTER) \
  IST_DEVICE_CODE void only_##NAME(WORD* at, WORD value) { (void)fetch_##NAME(at, value); }
#endif
#define IST_DEVICE_BOTH(NAME, OPERATION, BUILTIN, KIND)                      \
  IST_DEVICE_ATOMIC(NAME, OPERATION, BUILTIN, std::uint32_t, KIND "32", "r") \
  IST_DEVICE_ATOMIC(NAME, OPERATION, BUILTIN, std::uint64_t, KIND "64", "l")
#define IST_DEVICE_BOTH_REDUCE(NAME, OPERATION, KIND)               \
  IST_DEVICE_REDUCE(NAME, OPERATION, std::uint32_t, KIND "32", "r") \
  IST_DEVICE_REDUCE(NAME, OPERATION, std::uint64_t, KIND "64", "l")
IST_DEVICE_BOTH(sum, "add", __atomic_fetch_add, "u")
IST_DEVICE_BOTH(swap, "exch", __atomic_exchange_n, "b")
IST_DEVICE_BOTH(and, "and", __atomic_fetch_and, "b")
IST_DEVICE_BOTH(or, "or", __atomic_fetch_or, "b")
IST_DEVICE_BOTH(xor, "xor", __atomic_fetch_xor, "b")
IST_DEVICE_BOTH_REDUCE(sum, "add", "u")
IST_DEVICE_BOTH_REDUCE(and, "and", "b")
IST_DEVICE_BOTH_REDUCE(or, "or", "b")
IST_DEVICE_BOTH_REDUCE(xor, "xor", "b")
#undef IST_DEVICE_ATOMIC
#undef IST_DEVICE_REDUCE
#undef IST_DEVICE_BOTH
#undef IST_DEVICE_BOTH_REDUCE

#if defined(__CUDA_ARCH__)
#define IST_DEVICE_COMPARE_SWAP(NAME, WORD, PTX, LETTER, ORDER, OTHERWISE) \
  IST_DEVICE_CODE WORD NAME(WORD* at, WORD expected, WORD wanted) {        \
    WORD before;                                                           \
    asm volatile("atom." PTX " %0, [%1], %2, %3;"                          \
                 : "=" LETTER(before)                                      \
                 : "l"(at), LETTER(expected), LETTER(wanted)               \
                 : "memory");                                              \
    return before;                                                         \
  }
#else
#define IST_DEVICE_COMPARE_SWAP(NAME, WORD, PTX, LETTER, ORDER, OTHERWISE)       \
  IST_DEVICE_CODE WORD NAME(WORD* at, WORD expected, WORD wanted) {              \
    __atomic_compare_exchange_n(at, &expected, wanted, false, ORDER, OTHERWISE); \
    return expected;                                                             \
  }
#endif
IST_DEVICE_COMPARE_SWAP(fetch_compare_swap, std::uint32_t, "relaxed.sys.global.cas.b32", "r", __ATOMIC_RELAXED,
                        __ATOMIC_RELAXED)
IST_DEVICE_COMPARE_SWAP(fetch_compare_swap, std::uint64_t, "relaxed.sys.global.cas.b64", "l", __ATOMIC_RELAXED,
                        __ATOMIC_RELAXED)
// Ordered both ways.
IST_DEVICE_COMPARE_SWAP(fetch_compare_swap_in_order, std::uint64_t, "acq_rel.sys.global.cas.b64", "l", __ATOMIC_ACQ_REL,
                        __ATOMIC_ACQUIRE)
#undef IST_DEVICE_COMPARE_SWAP

// Ordered both ways; gives what was there before.
IST_DEVICE_CODE std::uint32_t fetch_sum_in_order(std::uint32_t* at, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  std::uint32_t before;
  asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(value) : "memory");
  return before;
#else
  return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
#endif
}

// A signal's sum: what the thread stored before comes first.
IST_DEVICE_CODE void add_release(std::uint64_t* at, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
#else
  __atomic_fetch_add(at, value, __ATOMIC_RELEASE);
#endif
}

// Nanoseconds of a clock that all threads of a device share; it may move in steps of a microsecond.
IST_DEVICE_CODE std::uint64_t nanoseconds() {
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

// A moment in which this thread leaves the bus to others, for who looks at host memory.
IST_DEVICE_CODE void rest_briefly() {
#if defined(__CUDA_ARCH__)
  asm volatile("nanosleep.u32 200;" ::: "memory");
#endif
}

// Between two looks that found nothing. A processor that plays a kernel may be the one that the other side needs, which gets it for sure
// only when this one sleeps.
IST_DEVICE_CODE void between_looks() {
#if !defined(__CUDA_ARCH__) && !defined(__CUDACC__)
  static thread_local unsigned looks = 0;
  if (++looks % 64 == 0)
    ::usleep(20);
  else
    ::sched_yield();
#endif
}

}  // namespace ist::device

#endif
