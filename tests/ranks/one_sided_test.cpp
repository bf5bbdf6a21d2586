// Symmetric heaps: every call, on whatever kinds there are, every byte compared. Run as messages_test.cpp is.
#include "one_sided_support.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace {

using namespace rank_test;

const std::vector<std::size_t> kSizes{0, 1, 7, 8, 63, 64, 65, 4095, 4096, 4097, 262143, 262144, 262145, 1048579};

std::uint64_t seed_of(int pe, std::size_t size) { return size * 100 + static_cast<std::uint64_t>(pe) + 1; }

// What a part should hold: `bytes` at an odd place of poison.
constexpr std::size_t kAt = 61;
std::vector<unsigned char> in_poison(const std::vector<unsigned char>& bytes, std::size_t room) {
  std::vector<unsigned char> whole(room, 0xa5);
  std::copy(bytes.begin(), bytes.end(), whole.begin() + kAt);
  return whole;
}

TEST(OneSided, PutReachesTheRightBytesOfTheRightPeFromEveryKind) {
  for (const KindName& of : heap_kinds()) {
    const TestHeap heap{of.kind};
    for (const KindName& from : usable_kinds())
      for (const std::size_t bytes : kSizes) {
        const std::size_t room = bytes + 2 * kAt;
        unsigned char* const part = heap.alloc(room);
        heap.store(part, std::vector<unsigned char>(room, 0xa5));
        GuardedBuffer source{from.kind, bytes};
        source.fill(random_bytes(bytes, seed_of(rank(), bytes)));
        heap.barrier();
        for (const bool nbi : {false, true}) {
          const auto put = nbi ? ist_heap_put_nbi : ist_heap_put;
          IST_OK_OR_FAIL(put(heap, part + kAt, source.get(), bytes, right()));
          heap.barrier();
          EXPECT_EQ(-1,
                    first_difference(in_poison(random_bytes(bytes, seed_of(left(), bytes)), room), heap.load(part, room)))
              << bytes << " bytes from " << from.name << " into a heap of " << of.name << (nbi ? ", nbi" : "");
          heap.barrier();
          heap.store(part, std::vector<unsigned char>(room, 0xa5));
          heap.barrier();
        }
        IST_OK_OR_FAIL(ist_heap_free(heap, part));
      }
  }
}

TEST(OneSided, GetBringsTheBytesOfTheRightPeIntoEveryKind) {
  for (const KindName& of : heap_kinds()) {
    const TestHeap heap{of.kind};
    for (const KindName& to : usable_kinds())
      for (const std::size_t bytes : kSizes) {
        unsigned char* const part = heap.alloc(bytes + kAt);
        heap.store(part + kAt, random_bytes(bytes, seed_of(rank(), bytes)));
        heap.barrier();
        for (const bool nbi : {false, true})
          for (const int pe : {right(), rank()}) {
            GuardedBuffer dest{to.kind, bytes};
            const auto get = nbi ? ist_heap_get_nbi : ist_heap_get;
            IST_OK_OR_FAIL(get(heap, dest.get(), part + kAt, bytes, pe));
            if (nbi) IST_OK_OR_FAIL(ist_heap_quiet(heap));
            dest.expect(random_bytes(bytes, seed_of(pe, bytes)), std::to_string(bytes) + " bytes of PE " +
                                                                     std::to_string(pe) + " from a heap of " + of.name +
                                                                     " into " + to.name);
          }
        heap.barrier();
        IST_OK_OR_FAIL(ist_heap_free(heap, part));
      }
  }
}

