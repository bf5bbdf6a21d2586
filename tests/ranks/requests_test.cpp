// Requests in all their forms: sets of them, cancelled, freed, persistent, synchronous. Run on 1 to 3 ranks.
#include "rank_test.hpp"

namespace {

using namespace rank_test;

constexpr int kValue = 12345;

int right() { return (rank() + 1) % size(); }
int left() { return (rank() + size() - 1) % size(); }

// A receive of one int from the left neighbour, and the value that it gets.
struct Incoming {
  int value = -1;
  ist_request request = IST_REQUEST_NULL;
  int post(int tag) { return ist_irecv(ist_host(&value), 1, IST_INT, left(), tag, comm(), &request); }
};

int send_int(int value, int tag) { return ist_send(ist_host(&value), 1, IST_INT, right(), tag, comm()); }

std::vector<ist_request> handles(std::vector<Incoming>& all) {
  std::vector<ist_request> list;
  for (const Incoming& one : all) list.push_back(one.request);
  return list;
}

TEST(Requests, WaitanyCompletesThemOneByOneAndThenSaysThereIsNone) {
  std::vector<Incoming> all(5);
  for (int i = 0; i < 5; ++i) IST_OK_OR_FAIL(all[at(i)].post(100 + i));
  auto requests = handles(all);
  std::vector<bool> seen(5);
  for (int i = 4; i >= 0; --i) {
    IST_OK_OR_FAIL(send_int(1000 + i, 100 + i));
    int index = -7;
    ist_status status{};
    IST_OK_OR_FAIL(ist_waitany(5, requests.data(), &index, &status));
    ASSERT_TRUE(index >= 0 && index < 5 && !seen[at(index)]) << index;
    seen[at(index)] = true;
    EXPECT_EQ(1000 + index, all[at(index)].value);
    EXPECT_EQ(100 + index, status.tag);
    EXPECT_EQ(left(), status.source);
    EXPECT_EQ(IST_REQUEST_NULL, requests[at(index)]);
  }
  int index = 3;
  ist_status status{};
  IST_OK_OR_FAIL(ist_waitany(5, requests.data(), &index, &status));
  EXPECT_EQ(IST_UNDEFINED, index);
  EXPECT_EQ(IST_ANY_SOURCE, status.source);
  IST_OK_OR_FAIL(ist_waitany(0, nullptr, &index, IST_STATUS_IGNORE));
  EXPECT_EQ(IST_UNDEFINED, index);
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Requests, WaitsomeAndTestsomeFillInWhatIsCompleteAndNothingElse) {
  std::vector<Incoming> all(6);
  for (int i = 0; i < 6; ++i) IST_OK_OR_FAIL(all[at(i)].post(200 + i));
  auto requests = handles(all);
  int done = -1;
  std::vector<int> indices(6, -1);
  std::vector<ist_status> statuses(6);
  IST_OK_OR_FAIL(ist_testsome(6, requests.data(), &done, indices.data(), statuses.data()));
  EXPECT_EQ(0, done);
  IST_OK_OR_FAIL(ist_barrier(comm()));
  for (const int i : {1, 4}) IST_OK_OR_FAIL(send_int(i, 200 + i));
  std::vector<int> got;
  while (got.size() < 2) {
    IST_OK_OR_FAIL(ist_waitsome(6, requests.data(), &done, indices.data(), statuses.data()));
    ASSERT_GE(done, 1);
    for (int i = 0; i < done; ++i) {
      EXPECT_EQ(200 + indices[at(i)], statuses[at(i)].tag);
      got.push_back(indices[at(i)]);
    }
  }
  std::sort(got.begin(), got.end());
  EXPECT_EQ((std::vector<int>{1, 4}), got);
  IST_OK_OR_FAIL(ist_barrier(comm()));
  for (const int i : {0, 2, 3, 5}) IST_OK_OR_FAIL(send_int(i, 200 + i));
  int left_over = 4;
  while (left_over > 0) {
    IST_OK_OR_FAIL(ist_testsome(6, requests.data(), &done, indices.data(), statuses.data()));
    left_over -= done;
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(i, all[at(i)].value);
  IST_OK_OR_FAIL(ist_testsome(6, requests.data(), &done, indices.data(), statuses.data()));
  EXPECT_EQ(IST_UNDEFINED, done);
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Requests, NamedTwiceInOneCallIsAnErrorOfTheSecond) {
  int found = 0;
  for (const bool tests : {true, false}) {
    ist_request request = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_irecv(ist_host(&found), 1, IST_INT, rank(), 350, comm(), &request));
    IST_OK_OR_FAIL(ist_send(ist_host(&kValue), 1, IST_INT, rank(), 350, comm()));
    ist_request twice[2] = {request, request};
    ist_status statuses[2] = {};
    int completed = 0;
    int code = IST_OK;
    while (code == IST_OK && completed == 0)
      code = tests ? ist_testall(2, twice, &completed, statuses) : (completed = 1, ist_waitall(2, twice, statuses));
    EXPECT_EQ(IST_ERR_IN_STATUS, code);
    EXPECT_EQ(IST_ERR_HANDLE, statuses[1].code);
    EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find("request 1")) << ist_error_text();
    EXPECT_EQ(kValue, found);
  }
}

