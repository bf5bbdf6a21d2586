// Atomic operations: on words of host memory by this processor, on those of a device by that device; atomic with each other, whichever PE
// calls.
//
// Who calls this : the typed calls that generate.py makes.
// Threads        : any.
// Ownership      : none.
// Errors         : by fail(); then 0 is what was found.
#pragma once

#include <isthmus/heap.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "face/shmem/contexts.hpp"
#include "face/shmem/hot.hpp"

namespace ist::shmem {

// Where a word is: on this host, in a heap of device memory, or nowhere, of which fail() was told.
struct AtomicPlace {
  std::byte* at = nullptr;
  ist_heap device = nullptr;
};
AtomicPlace atomic_elsewhere(const char* call, const void* address, std::size_t bytes, int pe);
struct DeviceAtomic {
  ist_atomic operation;
  std::uint64_t operand;
};
// What was found, of a word of 4 or 8 bytes.
std::uint64_t device_atomic(const char* call, ist_heap device, const DeviceAtomic& what, const void* address,
                            std::size_t bytes, int pe);
std::uint64_t device_compare_swap(const char* call, ist_heap device, std::uint64_t expected, std::uint64_t wanted,
                                  const void* address, std::size_t bytes, int pe);

// `pe` becomes the world's.
template <class T>
[[gnu::always_inline]] inline AtomicPlace atomic_word(const char* call, shmem_ctx_t context, const T* address, int& pe) {
  if (context != SHMEM_CTX_DEFAULT && !to_world(call, context, pe)) return {};
  std::byte* const at = reach(address, sizeof(T), pe);
  if (at == nullptr) [[unlikely]]
    return atomic_elsewhere(call, address, sizeof(T), pe);
  return {at, nullptr};
}

// Of floating point the bits: nothing is done to them but to load, store and exchange them.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
Bits<T>* bits_of(T* word) {
  return reinterpret_cast<Bits<T>*>(word);
}

template <class T>
std::uint64_t wide(T value) {
  return std::bit_cast<Bits<T>>(value);
}
template <class T>
T narrow(std::uint64_t bits) {
  return std::bit_cast<T>(static_cast<Bits<T>>(bits));
}

// `here` on a word of this host's memory, `there` on one of a device's.
template <class T, class Here>
[[gnu::always_inline]] inline T atomic_at(const char* call, shmem_ctx_t context, const T* address, int pe,
                                          const DeviceAtomic& there, const Here& here) {
  const AtomicPlace place = atomic_word(call, context, address, pe);
  if (place.at != nullptr) [[likely]]
    return here(reinterpret_cast<T*>(place.at));
  return place.device == nullptr ? T{} : narrow<T>(device_atomic(call, place.device, there, address, sizeof(T), pe));
}

template <class T>
[[gnu::always_inline]] inline T atomic_fetch(const char* call, shmem_ctx_t context, const T* source, int pe) {
  return atomic_at(call, context, source, pe, {IST_ATOMIC_FETCH, 0},
                   [](T* word) { return std::bit_cast<T>(__atomic_load_n(bits_of(word), __ATOMIC_ACQUIRE)); });
}
template <class T>
[[gnu::always_inline]] inline void atomic_set(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  atomic_at(call, context, dest, pe, {IST_ATOMIC_SET, wide(value)}, [value](T* word) {
    __atomic_store_n(bits_of(word), std::bit_cast<Bits<T>>(value), __ATOMIC_RELEASE);
    return T{};
  });
}
template <class T>
[[gnu::always_inline]] inline T atomic_swap(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  return atomic_at(call, context, dest, pe, {IST_ATOMIC_SWAP, wide(value)}, [value](T* word) {
    return std::bit_cast<T>(__atomic_exchange_n(bits_of(word), std::bit_cast<Bits<T>>(value), __ATOMIC_SEQ_CST));
  });
}
template <class T>
[[gnu::always_inline]] inline T atomic_compare_swap(const char* call, shmem_ctx_t context, T* dest, T expected, T value,
                                                    int pe) {
  const AtomicPlace place = atomic_word(call, context, dest, pe);
  if (place.at != nullptr) [[likely]] {
    __atomic_compare_exchange_n(reinterpret_cast<T*>(place.at), &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
  }
  if (place.device == nullptr) return T{};
  return narrow<T>(device_compare_swap(call, place.device, wide(expected), wide(value), dest, sizeof(T), pe));
}
template <class T>
[[gnu::always_inline]] inline T atomic_add(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  return atomic_at(call, context, dest, pe, {IST_ATOMIC_ADD, wide(value)},
                   [value](T* word) { return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST); });
}
template <class T>
[[gnu::always_inline]] inline T atomic_and(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  return atomic_at(call, context, dest, pe, {IST_ATOMIC_AND, wide(value)},
                   [value](T* word) { return __atomic_fetch_and(word, value, __ATOMIC_SEQ_CST); });
}
template <class T>
[[gnu::always_inline]] inline T atomic_or(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  return atomic_at(call, context, dest, pe, {IST_ATOMIC_OR, wide(value)},
                   [value](T* word) { return __atomic_fetch_or(word, value, __ATOMIC_SEQ_CST); });
}
template <class T>
[[gnu::always_inline]] inline T atomic_xor(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  return atomic_at(call, context, dest, pe, {IST_ATOMIC_XOR, wide(value)},
                   [value](T* word) { return __atomic_fetch_xor(word, value, __ATOMIC_SEQ_CST); });
}
// Of the forms that may take their time: what was found, to where the caller wants it.
template <class T>
void keep(T* to, T found) {
  *to = found;
}

}  // namespace ist::shmem