TEST(OneSided, StridedCopiesTouchTheirElementsAlone) {
  constexpr std::uint64_t kSize = 5;
  constexpr std::uint64_t kCount = 37;
  constexpr std::uint64_t kFar = 13;
  constexpr std::uint64_t kNear = 7;
  for (const KindName& of : heap_kinds()) {
    const TestHeap heap{of.kind};
    unsigned char* const part = heap.alloc(kFar * kCount);
    heap.store(part, std::vector<unsigned char>(kFar * kCount, 0xa5));
    heap.barrier();
    const auto mine = random_bytes(kNear * kCount, seed_of(rank(), 3));
    IST_OK_OR_FAIL(ist_heap_iput(heap, part, kFar, ist_host(mine.data()), kNear, kSize, kCount, right()));
    heap.barrier();
    const auto sent = random_bytes(kNear * kCount, seed_of(left(), 3));
    std::vector<unsigned char> wanted(kFar * kCount, 0xa5);
    for (std::uint64_t i = 0; i < kCount; ++i) std::copy_n(&sent[i * kNear], kSize, &wanted[i * kFar]);
    EXPECT_EQ(-1, first_difference(wanted, heap.load(part, wanted.size()))) << of.name;
    std::vector<unsigned char> back(kNear * kCount, 0x5a);
    IST_OK_OR_FAIL(ist_heap_iget(heap, ist_host(back.data()), kNear, part, kFar, kSize, kCount, right()));
    std::vector<unsigned char> same(kNear * kCount, 0x5a);
    for (std::uint64_t i = 0; i < kCount; ++i) std::copy_n(&mine[i * kNear], kSize, &same[i * kNear]);
    EXPECT_EQ(-1, first_difference(same, back)) << of.name;
    expect_error(IST_ERR_ARGUMENT, "dest_stride is 4",
                 ist_heap_iput(heap, part, 4, ist_host(mine.data()), kNear, kSize, 2, 0));
    expect_error(IST_ERR_OVERFLOW, "do not fit",
                 ist_heap_iput(heap, part, ~std::uint64_t{0}, ist_host(mine.data()), kNear, kSize, 3, 0));
    expect_error(IST_ERR_ARGUMENT, "were named",
                 ist_heap_iput(heap, part, 1 << 30, ist_host(mine.data()), kNear, kSize, kCount, 0));
    heap.barrier();
  }
}

TEST(OneSided, PointersReachTheMemoryItself) {
  const TestHeap heap{IST_KIND_HOST};
  auto* const word = reinterpret_cast<std::uint64_t*>(heap.alloc(8));
  *word = 0;
  heap.barrier();
  void* remote = nullptr;
  IST_OK_OR_FAIL(ist_heap_pointer(heap, word, right(), &remote));
  *static_cast<std::uint64_t*>(remote) = 100 + static_cast<std::uint64_t>(rank());
  heap.barrier();
  EXPECT_EQ(100U + static_cast<unsigned>(left()), *word);
  IST_OK_OR_FAIL(ist_heap_pointer(heap, word, rank(), &remote));
  EXPECT_EQ(word, remote);
  int is = -1;
  IST_OK_OR_FAIL(ist_heap_accessible(heap, word, right(), &is));
  EXPECT_EQ(1, is);
  IST_OK_OR_FAIL(ist_heap_accessible(heap, &is, right(), &is));
  EXPECT_EQ(0, is);
  IST_OK_OR_FAIL(ist_heap_accessible(heap, word, size(), &is));
  EXPECT_EQ(0, is);
}

TEST(OneSided, AViewLeadsToEveryPart) {
  for (const KindName& of : mapped_heap_kinds()) {
    const TestHeap heap{of.kind, 1 << 20};
    unsigned char* const part = heap.alloc(100);
    ist_team_view view{};
    IST_OK_OR_FAIL(ist_heap_view(heap, &view));
    EXPECT_EQ(rank(), view.pe);
    EXPECT_EQ(size(), view.pes);
    EXPECT_GE(view.bytes, view.sync_bytes + (1 << 20));
    EXPECT_EQ(IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(size())), view.sync_bytes);
    EXPECT_LE(view.sync + view.sync_bytes, view.bytes);
    ASSERT_NE(nullptr, view.abort_word);
    EXPECT_EQ(0U, *view.abort_word);
    for (int pe = 0; pe < size(); ++pe) {
      void* remote = nullptr;
      IST_OK_OR_FAIL(ist_heap_pointer(heap, part, pe, &remote));
      const auto offset = static_cast<std::uint64_t>(part - view.base) - static_cast<std::uint64_t>(rank()) * view.stride;
      EXPECT_EQ(view.base + static_cast<std::uint64_t>(pe) * view.stride + offset, remote);
    }
    const unsigned char* const sync = view.base + static_cast<std::uint64_t>(rank()) * view.stride + view.sync;
    EXPECT_EQ(-1, first_difference(std::vector<unsigned char>(view.sync_bytes, 0), heap.load(sync, view.sync_bytes)))
        << of.name;
    heap.barrier();
  }
}

