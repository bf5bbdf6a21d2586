// What tests between ranks share: one world per process, buffers of every kind filled with bytes that can be checked.
#pragma once

#include <gtest/gtest.h>
#include <isthmus/isthmus.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace rank_test {

// The world of all tests of this process; made before the first test, destroyed after the last one.
ist_world world();
ist_comm comm();
int rank();
int size();

#define IST_OK_OR_FAIL(call)                               \
  do {                                                     \
    const int ist_ok_or_fail = (call);                     \
    ASSERT_EQ(IST_OK, ist_ok_or_fail) << ist_error_text(); \
  } while (0)

// Where element `i` of a vector is.
inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Bytes that depend on a seed: two different seeds agree nowhere for long. By SplitMix64, since every test makes megabytes of them.
inline std::vector<unsigned char> random_bytes(std::size_t count, std::uint64_t seed) {
  std::vector<unsigned char> bytes(count);
  std::uint64_t state = std::mt19937_64(seed + 1)();  // neighbours among seeds begin far from each other
  const auto generator = [&state] {
    std::uint64_t word = (state += 0x9e3779b97f4a7c15ULL);
    word = (word ^ (word >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ (word >> 27U)) * 0x94d049bb133111ebULL;
    return word ^ (word >> 31U);
  };
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const std::uint64_t word = generator();
    std::memcpy(&bytes[i], &word, 8);
  }
  for (; i < count; ++i) bytes[i] = static_cast<unsigned char>(generator());
  return bytes;
}

// Index of the first byte that differs, or -1.
inline std::ptrdiff_t first_difference(const std::vector<unsigned char>& a, const std::vector<unsigned char>& b) {
  if (a.size() != b.size()) return 0;
  if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) return -1;  // many times quicker than byte by byte
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return static_cast<std::ptrdiff_t>(i);
  return -1;
}

struct KindName {
  ist_kind kind;
  const char* name;
};
// Kinds with a device on this machine; the ones that have none are said aloud once.
std::vector<KindName> usable_kinds();
// Has any rank of the world a device of that kind? All ranks ask.
bool any_device(ist_kind kind);

// Are these `expected`, from byte `guard` on, and poison else?
inline bool are_as_expected(const std::vector<unsigned char>& found, const std::vector<unsigned char>& expected,
                            std::size_t guard) {
  const auto poisoned = [](const unsigned char* from, std::size_t count) {
    return count == 0 || (*from == 0xa5 && std::memcmp(from, from + 1, count - 1) == 0);
  };
  const std::size_t end = guard + expected.size();
  return end <= found.size() && poisoned(found.data(), guard) && poisoned(found.data() + end, found.size() - end) &&
         (expected.empty() || std::memcmp(found.data() + guard, expected.data(), expected.size()) == 0);
}

// A buffer of any kind with guard bytes on both sides, at an odd offset.
class GuardedBuffer {
 public:
  GuardedBuffer(ist_kind kind, std::size_t bytes) : bytes_(bytes) {
    int devices = 0;
    EXPECT_EQ(IST_OK, ist_kind_devices(world(), kind, &devices));
    const int device = devices > 0 ? rank() % devices : 0;
    EXPECT_EQ(IST_OK, ist_memory_alloc(world(), kind, device, bytes + 2 * kGuard, &whole_)) << ist_error_text();
    poison();
  }
  ~GuardedBuffer() { EXPECT_EQ(IST_OK, ist_memory_free(world(), whole_)) << ist_error_text(); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  ist_buffer get() const { return ist_buffer_at(whole_, kGuard); }
  void poison() { store(std::vector<unsigned char>(bytes_ + 2 * kGuard, 0xa5), 0); }
  void fill(const std::vector<unsigned char>& bytes) { store(bytes, kGuard); }
  // The first `count` bytes are `expected`, everything else, guards included, is still poisoned.
  void expect(const std::vector<unsigned char>& expected, const std::string& what) const {
    std::vector<unsigned char> found(bytes_ + 2 * kGuard);
    ASSERT_EQ(IST_OK, ist_memory_copy(world(), ist_host(found.data()), whole_, found.size())) << ist_error_text();
    if (are_as_expected(found, expected, kGuard)) return;
    std::vector<unsigned char> wanted(found.size(), 0xa5);
    std::copy(expected.begin(), expected.end(), wanted.begin() + kGuard);
    EXPECT_EQ(-1, first_difference(wanted, found)) << what << " (guards of " << kGuard << " bytes on both sides)";
  }

 private:
  static constexpr std::size_t kGuard = 61;
  void store(const std::vector<unsigned char>& bytes, std::size_t at) {
    if (bytes.empty()) return;
    EXPECT_EQ(IST_OK, ist_memory_copy(world(), ist_buffer_at(whole_, at), ist_host(bytes.data()), bytes.size()))
        << ist_error_text();
  }
  std::size_t bytes_;
  ist_buffer whole_{};
};

// Sizes around every border: empty, odd, the slot's payload, pages, the eager limit, ring slots, several rings.
inline const std::vector<std::size_t>& border_sizes() {
  static const std::vector<std::size_t> sizes{
      0,     1,     7,     8,     9,      24,     25,     215,    216,    217,    4095,    4096,    4097,    16383,  16384,
      16385, 65535, 65536, 65537, 131071, 131072, 131073, 262143, 262144, 262145, 1048579, 2097152, 2097153, 5242881};
  return sizes;
}

}  // namespace rank_test