TEST(Requests, TestallReleasesNothingBeforeAllAreComplete) {
  std::vector<Incoming> all(2);
  for (int i = 0; i < 2; ++i) IST_OK_OR_FAIL(all[at(i)].post(300 + i));
  auto requests = handles(all);
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(send_int(0, 300));
  int completed = 1;
  for (int i = 0; i < 50; ++i) {
    IST_OK_OR_FAIL(ist_testall(2, requests.data(), &completed, IST_STATUSES_IGNORE));
    ASSERT_EQ(0, completed);
    ASSERT_NE(IST_REQUEST_NULL, requests[0]);
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(send_int(1, 301));
  std::vector<ist_status> statuses(2);
  while (completed == 0) IST_OK_OR_FAIL(ist_testall(2, requests.data(), &completed, statuses.data()));
  EXPECT_EQ(300, statuses[0].tag);
  EXPECT_EQ(301, statuses[1].tag);
  EXPECT_EQ(IST_REQUEST_NULL, requests[0]);
  int index = 0;
  IST_OK_OR_FAIL(ist_testany(2, requests.data(), &index, &completed, IST_STATUS_IGNORE));
  EXPECT_EQ(1, completed);
  EXPECT_EQ(IST_UNDEFINED, index);
}

TEST(Requests, TestanyFindsTheCompleteOneAndOnlyThat) {
  std::vector<Incoming> all(3);
  for (int i = 0; i < 3; ++i) IST_OK_OR_FAIL(all[at(i)].post(400 + i));
  auto requests = handles(all);
  int index = 0;
  int completed = 1;
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(ist_testany(3, requests.data(), &index, &completed, IST_STATUS_IGNORE));
  EXPECT_EQ(0, completed);
  EXPECT_EQ(IST_UNDEFINED, index);
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(send_int(77, 402));
  while (completed == 0) IST_OK_OR_FAIL(ist_testany(3, requests.data(), &index, &completed, IST_STATUS_IGNORE));
  EXPECT_EQ(2, index);
  EXPECT_EQ(77, all[2].value);
  IST_OK_OR_FAIL(ist_barrier(comm()));
  for (const int i : {0, 1}) IST_OK_OR_FAIL(send_int(i, 400 + i));
  IST_OK_OR_FAIL(ist_waitall(3, requests.data(), IST_STATUSES_IGNORE));
}

TEST(Requests, ACancelledReceiveIsWaitedForAndTakesNoMessageLater) {
  Incoming first;
  Incoming second;
  IST_OK_OR_FAIL(first.post(500));
  IST_OK_OR_FAIL(second.post(500));
  IST_OK_OR_FAIL(ist_cancel(first.request));
  ist_status status{};
  IST_OK_OR_FAIL(ist_wait(&first.request, &status));
  EXPECT_EQ(IST_CANCELLED, status.code);
  EXPECT_EQ(0, status.bytes);
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(send_int(5, 500));
  IST_OK_OR_FAIL(ist_wait(&second.request, &status));
  EXPECT_EQ(IST_OK, status.code);
  EXPECT_EQ(5, second.value);
  EXPECT_EQ(-1, first.value);
  // One that a message has matched is received.
  IST_OK_OR_FAIL(send_int(6, 501));
  IST_OK_OR_FAIL(ist_probe(left(), 501, comm(), IST_STATUS_IGNORE));
  Incoming third;
  IST_OK_OR_FAIL(third.post(501));
  IST_OK_OR_FAIL(ist_cancel(third.request));
  IST_OK_OR_FAIL(ist_wait(&third.request, &status));
  EXPECT_EQ(IST_OK, status.code);
  EXPECT_EQ(6, third.value);
}

TEST(Requests, AFreedRequestStillMovesItsBytes) {
  for (const KindName& kind : usable_kinds())
    for (const std::size_t bytes : {std::size_t{40}, std::size_t{3001}, std::size_t{700001}}) {
      GuardedBuffer out(kind.kind, bytes);
      GuardedBuffer in(kind.kind, bytes);
      out.fill(random_bytes(bytes, static_cast<std::uint64_t>(rank()) + bytes));
      const auto count = static_cast<int64_t>(bytes);
      ist_request receive = IST_REQUEST_NULL;
      ist_request send = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_irecv(in.get(), count, IST_BYTE, left(), 600, comm(), &receive));
      IST_OK_OR_FAIL(ist_isend(out.get(), count, IST_BYTE, right(), 600, comm(), &send));
      IST_OK_OR_FAIL(ist_request_free(&send));
      EXPECT_EQ(IST_REQUEST_NULL, send);
      IST_OK_OR_FAIL(ist_wait(&receive, IST_STATUS_IGNORE));
      in.expect(random_bytes(bytes, static_cast<std::uint64_t>(left()) + bytes), kind.name);
      IST_OK_OR_FAIL(ist_barrier(comm()));
    }
  Incoming value;
  IST_OK_OR_FAIL(value.post(601));
  IST_OK_OR_FAIL(ist_request_free(&value.request));
  IST_OK_OR_FAIL(send_int(9, 601));
  IST_OK_OR_FAIL(send_int(10, 602));
  int later = 0;
  IST_OK_OR_FAIL(ist_recv(ist_host(&later), 1, IST_INT, left(), 602, comm(), IST_STATUS_IGNORE));
  EXPECT_EQ(9, value.value) << "it was sent before the one that has arrived";
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Requests, PersistentOnesStartAgainAndAgainWithWhatTheBufferHoldsThen) {
  for (const KindName& kind : usable_kinds())
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}, std::size_t{300001}}) {
      GuardedBuffer out(kind.kind, bytes);
      GuardedBuffer in(kind.kind, bytes);
      const auto count = static_cast<int64_t>(bytes);
      std::vector<ist_request> both(2);
      IST_OK_OR_FAIL(ist_recv_init(in.get(), count, IST_BYTE, left(), 700, comm(), &both[0]));
      IST_OK_OR_FAIL(ist_send_init(out.get(), count, IST_BYTE, right(), 700, comm(), &both[1]));
      ist_status status{};
      IST_OK_OR_FAIL(ist_wait(&both[0], &status));  // inactive: nothing to wait for
      EXPECT_EQ(IST_ANY_SOURCE, status.source);
      const auto kept = both;
      for (int round = 0; round < 3; ++round) {
        const auto seed = [&](int of) { return static_cast<std::uint64_t>(of * 10 + round) + bytes; };
        out.fill(random_bytes(bytes, seed(rank())));
        in.poison();
        IST_OK_OR_FAIL(ist_startall(2, both.data()));
        EXPECT_EQ(IST_ERR_PENDING, ist_start(&both[0]));
        std::vector<ist_status> statuses(2);
        IST_OK_OR_FAIL(ist_waitall(2, both.data(), statuses.data()));
        EXPECT_EQ(kept, both);
        EXPECT_EQ(left(), statuses[0].source);
        EXPECT_EQ(count, statuses[0].bytes);
        in.expect(random_bytes(bytes, seed(left())), std::string(kind.name) + ", round " + std::to_string(round));
      }
      for (ist_request& request : both) IST_OK_OR_FAIL(ist_request_free(&request));
      EXPECT_EQ(IST_REQUEST_NULL, both[0]);
      ist_request gone = kept[0];
      EXPECT_EQ(IST_ERR_HANDLE, ist_start(&gone));
    }
  Incoming plain;
  IST_OK_OR_FAIL(plain.post(701));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_start(&plain.request));
  IST_OK_OR_FAIL(send_int(1, 701));
  IST_OK_OR_FAIL(ist_wait(&plain.request, IST_STATUS_IGNORE));
}

