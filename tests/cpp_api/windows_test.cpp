// The C++ face of windows: copies both ways, addresses, signals, waits, atomics of either width and sign, and errors.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "isthmus/isthmus.hpp"
#include "isthmus/window.hpp"

namespace {

using isthmus::Buffer;
using isthmus::Compare;
using isthmus::Error;
using isthmus::Kind;
using isthmus::Memory;
using isthmus::Signal;
using isthmus::Window;
using isthmus::World;

constexpr std::size_t kBytes = 65536;

struct WindowOfAll : testing::Test {
  World world;
  Memory memory = world.allocate(Kind::host, kBytes);
  Window window{world.comm(), memory.buffer(), kBytes};
  std::span<unsigned char> own = memory.as_span<unsigned char>();
  int me = window.pe(), all = window.pes(), right = (me + 1) % all, left = (me + all - 1) % all;
  WindowOfAll() {
    std::memset(own.data(), 0, kBytes);
    barrier();
  }
  ~WindowOfAll() override { window.free(); }
  void barrier() const {
    window.quiet();
    world.comm().barrier();
  }
};

TEST_F(WindowOfAll, carries_every_byte_both_ways) {
  std::vector<double> sent(1001), found(1001);
  std::iota(sent.begin(), sent.end(), 1000.0 * me);
  window.put(24, std::span<const double>(sent), right);
  window.put_nbi(20003, Buffer::host(sent.data()), 777, right);
  barrier();
  std::vector<double> wanted(1001);
  std::iota(wanted.begin(), wanted.end(), 1000.0 * left);
  std::vector<unsigned char> whole(kBytes);
  std::memcpy(whole.data() + 24, wanted.data(), 1001 * sizeof(double));
  std::memcpy(whole.data() + 20003, wanted.data(), 777);
  EXPECT_EQ(0, std::memcmp(whole.data(), own.data(), kBytes));
  window.get(std::span(found), 24, right);
  EXPECT_EQ(sent, found);
  std::fill(found.begin(), found.end(), 0.0);
  window.get_nbi(Buffer::host(found.data()), 24, 1001 * sizeof(double), right);
  window.quiet();
  EXPECT_EQ(sent, found);
  EXPECT_EQ(*window.peer_ptr<double>(24 + 8, right), sent[1]);
  EXPECT_EQ(window.peer_ptr(0, me), own.data());
  EXPECT_EQ(window.view().base[me], own.data());
  EXPECT_EQ(window.view().bytes[right], kBytes);
  barrier();
}

TEST_F(WindowOfAll, words_are_signalled_waited_for_and_counted) {
  for (std::uint64_t round = 1; round <= 100; ++round) {
    window.put_signal(64, Buffer::host(&round), sizeof round, 0, 1, right, Signal::add);
    window.wait_until<std::uint64_t>(0, Compare::greater_equal, round);
    EXPECT_TRUE(window.test<std::uint64_t>(0, Compare::not_equal, round + 1));
    window.atomic_fetch_add<std::int32_t>(8, -2, 0);
    window.atomic_fetch_add<std::uint64_t>(16, 3, 0);
    barrier();
  }
  EXPECT_EQ(window.atomic_fetch<std::int32_t>(8, 0), -200 * all);
  EXPECT_EQ(window.atomic_fetch<std::uint64_t>(16, 0), std::uint64_t{300} * static_cast<unsigned>(all));
  barrier();
  window.atomic_set<std::int64_t>(24, -1, right);
  barrier();
  EXPECT_EQ(window.atomic_fetch_and<std::int64_t>(24, 12, me), -1);
  EXPECT_EQ(window.atomic_fetch_or<std::int64_t>(24, 3, me), 12);
  EXPECT_EQ(window.atomic_fetch_xor<std::int64_t>(24, 1, me), 15);
  EXPECT_EQ(window.atomic_swap<std::int64_t>(24, -5, me), 14);
  EXPECT_EQ(window.atomic_compare_swap<std::int64_t>(24, -5, 6, me), -5);
  EXPECT_EQ(window.atomic_compare_swap<std::int32_t>(24, 5, 7, me), 6);
  EXPECT_EQ(window.atomic_fetch<std::int64_t>(24, me), 6);
  barrier();
}

TEST_F(WindowOfAll, errors_carry_code_and_text) {
  const auto code_of = [](const auto& call) -> int {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
      return error.code();
    }
    return IST_OK;
  };
  EXPECT_EQ(code_of([&] { window.put(kBytes, memory.buffer(), 1, right); }), IST_ERR_ARGUMENT);
  EXPECT_EQ(code_of([&] { window.put(0, memory.buffer(), 1, all); }), IST_ERR_RANK);
  std::vector<unsigned char> ordinary(kBytes);
  EXPECT_EQ(code_of([&] { Window(world.comm(), Buffer::host(ordinary.data()), kBytes); }), IST_ERR_UNSUPPORTED);
  Window other(world.comm(), Buffer::host(static_cast<void*>(nullptr)), 0);
  other.free();
  EXPECT_EQ(code_of([&] { other.quiet(); }), IST_ERR_HANDLE);
  barrier();
}

}  // namespace
