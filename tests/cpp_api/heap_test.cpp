// The C++ face of symmetric heaps: typed copies both ways, signals, waits, atomics of either width and sign, and errors.
#include "isthmus/heap.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "isthmus/isthmus.hpp"

namespace {

using isthmus::Buffer;
using isthmus::Compare;
using isthmus::Error;
using isthmus::Heap;
using isthmus::Kind;
using isthmus::Signal;
using isthmus::World;

struct Particle {
  double place[3];
  std::int32_t kind;
  std::int32_t cell;
};

// The same at every PE that asks for the one of `pe`.
template <class T>
std::vector<T> random_of(int pe, std::size_t count) {
  std::mt19937_64 random{static_cast<std::uint64_t>(pe) + 20261125};
  std::vector<T> made(count);
  auto* const bytes = reinterpret_cast<unsigned char*>(made.data());
  for (std::size_t i = 0; i < count * sizeof(T); ++i) bytes[i] = static_cast<unsigned char>(random());
  return made;
}
template <class T>
bool same(const std::vector<T>& one, const std::vector<T>& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0;
}

struct HeapOfAll : testing::Test {
  World world;
  Heap heap{world.comm(), Kind::host, 1 << 20};
  int me = heap.pe(), all = heap.pes(), right = (me + 1) % all, left = (me + all - 1) % all;
  ~HeapOfAll() override { heap.destroy(); }
};

TEST_F(HeapOfAll, typed_puts_and_gets_carry_every_byte) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{129}, std::size_t{1000}}) {
    auto* const mine = heap.alloc<Particle>(2 * count);
    auto sent = random_of<Particle>(me, count), found = random_of<Particle>(100 + me, count);
    if (count != 0) std::memset(mine, 0xa5, 2 * count * sizeof(Particle));
    heap.barrier();
    heap.put(mine, std::span<const Particle>(sent), right);
    heap.put_nbi(mine + count, Buffer::host(sent.data()), count, right);
    heap.barrier();
    EXPECT_TRUE(same(random_of<Particle>(left, count), std::vector<Particle>(mine, mine + count))) << count;
    EXPECT_TRUE(same(random_of<Particle>(left, count), std::vector<Particle>(mine + count, mine + 2 * count))) << count;
    heap.get(std::span(found), mine, right);
    EXPECT_TRUE(same(sent, found)) << count;
    found = random_of<Particle>(100 + me, count);
    heap.get_nbi(Buffer::host(found.data()), mine, count, left);
    heap.quiet();
    EXPECT_TRUE(same(random_of<Particle>((left + all - 1) % all, count), found)) << count;
    heap.barrier();
    heap.free(mine);
  }
}

TEST_F(HeapOfAll, strided_elements_and_single_ones) {
  auto* const mine = heap.calloc<std::int32_t>(100);
  const auto sent = random_of<std::int32_t>(me, 30), theirs = random_of<std::int32_t>(left, 30);
  heap.iput(mine, 3, Buffer::host(sent.data()), 2, 15, right);
  heap.p(mine + 99, me + 7, right);
  heap.barrier();
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(mine[3 * i], theirs[static_cast<std::size_t>(2 * i)]);
    EXPECT_EQ(mine[3 * i + 1], 0) << "between elements nothing is written";
  }
  EXPECT_EQ(mine[99], left + 7);
  EXPECT_EQ(heap.g(mine + 99, right), me + 7);
  std::vector<std::int32_t> found(30, -1);
  heap.iget(Buffer::host(found.data()), 2, mine, 3, 15, right);
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(found[2 * i], sent[2 * i]);
    EXPECT_EQ(found[2 * i + 1], -1);
  }
  heap.barrier();
  heap.free(mine);
}

TEST_F(HeapOfAll, what_was_put_is_there_when_its_signal_is) {
  auto* const mine = heap.calloc<double>(64);
  auto* const words = heap.calloc<std::uint64_t>(2);
  const auto sent = random_of<double>(me, 64);
  heap.put_signal(mine, Buffer::host(sent.data()), 64, words, 5, right);
  heap.put_signal(mine, Buffer::host(sent.data()), 0, words + 1, 2, right, Signal::add);
  heap.put_signal(mine, Buffer::host(sent.data()), 0, words + 1, 3, right, Signal::add);
  heap.wait_until(words, Compare::equal, 5);
  EXPECT_TRUE(same(random_of<double>(left, 64), std::vector<double>(mine, mine + 64)));
  heap.wait_until(words + 1, Compare::greater_equal, 5);
  EXPECT_EQ(heap.signal_fetch(words + 1), 5U);
  EXPECT_TRUE(heap.test(words, Compare::less_equal, 5));
  EXPECT_FALSE(heap.test(words, Compare::not_equal, 5));
  heap.barrier();
  heap.free(words);
  heap.free(mine);
}

TEST_F(HeapOfAll, layouts_on_both_sides_and_a_signal_that_is_not_waited_for) {
  using isthmus::Layout;
  auto* const mine = heap.calloc<double>(64);
  auto* const word = heap.calloc<std::uint64_t>(1);
  const auto sent = random_of<double>(me, 64), theirs = random_of<double>(left, 64);
  const Layout row = isthmus::type_of<double>, column = Layout::vector(8, 1, 8, row);
  heap.put_layout(mine + 3, 1, column, Buffer::host(sent.data()), 8, row, right);
  heap.put_signal_nbi(mine + 1, Buffer::host(sent.data() + 8), 1, word, 4, right);
  heap.put_signal_nbi(mine + 2, Buffer::host(sent.data() + 9), 1, word, 4, right);
  heap.barrier();
  EXPECT_EQ(heap.signal_fetch(word), 4U);
  EXPECT_EQ(mine[1], theirs[8]);
  EXPECT_EQ(mine[2], theirs[9]);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(mine[3 + 8 * i], theirs[i]);
  std::vector<double> found(16, -1);
  heap.get_layout(Buffer::host(found.data()), 1, Layout::vector(8, 1, 2, row), mine + 3, 1, column, right);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(found[2 * i], sent[i]);
    EXPECT_EQ(found[2 * i + 1], -1);
  }
  EXPECT_THROW(heap.put_layout(mine, 1, column, Buffer::host(sent.data()), 7, row, right), Error);
  heap.barrier();
  heap.free(word);
  heap.free(mine);
}

