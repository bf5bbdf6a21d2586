// Sends that are given up: taken back where nobody has asked for them, and their buffers never read afterwards; and collective calls that
// one rank gives up. On 1 to 3 ranks.
#include <isthmus/collective.h>

#include <chrono>
#include <thread>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

int right() { return (rank() + 1) % size(); }
int left() { return (rank() + size() - 1) % size(); }
std::uint64_t seed(int of, int number) { return static_cast<std::uint64_t>(1000 * of + number); }

TEST(Cancel, AnAnnouncedSendIsTakenBackAndTheNextOneComes) {
  for (const KindName& kind : usable_kinds())
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{3001}, std::size_t{1500001}}) {
      SCOPED_TRACE(std::string{kind.name} + " " + std::to_string(bytes));
      const auto count = static_cast<int64_t>(bytes);
      GuardedBuffer out(kind.kind, bytes);
      GuardedBuffer in(kind.kind, bytes);
      out.fill(random_bytes(bytes, seed(rank(), 1)));
      ist_request first = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_issend(out.get(), count, IST_BYTE, right(), 700, comm(), &first));
      // The other rank has it by now, or it has not left: both must do.
      if (bytes != 3001) IST_OK_OR_FAIL(ist_barrier(comm()));
      IST_OK_OR_FAIL(ist_cancel(first));
      ist_status status{};
      IST_OK_OR_FAIL(ist_wait(&first, &status));
      EXPECT_EQ(IST_CANCELLED, status.code);
      EXPECT_EQ(0, status.bytes);
      EXPECT_EQ(IST_REQUEST_NULL, first);
      out.fill(random_bytes(bytes, seed(rank(), 2)));
      IST_OK_OR_FAIL(ist_barrier(comm()));
      int there = -1;
      IST_OK_OR_FAIL(ist_iprobe(left(), 700, comm(), &there, IST_STATUS_IGNORE));
      EXPECT_EQ(0, there);
      IST_OK_OR_FAIL(ist_barrier(comm()));
      ist_request second = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_issend(out.get(), count, IST_BYTE, right(), 700, comm(), &second));
      IST_OK_OR_FAIL(ist_recv(in.get(), count, IST_BYTE, left(), 700, comm(), &status));
      EXPECT_EQ(count, status.bytes);
      in.expect(random_bytes(bytes, seed(left(), 2)), kind.name);
      // What is over is not given up any more.
      IST_OK_OR_FAIL(ist_wait(&second, &status));
      EXPECT_EQ(IST_OK, status.code);
    }
}

