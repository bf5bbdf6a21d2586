// Non-blocking operations advance inside any call, also inside those that start something else and return at once.
#include <isthmus/collective.h>
#include <isthmus/isthmus.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "rank_test.hpp"

namespace {

using namespace rank_test;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = 1 << 20;
constexpr int kCalls = 2000;
constexpr int kTag = 7;
constexpr std::chrono::microseconds kPause{50};

// Rank 0 starts to send 1 MiB, which needs its sender's calls, and then makes `call` again and again; how long rank 0 went on, and how long
// after its beginning rank 1 had the message: of ranks of one host, which have one clock.
std::array<double, 2> seconds_beside(ist_comm there, const std::function<void(int)>& call, int calls,
                                     std::chrono::microseconds pause) {
  double begin = 0;
  std::array<double, 2> ends{};
  const auto now = [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); };
  const auto mine = random_bytes(kBytes, 11);
  std::vector<unsigned char> theirs(kBytes, 0xa5);
  if (rank() == 0) {
    ist_request send = IST_REQUEST_NULL;
    begin = now();
    EXPECT_EQ(IST_OK, ist_isend(ist_host(mine.data()), kBytes, IST_BYTE, 1, 0, there, &send));
    for (int n = 0; n < calls; ++n) {
      call(n);
      std::this_thread::sleep_for(pause);
    }
    ends[0] = now();
    EXPECT_EQ(IST_OK, ist_wait(&send, IST_STATUS_IGNORE)) << ist_error_text();
  } else if (rank() == 1) {
    EXPECT_EQ(IST_OK, ist_recv(ist_host(theirs.data()), kBytes, IST_BYTE, 0, 0, there, IST_STATUS_IGNORE))
        << ist_error_text();
    ends[1] = now();
    EXPECT_EQ(-1, first_difference(mine, theirs));
  }
  EXPECT_EQ(IST_OK, ist_bcast(ist_host(&begin), 1, IST_DOUBLE, 0, there));
  for (const int of : {0, 1})
    EXPECT_EQ(IST_OK, ist_bcast(ist_host(&ends[static_cast<std::size_t>(of)]), 1, IST_DOUBLE, of, there));
  return {ends[0] - begin, ends[1] - begin};
}

class Advance : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("ISTHMUS_SINGLE_COPY", "never", 1);  // or rank 1 might need nobody
    const int created = ist_world_create(&world_);
    ::unsetenv("ISTHMUS_SINGLE_COPY");
    ASSERT_EQ(IST_OK, created) << ist_error_text();
    ASSERT_EQ(IST_OK, ist_world_comm(world_, &there_));
  }
  void TearDown() override { IST_OK_OR_FAIL(ist_world_destroy(&world_)); }
  // Long before rank 0 came to its wait.
  void expect_early(const std::function<void(int)>& call, int calls = kCalls, std::chrono::microseconds pause = kPause) {
    const auto [sender, receiver] = seconds_beside(there_, call, calls, pause);
    EXPECT_LT(receiver, 0.7 * sender) << "of " << sender << " s";
  }
  ist_world world_ = IST_WORLD_NULL;
  ist_comm there_ = IST_COMM_NULL;
};

TEST_F(Advance, InSmallSends) {
  std::vector<int> numbers(kCalls);
  std::vector<ist_request> requests(kCalls, IST_REQUEST_NULL);
  expect_early([&](int n) {
    numbers[static_cast<std::size_t>(n)] = n;
    EXPECT_EQ(IST_OK, ist_isend(ist_host(&numbers[static_cast<std::size_t>(n)]), 1, IST_INT, 1, kTag, there_,
                                &requests[static_cast<std::size_t>(n)]));
  });
  for (int n = 0; n < kCalls && rank() == 1; ++n) {
    int got = -1;
    ASSERT_EQ(IST_OK, ist_recv(ist_host(&got), 1, IST_INT, 0, kTag, there_, IST_STATUS_IGNORE)) << ist_error_text();
    ASSERT_EQ(n, got);
  }
  IST_OK_OR_FAIL(ist_waitall(kCalls, requests.data(), IST_STATUSES_IGNORE));
}

// As between the steps of a computation.
TEST_F(Advance, InEveryOneOfFewCallsFarApart) {
  constexpr int kFew = 48;
  std::vector<int> numbers(kFew, -1);
  std::vector<ist_request> requests(kFew, IST_REQUEST_NULL);
  expect_early(
      [&](int n) { EXPECT_EQ(IST_OK, ist_irecv(ist_host(&numbers[at(n)]), 1, IST_INT, 1, kTag, there_, &requests[at(n)])); },
      kFew, std::chrono::milliseconds{25});
  for (int n = 0; n < kFew && rank() == 1; ++n)
    ASSERT_EQ(IST_OK, ist_send(ist_host(&n), 1, IST_INT, 0, kTag, there_)) << ist_error_text();
  IST_OK_OR_FAIL(ist_waitall(kFew, requests.data(), IST_STATUSES_IGNORE));
  for (int n = 0; n < kFew && rank() == 0; ++n) ASSERT_EQ(n, numbers[at(n)]);
}