TEST(OneSided, ASignalTellsOfTheBytesBeforeIt) {
  constexpr std::size_t kBytes = 3000;
  for (const KindName& of : heap_kinds()) {
    const TestHeap heap{of.kind};
    unsigned char* const part = heap.alloc(kBytes);
    void* zeroed = nullptr;
    IST_OK_OR_FAIL(ist_heap_calloc(heap, 2, 8, &zeroed));
    auto* const signal = static_cast<std::uint64_t*>(zeroed);
    for (std::uint64_t round = 1; round <= 200; ++round) {
      const auto mine = random_bytes(kBytes, round * 10 + static_cast<std::uint64_t>(rank()));
      const bool adds = round % 2 == 0;
      IST_OK_OR_FAIL(ist_heap_put_signal(heap, part, ist_host(mine.data()), kBytes, signal, adds ? 1 : round,
                                         adds ? IST_SIGNAL_ADD : IST_SIGNAL_SET, right()));
      IST_OK_OR_FAIL(ist_heap_wait_until(heap, signal, IST_UINT64, IST_COMPARE_GE, static_cast<std::int64_t>(round)));
      std::uint64_t found = 0;
      IST_OK_OR_FAIL(ist_heap_signal_fetch(heap, signal, &found));
      ASSERT_EQ(round, found);
      const auto wanted = random_bytes(kBytes, round * 10 + static_cast<std::uint64_t>(left()));
      ASSERT_EQ(-1, first_difference(wanted, heap.load(part, kBytes))) << of.name << ", round " << round;
      heap.barrier();
    }
    heap.barrier();
  }
}

TEST(OneSided, WordsCompareInAllSixWaysAndEveryType) {
  const TestHeap heap{IST_KIND_HOST};
  auto* const word = reinterpret_cast<std::int64_t*>(heap.alloc(8));
  *word = -5;
  const auto holds = [&](ist_type type, ist_compare compare, std::int64_t value) {
    int is = -1;
    EXPECT_EQ(IST_OK, ist_heap_test(heap, word, type, compare, value, &is)) << ist_error_text();
    if (is != 1) return false;
    EXPECT_EQ(IST_OK, ist_heap_wait_until(heap, word, type, compare, value)) << ist_error_text();
    return true;
  };
  for (const ist_type type : {IST_INT32, IST_INT, IST_INT64, IST_LONG, IST_LONG_LONG})
    for (const int value : {-6, -5, -4}) {
      EXPECT_EQ(-5 == value, holds(type, IST_COMPARE_EQ, value));
      EXPECT_EQ(-5 != value, holds(type, IST_COMPARE_NE, value));
      EXPECT_EQ(-5 > value, holds(type, IST_COMPARE_GT, value));
      EXPECT_EQ(-5 >= value, holds(type, IST_COMPARE_GE, value));
      EXPECT_EQ(-5 < value, holds(type, IST_COMPARE_LT, value));
      EXPECT_EQ(-5 <= value, holds(type, IST_COMPARE_LE, value));
    }
  for (const ist_type type : {IST_UINT32, IST_UNSIGNED, IST_UINT64, IST_UNSIGNED_LONG, IST_UNSIGNED_LONG_LONG}) {
    EXPECT_TRUE(holds(type, IST_COMPARE_GT, 7));
    EXPECT_TRUE(holds(type, IST_COMPARE_EQ, -5));
    EXPECT_FALSE(holds(type, IST_COMPARE_LT, 7));
  }
  int is = 0;
  expect_error(IST_ERR_ARGUMENT, "type is", ist_heap_test(heap, word, IST_DOUBLE, IST_COMPARE_EQ, 0, &is));
  expect_error(IST_ERR_ARGUMENT, "compare is", ist_heap_test(heap, word, IST_INT64, static_cast<ist_compare>(9), 0, &is));
  for (const std::int64_t value : {std::int64_t{1} << 32, -(std::int64_t{1} << 31) - 1})
    for (const ist_type type : {IST_INT32, IST_UINT32})
      expect_error(IST_ERR_ARGUMENT, "value is", ist_heap_wait_until(heap, word, type, IST_COMPARE_NE, value));
  expect_error(IST_ERR_ARGUMENT, "value is",
               ist_heap_test(heap, word, IST_INT32, IST_COMPARE_LT, std::int64_t{3} << 30, &is));
  EXPECT_EQ(IST_OK, ist_heap_test(heap, word, IST_UINT32, IST_COMPARE_LT, std::int64_t{3} << 30, &is));
  expect_error(IST_ERR_ARGUMENT, "multiple",
               ist_heap_wait_until(heap, reinterpret_cast<char*>(word) + 4, IST_INT64, IST_COMPARE_EQ, 0));
  heap.barrier();
}

template <class T>
void set_own(const TestHeap& heap, T* word, T value) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&value);
  heap.store(reinterpret_cast<unsigned char*>(word), {bytes, bytes + sizeof value});
}

template <class T>
T own(const TestHeap& heap, const T* word) {
  T value{};
  std::memcpy(&value, heap.load(reinterpret_cast<const unsigned char*>(word), sizeof value).data(), sizeof value);
  return value;
}