TEST(Cancel, APersistentSendIsTakenBackAndStartedAgain) {
  constexpr int kCount = 300000;
  GuardedBuffer out(IST_KIND_HOST, kCount);
  GuardedBuffer in(IST_KIND_HOST, kCount);
  ist_request send = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_ssend_init(out.get(), kCount, IST_BYTE, right(), 701, comm(), &send));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_cancel(send));
  for (int round = 0; round < 3; ++round) {
    out.fill(random_bytes(kCount, seed(rank(), round)));
    IST_OK_OR_FAIL(ist_start(&send));
    IST_OK_OR_FAIL(ist_cancel(send));
    ist_status status{};
    IST_OK_OR_FAIL(ist_wait(&send, &status));
    EXPECT_EQ(IST_CANCELLED, status.code);
    out.fill(random_bytes(kCount, seed(rank(), 10 + round)));
    IST_OK_OR_FAIL(ist_barrier(comm()));  // nobody receives what is given up
    IST_OK_OR_FAIL(ist_start(&send));
    IST_OK_OR_FAIL(ist_recv(in.get(), kCount, IST_BYTE, left(), 701, comm(), &status));
    in.expect(random_bytes(kCount, seed(left(), 10 + round)), "round " + std::to_string(round));
    IST_OK_OR_FAIL(ist_wait(&send, IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
  IST_OK_OR_FAIL(ist_request_free(&send));
}

// More than there is room for, so that some have not left when they are given up: those that were not still come in their order.
TEST(Cancel, SendsThatFoundNoRoomLeaveTheOthersInOrder) {
  constexpr int kSends = 1500;
  const auto bytes_of = [](int i) { return static_cast<std::size_t>(i % 3 == 0 ? 9000 : i % 3 == 1 ? 37 : 200001); };
  std::vector<unsigned char> given_up(kSends);
  if (rank() == 0) {
    std::vector<std::vector<unsigned char>> out;
    std::vector<ist_request> requests(kSends, IST_REQUEST_NULL);
    for (int i = 0; i < kSends; ++i) {
      out.push_back(random_bytes(bytes_of(i), seed(0, i)));
      const auto count = static_cast<int64_t>(out.back().size());
      IST_OK_OR_FAIL(ist_isend(ist_host(out.back().data()), count, IST_BYTE, size() - 1, 702, comm(), &requests[at(i)]));
    }
    for (int i = 0; i < kSends; ++i) {
      if (i % 2 == 0 || requests[at(i)] == IST_REQUEST_NULL) continue;
      IST_OK_OR_FAIL(ist_cancel(requests[at(i)]));
      ist_status status{};
      IST_OK_OR_FAIL(ist_wait(&requests[at(i)], &status));
      given_up[at(i)] = status.code == IST_CANCELLED ? 1 : 0;
      if (given_up[at(i)] != 0) out[at(i)].assign(out[at(i)].size(), 0xee);
    }
    EXPECT_GT(std::count(given_up.begin(), given_up.end(), 1), 0);
    if (size() > 1) {
      IST_OK_OR_FAIL(ist_send(ist_host(given_up.data()), kSends, IST_BYTE, size() - 1, 703, comm()));
      IST_OK_OR_FAIL(ist_waitall(kSends, requests.data(), IST_STATUSES_IGNORE));
    } else {
      for (int i = 0; i < kSends; ++i) {
        if (given_up[at(i)] != 0) continue;
        std::vector<unsigned char> in(bytes_of(i), 0xa5);
        IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), static_cast<int64_t>(in.size()), IST_BYTE, 0, 702, comm(), nullptr));
        EXPECT_EQ(-1, first_difference(random_bytes(bytes_of(i), seed(0, i)), in)) << i;
      }
      IST_OK_OR_FAIL(ist_waitall(kSends, requests.data(), IST_STATUSES_IGNORE));
    }
  } else if (rank() == size() - 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    IST_OK_OR_FAIL(ist_recv(ist_host(given_up.data()), kSends, IST_BYTE, 0, 703, comm(), nullptr));
    for (int i = 0; i < kSends; ++i) {
      if (given_up[at(i)] != 0) continue;
      std::vector<unsigned char> in(bytes_of(i), 0xa5);
      ist_status status{};
      IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), static_cast<int64_t>(in.size()), IST_BYTE, 0, 702, comm(), &status));
      EXPECT_EQ(static_cast<int64_t>(in.size()), status.bytes);
      EXPECT_EQ(-1, first_difference(random_bytes(bytes_of(i), seed(0, i)), in)) << i;
    }
    int there = -1;
    IST_OK_OR_FAIL(ist_iprobe(0, 702, comm(), &there, IST_STATUS_IGNORE));
    EXPECT_EQ(0, there);
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// What travels of a send's number comes again after 4096 others: an answer to the one that was given up is none to the later one.
TEST(Cancel, AnAnswerToASendThatWasGivenUpIsForNoLaterOne) {
  if (size() < 2) GTEST_SKIP() << "not covered here: numbers that come again between ranks; takes two ranks";
  constexpr std::size_t kBytes = 300000;
  for (const bool blocking : {false, true})
    for (const int others : {4094, 4095, 4096}) {
      SCOPED_TRACE(std::to_string(others) + (blocking ? " blocking" : ""));
      GuardedBuffer buffer(IST_KIND_HOST, kBytes);
      ist_status status{};
      if (rank() == 0) {
        ist_request request = IST_REQUEST_NULL;
        buffer.fill(random_bytes(kBytes, seed(0, 1)));
        if (blocking) IST_OK_OR_FAIL(ist_barrier(comm()));
        IST_OK_OR_FAIL(ist_isend(buffer.get(), kBytes, IST_BYTE, 1, 706, comm(), &request));
        IST_OK_OR_FAIL(ist_cancel(request));
        IST_OK_OR_FAIL(ist_wait(&request, &status));
        const bool cancelled = status.code == IST_CANCELLED;
        char unused = 0;
        for (int i = 0; i < others; ++i) {
          IST_OK_OR_FAIL(ist_irecv(ist_host(&unused), 1, IST_BYTE, 1, 707, comm(), &request));
          IST_OK_OR_FAIL(ist_cancel(request));
          IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
        }
        buffer.fill(random_bytes(kBytes, seed(0, 2)));
        IST_OK_OR_FAIL(ist_isend(buffer.get(), kBytes, IST_BYTE, 1, 708, comm(), &request));
        if (!blocking) IST_OK_OR_FAIL(ist_barrier(comm()));
        // A blocking receive that was there may have had all of the first; else it fails, and the second is whole.
        IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
        EXPECT_TRUE(cancelled || blocking);
      } else if (rank() == 1) {
        IST_OK_OR_FAIL(ist_barrier(comm()));
        GuardedBuffer first(IST_KIND_HOST, kBytes);
        ist_request request = IST_REQUEST_NULL;
        IST_OK_OR_FAIL(ist_irecv(first.get(), kBytes, IST_BYTE, 0, 706, comm(), &request));
        IST_OK_OR_FAIL(ist_recv(buffer.get(), kBytes, IST_BYTE, 0, 708, comm(), IST_STATUS_IGNORE));
        buffer.expect(random_bytes(kBytes, seed(0, 2)), "the later one");
        IST_OK_OR_FAIL(ist_cancel(request));
        const int code = ist_wait(&request, &status);
        EXPECT_TRUE(code == IST_OK || code == IST_ERR_DEVICE) << ist_error_text();
        if (code == IST_OK && status.code == IST_OK) {
          first.expect(random_bytes(kBytes, seed(0, 1)), "the one that was given up too late");
        }
      } else {
        IST_OK_OR_FAIL(ist_barrier(comm()));
      }
      IST_OK_OR_FAIL(ist_barrier(comm()));
    }
}

