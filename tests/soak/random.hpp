// Numbers and bytes that follow from what they are for: seed, round, lane, step, message. Both ends of a message know its bytes.
//
// Who calls this : every part of the soak.
// Threads        : any; a Dice belongs to one.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace soak {

// A bijection that leaves no pattern of its input (the finalizer of splitmix64).
inline std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

inline std::uint64_t hash(std::initializer_list<std::uint64_t> words) {
  std::uint64_t state = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t word : words) state = mix(state + word * 0x9e3779b97f4a7c15ULL + 1);
  return state;
}

class Dice {
 public:
  explicit Dice(std::initializer_list<std::uint64_t> words) : state_(hash(words)) {}
  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15ULL); }
  std::uint64_t below(std::uint64_t count) { return count == 0 ? 0 : next() % count; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  std::uint64_t state_;
};

// The bytes of a message, the same wherever they are made.
inline void make_bytes(unsigned char* to, std::size_t bytes, std::uint64_t seed) {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + 8 <= bytes; at += 8, ++word) {
    const std::uint64_t value = mix(seed + word * 0x9e3779b97f4a7c15ULL);
    std::memcpy(to + at, &value, 8);
  }
  const std::uint64_t last = mix(~seed);
  if (at < bytes) std::memcpy(to + at, &last, bytes - at);
}

}  // namespace soak
