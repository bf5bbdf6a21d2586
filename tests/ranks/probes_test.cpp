// Messages that are looked at before they are received. Run on 1 to 3 ranks.
#include <thread>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

int right() { return (rank() + 1) % size(); }
int left() { return (rank() + size() - 1) % size(); }

int send_int(int value, int tag) { return ist_send(ist_host(&value), 1, IST_INT, right(), tag, comm()); }

TEST(Probe, TellsWhatAReceiveWouldGetAndLeavesIt) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{12}, std::size_t{6000}, std::size_t{400000}}) {
    const auto mine = random_bytes(bytes, static_cast<std::uint64_t>(rank()));
    ist_request send = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_isend(ist_host(mine.data()), static_cast<int64_t>(bytes), IST_BYTE, right(), 1000, comm(), &send));
    ist_status status{};
    for (int twice = 0; twice < 2; ++twice) {
      IST_OK_OR_FAIL(ist_probe(IST_ANY_SOURCE, IST_ANY_TAG, comm(), &status));
      EXPECT_EQ(left(), status.source);
      EXPECT_EQ(1000, status.tag);
      EXPECT_EQ(static_cast<int64_t>(bytes), status.bytes);
    }
    int64_t count = -9;
    IST_OK_OR_FAIL(ist_get_count(&status, IST_DOUBLE, &count));
    EXPECT_EQ(bytes % 8 == 0 ? static_cast<int64_t>(bytes / 8) : IST_UNDEFINED, count);
    int found = 1;
    IST_OK_OR_FAIL(ist_iprobe(left(), 1001, comm(), &found, &status));
    EXPECT_EQ(0, found);
    std::vector<unsigned char> got(bytes);
    IST_OK_OR_FAIL(ist_recv(ist_host(got.data()), static_cast<int64_t>(bytes), IST_BYTE, left(), 1000, comm(), &status));
    EXPECT_EQ(-1, first_difference(random_bytes(bytes, static_cast<std::uint64_t>(left())), got));
    IST_OK_OR_FAIL(ist_wait(&send, IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
}

// Which no receive that comes later meets, however early this rank heard of it.
TEST(Probe, WhatARankSentToItselfAndTookBackIsNotThereAnyMore) {
  constexpr std::int64_t kCount = 400001;
  const auto mine = random_bytes(kCount, 7);
  std::vector<unsigned char> got(mine.size(), 0xa5);
  for (const bool looks : {false, true}) {
    ist_request send = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_isend(ist_host(got.data()), kCount, IST_BYTE, rank(), 1050, comm(), &send));
    if (looks) IST_OK_OR_FAIL(ist_probe(rank(), 1050, comm(), IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_cancel(send));
    ist_status status{};
    IST_OK_OR_FAIL(ist_wait(&send, &status));
    EXPECT_EQ(IST_CANCELLED, status.code);
    ist_request receive = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_irecv(ist_host(got.data()), kCount, IST_BYTE, rank(), 1050, comm(), &receive));
    IST_OK_OR_FAIL(ist_send(ist_host(mine.data()), kCount, IST_BYTE, rank(), 1050, comm()));
    IST_OK_OR_FAIL(ist_wait(&receive, IST_STATUS_IGNORE));
    EXPECT_EQ(-1, first_difference(mine, got));
  }
}