// When the send is given up: later while it can be, earlier where it came too late, so that the two ranks meet soon, whatever their speed.
class Moment {
 public:
  // Moves the send on meanwhile, until it is complete.
  void wait(ist_request& send) const {
    const auto until = std::chrono::steady_clock::now() + pause_;
    int complete = 0;
    while (complete == 0 && std::chrono::steady_clock::now() < until)
      EXPECT_EQ(IST_OK, ist_test(&send, &complete, IST_STATUS_IGNORE)) << ist_error_text();
  }
  void learn(bool cancelled) {
    ++(cancelled ? cancelled_ : came_);
    // Twice in the same direction: farther.
    step_ =
        cancelled == last_ ? step_ * 3 / 2 : std::max<std::chrono::nanoseconds>(step_ / 3, std::chrono::nanoseconds(500));
    pause_ = std::max<std::chrono::nanoseconds>(cancelled ? pause_ + step_ : pause_ - step_, std::chrono::nanoseconds(0));
    last_ = cancelled;
  }
  int cancelled() const { return cancelled_; }
  int came() const { return came_; }

 private:
  std::chrono::nanoseconds pause_{0};
  std::chrono::nanoseconds step_{20000};
  bool last_ = true;
  int cancelled_ = 0;
  int came_ = 0;
};

// Rank 0 gives up, and at once writes something else where it sent from; whether it was in time.
bool send_and_cancel(ist_kind kind, std::size_t bytes, int round, const Moment& moment) {
  GuardedBuffer out(kind, bytes);
  out.fill(random_bytes(bytes, seed(0, round)));
  ist_request send = IST_REQUEST_NULL;
  ist_status status{};
  EXPECT_EQ(IST_OK, ist_barrier(comm())) << ist_error_text();
  EXPECT_EQ(IST_OK, ist_isend(out.get(), static_cast<int64_t>(bytes), IST_BYTE, 1, 704, comm(), &send)) << ist_error_text();
  moment.wait(send);
  if (send != IST_REQUEST_NULL) {
    EXPECT_EQ(IST_OK, ist_cancel(send)) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_wait(&send, &status)) << ist_error_text();
  }
  out.poison();
  const int cancelled = status.code == IST_CANCELLED ? 1 : 0;
  EXPECT_EQ(IST_OK, ist_send(ist_host(&cancelled), 1, IST_INT, 1, 705, comm())) << ist_error_text();
  return cancelled == 1;
}

