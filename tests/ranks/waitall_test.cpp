// Many requests waited for together, among them null ones, a persistent one and one that fails. Run on 1 to 3 ranks.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

int to_right() { return (rank() + 1) % size(); }
int from_left() { return (rank() + size() - 1) % size(); }

// More than are taken out of one rank's slots in a row, and than the slots hold.
constexpr int kMessages = 1500;
constexpr int kMostBytes = 40;
constexpr int kNulls[] = {0, 1, 700, kMessages - 1};
constexpr int kPersistent = 3;
constexpr int kTooLong = 800;
constexpr int kRoom = 16;

bool is_null(int i) { return std::find(std::begin(kNulls), std::end(kNulls), i) != std::end(kNulls); }
std::vector<unsigned char> message(int of, int i, int round) {
  const int bytes = i == kTooLong ? kMostBytes : i % (kMostBytes + 1);
  return random_bytes(at(bytes), static_cast<std::uint64_t>((of * 3 + round) * kMessages + i));
}

void exchange(int round) {
  std::vector<ist_request> receives(at(kMessages), IST_REQUEST_NULL);
  std::vector<ist_request> sends(at(kMessages), IST_REQUEST_NULL);
  std::vector<std::array<unsigned char, kMostBytes>> in(at(kMessages));
  std::vector<std::vector<unsigned char>> out;
  for (int i = 0; i < kMessages; ++i) {
    in[at(i)].fill(0xee);
    out.push_back(message(rank(), i, round));
    if (is_null(i)) continue;
    const int room = i == kTooLong ? kRoom : kMostBytes;
    if (i != kPersistent) {
      IST_OK_OR_FAIL(ist_irecv(ist_host(in[at(i)].data()), room, IST_BYTE, from_left(), i, comm(), &receives[at(i)]));
      continue;
    }
    IST_OK_OR_FAIL(ist_recv_init(ist_host(in[at(i)].data()), room, IST_BYTE, from_left(), i, comm(), &receives[at(i)]));
    IST_OK_OR_FAIL(ist_start(&receives[at(i)]));
  }
  for (int i = 0; i < kMessages; ++i)
    if (!is_null(i))
      IST_OK_OR_FAIL(ist_isend(ist_host(out[at(i)].data()), static_cast<int64_t>(out[at(i)].size()), IST_BYTE, to_right(), i,
                               comm(), &sends[at(i)]));
  std::vector<ist_status> statuses(at(kMessages));
  EXPECT_EQ(IST_ERR_IN_STATUS, ist_waitall(kMessages, receives.data(), statuses.data()));
  EXPECT_NE(nullptr, std::strstr(ist_error_text(), "request 800")) << ist_error_text();
  IST_OK_OR_FAIL(ist_waitall(kMessages, sends.data(), IST_STATUSES_IGNORE));
  for (int i = 0; i < kMessages; ++i) {
    const ist_status& status = statuses[at(i)];
    EXPECT_EQ(i == kPersistent, receives[at(i)] != IST_REQUEST_NULL) << i;
    EXPECT_EQ(is_null(i) ? IST_ANY_SOURCE : from_left(), status.source) << i;
    EXPECT_EQ(is_null(i) ? IST_ANY_TAG : i, status.tag) << i;
    EXPECT_EQ(i == kTooLong ? IST_ERR_TRUNCATE : IST_OK, status.code) << i;
    std::array<unsigned char, kMostBytes> expected{};
    expected.fill(0xee);
    auto sent = message(from_left(), i, round);
    if (i == kTooLong) sent.resize(kRoom);
    if (!is_null(i)) std::copy(sent.begin(), sent.end(), expected.begin());
    EXPECT_EQ(is_null(i) ? 0 : static_cast<int64_t>(sent.size()), status.bytes) << i;
    ASSERT_EQ(expected, in[at(i)]) << i;
  }
  IST_OK_OR_FAIL(ist_request_free(&receives[kPersistent]));
}

TEST(Waitall, FinishesEveryRequestWhateverStandsBesideIt) {
  for (int round = 0; round < 3; ++round) exchange(round);
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

}  // namespace