template <class T>
void expect_atomics(const Heap& heap) {
  auto* const word = heap.calloc<T>(2);
  const int all = heap.pes();
  for (int i = 0; i < 100; ++i) heap.atomic_fetch_add(word, 3, 0);
  for (int i = 0; i < 10; ++i) heap.atomic_fetch_inc(word, 0);
  heap.barrier();
  EXPECT_EQ(heap.atomic_fetch(word, 0), static_cast<T>(all * 310));
  heap.barrier();
  // One of all wins.
  const T before = heap.atomic_compare_swap(word + 1, 0, static_cast<T>(heap.pe() + 1), 0);
  heap.barrier();
  const T winner = heap.atomic_fetch(word + 1, 0);
  EXPECT_EQ(before == 0, winner == static_cast<T>(heap.pe() + 1));
  heap.barrier();
  if (heap.pe() == 0) {
    constexpr T kMost = std::numeric_limits<T>::max();
    heap.atomic_set(word, kMost, 0);
    EXPECT_TRUE(heap.test(word, Compare::equal, kMost));
    EXPECT_EQ(heap.atomic_fetch_and(word, T{12}, 0), kMost);
    EXPECT_EQ(heap.atomic_fetch_or(word, T{3}, 0), T{12});
    EXPECT_EQ(heap.atomic_fetch_xor(word, T{5}, 0), T{15});
    EXPECT_EQ(heap.atomic_swap(word, static_cast<T>(-2), 0), T{10});
    EXPECT_EQ(heap.g(word, 0), static_cast<T>(-2));
    EXPECT_EQ(heap.test(word, Compare::less, T{0}), std::is_signed_v<T>) << "words are compared as what they are";
  }
  heap.barrier();
  heap.free(word);
}
TEST_F(HeapOfAll, atomics_are_of_either_width_and_sign) {
  expect_atomics<std::int32_t>(heap);
  expect_atomics<std::uint32_t>(heap);
  expect_atomics<std::int64_t>(heap);
  expect_atomics<std::uint64_t>(heap);
}

TEST_F(HeapOfAll, parts_are_reached_by_pointers_and_views) {
  auto* const mine = heap.alloc<std::int64_t>(1, 4096);
  *mine = 1000 + me;
  heap.barrier();
  EXPECT_EQ(*heap.pointer(mine, right), 1000 + right);
  EXPECT_TRUE(heap.accessible(mine, right));
  EXPECT_FALSE(heap.accessible(mine, all));
  EXPECT_FALSE(heap.accessible(&me, right));
  const ist_team_view view = heap.view();
  EXPECT_EQ(view.pe, me);
  EXPECT_EQ(view.pes, all);
  const auto room = heap.room();
  heap.grow(2 << 20);
  EXPECT_EQ(heap.room().free, room.free + (1 << 20));
  heap.barrier();
  heap.free(mine);
}

TEST_F(HeapOfAll, of_opencl_memory_the_own_part_is_a_buffer_at_an_offset) {
  EXPECT_EQ(heap.buffer(heap.alloc<int>(1)).kind(), Kind::host);
  if (world.devices(Kind::opencl) == 0) GTEST_SKIP() << "not covered here: takes OpenCL";
  Heap of_device(world.comm(), Kind::opencl, 1 << 20);
  auto* const part = of_device.alloc<Particle>(77);
  const auto mine = random_of<Particle>(me, 77);
  of_device.put(part, std::span(mine), right);
  of_device.barrier();
  const Buffer own = of_device.buffer(part);
  EXPECT_EQ(own.kind(), Kind::opencl);
  EXPECT_EQ(of_device.buffer(part + 1).c().offset, own.c().offset + sizeof(Particle));
  std::vector<Particle> found(77);
  heap.barrier();
  auto* const beside = heap.alloc<Particle>(77);
  heap.put(beside, own, 77, me);
  heap.get(std::span(found), beside, me);
  EXPECT_TRUE(same(found, random_of<Particle>((me + all - 1) % all, 77)));
  of_device.destroy();
}

TEST_F(HeapOfAll, errors_carry_code_and_text) {
  const auto code_of = [](const auto& call) -> int {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
      return error.code();
    }
    return IST_OK;
  };
  auto* const mine = heap.alloc<std::int32_t>(4);
  const std::int32_t value = 1;
  EXPECT_EQ(code_of([&] { heap.p(mine, value, all); }), IST_ERR_RANK);
  EXPECT_EQ(code_of([&] { heap.put(mine, Buffer::host(&value), UINT64_MAX / 2, right); }), IST_ERR_ARGUMENT);
  EXPECT_EQ(code_of([&] { heap.alloc<double>(std::uint64_t{1} << 62); }), IST_ERR_MEMORY);
  heap.barrier();
  heap.free(mine);
  Heap other(world.comm(), Kind::host, 4096);
  other.destroy();
  EXPECT_EQ(code_of([&] { other.barrier(); }), IST_ERR_HANDLE);
}

}  // namespace