void receive_beside(ist_kind kind, std::size_t bytes, int round) {
  GuardedBuffer in(kind, bytes);
  ist_request receive = IST_REQUEST_NULL;
  ist_status status{};
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(ist_irecv(in.get(), static_cast<int64_t>(bytes), IST_BYTE, 0, 704, comm(), &receive));
  int cancelled = -1;
  IST_OK_OR_FAIL(ist_recv(ist_host(&cancelled), 1, IST_INT, 0, 705, comm(), nullptr));
  if (cancelled == 1) IST_OK_OR_FAIL(ist_cancel(receive));
  const int code = ist_wait(&receive, &status);
  if (code == IST_OK && status.code == IST_OK) {
    in.expect(random_bytes(bytes, seed(0, round)), "what had come before it was given up");
  } else if (code == IST_OK) {
    EXPECT_EQ(IST_CANCELLED, status.code);
    EXPECT_EQ(1, cancelled);
    in.expect({}, "what was given up");
  } else {
    EXPECT_EQ(1, cancelled);
    EXPECT_EQ(IST_ERR_DEVICE, code);
    EXPECT_NE(std::string{ist_error_text()}.find("gave up its send"), std::string::npos) << ist_error_text();
  }
}

// The receive is there in the same moment. Either all bytes came, or the receive says that the send was given up, or none was matched.
TEST(Cancel, AReceiveThatComesAtTheSameTimeGetsEverythingOrAnError) {
  if (size() < 2) GTEST_SKIP() << "not covered here: a receive beside a cancel; takes two ranks";
  for (const KindName& kind : usable_kinds()) {
    Moment moment;
    for (int round = 0; round < 150; ++round) {
      SCOPED_TRACE(std::string{kind.name} + " round " + std::to_string(round));
      if (rank() == 0)
        moment.learn(send_and_cancel(kind.kind, 1000000, round, moment));
      else if (rank() == 1)
        receive_beside(kind.kind, 1000000, round);
      else
        IST_OK_OR_FAIL(ist_barrier(comm()));
    }
    if (rank() != 0) continue;
    // It was a race: neither rank was always first.
    EXPECT_GT(moment.cancelled(), 10) << kind.name;
    EXPECT_GT(moment.came(), 10) << kind.name;
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// The last rank gives its part up: before the others come to the call, or as they do; then it may have come too late.
class CancelledCall : public testing::TestWithParam<bool> {
 protected:
  static bool gives_up() { return rank() == size() - 1; }
  // Its status there; elsewhere what the call says.
  static int end(ist_request request, ist_status& status) {
    if (gives_up()) {
      EXPECT_EQ(IST_OK, ist_cancel(request)) << ist_error_text();
      EXPECT_EQ(IST_OK, ist_wait(&request, &status)) << ist_error_text();
      EXPECT_EQ(IST_REQUEST_NULL, request);
      return IST_OK;
    }
    return ist_wait(&request, &status);
  }
  static void expect_told(int code) {
    EXPECT_TRUE(code == IST_ERR_PENDING || (code == IST_ERR_DEVICE && !before())) << code << " " << ist_error_text();
    const std::string text = ist_error_text();
    const bool names = text.find("rank " + std::to_string(size() - 1) + " (process") != std::string::npos;
    // Who hears of it from a third rank that had asked for its bytes is not told how it gave up.
    const bool says = text.find("cancelled") != std::string::npos || text.find("gave up this call") != std::string::npos;
    EXPECT_TRUE(names && says) << text;
  }
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "not covered here: a call that others make, too; takes two ranks";
  }
  static bool before() { return GetParam(); }
  // The others begin when the rank has given up.
  static void others_wait() {
    int word = 0;
    if (!before() || gives_up()) return;
    IST_OK_OR_FAIL(ist_recv(ist_host(&word), 1, IST_INT, size() - 1, 709, comm(), nullptr));
  }
  static void others_go_on() {
    const int word = 0;
    for (int r = 0; before() && r < size() - 1; ++r) IST_OK_OR_FAIL(ist_send(ist_host(&word), 1, IST_INT, r, 709, comm()));
  }
};

TEST_P(CancelledCall, IsCompleteAtOnceThereAndAnErrorOnThoseThatNeedTheRank) {
  for (const KindName& kind : usable_kinds())
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{3000}, std::size_t{100000}, std::size_t{3000000}}) {
      SCOPED_TRACE(std::string{kind.name} + " " + std::to_string(bytes));
      const auto count = static_cast<int64_t>(bytes);
      GuardedBuffer in(kind.kind, bytes);
      GuardedBuffer out(kind.kind, bytes);
      in.fill(random_bytes(bytes, seed(rank(), 1)));
      ist_request request = IST_REQUEST_NULL;
      ist_status status{};
      others_wait();
      IST_OK_OR_FAIL(ist_iallreduce(in.get(), out.get(), count, IST_BYTE, IST_BXOR, comm(), &request));
      const int code = end(request, status);
      auto right = random_bytes(bytes, seed(0, 1));
      for (int r = 1; r < size(); ++r) {
        const auto theirs = random_bytes(bytes, seed(r, 1));
        for (std::size_t i = 0; i < bytes; ++i) right[i] ^= theirs[i];
      }
      if (!gives_up()) {
        // What fits the eager limit had left, and may be all that they need of the rank.
        code == IST_OK && (!before() || bytes < 10000) ? out.expect(right, "a call that needed no more") : expect_told(code);
      } else {
        EXPECT_TRUE(!before() || status.code == IST_CANCELLED) << status.code;
        others_go_on();
      }
      const std::vector<unsigned char> mine(bytes, 0x3c);
      out.fill(mine);  // a buffer of the user's again
      IST_OK_OR_FAIL(ist_barrier(comm()));
      out.expect(mine, "nothing came after it");
      IST_OK_OR_FAIL(ist_allreduce(in.get(), out.get(), count, IST_BYTE, IST_BXOR, comm()));
      out.expect(right, "the call after it");
    }
}

