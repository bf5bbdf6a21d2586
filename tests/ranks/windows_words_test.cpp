// Windows: signals, waits and atomics, by calls of hosts and by those of kernels. Run as messages_test.cpp is.
#include <isthmus/device/window.cuh>

#include "windows_support.hpp"

namespace {

using namespace rank_test;

std::uint64_t seed_of(int pe, std::size_t size) { return size * 100 + static_cast<std::uint64_t>(pe) + 7; }

// Offset of the first word: what is registered begins at an odd address.
std::uint64_t first_word(const ist_window_view& view, int pe) {
  return (64 - reinterpret_cast<std::uint64_t>(view.base[pe]) % 64) % 64;
}

TEST(Windows, SignalsFollowTheirBytesAndAtomicsCountEveryTime) {
  constexpr std::uint64_t kRounds = 50;
  constexpr std::uint64_t kBytes = 4001;
  for (const KindName& of : window_kinds()) {
    const TestWindow window{of.kind, 20000};
    const ist_window_view view = window.view();
    const std::uint64_t mine = first_word(view, rank()), theirs = first_word(view, right());
    window.store(std::vector<unsigned char>(24, 0), mine);
    window.barrier();
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      const auto bytes = random_bytes(kBytes, seed_of(rank(), round));
      const auto operation = round % 2 == 0 ? IST_SIGNAL_SET : IST_SIGNAL_ADD;
      IST_OK_OR_FAIL(ist_window_put_signal(window, 1001, ist_host(bytes.data()), kBytes, theirs,
                                           operation == IST_SIGNAL_SET ? round : 1, operation, right()));
      IST_OK_OR_FAIL(ist_window_wait_until(window, mine, IST_UINT64, IST_COMPARE_GE, static_cast<std::int64_t>(round)));
      std::vector<unsigned char> found(kBytes, 0x11);
      IST_OK_OR_FAIL(ist_window_get(window, ist_host(found.data()), 1001, kBytes, rank()));
      EXPECT_EQ(-1, first_difference(random_bytes(kBytes, seed_of(left(), round)), found))
          << "round " << round << " of " << of.name;
      const std::uint64_t at_zero = first_word(view, 0);
      IST_OK_OR_FAIL(ist_window_atomic64(window, IST_ATOMIC_ADD, at_zero + 8, 3, nullptr, 0));
      IST_OK_OR_FAIL(ist_window_atomic32(window, IST_ATOMIC_INC, at_zero + 16, 0, nullptr, 0));
      window.barrier();
    }
    std::uint64_t sum = 0;
    std::uint32_t count = 0;
    const std::uint64_t at_zero = first_word(view, 0);
    IST_OK_OR_FAIL(ist_window_atomic64(window, IST_ATOMIC_FETCH, at_zero + 8, 0, &sum, 0));
    IST_OK_OR_FAIL(ist_window_atomic32(window, IST_ATOMIC_FETCH, at_zero + 16, 0, &count, 0));
    EXPECT_EQ(kRounds * 3 * static_cast<unsigned>(size()), sum) << of.name;
    EXPECT_EQ(kRounds * static_cast<unsigned>(size()), count) << of.name;
    window.barrier();
    if (rank() == 0) {
      std::uint64_t before = 0;
      IST_OK_OR_FAIL(ist_window_compare_swap64(window, at_zero + 8, sum, 5, &before, 0));
      EXPECT_EQ(sum, before);
      IST_OK_OR_FAIL(ist_window_compare_swap64(window, at_zero + 8, sum, 6, &before, 0));
      EXPECT_EQ(5U, before);
      std::uint32_t narrow = 0;
      IST_OK_OR_FAIL(ist_window_compare_swap32(window, at_zero + 16, count, 9, &narrow, 0));
      EXPECT_EQ(count, narrow);
      IST_OK_OR_FAIL(ist_window_atomic32(window, IST_ATOMIC_SET, at_zero + 16, 1, &narrow, 0));
      EXPECT_EQ(9U, narrow);
    }
    expect_error(IST_ERR_ARGUMENT, "multiple", ist_window_atomic64(window, IST_ATOMIC_ADD, at_zero + 4, 1, nullptr, 0));
    expect_error(IST_ERR_ARGUMENT, "multiple", ist_window_atomic32(window, IST_ATOMIC_ADD, at_zero + 1, 1, nullptr, 0));
    expect_error(IST_ERR_ARGUMENT, "operation is 99",
                 ist_window_atomic64(window, static_cast<ist_atomic>(99), at_zero, 1, nullptr, 0));
    expect_error(IST_ERR_ARGUMENT, "operation is 5",
                 ist_window_put_signal(window, 0, ist_host(&sum), 0, theirs, 1, static_cast<ist_signal>(5), right()));
    expect_error(IST_ERR_ARGUMENT, "no multiple of 8",
                 ist_window_put_signal(window, 0, ist_host(&sum), 0, theirs + 4, 1, IST_SIGNAL_SET, right()));
    expect_error(IST_ERR_ARGUMENT, "were named",
                 ist_window_put_signal(window, 0, ist_host(&sum), 0, 20000, 1, IST_SIGNAL_SET, right()));
    expect_error(IST_ERR_ARGUMENT, "type is", ist_window_wait_until(window, mine, IST_DOUBLE, IST_COMPARE_EQ, 1));
    expect_error(IST_ERR_ARGUMENT, "were named", ist_window_wait_until(window, 19999, IST_UINT64, IST_COMPARE_EQ, 1));
    window.barrier();
  }
}

