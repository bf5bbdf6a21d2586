// Many long messages between host buffers that are under way at once: what is read out of another rank's memory is read several at a time.
#include <array>
#include <string>
#include <vector>

#include "rank_test.hpp"

using namespace rank_test;

namespace {

constexpr std::array<std::size_t, 12> kLong{131073, 140000, 196608, 200003, 262143, 262144,
                                            262145, 300000, 524288, 524289, 600000, 150001};
constexpr std::size_t kMessages = 4 * kLong.size();

std::size_t length(std::size_t message) { return kLong[message % kLong.size()]; }
std::uint64_t of(int sender, int round, std::size_t message) {
  return static_cast<std::uint64_t>((sender * 1000 + round) * 1000) + message;
}

// Each rank sends to the next one and receives from the one before; half of the receives are posted first. Each fifth has room for less, and
// gets the first bytes and an error.
TEST(Outstanding, LongMessagesBothWaysArriveWholeEachInItsPlace) {
  if (size() < 2) GTEST_SKIP() << "not covered here: messages between ranks; takes two";
  const int to = (rank() + 1) % size();
  const int from = (rank() + size() - 1) % size();
  for (int round = 0; round < 6; ++round) {
    std::vector<std::vector<unsigned char>> out, in;
    std::vector<ist_request> requests(2 * kMessages, IST_REQUEST_NULL);
    std::vector<ist_status> statuses(requests.size());
    const auto room = [&](std::size_t message) { return message % 5 == 3 ? length(message) / 2 : length(message); };
    const auto receive = [&](std::size_t message) {
      IST_OK_OR_FAIL(ist_irecv(ist_host(in[message].data()), static_cast<std::int64_t>(room(message)), IST_BYTE, from,
                               static_cast<int>(message), comm(), &requests[message]));
    };
    for (std::size_t message = 0; message < kMessages; ++message) {
      out.push_back(random_bytes(length(message), of(rank(), round, message)));
      in.emplace_back(room(message) + 1, static_cast<unsigned char>(0xa5));
    }
    for (std::size_t message = 0; message < kMessages; message += 2) receive(message);
    for (std::size_t message = 0; message < kMessages; ++message)
      IST_OK_OR_FAIL(ist_isend(ist_host(out[message].data()), static_cast<std::int64_t>(length(message)), IST_BYTE, to,
                               static_cast<int>(message), comm(), &requests[kMessages + message]));
    for (std::size_t message = 1; message < kMessages; message += 2) receive(message);
    EXPECT_EQ(IST_ERR_IN_STATUS, ist_waitall(static_cast<int>(requests.size()), requests.data(), statuses.data()));
    for (std::size_t message = 0; message < kMessages; ++message) {
      auto expected = random_bytes(length(message), of(from, round, message));
      expected.resize(room(message));
      expected.push_back(0xa5);
      ASSERT_EQ(expected, in[message]) << "round " << round << ", message " << message << " of " << length(message)
                                       << " bytes";
      EXPECT_EQ(room(message) < length(message) ? IST_ERR_TRUNCATE : IST_OK, statuses[message].code) << message;
      EXPECT_EQ(static_cast<std::int64_t>(room(message)), statuses[message].bytes) << message;
      EXPECT_EQ(IST_OK, statuses[kMessages + message].code) << message;
    }
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

}  // namespace
