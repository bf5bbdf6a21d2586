// Calls through memory that all ranks see, more of them under way than a rank has slots there, on more communicators than it has lanes for.
// Run on 1 to 6 ranks.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

// From one number to the longest that a rank says at once, and one more.
constexpr std::size_t kCounts[] = {1, 4, 5, 1024, 1025, 8192, 8193};

// Of one call: what this rank gives and gets, and what that has to be.
struct Under {
  Bytes given;
  Bytes got;
  Bytes expected;
  ist_request request = IST_REQUEST_NULL;
};

// Call `number` of a row of different ones, in which every rank is a root in turn.
void begin(const Member& here, std::uint64_t number, std::size_t count, Under& call) {
  const auto n = static_cast<std::int64_t>(count);
  const int root = static_cast<int>(number) % here.size;
  call.given = input_of(here.rank, count, number);
  call.got.assign(count * 8, 0xee);
  const auto send = [&] { return ist_host(call.given.data()); };
  const auto recv = [&] { return ist_host(call.got.data()); };
  switch (number % 5) {
    case 0:
      call.expected = sum_of(0, here.size, count, number);
      IST_OK_OR_FAIL(ist_iallreduce(send(), recv(), n, IST_UINT64, IST_SUM, here.comm, &call.request));
      break;
    case 1:
      if (here.rank == root) call.got = call.given;
      call.expected = input_of(root, count, number);
      IST_OK_OR_FAIL(ist_ibcast(recv(), n, IST_UINT64, root, here.comm, &call.request));
      break;
    case 2:
      call.got.assign(count * 8 * static_cast<std::size_t>(here.size), 0xee);
      for (int r = 0; r < here.size; ++r) {
        const Bytes theirs = input_of(r, count, number);
        call.expected.insert(call.expected.end(), theirs.begin(), theirs.end());
      }
      IST_OK_OR_FAIL(ist_iallgather(send(), n, recv(), n, IST_UINT64, here.comm, &call.request));
      break;
    case 3:
      call.expected = here.rank == root ? sum_of(0, here.size, count, number) : call.got;
      IST_OK_OR_FAIL(ist_ireduce(send(), recv(), n, IST_UINT64, IST_SUM, root, here.comm, &call.request));
      break;
    default:
      call.expected = sum_of(0, here.rank + 1, count, number);
      IST_OK_OR_FAIL(ist_iscan(send(), recv(), n, IST_UINT64, IST_SUM, here.comm, &call.request));
  }
}

TEST(Shared, ManyCallsGoOnBesideOthersThatWait) {
  const Member here{comm()};
  for (const std::size_t count : kCounts) {
    SCOPED_TRACE(std::to_string(count) + " numbers");
    std::vector<Under> calls(71);
    std::uint64_t number = count;
    for (std::size_t i = 0; i < calls.size(); ++i, ++number) {
      begin(here, number, count, calls[i]);
      // Now and then one that waits, while those before it are under way.
      if (i % 7 == 3) {
        std::uint64_t one = 1;
        std::uint64_t all = 0;
        IST_OK_OR_FAIL(ist_allreduce(ist_host(&one), ist_host(&all), 1, IST_UINT64, IST_SUM, comm()));
        EXPECT_EQ(static_cast<std::uint64_t>(here.size), all);
      }
    }
    // Each rank waits in another order.
    for (std::size_t i = 0; i < calls.size(); ++i) {
      Under& call = calls[(i * 5 + static_cast<std::size_t>(here.rank) * 3) % calls.size()];
      IST_OK_OR_FAIL(ist_wait(&call.request, IST_STATUS_IGNORE));
      EXPECT_EQ(-1, first_difference(call.expected, call.got)) << "call " << (&call - calls.data());
    }
  }
}

TEST(Shared, ARootThatRunsAheadWaitsForThoseWhoReadLate) {
  const Member here{comm()};
  for (int i = 0; i < 200; ++i) {
    Bytes bytes = here.rank == 0 ? random_bytes(3000, static_cast<std::uint64_t>(i)) : Bytes(3000, 0xee);
    if (here.rank == here.size - 1 && i % 40 == 5) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    IST_OK_OR_FAIL(ist_bcast(ist_host(bytes.data()), 3000, IST_BYTE, 0, comm()));
    EXPECT_EQ(-1, first_difference(random_bytes(3000, static_cast<std::uint64_t>(i)), bytes)) << i;
  }
}

