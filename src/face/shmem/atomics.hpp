// Atomic operations, by this processor, on words of host memory: atomic with each other, whichever PE calls.
//
// Who calls this : the typed calls that generate.py makes.
// Threads        : any.
// Ownership      : none.
// Errors         : by fail(); then 0 is what was found. Memory of devices is refused.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "face/shmem/contexts.hpp"
#include "face/shmem/hot.hpp"

namespace ist::shmem {

std::byte* atomic_elsewhere(const char* call, const void* address, std::size_t bytes, int pe);

// Null, and fail() was called, if there is no such word.
template <class T>
[[gnu::always_inline]] inline T* atomic_word(const char* call, shmem_ctx_t context, const T* address, int pe) {
  if (context != SHMEM_CTX_DEFAULT && !to_world(call, context, pe)) return nullptr;
  std::byte* at = reach(address, sizeof(T), pe);
  if (at == nullptr) [[unlikely]]
    at = atomic_elsewhere(call, address, sizeof(T), pe);
  return reinterpret_cast<T*>(at);
}

// Of floating point the bits: nothing is done to them but to load, store and exchange them.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
Bits<T>* bits_of(T* word) {
  return reinterpret_cast<Bits<T>*>(word);
}

template <class T>
[[gnu::always_inline]] inline T atomic_fetch(const char* call, shmem_ctx_t context, const T* source, int pe) {
  const T* const word = atomic_word(call, context, source, pe);
  return word == nullptr ? T{} : std::bit_cast<T>(__atomic_load_n(bits_of(const_cast<T*>(word)), __ATOMIC_ACQUIRE));
}
template <class T>
[[gnu::always_inline]] inline void atomic_set(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  if (T* const word = atomic_word(call, context, dest, pe); word != nullptr)
    __atomic_store_n(bits_of(word), std::bit_cast<Bits<T>>(value), __ATOMIC_RELEASE);
}
template <class T>
[[gnu::always_inline]] inline T atomic_swap(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  T* const word = atomic_word(call, context, dest, pe);
  return word == nullptr
             ? T{}
             : std::bit_cast<T>(__atomic_exchange_n(bits_of(word), std::bit_cast<Bits<T>>(value), __ATOMIC_SEQ_CST));
}
template <class T>
[[gnu::always_inline]] inline T atomic_compare_swap(const char* call, shmem_ctx_t context, T* dest, T expected, T value,
                                                    int pe) {
  if (T* const word = atomic_word(call, context, dest, pe); word != nullptr) {
    __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
  }
  return T{};
}
template <class T>
[[gnu::always_inline]] inline T atomic_add(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  T* const word = atomic_word(call, context, dest, pe);
  return word == nullptr ? T{} : __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
}
template <class T>
[[gnu::always_inline]] inline T atomic_and(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  T* const word = atomic_word(call, context, dest, pe);
  return word == nullptr ? T{} : __atomic_fetch_and(word, value, __ATOMIC_SEQ_CST);
}
template <class T>
[[gnu::always_inline]] inline T atomic_or(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  T* const word = atomic_word(call, context, dest, pe);
  return word == nullptr ? T{} : __atomic_fetch_or(word, value, __ATOMIC_SEQ_CST);
}
template <class T>
[[gnu::always_inline]] inline T atomic_xor(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  T* const word = atomic_word(call, context, dest, pe);
  return word == nullptr ? T{} : __atomic_fetch_xor(word, value, __ATOMIC_SEQ_CST);
}
// Of the forms that may take their time: what was found, to where the caller wants it.
template <class T>
void keep(T* to, T found) {
  *to = found;
}

}  // namespace ist::shmem