// `times` by each PE at every word; a device's takes a kernel each.
template <class T, class Atomic, class CompareSwap>
void atomics_of(const TestHeap& heap, int times, Atomic atomic, CompareSwap compare_swap) {
  auto* const words = reinterpret_cast<T*>(heap.alloc(3 * sizeof(T)));
  T* const word = words + 1;
  for (int i = 0; i < 3; ++i) set_own(heap, words + i, static_cast<T>(0xa5a5a5a5));
  set_own(heap, word, T{12});
  heap.barrier();
  if (rank() == 0) {
    const int pe = size() - 1;
    T before = 99;
    const auto does = [&](ist_atomic operation, T operand, T was) {
      EXPECT_EQ(IST_OK, atomic(heap, operation, word, operand, &before, pe)) << ist_error_text();
      EXPECT_EQ(was, before) << "operation " << operation;
    };
    does(IST_ATOMIC_FETCH, 0, 12);
    does(IST_ATOMIC_ADD, 5, 12);
    does(IST_ATOMIC_INC, 77, 17);
    does(IST_ATOMIC_SWAP, 0xff, 18);
    does(IST_ATOMIC_AND, 0x3c, 0xff);
    does(IST_ATOMIC_OR, 0x81, 0x3c);
    does(IST_ATOMIC_XOR, 0xff, 0xbd);
    does(IST_ATOMIC_SET, 3, 0x42);
    EXPECT_EQ(IST_OK, compare_swap(heap, word, T{4}, T{9}, &before, pe));
    EXPECT_EQ(T{3}, before);
    EXPECT_EQ(IST_OK, compare_swap(heap, word, T{3}, static_cast<T>(~T{0}), &before, pe));
    EXPECT_EQ(T{3}, before);
    EXPECT_EQ(IST_OK, atomic(heap, IST_ATOMIC_ADD, word, T{2}, static_cast<T*>(nullptr), pe));
  }
  heap.barrier();
  EXPECT_EQ(rank() == size() - 1 ? T{1} : T{12}, own(heap, word));
  heap.barrier();
  set_own(heap, word, T{0});
  heap.barrier();
  for (int i = 0; i < times; ++i)
    for (int pe = 0; pe < size(); ++pe)
      EXPECT_EQ(IST_OK, atomic(heap, IST_ATOMIC_INC, word, T{0}, static_cast<T*>(nullptr), pe));
  heap.barrier();
  EXPECT_EQ(static_cast<T>(times * size()), own(heap, word));
  for (const int beside : {0, 2}) EXPECT_EQ(static_cast<T>(0xa5a5a5a5), own(heap, words + beside));
  heap.barrier();
}

TEST(OneSided, AtomicsDoWhatTheySayAndLoseNothing) {
  for (const KindName& of : heap_kinds()) {
    SCOPED_TRACE(of.name);
    const TestHeap heap{of.kind};
    const int times = of.kind == IST_KIND_HOST ? 2000 : 200;
    atomics_of<std::uint32_t>(heap, times, ist_heap_atomic32, ist_heap_compare_swap32);
    atomics_of<std::uint64_t>(heap, times, ist_heap_atomic64, ist_heap_compare_swap64);
    expect_error(
        IST_ERR_ARGUMENT, "multiple",
        ist_heap_atomic64(heap, IST_ATOMIC_INC, reinterpret_cast<std::uint64_t*>(heap.alloc(16) + 4), 0, nullptr, 0));
  }
}