TEST(Probe, AMatchedMessageIsReceivedByItsHandleAloneOnAnyKind) {
  for (const KindName& kind : usable_kinds())
    for (const std::size_t bytes : {std::size_t{16}, std::size_t{6000}, std::size_t{400001}}) {
      const auto count = static_cast<int64_t>(bytes);
      std::vector<std::vector<unsigned char>> mine;
      std::vector<ist_request> sends(2);
      for (std::uint64_t i = 0; i < 2; ++i) {
        mine.push_back(random_bytes(bytes, static_cast<std::uint64_t>(rank()) * 2 + i));
        IST_OK_OR_FAIL(ist_isend(ist_host(mine[i].data()), count, IST_BYTE, right(), 1100, comm(), &sends[i]));
      }
      ist_message first = IST_MESSAGE_NULL;
      ist_status status{};
      IST_OK_OR_FAIL(ist_mprobe(left(), 1100, comm(), &first, &status));
      EXPECT_EQ(count, status.bytes);
      ist_request wrong = reinterpret_cast<ist_request>(first);
      EXPECT_EQ(IST_ERR_HANDLE, ist_wait(&wrong, IST_STATUS_IGNORE));
      GuardedBuffer second_in(kind.kind, bytes);
      IST_OK_OR_FAIL(ist_recv(second_in.get(), count, IST_BYTE, left(), 1100, comm(), IST_STATUS_IGNORE));
      second_in.expect(random_bytes(bytes, static_cast<std::uint64_t>(left()) * 2 + 1), "the second, past the claimed one");
      GuardedBuffer first_in(kind.kind, bytes);
      ist_request receive = IST_REQUEST_NULL;
      ist_message used = first;
      IST_OK_OR_FAIL(ist_imrecv(first_in.get(), count, IST_BYTE, &first, &receive));
      EXPECT_EQ(IST_MESSAGE_NULL, first);
      EXPECT_EQ(IST_ERR_HANDLE, ist_mrecv(first_in.get(), count, IST_BYTE, &used, IST_STATUS_IGNORE));
      IST_OK_OR_FAIL(ist_wait(&receive, &status));
      EXPECT_EQ(left(), status.source);
      first_in.expect(random_bytes(bytes, static_cast<std::uint64_t>(left()) * 2), "the claimed one");
      IST_OK_OR_FAIL(ist_waitall(2, sends.data(), IST_STATUSES_IGNORE));
      IST_OK_OR_FAIL(ist_barrier(comm()));
    }
}

// Nothing is there; then the message is, whose handle alone receives it, in whatever kind, at once or as a request.
TEST(Probe, AMatchedMessageIsFoundWithoutWaitingAndIsNobodyElsesFromThenOn) {
  for (const KindName& kind : usable_kinds())
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{16}, std::size_t{6000}, std::size_t{400001}}) {
      const auto count = static_cast<int64_t>(bytes);
      const auto mine = random_bytes(bytes, static_cast<std::uint64_t>(rank()) + 17);
      ist_message message = IST_MESSAGE_NULL;
      ist_status status{};
      int found = 7;
      IST_OK_OR_FAIL(ist_improbe(left(), 1150, comm(), &found, &message, &status));
      EXPECT_EQ(0, found) << "nobody has sent yet";
      EXPECT_EQ(IST_MESSAGE_NULL, message);
      IST_OK_OR_FAIL(ist_barrier(comm()));
      ist_request send = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_isend(ist_host(mine.data()), count, IST_BYTE, right(), 1150, comm(), &send));
      while (found == 0) IST_OK_OR_FAIL(ist_improbe(IST_ANY_SOURCE, 1150, comm(), &found, &message, &status));
      EXPECT_EQ(1, found);
      EXPECT_NE(IST_MESSAGE_NULL, message);
      EXPECT_EQ(left(), status.source);
      EXPECT_EQ(1150, status.tag);
      EXPECT_EQ(count, status.bytes);
      // It is set aside: neither probe sees it again.
      ist_message none = IST_MESSAGE_NULL;
      IST_OK_OR_FAIL(ist_improbe(left(), 1150, comm(), &found, &none, IST_STATUS_IGNORE));
      EXPECT_EQ(0, found);
      IST_OK_OR_FAIL(ist_iprobe(IST_ANY_SOURCE, IST_ANY_TAG, comm(), &found, IST_STATUS_IGNORE));
      EXPECT_EQ(0, found);
      GuardedBuffer buffer(kind.kind, bytes);
      status = {};
      if (bytes % 2 == 0) {
        IST_OK_OR_FAIL(ist_mrecv(buffer.get(), count, IST_BYTE, &message, &status));
      } else {
        ist_request receive = IST_REQUEST_NULL;
        IST_OK_OR_FAIL(ist_imrecv(buffer.get(), count, IST_BYTE, &message, &receive));
        IST_OK_OR_FAIL(ist_wait(&receive, &status));
      }
      EXPECT_EQ(IST_MESSAGE_NULL, message);
      EXPECT_EQ(left(), status.source);
      EXPECT_EQ(count, status.bytes);
      buffer.expect(random_bytes(bytes, static_cast<std::uint64_t>(left()) + 17), kind.name);
      IST_OK_OR_FAIL(ist_wait(&send, IST_STATUS_IGNORE));
      IST_OK_OR_FAIL(ist_barrier(comm()));
    }
}