// Is this a machine, invented or not, on which short calls go that way?
bool goes_shared() {
  const char* const profile = std::getenv("ISTHMUS_PROFILE");
  const std::string named = profile != nullptr ? profile : "";
  return size() > 1 && std::getenv("ISTHMUS_CHECK") == nullptr && (named == "builtin" || named.ends_with("/shared.json"));
}

std::uint64_t messages_sent() {
  ist_traffic traffic{};
  traffic.size = sizeof traffic;
  EXPECT_EQ(IST_OK, ist_world_traffic(world(), IST_ALL_PEERS, IST_CARRIER_NONE, &traffic)) << ist_error_text();
  return traffic.messages_sent;
}

void sum_ones(ist_comm of) {
  std::uint64_t one = 1;
  std::uint64_t all = 0;
  IST_OK_OR_FAIL(ist_allreduce(ist_host(&one), ist_host(&all), 1, IST_UINT64, IST_SUM, of));
  EXPECT_EQ(static_cast<std::uint64_t>(Member{of}.size), all);
}

TEST(Shared, ShortCallsTakeNoMessages) {
  if (!goes_shared())
    GTEST_SKIP()
        << "not covered here: calls without messages; alone, by numbers that want messages, or where ranks compare first";
  // There one of two ranks tells the other by a message what others say in shared memory, and parts of a root go by messages.
  const bool beside_gpus = any_device(IST_KIND_CUDA);
  const bool tells_by_message = size() == 2 && beside_gpus;
  // Also on a communicator that comes after many.
  for (int i = 0; i < 70; ++i) {
    ist_comm made = IST_COMM_NULL;
    IST_OK_OR_FAIL(ist_comm_dup(comm(), &made));
    const std::uint64_t before = messages_sent();
    sum_ones(made);
    IST_OK_OR_FAIL(ist_barrier(made));
    EXPECT_EQ(before, messages_sent()) << "communicator " << i;
    IST_OK_OR_FAIL(ist_comm_free(&made));
  }
  const std::uint64_t before = messages_sent();
  Bytes given(64 * static_cast<std::size_t>(size()), 1);
  Bytes got(given.size());
  IST_OK_OR_FAIL(ist_reduce_scatter_block(ist_host(given.data()), ist_host(got.data()), 8, IST_UINT64, IST_SUM, comm()));
  const std::vector<std::int64_t> eight(static_cast<std::size_t>(size()), 8);
  IST_OK_OR_FAIL(
      ist_reduce_scatter(ist_host(given.data()), ist_host(got.data()), eight.data(), IST_UINT64, IST_SUM, comm()));
  constexpr std::int64_t kMost = 8192;
  Bytes all(kMost, 1);
  Bytes sum(all.size());
  if (!tells_by_message) IST_OK_OR_FAIL(ist_bcast(ist_host(all.data()), kMost, IST_BYTE, 0, comm()));
  const std::int64_t few = size() == 2 ? 512 : 8;  // of more ranks, the root would combine much
  IST_OK_OR_FAIL(ist_reduce(ist_host(all.data()), ist_host(sum.data()), few, IST_UINT64, IST_SUM, 0, comm()));
  Bytes parts(64 * static_cast<std::size_t>(size()), 1);
  IST_OK_OR_FAIL(ist_exscan(ist_host(all.data()), ist_host(sum.data()), 8, IST_UINT64, IST_SUM, comm()));
  if (!beside_gpus) {
    IST_OK_OR_FAIL(ist_gather(ist_host(all.data()), 64, ist_host(parts.data()), 64, IST_BYTE, 0, comm()));
    IST_OK_OR_FAIL(ist_scatter(ist_host(parts.data()), 64, ist_host(sum.data()), 64, IST_BYTE, 0, comm()));
  }
  EXPECT_EQ(before, messages_sent());
  if (size() > 2) return;
  all.push_back(1);
  IST_OK_OR_FAIL(ist_bcast(ist_host(all.data()), kMost + 1, IST_BYTE, 0, comm()));
  EXPECT_EQ(before + (rank() == 0 ? 1U : 0U), messages_sent());
}

