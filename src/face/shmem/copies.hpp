// Puts and gets: into, and out of, memory of other PEs that this process maps.
//
// Who calls this : the typed calls that generate.py makes.
// Threads        : any.
// Ownership      : none.
// Errors         : by fail(), and then nothing is copied.
//
// Between host memories a copy is this processor's, and done when the call returns, also of the forms that need not be. What is, or may
// be, memory of a device goes through the heap's own calls (copies.cpp).
#pragma once

#include <cstring>
#include <string>
#include <type_traits>

#include "face/shmem/contexts.hpp"
#include "face/shmem/hot.hpp"
#include "memory/host/handing_copy.hpp"

namespace ist::shmem {

// False: fail() was called.
bool put_elsewhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe, bool wait = true);
void get_elsewhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe, bool wait = true);

// What other PEs look at as a word is never seen by halves.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    std::memcpy(to, &word, sizeof word);
  } else if (bytes == sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, from, sizeof word);
    std::memcpy(to, &word, sizeof word);
  } else {
    move_across(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  }
}

inline bool on_hosts() { return !hot.devices.load(std::memory_order_relaxed); }

[[gnu::always_inline]] inline void put(const char* call, shmem_ctx_t context, void* dest, const void* source,
                                       std::size_t bytes, int pe) {
  if (context != SHMEM_CTX_DEFAULT && !to_world(call, context, pe)) return;
  if (std::byte* const to = reach_directly(dest, bytes, pe); to != nullptr) [[likely]]
    copy_bytes(to, source, bytes);
  else
    put_elsewhere(call, dest, source, bytes, pe);
}
[[gnu::always_inline]] inline void get(const char* call, shmem_ctx_t context, void* dest, const void* source,
                                       std::size_t bytes, int pe) {
  if (context != SHMEM_CTX_DEFAULT && !to_world(call, context, pe)) return;
  if (const std::byte* const from = reach_directly(source, bytes, pe); from != nullptr) [[likely]]
    copy_bytes(dest, from, bytes);
  else
    get_elsewhere(call, dest, source, bytes, pe);
}
[[gnu::always_inline]] inline void put_nbi(const char* call, shmem_ctx_t context, void* dest, const void* source,
                                           std::size_t bytes, int pe) {
  if (context != SHMEM_CTX_DEFAULT && !to_world(call, context, pe)) return;
  if (std::byte* const to = reach_directly(dest, bytes, pe); to != nullptr) [[likely]]
    copy_bytes(to, source, bytes);
  else
    put_elsewhere(call, dest, source, bytes, pe, false);
}
[[gnu::always_inline]] inline void get_nbi(const char* call, shmem_ctx_t context, void* dest, const void* source,
                                           std::size_t bytes, int pe) {
  if (context != SHMEM_CTX_DEFAULT && !to_world(call, context, pe)) return;
  if (const std::byte* const from = reach_directly(source, bytes, pe); from != nullptr) [[likely]]
    copy_bytes(dest, from, bytes);
  else
    get_elsewhere(call, dest, source, bytes, pe, false);
}

// By itself, so that what is usual needs no stack.
template <class T>
[[gnu::noinline]] void put_one_elsewhere(const char* call, T* dest, T value, int pe) {
  put_elsewhere(call, dest, &value, sizeof value, pe);
}
template <class T>
[[gnu::always_inline]] inline void put_one(const char* call, shmem_ctx_t context, T* dest, T value, int pe) {
  if (context != SHMEM_CTX_DEFAULT && !to_world(call, context, pe)) return;
  std::byte* const to = reach_directly(dest, sizeof value, pe);
  if (to == nullptr) [[unlikely]]
    put_one_elsewhere(call, dest, value, pe);
  else if constexpr (std::is_integral_v<T>)
    __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELAXED);
  else
    std::memcpy(to, &value, sizeof value);
}
template <class T>
[[gnu::always_inline]] inline T get_one(const char* call, shmem_ctx_t context, const T* source, int pe) {
  T value{};
  if (context != SHMEM_CTX_DEFAULT && !to_world(call, context, pe)) return value;
  const std::byte* const from = reach_directly(source, sizeof value, pe);
  if (from == nullptr) [[unlikely]]
    get_elsewhere(call, &value, source, sizeof value, pe);
  else if constexpr (std::is_integral_v<T>)
    value = __atomic_load_n(reinterpret_cast<const T*>(from), __ATOMIC_RELAXED);
  else
    std::memcpy(&value, from, sizeof value);
  return value;
}

// `count` blocks of `block` elements of `size` bytes; from one block to the next so many elements.
struct Strided {
  void* dest;
  const void* source;
  std::ptrdiff_t dest_stride;
  std::ptrdiff_t source_stride;
  std::size_t block;
  std::size_t count;
  std::size_t size;
};
// All that `first` and those behind it name is PE `pe`'s, at once; false: fail() was called. There may be no blocks.
bool find_all(const char* call, const void* first, std::ptrdiff_t stride, const Strided& what, int pe);
void strided_put(const char* call, shmem_ctx_t context, const Strided& what, int pe);
void strided_get(const char* call, shmem_ctx_t context, const Strided& what, int pe);

struct Sent {
  void* dest;
  const void* source;
  std::size_t bytes;
  int pe;
};
struct Signal {
  std::uint64_t* word;
  std::uint64_t value;
  int operation;
};
// What is said of one that is none.
std::string no_signal_operation(int operation);
void put_signal(const char* call, shmem_ctx_t context, const Sent& sent, const Signal& signal);
void send_signal(const char* call, int pe, const Signal& signal);

}  // namespace ist::shmem
