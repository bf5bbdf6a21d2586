// Memory runs out for a message that comes before its receive, while calls wait for something else: what such a call has under way is over when it fails, and what is
// complete does not fail.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "isthmus/collective.h"
#include "isthmus/layout.h"
#include "rank_test.hpp"

using namespace rank_test;

namespace {

// So many bytes and more there are none of.
constexpr std::size_t kMuch = 100000;
std::atomic<bool> little{false};
std::atomic<int> taken{0};

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++taken;
  void* const memory = little && size > kMuch ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

constexpr int kTag = 1, kOther = 2, kWord = 3;
constexpr std::size_t kOthers = 120000;
// Room that was kept for one message is kept for the next ones: each test has one more than there is room for.
int others = 0;

bool takes_part() {
  ++others;
  return rank() < 2 && size() > 1;
}
// A library with a C++ runtime of its own asks that one for memory.
bool library_asks_here() {
  ist_comm other = IST_COMM_NULL;
  const int before = taken;
  EXPECT_EQ(IST_OK, ist_comm_dup(comm(), &other));
  const bool asked = taken != before;
  EXPECT_EQ(IST_OK, ist_comm_free(&other));
  return asked;
}
class MemoryRunsOut : public testing::Test {
 protected:
  void SetUp() override {
    static const bool asks = library_asks_here();
    if (!asks) GTEST_SKIP() << "SKIPPED: the library does not use this program's operator new";
  }
};
// Rank 0's: messages that rank 1 has no receive for, and no memory to keep.
void send_others() {
  const std::vector<unsigned char> bytes(kOthers, 11);
  for (int i = 0; i < others; ++i) IST_OK_OR_FAIL(ist_send(ist_host(bytes.data()), kOthers, IST_BYTE, 1, kOther, comm()));
}
void receive_others() {
  std::vector<unsigned char> bytes(kOthers);
  for (int i = 0; i < others; ++i) {
    IST_OK_OR_FAIL(ist_recv(ist_host(bytes.data()), kOthers, IST_BYTE, 0, kOther, comm(), IST_STATUS_IGNORE));
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 11; }));
  }
}
template <class Call>
int with_little(const Call& call) {
  little = true;
  const int code = call();
  little = false;
  return code;
}
void send_word() {
  int word = 1;
  IST_OK_OR_FAIL(ist_send(ist_host(&word), 4, IST_BYTE, 1 - rank(), kWord, comm()));
}
void wait_for_word() {
  int word = 0;
  IST_OK_OR_FAIL(ist_recv(ist_host(&word), 4, IST_BYTE, 1 - rank(), kWord, comm(), IST_STATUS_IGNORE));
}
void send_42() {
  const std::vector<unsigned char> bytes(64, 42);
  IST_OK_OR_FAIL(ist_send(ist_host(bytes.data()), 64, IST_BYTE, 1, kTag, comm()));
}
// The message that the failed call would have had goes to the next receive.
void expect_42_elsewhere(std::vector<unsigned char>& failed) {
  std::fill(failed.begin(), failed.end(), static_cast<unsigned char>(7));
  receive_others();
  send_word();
  std::vector<unsigned char> found(64);
  IST_OK_OR_FAIL(ist_recv(ist_host(found.data()), 64, IST_BYTE, 0, kTag, comm(), IST_STATUS_IGNORE));
  EXPECT_EQ(found, std::vector<unsigned char>(64, 42));
  EXPECT_TRUE(std::all_of(failed.begin(), failed.end(), [](unsigned char byte) { return byte == 7; }));
}

TEST_F(MemoryRunsOut, AReceiveThatFailedTakesNoMessageLater) {
  if (!takes_part()) return;
  if (rank() == 0) return send_others(), wait_for_word(), send_42();
  std::vector<unsigned char> mine(64, 1);
  EXPECT_EQ(IST_ERR_MEMORY,
            with_little([&] { return ist_recv(ist_host(mine.data()), 64, IST_BYTE, 0, kTag, comm(), IST_STATUS_IGNORE); }));
  expect_42_elsewhere(mine);
}

TEST_F(MemoryRunsOut, ASendThatFailedIsTakenBack) {
  if (!takes_part()) return;
  constexpr std::size_t kLong = 1000000;
  std::vector<unsigned char> bytes(kLong, 5);
  if (rank() == 0) {
    send_others();
    wait_for_word();
    IST_OK_OR_FAIL(ist_recv(ist_host(bytes.data()), kLong, IST_BYTE, 1, kTag, comm(), IST_STATUS_IGNORE));
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 9; }));
    return;
  }
  EXPECT_EQ(IST_ERR_MEMORY, with_little([&] { return ist_send(ist_host(bytes.data()), kLong, IST_BYTE, 0, kTag, comm()); }));
  std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(9));
  receive_others();
  send_word();
  IST_OK_OR_FAIL(ist_send(ist_host(bytes.data()), kLong, IST_BYTE, 0, kTag, comm()));
}

