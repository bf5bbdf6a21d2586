// Messages between any kinds, of any size, in the order MPI promises. Run on 1 to 5 ranks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

std::uint64_t seed_of(int from, int to, std::size_t size, int extra) {
  return static_cast<std::uint64_t>(from) * 1000003 + static_cast<std::uint64_t>(to) * 10007 + size * 31 +
         static_cast<std::uint64_t>(extra);
}

// Every rank sends to its right neighbour and receives from its left; with one rank, to itself.
void exchange_in_ring(const KindName& from, const KindName& to, std::size_t bytes) {
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  GuardedBuffer out(from.kind, bytes);
  GuardedBuffer in(to.kind, bytes + 3);
  const auto mine = random_bytes(bytes, seed_of(rank(), right, bytes, 1));
  out.fill(mine);
  ist_request receive = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_irecv(in.get(), static_cast<int64_t>(bytes) + 3, IST_BYTE, left, 17, comm(), &receive));
  IST_OK_OR_FAIL(ist_send(out.get(), static_cast<int64_t>(bytes), IST_BYTE, right, 17, comm()));
  ist_status status{};
  IST_OK_OR_FAIL(ist_wait(&receive, &status));
  EXPECT_EQ(IST_REQUEST_NULL, receive);
  EXPECT_EQ(left, status.source);
  EXPECT_EQ(17, status.tag);
  EXPECT_EQ(static_cast<int64_t>(bytes), status.bytes);
  EXPECT_NE(IST_CARRIER_NONE, status.carrier);
  const std::string what = std::string(from.name) + " to " + to.name + ", " + std::to_string(bytes) + " bytes";
  in.expect(random_bytes(bytes, seed_of(left, rank(), bytes, 1)), what);
  out.expect(mine, what + ": the source is unchanged");
}

TEST(Messages, EveryKindToEveryKindAtEveryBorderSizeArrivesByteForByte) {
  for (const KindName& from : usable_kinds())
    for (const KindName& to : usable_kinds())
      for (const std::size_t bytes : border_sizes()) {
        exchange_in_ring(from, to, bytes);
        if (HasFatalFailure()) return;
      }
}

// A rank's own kind differs from its peer's: rank r uses the kind number r of those there are.
TEST(Messages, RanksOfDifferentKindsExchangeWithAllOthers) {
  const auto kinds = usable_kinds();
  const KindName mine = kinds[static_cast<std::size_t>(rank()) % kinds.size()];
  constexpr std::size_t kBytes = 300001;
  std::vector<std::unique_ptr<GuardedBuffer>> in;
  std::vector<ist_request> requests;
  GuardedBuffer out(mine.kind, kBytes);
  out.fill(random_bytes(kBytes, seed_of(rank(), 0, kBytes, 2)));
  for (int other = 0; other < size(); ++other) {
    in.push_back(std::make_unique<GuardedBuffer>(mine.kind, kBytes));
    requests.emplace_back();
    IST_OK_OR_FAIL(ist_irecv(in.back()->get(), kBytes, IST_BYTE, other, 5, comm(), &requests.back()));
  }
  for (int other = 0; other < size(); ++other) {
    requests.emplace_back();
    IST_OK_OR_FAIL(ist_isend(out.get(), kBytes, IST_BYTE, other, 5, comm(), &requests.back()));
  }
  IST_OK_OR_FAIL(ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE));
  for (int other = 0; other < size(); ++other)
    in[static_cast<std::size_t>(other)]->expect(random_bytes(kBytes, seed_of(other, 0, kBytes, 2)),
                                                "from " + std::to_string(other));
}

