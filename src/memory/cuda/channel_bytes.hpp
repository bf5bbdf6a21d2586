// A user's bytes at any address, read and written by the threads of a kernel in words as wide as the address allows.
//
// Who calls this : channel_protocol.hpp.
// Threads        : thread `thread` of so many takes every so many-th word.
// Ownership      : none. Nobody else writes these bytes while the kernel runs.
// Errors         : none.
#pragma once

#include "memory/cuda/channel_memory.hpp"

namespace ist::channel {

template <class Word>
IST_KERNEL_CODE bool lies_as(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(Word) == 0;
}

// At most eight bytes from there on; zeros after them.
IST_KERNEL_CODE std::uint64_t bytes_at(const std::byte* from, std::uint64_t count) {
  if (count >= 8 && lies_as<std::uint64_t>(from)) return *reinterpret_cast<const std::uint64_t*>(from);
  if (count >= 8 && lies_as<std::uint32_t>(from)) {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(from);
    return words[0] | static_cast<std::uint64_t>(words[1]) << 32;
  }
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8 && i < count; ++i) value |= static_cast<std::uint64_t>(from[i]) << 8 * i;
  return value;
}

IST_KERNEL_CODE void put_bytes(std::byte* to, std::uint64_t value, std::uint64_t count) {
  if (count >= 8 && lies_as<std::uint64_t>(to)) {
    *reinterpret_cast<std::uint64_t*>(to) = value;
    return;
  }
  if (count >= 8 && lies_as<std::uint32_t>(to)) {
    auto* const words = reinterpret_cast<std::uint32_t*>(to);
    words[0] = static_cast<std::uint32_t>(value);
    words[1] = static_cast<std::uint32_t>(value >> 32);
    return;
  }
  for (unsigned i = 0; i < 8 && i < count; ++i) to[i] = static_cast<std::byte>(value >> 8 * i);
}

template <class Word>
IST_KERNEL_CODE void copy_words(std::byte* to, const std::byte* from, std::uint64_t count, unsigned thread,
                                unsigned threads) {
  auto* __restrict__ const target = reinterpret_cast<Word*>(to);
  const auto* __restrict__ const source = reinterpret_cast<const Word*>(from);
  const std::uint64_t words = count / sizeof(Word);
#if defined(__CUDACC__)
#pragma unroll 4
#endif
  for (std::uint64_t i = thread; i < words; i += threads) target[i] = source[i];
  for (std::uint64_t i = words * sizeof(Word) + thread; i < count; i += threads) to[i] = from[i];
}

// One of the two lies as a vector does.
IST_KERNEL_CODE void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t count, unsigned thread,
                                unsigned threads) {
  const void* const both =
      reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from));
  if (lies_as<Quad>(both)) return copy_words<Quad>(to, from, count, thread, threads);
  if (lies_as<std::uint64_t>(both)) return copy_words<std::uint64_t>(to, from, count, thread, threads);
  if (lies_as<std::uint32_t>(both)) return copy_words<std::uint32_t>(to, from, count, thread, threads);
  copy_words<std::byte>(to, from, count, thread, threads);
}

}  // namespace ist::channel