TEST_P(CancelledCall, IsNoticedByNobodyWhoNeedsNothingOfTheRank) {
  std::vector<unsigned char> bytes = random_bytes(100000, seed(0, 5));
  if (rank() != 0) bytes.assign(bytes.size(), 0xa5);
  ist_request request = IST_REQUEST_NULL;
  ist_status status{};
  const auto count = static_cast<int64_t>(bytes.size() / at(size()));
  std::vector<unsigned char> part(bytes.size(), 0xa5);
  others_wait();
  IST_OK_OR_FAIL(ist_iscatter(ist_host(bytes.data()), count, ist_host(part.data()), count, IST_BYTE, 0, comm(), &request));
  if (gives_up()) {
    end(request, status);
    others_go_on();
  } else {
    const int code = ist_wait(&request, IST_STATUS_IGNORE);
    const auto whole = random_bytes(100000, seed(0, 5));
    const auto begin = whole.begin() + rank() * count;
    EXPECT_EQ(IST_OK, code) << ist_error_text();
    EXPECT_TRUE(std::equal(begin, begin + count, part.begin()));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST_P(CancelledCall, SeveralUnderWayAreGivenUpInAnyOrderAndTheOthersAreRight) {
  constexpr int kCalls = 12;
  std::vector<std::vector<int>> in(kCalls);
  std::vector<std::vector<int>> out(kCalls);
  std::vector<ist_request> requests(kCalls, IST_REQUEST_NULL);
  others_wait();
  for (int call = 0; call < kCalls; ++call) {
    in[at(call)].assign(at(call % 3 == 0 ? 1 : call % 3 == 1 ? 5000 : 300000), rank() + call);
    out[at(call)].assign(in[at(call)].size(), -1);
    IST_OK_OR_FAIL(ist_iallreduce(ist_host(in[at(call)].data()), ist_host(out[at(call)].data()),
                                  static_cast<int64_t>(in[at(call)].size()), IST_INT, IST_SUM, comm(), &requests[at(call)]));
  }
  ist_status status{};
  for (int turn = 0; gives_up() && turn < kCalls; ++turn)
    if (const int call = turn * 5 % kCalls; call % 2 == 0) end(requests[at(call)], status);
  if (gives_up()) others_go_on();
  for (int call = 0; call < kCalls; ++call) {
    const bool given_up = call % 2 == 0;
    if (given_up && gives_up()) continue;
    const int code = ist_wait(&requests[at(call)], &status);
    if (given_up && (code != IST_OK || (before() && in[at(call)].size() > 10000))) {
      expect_told(code);
      continue;
    }
    EXPECT_EQ(IST_OK, code) << ist_error_text();
    EXPECT_EQ(std::vector<int>(out[at(call)].size(), size() * (size() - 1) / 2 + size() * call), out[at(call)]) << call;
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

INSTANTIATE_TEST_SUITE_P(Cancel, CancelledCall, testing::Bool(),
                         [](const auto& one) { return one.param ? "BeforeTheOthersCome" : "AsTheOthersCome"; });

}  // namespace