// Sizes that travel by slot, cell and ring, sent without waiting, must be received in the order of sending.
TEST(Messages, ReceivesWithTheSameTagGetMessagesInSendingOrderWhateverCarriesThem) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  const std::vector<std::size_t> sizes{8, 70000, 8, 3000, 200, 400000, 1, 16384, 0, 16385, 131072, 131073, 216, 217};
  for (const KindName& kind : usable_kinds()) {
    const int rounds = kind.kind == IST_KIND_HOST ? 40 : 4;
    if (rank() == 0) {
      std::vector<std::unique_ptr<GuardedBuffer>> out;
      std::vector<ist_request> requests;
      for (int i = 0; i < rounds * static_cast<int>(sizes.size()); ++i) {
        const std::size_t bytes = sizes[static_cast<std::size_t>(i) % sizes.size()];
        const KindName use = i % 3 == 0 ? usable_kinds().front() : kind;
        out.push_back(std::make_unique<GuardedBuffer>(use.kind, bytes));
        out.back()->fill(random_bytes(bytes, seed_of(0, 1, bytes, i)));
        requests.emplace_back();
        IST_OK_OR_FAIL(ist_isend(out.back()->get(), static_cast<int64_t>(bytes), IST_BYTE, 1, 9, comm(), &requests.back()));
      }
      IST_OK_OR_FAIL(ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE));
    } else if (rank() == 1) {
      GuardedBuffer in(kind.kind, 400000);
      for (int i = 0; i < rounds * static_cast<int>(sizes.size()); ++i) {
        const std::size_t bytes = sizes[static_cast<std::size_t>(i) % sizes.size()];
        ist_status status{};
        in.poison();
        const int source = i % 2 == 0 ? 0 : IST_ANY_SOURCE;
        const int tag = i % 5 == 0 ? IST_ANY_TAG : 9;
        IST_OK_OR_FAIL(ist_recv(in.get(), 400000, IST_BYTE, source, tag, comm(), &status));
        EXPECT_EQ(static_cast<int64_t>(bytes), status.bytes) << "message " << i;
        in.expect(random_bytes(bytes, seed_of(0, 1, bytes, i)), "message " + std::to_string(i));
      }
    }
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
}

// What ISTHMUS_SINGLE_COPY says. By itself a rank tries both ways, and either is right.
TEST(Messages, LongHostMessagesGoTheWayThatTheUserNamed) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  const char* named = std::getenv("ISTHMUS_SINGLE_COPY");
  const std::string way = named != nullptr ? named : "auto";
  constexpr std::size_t kBytes = (1 << 20) + 13;
  GuardedBuffer buffer(IST_KIND_HOST, kBytes);
  int first_carrier = IST_CARRIER_NONE;
  for (int round = 0; round < 20; ++round) {
    const auto wanted = random_bytes(kBytes, seed_of(0, 1, kBytes, round));
    if (rank() == 0) {
      buffer.fill(wanted);
      IST_OK_OR_FAIL(ist_send(buffer.get(), kBytes, IST_BYTE, 1, 4, comm()));
    } else if (rank() == 1) {
      ist_status status{};
      buffer.poison();
      IST_OK_OR_FAIL(ist_recv(buffer.get(), kBytes, IST_BYTE, 0, 4, comm(), &status));
      buffer.expect(wanted, "round " + std::to_string(round));
      if (round == 0) first_carrier = status.carrier;
      if (way != "auto") {
        EXPECT_EQ(first_carrier, status.carrier) << way;
      }
      if (way == "never") {
        EXPECT_EQ(IST_CARRIER_RING, status.carrier);
      }
    }
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
  if (way == "always" && rank() == 1 && first_carrier != IST_CARRIER_DIRECT)
    std::printf("not covered here: messages in one copy; `isthmus info` says what forbids them\n");
}