TEST(Requests, ASynchronousSendCompletesOnlyWhenItsReceiveHasBegun) {
  for (const KindName& kind : usable_kinds())
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{200}, std::size_t{5000}, std::size_t{300001}}) {
      GuardedBuffer out(kind.kind, bytes);
      GuardedBuffer in(kind.kind, bytes);
      out.fill(random_bytes(bytes, static_cast<std::uint64_t>(rank()) + 3));
      const auto count = static_cast<int64_t>(bytes);
      ist_request send = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_issend(out.get(), count, IST_BYTE, right(), 800, comm(), &send));
      ASSERT_NE(IST_REQUEST_NULL, send);
      for (int i = 0; i < 20; ++i) {
        int completed = 0;
        IST_OK_OR_FAIL(ist_test(&send, &completed, IST_STATUS_IGNORE));
        ASSERT_EQ(0, completed) << kind.name << ", " << bytes << " bytes: nobody has received yet";
      }
      IST_OK_OR_FAIL(ist_barrier(comm()));
      IST_OK_OR_FAIL(ist_recv(in.get(), count, IST_BYTE, left(), 800, comm(), IST_STATUS_IGNORE));
      IST_OK_OR_FAIL(ist_wait(&send, IST_STATUS_IGNORE));
      in.expect(random_bytes(bytes, static_cast<std::uint64_t>(left()) + 3), kind.name);
    }
  if (size() == 1) return;
  int value = 4;
  if (rank() % 2 == 0 && right() != 0) IST_OK_OR_FAIL(ist_ssend(ist_host(&value), 1, IST_INT, right(), 801, comm()));
  if (rank() % 2 == 1) IST_OK_OR_FAIL(ist_recv(ist_host(&value), 1, IST_INT, left(), 801, comm(), IST_STATUS_IGNORE));
}

TEST(Requests, SendrecvReplaceSendsTheOldContentsAndReceivesIntoTheirPlace) {
  for (const KindName& kind : usable_kinds())
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{3000}, std::size_t{300001}}) {
      GuardedBuffer buffer(kind.kind, bytes);
      buffer.fill(random_bytes(bytes, static_cast<std::uint64_t>(rank()) + 11));
      ist_status status{};
      IST_OK_OR_FAIL(ist_sendrecv_replace(buffer.get(), static_cast<int64_t>(bytes), IST_BYTE, right(), 900, left(), 900,
                                          comm(), &status));
      EXPECT_EQ(left(), status.source);
      buffer.expect(random_bytes(bytes, static_cast<std::uint64_t>(left()) + 11), kind.name);
    }
}

}  // namespace
