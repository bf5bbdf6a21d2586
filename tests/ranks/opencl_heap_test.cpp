// Symmetric heaps of OpenCL memory, mapped by all PEs or served by the one whose part it is, as is_served() says. Run as messages_test.cpp is.
#include <isthmus/collective.h>
#include <isthmus/heap_stream.h>

#include <atomic>
#include <cstring>

#include "one_sided_support.hpp"

namespace {

using namespace rank_test;

bool has_opencl() {
  for (const KindName& each : heap_kinds())
    if (each.kind == IST_KIND_OPENCL) return true;
  return false;
}

#define WITH_OPENCL() \
  if (!has_opencl()) GTEST_SKIP() << "not covered here: takes OpenCL"

constexpr std::size_t kAt = 61;
constexpr std::size_t kSizes[]{0, 1, 63, 4095, 4096, 4097, 65537, 1048579};

std::uint64_t seed_of(int pe, std::size_t size) { return size * 100 + static_cast<std::uint64_t>(pe) + 3; }

ist_buffer own_buffer(const TestHeap& heap, const void* address) {
  ist_buffer own{};
  EXPECT_EQ(IST_OK, ist_heap_buffer(heap, address, &own)) << ist_error_text();
  return own;
}

std::vector<unsigned char> bytes_of(const ist_buffer& buffer, std::size_t bytes) {
  std::vector<unsigned char> found(bytes, 0x11);
  EXPECT_EQ(IST_OK, ist_memory_copy(world(), ist_host(found.data()), buffer, bytes)) << ist_error_text();
  return found;
}

// What others put is in the buffer, and what is written there others get, poison beside it.
TEST(OpenclHeap, TheOwnPartIsABufferAtAnOffset) {
  WITH_OPENCL();
  const TestHeap heap{IST_KIND_OPENCL};
  for (const std::size_t bytes : kSizes) {
    const std::size_t room = bytes + 2 * kAt;
    unsigned char* const part = heap.alloc(room);
    const ist_buffer own = own_buffer(heap, part);
    EXPECT_EQ(static_cast<std::uint32_t>(IST_KIND_OPENCL), own.kind);
    EXPECT_NE(0U, own.object);
    EXPECT_NE(reinterpret_cast<std::uint64_t>(part), own.object);
    EXPECT_NE(0U, own.queue);
    EXPECT_EQ(own.offset + 5, own_buffer(heap, part + 5).offset);
    const std::vector<unsigned char> poison(room, 0xa5);
    IST_OK_OR_FAIL(ist_memory_copy(world(), own, ist_host(poison.data()), room));
    heap.barrier();
    const auto mine = random_bytes(bytes, seed_of(rank(), bytes));
    IST_OK_OR_FAIL(ist_heap_put(heap, part + kAt, ist_host(mine.data()), bytes, right()));
    heap.barrier();
    std::vector<unsigned char> wanted = poison;
    const auto theirs = random_bytes(bytes, seed_of(left(), bytes));
    std::copy(theirs.begin(), theirs.end(), wanted.begin() + kAt);
    EXPECT_EQ(-1, first_difference(wanted, bytes_of(own, room))) << bytes << " bytes";
    heap.barrier();
    const auto written = random_bytes(room, seed_of(rank(), bytes) + 50);
    IST_OK_OR_FAIL(ist_memory_copy(world(), own, ist_host(written.data()), room));
    heap.barrier();
    std::vector<unsigned char> got(bytes, 0x5a);
    IST_OK_OR_FAIL(ist_heap_get(heap, ist_host(got.data()), part + kAt, bytes, right()));
    const auto whole = random_bytes(room, seed_of(right(), bytes) + 50);
    const auto first = whole.begin() + kAt;
    EXPECT_EQ(-1, first_difference({first, first + static_cast<std::ptrdiff_t>(bytes)}, got)) << bytes << " bytes";
    heap.barrier();
    IST_OK_OR_FAIL(ist_heap_free(heap, part));
  }
}

// A reduction on the device works on the buffer, and others get what came of it.
TEST(OpenclHeap, KernelsWorkOnTheBuffer) {
  WITH_OPENCL();
  constexpr std::int64_t kNumbers = 5003;
  const TestHeap heap{IST_KIND_OPENCL};
  auto* const part = reinterpret_cast<std::int32_t*>(heap.alloc(4 * kNumbers));
  std::vector<std::int32_t> mine(kNumbers);
  for (std::int64_t i = 0; i < kNumbers; ++i) mine[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i) + rank();
  IST_OK_OR_FAIL(ist_heap_put(heap, part, ist_host(mine.data()), 4 * kNumbers, rank()));
  const ist_buffer own = own_buffer(heap, part);
  IST_OK_OR_FAIL(ist_allreduce(IST_IN_PLACE, own, kNumbers, IST_INT32, IST_SUM, comm()));
  heap.barrier();
  std::vector<std::int32_t> got(kNumbers);
  IST_OK_OR_FAIL(ist_heap_get(heap, ist_host(got.data()), part, 4 * kNumbers, left()));
  for (std::int64_t i = 0; i < kNumbers; ++i)
    ASSERT_EQ(size() * static_cast<std::int32_t>(i) + size() * (size() - 1) / 2, got[static_cast<std::size_t>(i)]) << i;
  heap.barrier();
}

// PE 0 computes, and makes no call, until a word in host memory says that the others have put, got, added and signalled.
TEST(OpenclHeap, TheTargetNeedsNoCallWhileOthersReachItsPart) {
  WITH_OPENCL();
  constexpr std::size_t kBytes = 100001;
  constexpr int kTimes = 5;
  const TestHeap heap{IST_KIND_OPENCL};
  const TestHeap host{IST_KIND_HOST};
  unsigned char* const parts = heap.alloc(kBytes * static_cast<std::size_t>(size()));
  void* zeroed = nullptr;
  IST_OK_OR_FAIL(ist_heap_calloc(heap, 2, 8, &zeroed));
  auto* const words = static_cast<std::uint64_t*>(zeroed);
  IST_OK_OR_FAIL(ist_heap_calloc(host, 1, 8, &zeroed));
  auto* const over = static_cast<std::uint64_t*>(zeroed);
  const auto of_target = random_bytes(kBytes, 4711);
  if (rank() == 0) heap.store(parts, of_target);
  heap.barrier();
  const auto others = static_cast<std::uint64_t>(size() - 1);
  if (rank() == 0) {
    double sum = 0;
    while (std::atomic_ref(*over).load(std::memory_order_acquire) < others) sum += 1.0 / (sum + 1.0);
    std::uint64_t found = 0;
    IST_OK_OR_FAIL(ist_heap_signal_fetch(heap, words, &found));
    EXPECT_EQ(others * kTimes, found);
    IST_OK_OR_FAIL(ist_heap_signal_fetch(heap, words + 1, &found));
    EXPECT_EQ(others * kTimes, found);
    for (int pe = 1; pe < size(); ++pe)
      EXPECT_EQ(-1, first_difference(random_bytes(kBytes, seed_of(pe, kBytes)), heap.load(parts + kBytes * at(pe), kBytes)))
          << "of PE " << pe << sum * 0;
  } else {
    const auto mine = random_bytes(kBytes, seed_of(rank(), kBytes));
    for (int i = 0; i < kTimes; ++i) {
      std::vector<unsigned char> got(kBytes);
      IST_OK_OR_FAIL(ist_heap_get(heap, ist_host(got.data()), parts, kBytes, 0));
      EXPECT_EQ(-1, first_difference(of_target, got));
      IST_OK_OR_FAIL(ist_heap_atomic64(heap, IST_ATOMIC_ADD, &words[1], 1, nullptr, 0));
      const auto put = i % 2 == 0 ? ist_heap_put_signal : ist_heap_put_signal_nbi;
      IST_OK_OR_FAIL(put(heap, parts + kBytes * at(rank()), ist_host(mine.data()), kBytes, &words[0], 1, IST_SIGNAL_ADD, 0));
    }
    IST_OK_OR_FAIL(ist_heap_quiet(heap));
    IST_OK_OR_FAIL(ist_heap_atomic64(host, IST_ATOMIC_INC, over, 0, nullptr, 0));
  }
  heap.barrier();
}

// More of them than are kept, to everybody at once, complete at the one quiet.
TEST(OpenclHeap, ManyThatAreNotWaitedForAreThereAfterQuiet) {
  WITH_OPENCL();
  constexpr std::size_t kEach = 777;
  constexpr int kMany = 150;
  const TestHeap heap{IST_KIND_OPENCL};
  unsigned char* const parts = heap.alloc(kEach * kMany * at(size()));
  std::vector<std::vector<unsigned char>> mine;
  for (int i = 0; i < kMany; ++i) mine.push_back(random_bytes(kEach, seed_of(rank(), kEach + at(i))));
  for (int i = 0; i < kMany; ++i)
    for (int pe = 0; pe < size(); ++pe)
      IST_OK_OR_FAIL(
          ist_heap_put_nbi(heap, parts + kEach * at(rank() * kMany + i), ist_host(mine[at(i)].data()), kEach, pe));
  IST_OK_OR_FAIL(ist_heap_quiet(heap));
  std::vector<std::vector<unsigned char>> got(kMany, std::vector<unsigned char>(kEach, 0x5a));
  for (int i = 0; i < kMany; ++i)
    IST_OK_OR_FAIL(
        ist_heap_get_nbi(heap, ist_host(got[at(i)].data()), parts + kEach * at(rank() * kMany + i), kEach, right()));
  IST_OK_OR_FAIL(ist_heap_quiet(heap));
  for (int i = 0; i < kMany; ++i) EXPECT_EQ(-1, first_difference(mine[at(i)], got[at(i)])) << "number " << i;
  heap.barrier();
  for (int pe = 0; pe < size(); ++pe)
    for (int i = 0; i < kMany; ++i)
      EXPECT_EQ(-1, first_difference(random_bytes(kEach, seed_of(pe, kEach + at(i))),
                                     heap.load(parts + kEach * at(pe * kMany + i), kEach)))
          << "number " << i << " of PE " << pe;
  heap.barrier();
}

// Each asks by numbers of its own, which others use, too.
TEST(OpenclHeap, PutsOfOneMeetNoGetsOfTheOther) {
  WITH_OPENCL();
  const TestHeap heap{IST_KIND_OPENCL};
  constexpr std::size_t kEach = 3001, kTurns = 40, kShort = kEach - 17, kHalf = kEach * kTurns;
  unsigned char* const part = heap.alloc(2 * kHalf);
  const auto shown = random_bytes(kHalf, seed_of(rank(), 7)), sent = random_bytes(kHalf, seed_of(rank(), 9));
  IST_OK_OR_FAIL(ist_heap_put(heap, part + kHalf, ist_host(shown.data()), kHalf, rank()));
  heap.barrier();
  const auto puts = [](int pe) { return pe % 2 == 0; };
  std::vector<unsigned char> got(kHalf, 0x5a);
  for (std::size_t at = 0; at < kHalf; at += kEach) {
    if (puts(rank()))
      IST_OK_OR_FAIL(ist_heap_put_nbi(heap, part + at, ist_host(sent.data() + at), kEach, right()));
    else
      IST_OK_OR_FAIL(ist_heap_get_nbi(heap, ist_host(got.data() + at), part + kHalf + at, kShort, left()));
  }
  IST_OK_OR_FAIL(ist_heap_quiet(heap));
  heap.barrier();
  const auto whole = random_bytes(kHalf, seed_of(left(), 7));
  std::vector<unsigned char> wanted(kHalf, 0x5a);
  for (std::size_t at = 0; at < kHalf; at += kEach) std::copy_n(&whole[at], kShort, &wanted[at]);
  if (!puts(rank())) {
    EXPECT_EQ(-1, first_difference(wanted, got));
  }
  if (puts(left())) {
    EXPECT_EQ(-1, first_difference(random_bytes(kHalf, seed_of(left(), 9)), bytes_of(own_buffer(heap, part), kHalf)));
  }
  heap.barrier();
  IST_OK_OR_FAIL(ist_heap_free(heap, part));
}

// The same bytes through a heap of each kind, and back.
TEST(OpenclHeap, BytesGoOnBetweenHeapsOfEveryKind) {
  WITH_OPENCL();
  constexpr std::size_t kBytes = 300007;
  const TestHeap heap{IST_KIND_OPENCL};
  unsigned char* const part = heap.alloc(kBytes);
  for (const KindName& other : heap_kinds()) {
    const TestHeap beside{other.kind};
    unsigned char* const there = beside.alloc(kBytes);
    beside.store(there, random_bytes(kBytes, seed_of(rank(), kBytes)));
    beside.barrier();
    IST_OK_OR_FAIL(ist_heap_put(heap, part, own_buffer(beside, there), kBytes, right()));
    heap.barrier();
    beside.store(there, std::vector<unsigned char>(kBytes, 0xa5));
    IST_OK_OR_FAIL(ist_heap_get(heap, own_buffer(beside, there), part, kBytes, right()));
    EXPECT_EQ(-1, first_difference(random_bytes(kBytes, seed_of(rank(), kBytes)), beside.load(there, kBytes))) << other.name;
    beside.barrier();
    IST_OK_OR_FAIL(ist_heap_put(beside, there, own_buffer(heap, part), kBytes, right()));
    beside.barrier();
    const int of = (rank() + 2 * size() - 2) % size();
    EXPECT_EQ(-1, first_difference(random_bytes(kBytes, seed_of(of, kBytes)), beside.load(there, kBytes))) << other.name;
    heap.barrier();
  }
}

// A free waits for what the caller has put; what is allocated at that place then is nobody's before.
TEST(OpenclHeap, FreeingWaitsForWhatIsUnderWay) {
  WITH_OPENCL();
  constexpr std::size_t kBytes = 2000003;
  const TestHeap heap{IST_KIND_OPENCL};
  const auto mine = random_bytes(kBytes, seed_of(rank(), 9));
  for (int round = 0; round < 5; ++round) {
    unsigned char* const part = heap.alloc(kBytes);
    IST_OK_OR_FAIL(ist_heap_put_nbi(heap, part, ist_host(mine.data()), kBytes, right()));
    IST_OK_OR_FAIL(ist_heap_free(heap, part));
    void* zeroed = nullptr;
    IST_OK_OR_FAIL(ist_heap_calloc(heap, kBytes, 1, &zeroed));
    EXPECT_EQ(part, zeroed);
    EXPECT_EQ(
        -1, first_difference(std::vector<unsigned char>(kBytes, 0), heap.load(static_cast<unsigned char*>(zeroed), kBytes)));
    IST_OK_OR_FAIL(ist_heap_free(heap, zeroed));
  }
}

// A column there, one here, and both; poison between the elements stays.
TEST(OpenclHeap, ColumnsGoBothWays) {
  WITH_OPENCL();
  constexpr std::int64_t kRows = 100;
  const TestHeap heap{IST_KIND_OPENCL};
  unsigned char* const part = heap.alloc(24 * std::uint64_t{kRows});
  ist_layout column = IST_LAYOUT_NULL;
  IST_OK_OR_FAIL(ist_layout_vector(kRows, 1, 3, ist_layout_of(IST_INT64), &column));
  IST_OK_OR_FAIL(ist_layout_commit(column));
  const ist_layout number = ist_layout_of(IST_INT64);
  std::vector<std::int64_t> field(3 * kRows);
  for (std::size_t i = 0; i < field.size(); ++i) field[i] = static_cast<std::int64_t>(i) + std::int64_t{1000} * rank();
  IST_OK_OR_FAIL(ist_heap_put_layout(heap, part, kRows, number, ist_host(field.data()), 1, column, right()));
  heap.barrier();
  std::vector<std::int64_t> back(3 * kRows, -1);
  IST_OK_OR_FAIL(ist_heap_get_layout(heap, ist_host(back.data()), 1, column, part, kRows, number, right()));
  for (std::size_t i = 0; i < back.size(); ++i) ASSERT_EQ(i % 3 == 0 ? field[i] : -1, back[i]) << i;
  heap.barrier();
  heap.store(part, std::vector<unsigned char>(8 * field.size(), 0xff));
  heap.barrier();
  IST_OK_OR_FAIL(ist_heap_put_layout(heap, part, 1, column, ist_host(field.data()), kRows, number, right()));
  heap.barrier();
  std::vector<std::int64_t> found(3 * kRows);
  std::memcpy(found.data(), heap.load(part, 8 * found.size()).data(), 8 * found.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(i % 3 == 0 ? static_cast<std::int64_t>(i / 3) + std::int64_t{1000} * left() : -1, found[i]) << i;
  std::fill(back.begin(), back.end(), -2);
  IST_OK_OR_FAIL(ist_heap_get_layout(heap, ist_host(back.data()), 1, column, part, 1, column, right()));
  for (std::size_t i = 0; i < back.size(); ++i) ASSERT_EQ(i % 3 == 0 ? field[i / 3] : -2, back[i]) << i;
  heap.barrier();
  IST_OK_OR_FAIL(ist_layout_free(&column));
}

// By further buffers, at the same offsets everywhere: each allocation lies in one of them, and what was there before stays.
TEST(OpenclHeap, GrowsByFurtherBuffers) {
  WITH_OPENCL();
  constexpr std::size_t kFirst = 600000, kNext = 1600003;
  const TestHeap heap{IST_KIND_OPENCL, 2 << 20, 16 << 20};
  unsigned char* const first = heap.alloc(kFirst);
  heap.store(first, random_bytes(kFirst, seed_of(rank(), 1)));
  void* address = &address;
  expect_error(IST_ERR_MEMORY, "1600003 bytes were asked for; of this heap", ist_heap_alloc(heap, kNext, &address));
  expect_error(IST_ERR_MEMORY, "the largest block has", ist_heap_alloc(heap, kNext, &address));
  EXPECT_EQ(nullptr, address);
  std::vector<unsigned char*> parts{first};
  for (int times = 2; times <= 4; ++times) {
    IST_OK_OR_FAIL(ist_heap_grow(heap, static_cast<std::uint64_t>(times) * (2 << 20)));
    parts.push_back(heap.alloc(kNext));
    const auto mine = random_bytes(kNext, seed_of(rank(), at(times)));
    IST_OK_OR_FAIL(ist_heap_put(heap, parts.back(), ist_host(mine.data()), kNext, right()));
    heap.barrier();
    EXPECT_EQ(-1, first_difference(random_bytes(kNext, seed_of(left(), at(times))), heap.load(parts.back(), kNext)));
    EXPECT_EQ(-1, first_difference(random_bytes(kNext, seed_of(left(), at(times))),
                                   bytes_of(own_buffer(heap, parts.back()), kNext)))
        << "the buffer of the " << times << "th stretch";
    std::vector<unsigned char> back(kNext);
    IST_OK_OR_FAIL(ist_heap_get(heap, ist_host(back.data()), parts.back(), kNext, right()));
    EXPECT_EQ(-1, first_difference(mine, back));
    heap.barrier();
    auto* const word = reinterpret_cast<std::uint64_t*>(parts.back());
    heap.store(parts.back(), std::vector<unsigned char>(8, 0));
    heap.barrier();
    for (int pe = 0; pe < size(); ++pe) IST_OK_OR_FAIL(ist_heap_atomic64(heap, IST_ATOMIC_ADD, word, 1, nullptr, pe));
    heap.barrier();
    std::uint64_t sum = 0;
    IST_OK_OR_FAIL(ist_heap_signal_fetch(heap, word, &sum));
    EXPECT_EQ(static_cast<std::uint64_t>(size()), sum);
    heap.barrier();
  }
  EXPECT_EQ(-1, first_difference(random_bytes(kFirst, seed_of(rank(), 1)), heap.load(first, kFirst)));
  // Another buffer than the first one's; a copy over the end of one is refused, with what there is.
  EXPECT_NE(own_buffer(heap, parts[0]).object, own_buffer(heap, parts[1]).object);
  EXPECT_NE(own_buffer(heap, parts[1]).object, own_buffer(heap, parts[2]).object);
  std::vector<unsigned char> all(3 << 20);
  expect_error(IST_ERR_ARGUMENT, "the buffer that they begin in has",
               ist_heap_get(heap, ist_host(all.data()), first, all.size(), right()));
  // What is free on both sides of a seam is two blocks, in each of which there is room.
  for (unsigned char* const each : parts) IST_OK_OR_FAIL(ist_heap_free(heap, each));
  std::uint64_t free = 0, largest = 0;
  IST_OK_OR_FAIL(ist_heap_room(heap, &free, &largest));
  EXPECT_GE(free, std::uint64_t{7} << 20U);
  EXPECT_LE(largest, std::uint64_t{3} << 20U);
  expect_error(IST_ERR_MEMORY, "the largest block has", ist_heap_alloc(heap, 4 << 20, &address));
  IST_OK_OR_FAIL(ist_heap_free(heap, heap.alloc(largest)));
  expect_error(IST_ERR_ARGUMENT, "may grow to", ist_heap_grow(heap, 17 << 20));
  heap.barrier();
}

TEST(OpenclHeap, WhatCannotBeIsRefusedByName) {
  WITH_OPENCL();
  ist_heap none = IST_HEAP_NULL;
  expect_error(IST_ERR_ARGUMENT, "device is 99", ist_heap_create(comm(), IST_KIND_OPENCL, 99, 4096, 0, &none));
  expect_error(IST_ERR_MEMORY, "", ist_heap_create(comm(), IST_KIND_OPENCL, 0, std::uint64_t{1} << 45U, 0, &none));
  const TestHeap heap{IST_KIND_OPENCL, 1 << 20};
  unsigned char* const part = heap.alloc(64);
  void* address = nullptr;
  expect_error(IST_ERR_MEMORY, "the largest block has", ist_heap_alloc(heap, 2 << 20, &address));
  expect_error(IST_ERR_ARGUMENT, "may grow to", ist_heap_grow(heap, std::uint64_t{1} << 45U));
  ist_device_view device_view{};
  expect_error(IST_ERR_KIND, "ist_heap_buffer", ist_heap_device_view(heap, IST_OWN_DEVICE, &device_view));
  unsigned char byte = 0;
  expect_error(IST_ERR_KIND, "of OpenCL memory", ist_heap_put_on(heap, nullptr, part, ist_host(&byte), 1, 0));
  expect_error(IST_ERR_ARGUMENT, "buffer is null", ist_heap_buffer(heap, part, nullptr));
  ist_buffer own{};
  expect_error(IST_ERR_ARGUMENT, "were named", ist_heap_buffer(heap, &byte, &own));
  expect_error(IST_ERR_ARGUMENT, "were named", ist_heap_put(heap, part, ist_host(&byte), std::uint64_t{1} << 40U, right()));
  expect_error(IST_ERR_ARGUMENT, "null", ist_heap_put(heap, part, ist_host(nullptr), 1, right()));
  expect_error(IST_ERR_RANK, "pe is", ist_heap_get(heap, ist_host(&byte), part, 1, size()));
  ist_team_view view{};
  void* remote = nullptr;
  int is = 0;
  IST_OK_OR_FAIL(ist_heap_accessible(heap, part, right(), &is));
  EXPECT_EQ(1, is);
  // Also where the device is not the processor, which no variable says.
  if (is_served(IST_KIND_OPENCL) || ist_heap_view(heap, &view) == IST_ERR_UNSUPPORTED) {
    expect_error(IST_ERR_UNSUPPORTED, "serve each other", ist_heap_view(heap, &view));
    expect_error(IST_ERR_UNSUPPORTED, "serve each other", ist_heap_pointer(heap, part, right(), &remote));
  } else {
    IST_OK_OR_FAIL(ist_heap_view(heap, &view));
    IST_OK_OR_FAIL(ist_heap_pointer(heap, part, right(), &remote));
    EXPECT_NE(nullptr, remote);
  }
  heap.barrier();
}

// Of a host heap the buffer is its address.
TEST(OpenclHeap, ABufferOfOtherKindsIsAnAddress) {
  const TestHeap heap{IST_KIND_HOST};
  unsigned char* const part = heap.alloc(64);
  const ist_buffer own = own_buffer(heap, part + 3);
  EXPECT_EQ(static_cast<std::uint32_t>(IST_KIND_HOST), own.kind);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(part + 3), own.object + own.offset);
  heap.barrier();
}

}  // namespace