TEST(Messages, ReceivesByTagTakeLaterMessagesFirst) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  constexpr int kMessages = 50;
  std::vector<std::vector<unsigned char>> data(kMessages);
  std::vector<ist_request> requests(kMessages);
  if (rank() == 0) {
    for (int i = 0; i < kMessages; ++i) {
      data[static_cast<std::size_t>(i)] = random_bytes(static_cast<std::size_t>(i) * 3001, static_cast<std::uint64_t>(i));
      IST_OK_OR_FAIL(ist_isend(ist_host(data[static_cast<std::size_t>(i)].data()), i * 3001, IST_BYTE, 1, i, comm(),
                               &requests[static_cast<std::size_t>(i)]));
    }
    IST_OK_OR_FAIL(ist_waitall(kMessages, requests.data(), IST_STATUSES_IGNORE));
  } else if (rank() == 1) {
    for (int i = kMessages - 1; i >= 0; --i) {
      std::vector<unsigned char> in(static_cast<std::size_t>(i) * 3001, 0);
      IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), i * 3001, IST_BYTE, 0, i, comm(), IST_STATUS_IGNORE));
      EXPECT_EQ(-1, first_difference(random_bytes(in.size(), static_cast<std::uint64_t>(i)), in)) << "tag " << i;
    }
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Messages, ManySendersToOneReceiverArriveWholeAndInEachSendersOrder) {
  constexpr int kEach = 400;
  if (rank() != 0) {
    for (int i = 0; i < kEach; ++i) {
      const auto bytes = random_bytes(static_cast<std::size_t>(i * 37 % 5000), seed_of(rank(), 0, 0, i));
      IST_OK_OR_FAIL(ist_send(ist_host(bytes.data()), static_cast<int64_t>(bytes.size()), IST_BYTE, 0, 3, comm()));
    }
  } else {
    std::vector<int> next(static_cast<std::size_t>(size()), 0);
    std::vector<unsigned char> in(5000);
    for (int i = 0; i < kEach * (size() - 1); ++i) {
      ist_status status{};
      IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), 5000, IST_BYTE, IST_ANY_SOURCE, 3, comm(), &status));
      const int k = next[static_cast<std::size_t>(status.source)]++;
      const auto expected = random_bytes(static_cast<std::size_t>(k * 37 % 5000), seed_of(status.source, 0, 0, k));
      ASSERT_EQ(static_cast<int64_t>(expected.size()), status.bytes) << "message " << k << " of " << status.source;
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), in.begin())) << "message " << k << " of " << status.source;
    }
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// One rank's unexpected messages must not stop others: rank 0 floods rank 1, which first waits for rank 2, which waits for
// 0.
TEST(Messages, UnexpectedMessagesDoNotBlockTheirSender) {
  if (size() < 3) GTEST_SKIP() << "needs three ranks";
  constexpr int kFlood = 500;
  if (rank() == 0) {
    std::vector<std::vector<unsigned char>> data;
    std::vector<ist_request> requests(kFlood);
    for (int i = 0; i < kFlood; ++i) {
      data.push_back(random_bytes(20000, static_cast<std::uint64_t>(i)));
      IST_OK_OR_FAIL(
          ist_isend(ist_host(data.back().data()), 20000, IST_BYTE, 1, i, comm(), &requests[static_cast<std::size_t>(i)]));
    }
    IST_OK_OR_FAIL(ist_send(ist_host(nullptr), 0, IST_BYTE, 2, 0, comm()));
    IST_OK_OR_FAIL(ist_waitall(kFlood, requests.data(), IST_STATUSES_IGNORE));
  } else if (rank() == 2) {
    IST_OK_OR_FAIL(ist_recv(ist_host(nullptr), 0, IST_BYTE, 0, 0, comm(), IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_send(ist_host(nullptr), 0, IST_BYTE, 1, 9999, comm()));
  } else if (rank() == 1) {
    IST_OK_OR_FAIL(ist_recv(ist_host(nullptr), 0, IST_BYTE, 2, 9999, comm(), IST_STATUS_IGNORE));
    std::vector<unsigned char> in(20000);
    for (int i = kFlood - 1; i >= 0; --i) {
      IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), 20000, IST_BYTE, 0, i, comm(), IST_STATUS_IGNORE));
      EXPECT_EQ(-1, first_difference(random_bytes(20000, static_cast<std::uint64_t>(i)), in)) << i;
    }
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Messages, TruncationTellsBothSizesKeepsTheRestIntactAndLeavesTheQueueUsable) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  for (const KindName& kind : usable_kinds()) {
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{5000}, std::size_t{300000}}) {
      const std::size_t room = bytes / 3;
      if (rank() == 0) {
        GuardedBuffer out(kind.kind, bytes);
        out.fill(random_bytes(bytes, 77));
        IST_OK_OR_FAIL(ist_send(out.get(), static_cast<int64_t>(bytes), IST_BYTE, 1, 4, comm()));
        IST_OK_OR_FAIL(ist_send(out.get(), 10, IST_BYTE, 1, 4, comm()));
      } else if (rank() == 1) {
        GuardedBuffer in(kind.kind, room + 10);
        ist_status status{};
        EXPECT_EQ(IST_ERR_TRUNCATE, ist_recv(in.get(), static_cast<int64_t>(room), IST_BYTE, 0, 4, comm(), &status));
        EXPECT_NE(std::string::npos, std::string(ist_error_text()).find(std::to_string(bytes))) << ist_error_text();
        EXPECT_NE(std::string::npos, std::string(ist_error_text()).find(std::to_string(room))) << ist_error_text();
        EXPECT_EQ(IST_ERR_TRUNCATE, status.code);
        EXPECT_EQ(static_cast<int64_t>(room), status.bytes);
        auto expected = random_bytes(bytes, 77);
        expected.resize(room);
        in.expect(expected, "truncated");
        in.poison();
        IST_OK_OR_FAIL(ist_recv(in.get(), 10, IST_BYTE, 0, 4, comm(), &status));
        expected.resize(10);
        in.expect(expected, "the message after");
      }
    }
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Messages, AReceiveWithoutRoomTruncatesALargeMessageToNothing) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  const auto bytes = random_bytes(500000, 3);
  if (rank() == 0) {
    IST_OK_OR_FAIL(ist_send(ist_host(bytes.data()), 500000, IST_BYTE, 1, 4, comm()));
  } else if (rank() == 1) {
    EXPECT_EQ(IST_ERR_TRUNCATE, ist_recv(ist_host(nullptr), 0, IST_BYTE, 0, 4, comm(), IST_STATUS_IGNORE));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Messages, MessagesToSelfOfEverySizeArrive) {
  for (const KindName& from : usable_kinds())
    for (const KindName& to : usable_kinds())
      for (const std::size_t bytes : border_sizes()) {
        GuardedBuffer out(from.kind, bytes);
        GuardedBuffer in(to.kind, bytes);
        const auto data = random_bytes(bytes, bytes + 5);
        out.fill(data);
        ist_request request = IST_REQUEST_NULL;
        IST_OK_OR_FAIL(ist_isend(out.get(), static_cast<int64_t>(bytes), IST_BYTE, rank(), 1, comm(), &request));
        ist_status status{};
        IST_OK_OR_FAIL(ist_recv(in.get(), static_cast<int64_t>(bytes), IST_BYTE, IST_ANY_SOURCE, 1, comm(), &status));
        IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
        EXPECT_EQ(rank(), status.source);
        in.expect(data, std::string(from.name) + " to " + to.name + " in one rank, " + std::to_string(bytes) + " bytes");
      }
}