// One rank has its bytes in host memory and says so, so that it takes the short way; another one leaves that to be found out.
TEST(Shared, RanksOnTheShortWayMeetThoseOnTheLongOne) {
  const auto ranks = static_cast<std::size_t>(size());
  for (const std::int64_t count : {1, 5, 100, 1000}) {
    for (int turn = 0; turn < 3; ++turn) {
      const auto at = [&](Bytes& bytes) {
        return (rank() + turn) % 2 == 0 ? ist_host(bytes.data()) : ist_auto(bytes.data());
      };
      const auto each = static_cast<std::size_t>(count) * 8;
      const auto of = [&](int from, std::size_t bytes) {
        return random_bytes(bytes, 100U * static_cast<unsigned>(from) + 7);
      };
      Bytes mine = of(rank(), each);
      Bytes told = rank() == turn % size() ? mine : Bytes(each, 0xee);
      Bytes parts(each * ranks, 0xee);
      Bytes given = of(rank(), each * ranks);
      Bytes got(each * ranks, 0xee);
      Bytes both(each, 0xee);
      Bytes one(each, 0xee);
      const int root = turn % size();
      IST_OK_OR_FAIL(ist_bcast(at(told), count, IST_UINT64, root, comm()));
      IST_OK_OR_FAIL(ist_allgather(at(mine), count, at(parts), count, IST_UINT64, comm()));
      IST_OK_OR_FAIL(ist_barrier(comm()));
      IST_OK_OR_FAIL(ist_alltoall(at(given), at(got), count, IST_UINT64, comm()));
      IST_OK_OR_FAIL(ist_allreduce(at(mine), at(both), count, IST_UINT64, IST_BXOR, comm()));
      IST_OK_OR_FAIL(ist_reduce(at(mine), at(one), count, IST_UINT64, IST_BXOR, root, comm()));
      Bytes expected(each);
      for (int from = 0; from < size(); ++from) {
        const Bytes theirs = of(from, each);
        const auto place = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(from) * each);
        const auto own = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank()) * each);
        const Bytes sent = of(from, each * ranks);
        EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(), parts.begin() + place)) << "of rank " << from;
        EXPECT_TRUE(
            std::equal(got.begin() + place, got.begin() + place + static_cast<std::ptrdiff_t>(each), sent.begin() + own))
            << "from rank " << from;
        std::transform(theirs.begin(), theirs.end(), expected.begin(), expected.begin(),
                       [](unsigned char a, unsigned char b) { return static_cast<unsigned char>(a ^ b); });
      }
      EXPECT_EQ(-1, first_difference(of(turn % size(), each), told));
      EXPECT_EQ(-1, first_difference(expected, both));
      if (rank() == turn % size()) {
        EXPECT_EQ(-1, first_difference(expected, one));
      }
    }
  }
}

TEST(Shared, AnOperationOfTheUsersIsNotCalledForNothing) {
  int calls = 0;
  ist_op op = IST_OP_NULL;
  IST_OK_OR_FAIL(ist_op_create([](const void*, void*, std::int64_t, ist_type, void* user) { ++*static_cast<int*>(user); },
                               &calls, 1, &op));
  std::uint64_t in = 1;
  std::uint64_t out = 2;
  IST_OK_OR_FAIL(ist_allreduce(ist_host(&in), ist_host(&out), 0, IST_UINT64, op, comm()));
  IST_OK_OR_FAIL(ist_allreduce(ist_host(nullptr), ist_host(nullptr), 0, IST_UINT64, op, comm()));
  IST_OK_OR_FAIL(ist_reduce(ist_host(&in), ist_host(&out), 0, IST_UINT64, op, 0, comm()));
  IST_OK_OR_FAIL(ist_reduce_scatter_block(ist_host(&in), ist_host(&out), 0, IST_UINT64, op, comm()));
  IST_OK_OR_FAIL(ist_scan(ist_host(&in), ist_host(&out), 0, IST_UINT64, op, comm()));
  EXPECT_EQ(0, calls);
  EXPECT_EQ(2U, out);
  IST_OK_OR_FAIL(ist_op_free(&op));
}

// What was started before needs its sender's looks: calls that find all they wait for at once must not keep it from them.
TEST(Shared, CallsInARowMoveOnWhatIsUnderWay) {
  if (size() == 1) return;
  constexpr std::int64_t kLong = 3 << 20;
  Bytes bytes = rank() == 0 ? random_bytes(kLong, 9) : Bytes(kLong, 0xee);
  ist_request request = IST_REQUEST_NULL;
  if (rank() == 0) IST_OK_OR_FAIL(ist_isend(ist_host(bytes.data()), kLong, IST_BYTE, 1, 4, comm(), &request));
  if (rank() == 1) IST_OK_OR_FAIL(ist_irecv(ist_host(bytes.data()), kLong, IST_BYTE, 0, 4, comm(), &request));
  std::uint64_t there = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (there == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds{20}) {
    int done = 0;
    if (rank() == 1) IST_OK_OR_FAIL(ist_test(&request, &done, IST_STATUS_IGNORE));
    std::uint64_t mine = static_cast<std::uint64_t>(done);
    IST_OK_OR_FAIL(ist_allreduce(ist_host(&mine), ist_host(&there), 1, IST_UINT64, IST_MAX, comm()));
  }
  EXPECT_EQ(1U, there);
  if (rank() == 0) IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  if (rank() == 1) {
    EXPECT_EQ(-1, first_difference(random_bytes(kLong, 9), bytes));
  }
}