TEST(Probe, NobodyAnswersAtOnceAndWrongArgumentsAreErrors) {
  ist_status status{};
  int found = 0;
  IST_OK_OR_FAIL(ist_iprobe(IST_PROC_NULL, 0, comm(), &found, &status));
  EXPECT_EQ(1, found);
  EXPECT_EQ(IST_PROC_NULL, status.source);
  ist_message message = IST_MESSAGE_NULL;
  IST_OK_OR_FAIL(ist_mprobe(IST_PROC_NULL, 0, comm(), &message, &status));
  IST_OK_OR_FAIL(ist_mrecv(ist_host(nullptr), 0, IST_BYTE, &message, &status));
  EXPECT_EQ(IST_PROC_NULL, status.source);
  EXPECT_EQ(IST_ERR_RANK, ist_iprobe(size(), 0, comm(), &found, &status));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_iprobe(0, -5, comm(), &found, &status));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_iprobe(0, 0, comm(), nullptr, &status));
  EXPECT_EQ(IST_ERR_HANDLE, ist_probe(0, 0, IST_COMM_NULL, &status));
  EXPECT_EQ(IST_ERR_HANDLE, ist_mrecv(ist_host(&found), 1, IST_INT, &message, &status));
  int64_t count = 0;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_get_count(nullptr, IST_INT, &count));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_request_free(nullptr));
  // As of a send that was complete when it was started.
  ist_request over = IST_REQUEST_NULL;
  EXPECT_EQ(IST_OK, ist_request_free(&over));
  EXPECT_EQ(IST_OK, ist_cancel(IST_REQUEST_NULL));
  int index = 0;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_waitany(-1, nullptr, &index, &status));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_waitany(1, nullptr, &index, &status));
  ist_request bad = reinterpret_cast<ist_request>(0x123456789);
  EXPECT_EQ(IST_ERR_HANDLE, ist_waitany(1, &bad, &index, &status));
  EXPECT_NE(std::string(ist_error_text()).find("request 0"), std::string::npos) << ist_error_text();
}

// A probe sleeps where processors are shared; another thread of the rank may be the one that takes the arrival in.
TEST(Probe, AThreadThatProbesIsWokenWhateverThreadTakesTheMessageIn) {
  for (int round = 0; round < 20; ++round) {
    std::thread other([&] {
      int value = 0;
      EXPECT_EQ(IST_OK, ist_recv(ist_host(&value), 1, IST_INT, left(), 1201, comm(), IST_STATUS_IGNORE)) << ist_error_text();
      EXPECT_EQ(round, value);
    });
    IST_OK_OR_FAIL(send_int(round + 7, 1200));
    ist_status status{};
    IST_OK_OR_FAIL(ist_probe(left(), 1200, comm(), &status));
    int value = 0;
    IST_OK_OR_FAIL(ist_recv(ist_host(&value), 1, IST_INT, left(), 1200, comm(), IST_STATUS_IGNORE));
    EXPECT_EQ(round + 7, value);
    IST_OK_OR_FAIL(send_int(round, 1201));
    other.join();
  }
}

}  // namespace