TEST(Messages, SendrecvAroundTheRingAndWithNobodyAtTheEnds) {
  const double mine = rank() + 0.5;
  double theirs = -1;
  const int right = rank() + 1 < size() ? rank() + 1 : IST_PROC_NULL;
  const int left = rank() > 0 ? rank() - 1 : IST_PROC_NULL;
  ist_status status{};
  IST_OK_OR_FAIL(
      ist_sendrecv(ist_host(&mine), 1, IST_DOUBLE, right, 2, ist_host(&theirs), 1, IST_DOUBLE, left, 2, comm(), &status));
  EXPECT_EQ(left, status.source);
  EXPECT_EQ(rank() > 0 ? rank() - 0.5 : -1, theirs);
  EXPECT_EQ(rank() > 0 ? 8 : 0, status.bytes);
}

TEST(Messages, TestReportsCompletionOnceAndLeavesANullRequest) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  int value = 0;
  if (rank() == 1) {
    ist_request request = IST_REQUEST_NULL;
    int completed = 1;
    IST_OK_OR_FAIL(ist_irecv(ist_host(&value), 1, IST_INT, 0, 8, comm(), &request));
    IST_OK_OR_FAIL(ist_test(&request, &completed, IST_STATUS_IGNORE));
    EXPECT_EQ(0, completed);
    IST_OK_OR_FAIL(ist_barrier(comm()));
    ist_status status{};
    while (completed == 0) IST_OK_OR_FAIL(ist_test(&request, &completed, &status));
    EXPECT_EQ(4711, value);
    EXPECT_EQ(4, status.bytes);
    EXPECT_EQ(IST_REQUEST_NULL, request);
    IST_OK_OR_FAIL(ist_test(&request, &completed, &status));
    EXPECT_EQ(1, completed);
  } else {
    IST_OK_OR_FAIL(ist_barrier(comm()));
    value = 4711;
    if (rank() == 0) IST_OK_OR_FAIL(ist_send(ist_host(&value), 1, IST_INT, 1, 8, comm()));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Messages, ABarrierIsPassedByNobodyBeforeEverybodyHasCome) {
  // Each rank tells rank 0 that it came, then passes; rank 0 counts before it comes itself.
  for (int round = 0; round < 50; ++round) {
    if (rank() == 0) {
      for (int other = 1; other < size(); ++other)
        IST_OK_OR_FAIL(ist_recv(ist_host(nullptr), 0, IST_BYTE, other, 60, comm(), IST_STATUS_IGNORE));
      ist_request early = IST_REQUEST_NULL;
      int passed = 0;
      IST_OK_OR_FAIL(ist_irecv(ist_host(nullptr), 0, IST_BYTE, IST_ANY_SOURCE, 61, comm(), &early));
      for (int look = 0; look < 20; ++look) {
        IST_OK_OR_FAIL(ist_test(&early, &passed, IST_STATUS_IGNORE));
        ASSERT_FALSE(passed != 0 && size() > 1) << "a rank passed the barrier without rank 0";
      }
      IST_OK_OR_FAIL(ist_barrier(comm()));
      if (size() == 1) IST_OK_OR_FAIL(ist_send(ist_host(nullptr), 0, IST_BYTE, 0, 61, comm()));
      IST_OK_OR_FAIL(ist_wait(&early, IST_STATUS_IGNORE));
      for (int other = 2; other < size(); ++other)
        IST_OK_OR_FAIL(ist_recv(ist_host(nullptr), 0, IST_BYTE, IST_ANY_SOURCE, 61, comm(), IST_STATUS_IGNORE));
    } else {
      IST_OK_OR_FAIL(ist_send(ist_host(nullptr), 0, IST_BYTE, 0, 60, comm()));
      IST_OK_OR_FAIL(ist_barrier(comm()));
      IST_OK_OR_FAIL(ist_send(ist_host(nullptr), 0, IST_BYTE, 0, 61, comm()));
    }
  }
}