TEST_F(MemoryRunsOut, BothHalvesOfACallAreOverWhenItFails) {
  for (const bool replaces : {false, true}) {
    if (!takes_part()) return;
    std::vector<unsigned char> mine(64, 1);
    if (rank() == 0) {
      send_others();
      wait_for_word();
      IST_OK_OR_FAIL(ist_recv(ist_host(mine.data()), 64, IST_BYTE, 1, kTag, comm(), IST_STATUS_IGNORE));
      send_42();
      continue;
    }
    const std::vector<unsigned char> out(64, 1);
    EXPECT_EQ(IST_ERR_MEMORY, with_little([&] {
                return replaces ? ist_sendrecv_replace(ist_host(mine.data()), 64, IST_BYTE, 0, kTag, 0, kTag, comm(),
                                                       IST_STATUS_IGNORE)
                                : ist_sendrecv(ist_host(out.data()), 64, IST_BYTE, 0, kTag, ist_host(mine.data()), 64,
                                               IST_BYTE, 0, kTag, comm(), IST_STATUS_IGNORE);
              }));
    expect_42_elsewhere(mine);
  }
}

// By messages, and by a schedule.
TEST_F(MemoryRunsOut, ACollectiveCallThatFailedWritesNothingLater) {
  // There is no memory that its ranks share for so many communicators.
  constexpr int kBeyondShared = 40;
  ist_comm part = IST_COMM_NULL;
  for (int i = 0; i < kBeyondShared; ++i) IST_OK_OR_FAIL(ist_comm_dup(comm(), &part));
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{2} << 20}) {
    if (!takes_part()) return;
    std::vector<unsigned char> mine(bytes, static_cast<unsigned char>(rank() == 0 ? 42 : 1));
    if (rank() == 0) {
      send_others();
      wait_for_word();
      static_cast<void>(ist_bcast(ist_host(mine.data()), static_cast<std::int64_t>(bytes), IST_BYTE, 0, part));
    } else {
      const int code =
          with_little([&] { return ist_bcast(ist_host(mine.data()), static_cast<std::int64_t>(bytes), IST_BYTE, 0, part); });
      EXPECT_EQ(IST_ERR_MEMORY, code);
      std::fill(mine.begin(), mine.end(), static_cast<unsigned char>(7));
      receive_others();
      send_word();
      wait_for_word();
      EXPECT_TRUE(std::all_of(mine.begin(), mine.end(), [](unsigned char byte) { return byte == 7; }));
    }
    if (rank() == 0) send_word();
  }
}

TEST_F(MemoryRunsOut, WhatIsCompleteDoesNotFail) {
  if (!takes_part()) return;
  if (rank() == 0) send_others();
  for (int i = 0; i < 40; ++i) {
    int value = rank() == 0 ? 100 + i : 0;
    EXPECT_EQ(IST_OK, with_little([&] { return ist_barrier(comm()); }));
    EXPECT_EQ(IST_OK, with_little([&] { return ist_bcast(ist_host(&value), 1, IST_INT32, 0, comm()); }));
    EXPECT_EQ(100 + i, value);
  }
  if (rank() == 0) return wait_for_word(), send_42();
  std::vector<unsigned char> strided(128, 1);
  ist_layout layout = IST_LAYOUT_NULL;
  IST_OK_OR_FAIL(ist_layout_vector(64, 1, 2, ist_layout_of(IST_BYTE), &layout));
  IST_OK_OR_FAIL(ist_layout_commit(layout));
  ist_request request = IST_REQUEST_NULL;
  EXPECT_EQ(IST_OK,
            with_little([&] { return ist_irecv_layout(ist_host(strided.data()), 1, layout, 0, kTag, comm(), &request); }));
  receive_others();
  send_word();
  IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  EXPECT_EQ(42, strided[126]);
  IST_OK_OR_FAIL(ist_layout_free(&layout));
}

TEST_F(MemoryRunsOut, ATestThatFailedSaysThatItsRequestIsNotComplete) {
  if (!takes_part()) return;
  if (rank() == 0) return send_others(), wait_for_word(), send_42();
  std::vector<unsigned char> mine(64, 1);
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_irecv(ist_host(mine.data()), 64, IST_BYTE, 0, kTag, comm(), &request));
  int code = IST_OK, completed = 1;
  while (code == IST_OK) code = with_little([&] { return ist_test(&request, &completed, IST_STATUS_IGNORE); });
  EXPECT_EQ(IST_ERR_MEMORY, code);
  EXPECT_EQ(0, completed);
  receive_others();
  send_word();
  IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  EXPECT_EQ(42, mine[63]);
}

}  // namespace