TEST_F(Advance, InSmallReceives) {
  std::vector<int> numbers(kCalls, -1);
  std::vector<ist_request> requests(kCalls, IST_REQUEST_NULL);
  expect_early([&](int n) {
    EXPECT_EQ(IST_OK, ist_irecv(ist_host(&numbers[static_cast<std::size_t>(n)]), 1, IST_INT, 1, kTag, there_,
                                &requests[static_cast<std::size_t>(n)]));
  });
  for (int n = 0; n < kCalls && rank() == 1; ++n)
    ASSERT_EQ(IST_OK, ist_send(ist_host(&n), 1, IST_INT, 0, kTag, there_)) << ist_error_text();
  IST_OK_OR_FAIL(ist_waitall(kCalls, requests.data(), IST_STATUSES_IGNORE));
  for (int n = 0; n < kCalls && rank() == 0; ++n) ASSERT_EQ(n, numbers[static_cast<std::size_t>(n)]);
}

TEST_F(Advance, InLongReceives) {
  std::vector<unsigned char> room(kBytes);
  std::vector<ist_request> requests(kCalls, IST_REQUEST_NULL);
  expect_early([&](int n) {
    EXPECT_EQ(IST_OK,
              ist_irecv(ist_host(room.data()), kBytes, IST_BYTE, 1, kTag, there_, &requests[static_cast<std::size_t>(n)]));
  });
  for (int n = 0; n < kCalls && rank() == 0; ++n) {
    IST_OK_OR_FAIL(ist_cancel(requests[static_cast<std::size_t>(n)]));
    IST_OK_OR_FAIL(ist_wait(&requests[static_cast<std::size_t>(n)], IST_STATUS_IGNORE));
  }
  // Nobody leaves before all are cancelled: a receive from who has left ends with that.
  IST_OK_OR_FAIL(ist_barrier(there_));
}

TEST_F(Advance, InPersistentStarts) {
  int number = 0;
  ist_request start = IST_REQUEST_NULL;
  if (rank() == 0) IST_OK_OR_FAIL(ist_send_init(ist_host(&number), 1, IST_INT, 1, kTag, there_, &start));
  expect_early([&](int n) {
    number = n;
    EXPECT_EQ(IST_OK, ist_start(&start));
    EXPECT_EQ(IST_OK, ist_wait(&start, IST_STATUS_IGNORE));
  });
  for (int n = 0; n < kCalls && rank() == 1; ++n) {
    int got = -1;
    ASSERT_EQ(IST_OK, ist_recv(ist_host(&got), 1, IST_INT, 0, kTag, there_, IST_STATUS_IGNORE)) << ist_error_text();
    ASSERT_EQ(n, got);
  }
  if (rank() == 0) IST_OK_OR_FAIL(ist_request_free(&start));
}

TEST_F(Advance, InNonblockingCollectives) {
  ist_comm others = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(there_, &others));
  std::vector<int> numbers(kCalls, -1);
  std::vector<ist_request> requests(kCalls, IST_REQUEST_NULL);
  const auto start = [&](int n) {
    EXPECT_EQ(IST_OK, ist_ibcast(ist_host(&numbers[at(n)]), 1, IST_INT, 0, others, &requests[at(n)]));
  };
  expect_early([&](int n) {
    numbers[at(n)] = n;
    start(n);
  });
  for (int n = 0; n < kCalls && rank() != 0; ++n) {
    start(n);
    IST_OK_OR_FAIL(ist_wait(&requests[at(n)], IST_STATUS_IGNORE));
    ASSERT_EQ(n, numbers[at(n)]);
  }
  IST_OK_OR_FAIL(ist_waitall(kCalls, requests.data(), IST_STATUSES_IGNORE));
  IST_OK_OR_FAIL(ist_comm_free(&others));
}

TEST_F(Advance, InSendsAndReceivesOfDevices) {
  constexpr int kFew = 1500;
  for (const KindName& of : usable_kinds()) {
    if (of.kind == IST_KIND_HOST) continue;
    SCOPED_TRACE(of.name);
    ist_buffer word{};
    IST_OK_OR_FAIL(ist_memory_alloc(world_, of.kind, 0, sizeof(int), &word));
    std::vector<ist_request> requests(kFew, IST_REQUEST_NULL);
    for (const bool sends : {true, false}) {
      const auto start = [&](int n, bool send) {
        EXPECT_EQ(IST_OK, send ? ist_isend(word, 1, IST_INT, 1 - rank(), kTag, there_, &requests[at(n)])
                               : ist_irecv(word, 1, IST_INT, 1 - rank(), kTag, there_, &requests[at(n)]))
            << ist_error_text();
      };
      expect_early([&](int n) { start(n, sends); }, kFew);
      for (int n = 0; n < kFew && rank() == 1; ++n) start(n, !sends);
      if (rank() < 2) IST_OK_OR_FAIL(ist_waitall(kFew, requests.data(), IST_STATUSES_IGNORE));
    }
    IST_OK_OR_FAIL(ist_memory_free(world_, word));
  }
}

TEST_F(Advance, InProbes) {
  expect_early([&](int) {
    int found = 0;
    EXPECT_EQ(IST_OK, ist_iprobe(1, kTag, there_, &found, IST_STATUS_IGNORE));
    EXPECT_EQ(0, found);
  });
}

}  // namespace