TEST(Messages, AutoFindsTheKindOfAnAddress) {
  for (const KindName& kind : usable_kinds()) {
    if (kind.kind == IST_KIND_OPENCL) continue;  // buffers without addresses cannot be asked about
    GuardedBuffer out(kind.kind, 5000);
    GuardedBuffer in(kind.kind, 5000);
    const auto data = random_bytes(5000, 12);
    out.fill(data);
    ist_buffer from = ist_auto(reinterpret_cast<void*>(out.get().object + out.get().offset));
    ist_buffer to = ist_auto(reinterpret_cast<void*>(in.get().object + in.get().offset));
    ist_request request = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_isend(from, 5000, IST_BYTE, rank(), 1, comm(), &request));
    IST_OK_OR_FAIL(ist_recv(to, 5000, IST_BYTE, rank(), 1, comm(), IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
    in.expect(data, kind.name);
  }
}

TEST(Messages, ThreadsOfOneRankExchangeAtTheSameTime) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  constexpr int kThreads = 4;
  constexpr int kRounds = 100;
  if (rank() < 2) {
    const int other = 1 - rank();
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([=] {
        for (int i = 0; i < kRounds; ++i) {
          const std::size_t bytes = static_cast<std::size_t>((i * 7919 + t * 131) % 100000);
          const auto out = random_bytes(bytes, seed_of(rank(), t, bytes, i));
          std::vector<unsigned char> in(bytes, 0xa5);
          EXPECT_EQ(IST_OK, ist_sendrecv(ist_host(out.data()), static_cast<int64_t>(bytes), IST_BYTE, other, 100 + t,
                                         ist_host(in.data()), static_cast<int64_t>(bytes), IST_BYTE, other, 100 + t, comm(),
                                         IST_STATUS_IGNORE))
              << ist_error_text();
          EXPECT_EQ(-1, first_difference(random_bytes(bytes, seed_of(other, t, bytes, i)), in));
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

}  // namespace