// The calls of kernels, made by processors that play a thread of one each.
struct Alone {
  unsigned thread = 0, threads = 1, block = 0, blocks = 1;
  void sync() const {}
};

TEST(Windows, CallsOfKernelsReachThePlacesThatTheyName) {
  using namespace ist::device;
  constexpr std::uint64_t kRounds = 200;
  constexpr std::uint64_t kDeadline = 20000000000;
  const TestWindow window{IST_KIND_HOST, 70000};
  const ist_window_view view = window.view();
  const Alone crew;
  // Words of each PE: what has come, what was read, and one for every operation.
  const auto word = [&](int pe, unsigned number) { return first_word(view, pe) + std::uint64_t{8} * number; };
  window.store(std::vector<unsigned char>(512, 0), first_word(view, rank()));
  window.barrier();
  const auto comes_to = [&](unsigned number, std::uint64_t value) {
    return wait_until(view, peer_ptr<std::uint64_t>(view, word(rank(), number), rank()), Compare::greater_equal, value,
                      kDeadline);
  };
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const std::size_t bytes = 1 + round * 97 % 20000, shift = round % 17;
    const auto mine = random_bytes(bytes, seed_of(rank(), round)), theirs = random_bytes(bytes, seed_of(left(), round));
    const Signal how = round % 2 == 0 ? Signal::add : Signal::set;
    put_signal(crew, view, 1001 + shift, mine.data(), bytes, word(right(), 0), how == Signal::set ? round : 1, how, right());
    ASSERT_EQ(Status::ok, comes_to(0, round));
    std::vector<unsigned char> found(bytes, 0x11), back(bytes, 0x11);
    get(crew, view, found.data(), 1001 + shift, bytes, rank());
    ASSERT_EQ(-1, first_difference(theirs, found)) << "round " << round;
    get(crew, view, back.data(), 1001 + shift, bytes, right());
    ASSERT_EQ(-1, first_difference(mine, back)) << "round " << round;
    p<float>(view, word(right(), 2), static_cast<float>(round), right());
    EXPECT_EQ(static_cast<float>(round), g<float>(view, word(right(), 2), right()));
    atomic_add<std::uint64_t>(view, word(0, 3), 3, 0);
    EXPECT_GE(atomic_fetch_add<std::int32_t>(view, word(0, 4), 1, 0), 0);
    signal(view, word(left(), 1), 1, Signal::add, left());
    ASSERT_EQ(Status::ok, comes_to(1, round));
  }
  window.barrier();
  const auto all = static_cast<unsigned>(size());
  EXPECT_EQ(kRounds * 3 * all, atomic_fetch<std::uint64_t>(view, word(0, 3), 0));
  EXPECT_EQ(static_cast<std::int32_t>(kRounds * all), atomic_fetch<std::int32_t>(view, word(0, 4), 0));
  // Each its own word at the neighbour.
  const std::uint64_t there = word(right(), 5);
  atomic_set<std::uint32_t>(view, there, 12, right());
  EXPECT_EQ(12U, atomic_swap<std::uint32_t>(view, there, 10, right()));
  EXPECT_EQ(10U, atomic_compare_swap<std::uint32_t>(view, there, 10, 14, right()));
  EXPECT_EQ(14U, atomic_compare_swap<std::uint32_t>(view, there, 10, 15, right()));
  EXPECT_EQ(14U, atomic_fetch_and<std::uint32_t>(view, there, 7, right()));
  EXPECT_EQ(6U, atomic_fetch_or<std::uint32_t>(view, there, 1, right()));
  EXPECT_EQ(7U, atomic_fetch_xor<std::uint32_t>(view, there, 2, right()));
  atomic_and<std::uint32_t>(view, there, 4, right());
  atomic_or<std::uint32_t>(view, there, 3, right());
  atomic_xor<std::uint32_t>(view, there, 1, right());
  EXPECT_EQ(6U, atomic_fetch<std::uint32_t>(view, there, right()));
  atomic_inc<std::uint32_t>(view, there, right());
  EXPECT_EQ(7U, atomic_fetch_inc<std::uint32_t>(view, there, right()));
  EXPECT_EQ(8U, atomic_fetch<std::uint32_t>(view, there, right()));
  // A word that nobody writes: the deadline ends it.
  EXPECT_EQ(Status::late, wait_until(view, peer_ptr<std::uint64_t>(view, word(rank(), 9), rank()), Compare::not_equal,
                                     std::uint64_t{0}, 20000000));
  window.barrier();
}

}  // namespace