// Rank 0 computes, and makes no call, while the others put, get, signal and change words, and find what was there; it sees what they do by its
// own loads.
TEST(OneSided, TheTargetNeedsNoCallWhileOthersReachItsMemory) {
  constexpr std::size_t kBytes = 100001;
  const TestHeap heap{IST_KIND_HOST};
  unsigned char* const parts = heap.alloc(kBytes * static_cast<std::size_t>(size()));
  void* zeroed = nullptr;
  IST_OK_OR_FAIL(ist_heap_calloc(heap, at(2 + size()), 8, &zeroed));
  auto* const words = static_cast<std::uint64_t*>(zeroed);
  const auto of_target = random_bytes(kBytes, 4711);
  if (rank() == 0) heap.store(parts, of_target);
  heap.barrier();
  if (rank() == 0) {
    double sum = 0;
    const auto others = static_cast<std::uint64_t>(size() - 1);
    while (std::atomic_ref(words[0]).load(std::memory_order_acquire) < others * 10) sum += 1.0 / (sum + 1.0);
    EXPECT_EQ(others * 10, std::atomic_ref(words[1]).load());
    for (int pe = 1; pe < size(); ++pe) EXPECT_EQ(9 * 8U + 7, std::atomic_ref(words[1 + pe]).load()) << "of PE " << pe;
    for (int pe = 1; pe < size(); ++pe) {
      const unsigned char* const from = parts + kBytes * at(pe);
      EXPECT_EQ(-1, first_difference(random_bytes(kBytes, seed_of(pe, kBytes)), {from, from + kBytes}))
          << "of PE " << pe << sum * 0;
    }
  } else {
    std::uint64_t* const own = &words[1 + rank()];
    for (std::uint64_t i = 0; i < 10; ++i) {
      std::vector<unsigned char> got(kBytes);
      IST_OK_OR_FAIL(ist_heap_get(heap, ist_host(got.data()), parts, kBytes, 0));
      EXPECT_EQ(-1, first_difference(of_target, got));
      IST_OK_OR_FAIL(ist_heap_atomic64(heap, IST_ATOMIC_ADD, &words[1], 1, nullptr, 0));
      std::uint64_t before = 1;
      IST_OK_OR_FAIL(ist_heap_atomic64(heap, IST_ATOMIC_FETCH, own, 0, &before, 0));
      EXPECT_EQ(i == 0 ? 0 : i * 8 - 1, before);
      IST_OK_OR_FAIL(ist_heap_atomic64(heap, IST_ATOMIC_SWAP, own, i * 8, &before, 0));
      EXPECT_EQ(i == 0 ? 0 : i * 8 - 1, before);
      IST_OK_OR_FAIL(ist_heap_atomic64(heap, IST_ATOMIC_ADD, own, 3, &before, 0));
      EXPECT_EQ(i * 8, before);
      IST_OK_OR_FAIL(ist_heap_compare_swap64(heap, own, i * 8, 1, &before, 0));
      EXPECT_EQ(i * 8 + 3, before);
      IST_OK_OR_FAIL(ist_heap_compare_swap64(heap, own, i * 8 + 3, i * 8 + 7, &before, 0));
      EXPECT_EQ(i * 8 + 3, before);
      const auto mine = random_bytes(kBytes, seed_of(rank(), kBytes));
      IST_OK_OR_FAIL(ist_heap_put_signal(heap, parts + kBytes * at(rank()), ist_host(mine.data()), kBytes, &words[0], 1,
                                         IST_SIGNAL_ADD, 0));
    }
  }
  heap.barrier();
}

TEST(OneSided, ManyBarriersKeepEveryEpochApart) {
  const TestHeap heap{IST_KIND_HOST};
  auto* const planes = reinterpret_cast<std::uint64_t*>(heap.alloc(8 * 64 * at(size())));
  std::mt19937 random(static_cast<unsigned>(rank()) + 5);
  for (std::uint64_t epoch = 1; epoch <= 2000; ++epoch) {
    const std::vector<std::uint64_t> mine(64, epoch * 1000 + static_cast<std::uint64_t>(rank()));
    for (int pe = 0; pe < size(); ++pe)
      IST_OK_OR_FAIL(ist_heap_put(heap, planes + 64 * rank(), ist_host(mine.data()), 8 * 64, pe));
    if (random() % 500 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    heap.barrier();
    for (int pe = 0; pe < size(); ++pe)
      for (int i = 0; i < 64; ++i)
        ASSERT_EQ(epoch * 1000 + static_cast<std::uint64_t>(pe), planes[64 * pe + i])
            << "epoch " << epoch << " of PE " << pe;
    heap.barrier();
  }
}

// Who waits for a word moves a message on that only this rank can.
TEST(OneSided, AWaitMovesMessagesOn) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  constexpr int kLong = 20 << 20;
  const TestHeap heap{IST_KIND_HOST};
  void* zeroed = nullptr;
  IST_OK_OR_FAIL(ist_heap_calloc(heap, 1, 8, &zeroed));
  auto* const word = static_cast<std::uint64_t*>(zeroed);
  const auto bytes = random_bytes(kLong, 8);
  if (rank() == 0) {
    ist_request request = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_isend(ist_host(bytes.data()), kLong, IST_BYTE, 1, 3, comm(), &request));
    IST_OK_OR_FAIL(ist_heap_wait_until(heap, word, IST_UINT64, IST_COMPARE_EQ, 1));
    IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  } else if (rank() == 1) {
    std::vector<unsigned char> got(kLong);
    IST_OK_OR_FAIL(ist_recv(ist_host(got.data()), kLong, IST_BYTE, 0, 3, comm(), IST_STATUS_IGNORE));
    EXPECT_EQ(-1, first_difference(bytes, got));
    IST_OK_OR_FAIL(ist_heap_atomic64(heap, IST_ATOMIC_SET, word, 1, nullptr, 0));
  }
  heap.barrier();
}

}  // namespace