// Rank 0 of a scan needs nobody, and may be gone before the others come to it.
TEST(Shared, AScanNeedsNobodyBehindIt) {
  ist_world own = IST_WORLD_NULL;
  ist_comm whole = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_world_create(&own));
  IST_OK_OR_FAIL(ist_world_comm(own, &whole));
  std::uint64_t mine = static_cast<std::uint64_t>(rank()) + 1;
  std::uint64_t sum = 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(100 * rank()));
  IST_OK_OR_FAIL(ist_scan(ist_host(&mine), ist_host(&sum), 1, IST_UINT64, IST_SUM, whole));
  EXPECT_EQ(mine * (mine + 1) / 2, sum);
  IST_OK_OR_FAIL(ist_world_destroy(&own));
}

// A note that another communicator left there is no news: its number is compared as a whole.
TEST(Shared, CommunicatorsOfOtherRanksNumbersAreNotTakenForEachOther) {
  ist_comm first = IST_COMM_NULL;
  ist_comm turned = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(comm(), &first));
  IST_OK_OR_FAIL(ist_comm_split(comm(), 0, -rank(), &turned));
  IST_OK_OR_FAIL(ist_barrier(first));
  IST_OK_OR_FAIL(ist_comm_free(&first));
  ist_comm again = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(turned, &again));
  if (rank() == size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  sum_ones(again);
  IST_OK_OR_FAIL(ist_comm_free(&again));
  IST_OK_OR_FAIL(ist_comm_free(&turned));
}

TEST(Shared, MoreCommunicatorsThanLanesAndThoseThatComeAfterThem) {
  const auto check = [](ist_comm of, std::uint64_t seed) {
    const Member here{of};
    const Bytes mine = input_of(here.rank, 5, seed);
    Bytes sum(mine.size());
    IST_OK_OR_FAIL(ist_allreduce(ist_host(mine.data()), ist_host(sum.data()), 5, IST_UINT64, IST_SUM, of));
    EXPECT_EQ(-1, first_difference(sum_of(0, here.size, 5, seed), sum)) << "communicator " << seed;
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<ist_comm> comms(40, IST_COMM_NULL);
    for (ist_comm& one : comms) IST_OK_OR_FAIL(ist_comm_dup(comm(), &one));
    std::uint64_t seed = 0;
    for (const ist_comm one : comms) check(one, ++seed);
    // Freed while the last rank has not read yet what the first one said last.
    for (ist_comm& one : comms) {
      std::uint64_t last = static_cast<std::uint64_t>(round) + 7;
      if (rank() != 0) last = 0;
      if (rank() == size() - 1 && one == comms.front()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      IST_OK_OR_FAIL(ist_bcast(ist_host(&last), 1, IST_UINT64, 0, one));
      EXPECT_EQ(static_cast<std::uint64_t>(round) + 7, last);
      IST_OK_OR_FAIL(ist_comm_free(&one));
    }
  }
}

TEST(Shared, ThreadsHaveACommunicatorEachAndMakeThemAtTheSameTime) {
  constexpr int kThreads = 4;
  std::vector<ist_comm> own(kThreads, IST_COMM_NULL);
  for (ist_comm& one : own) IST_OK_OR_FAIL(ist_comm_dup(comm(), &one));
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads, 0);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        ist_comm made = IST_COMM_NULL;
        if (ist_comm_split(own[at(t)], 0, 0, &made) != IST_OK) ++wrong[at(t)];
        for (std::uint64_t n = 1; n < 5; ++n) {
          std::uint64_t one = n * static_cast<std::uint64_t>(t + 1);
          std::uint64_t all = 0;
          if (ist_allreduce(ist_host(&one), ist_host(&all), 1, IST_UINT64, IST_SUM, made) != IST_OK) ++wrong[at(t)];
          if (all != one * static_cast<std::uint64_t>(size())) ++wrong[at(t)];
        }
        if (ist_comm_free(&made) != IST_OK) ++wrong[at(t)];
      }
    });
  for (std::thread& each : threads) each.join();
  for (const int each : wrong) EXPECT_EQ(0, each);
  for (ist_comm& one : own) IST_OK_OR_FAIL(ist_comm_free(&one));
}

}  // namespace
