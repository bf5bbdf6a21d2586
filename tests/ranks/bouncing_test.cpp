// Messages into device memory that no other process can open: managed, of a pool, mapped by the program. They come through memory of
// the library's own, in parts where they are long. Needs ranks with CUDA devices; the environment says how long a part is.
#include <isthmus/collective.h>

#include <cstdlib>
#include <thread>

#include "device_ranks.hpp"
#include "driver_memory.hpp"

using namespace rank_test;

namespace {

constexpr int kTag = 6;

std::size_t bounce_limit() {
  const char* setting = std::getenv("ISTHMUS_BOUNCE_LIMIT");
  return setting == nullptr ? std::size_t{128} << 20 : std::strtoull(setting, nullptr, 10) << 10;  // the tests say KiB
}

bool off() { return bounce_limit() == 0 || ipc_is_off(); }

// So much comes at a time.
std::size_t part() { return std::min(bounce_limit(), std::size_t{64} << 20) / 2; }

// From rank 0 to rank 1, whose memory was poisoned, and beyond the end of it nothing is touched.
int carry(const Memory& memory, std::size_t bytes, std::uint64_t seed) {
  constexpr std::size_t kGuard = 64;
  const auto wanted = random_bytes(bytes, seed);
  ist_status status{};
  if (rank() == 0) {
    memory.fill(wanted);
    EXPECT_EQ(IST_OK, ist_send(memory.get(), static_cast<std::int64_t>(bytes), IST_BYTE, 1, kTag, comm()))
        << ist_error_text();
  } else if (rank() == 1) {
    std::vector<unsigned char> expected(bytes + kGuard, 0x5a);
    memory.fill(expected);
    EXPECT_EQ(IST_OK, ist_recv(memory.get(), static_cast<std::int64_t>(bytes), IST_BYTE, 0, kTag, comm(), &status))
        << ist_error_text();
    std::copy(wanted.begin(), wanted.end(), expected.begin());
    EXPECT_EQ(-1, first_difference(expected, memory.read(bytes + kGuard))) << bytes << " bytes";
    EXPECT_EQ(static_cast<std::int64_t>(bytes), status.bytes);
  }
  std::int32_t carrier = status.carrier;
  EXPECT_EQ(IST_OK, ist_bcast(ist_host(&carrier), 1, IST_INT32, 1, comm())) << ist_error_text();
  return carrier;
}

// The first messages find that the block is not open yet.
bool opened(const Memory& memory, std::size_t bytes) {
  for (std::uint64_t n = 0; n < 2000; ++n) {
    if (carry(memory, bytes, n) == IST_CARRIER_DEVICE) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return false;
}

class Bouncing : public ::testing::TestWithParam<const char*> {};

TEST_P(Bouncing, MessagesOfEveryLengthComeWholeAndInParts) {
  NEEDS_DEVICES();
  const std::size_t most = std::getenv("ISTHMUS_BOUNCE_LIMIT") != nullptr ? 3 * part() + 4099 : std::size_t{700} << 10;
  const Memory memory(GetParam(), most + 64);
  // What two ranks of one device exchange goes by the device from 2 MiB on.
  int devices = 0;
  EXPECT_EQ(IST_OK, ist_kind_devices(world(), IST_KIND_CUDA, &devices));
  if (!off() && (devices > 1 || std::getenv("ISTHMUS_TEST_OWN_DEVICES") != nullptr || most > std::size_t{2} << 20)) {
    EXPECT_TRUE(opened(memory, most)) << "nothing goes through the block";
  }
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{16385}, std::size_t{70001},
                                  part() - 1, part(), part() + 1, 2 * part() - 1, 2 * part(), 2 * part() + 1, most})
    if (bytes <= most) carry(memory, bytes, bytes + 3);
  if (off()) {
    EXPECT_NE(IST_CARRIER_DEVICE, carry(memory, most, 1));
  }
}

ist_traffic by_blocks(int peer) {
  ist_traffic found{};
  found.size = sizeof found;
  EXPECT_EQ(IST_OK, ist_world_traffic(world(), peer, IST_CARRIER_BLOCK, &found)) << ist_error_text();
  return found;
}

// Many messages are announced before any is received. How many of them came to rank 1 through blocks.
std::size_t window(const std::vector<std::unique_ptr<Memory>>& memory, std::size_t bytes, std::uint64_t round) {
  std::vector<ist_request> requests(memory.size());
  const auto count = static_cast<std::int64_t>(bytes);
  const auto seed = [&](std::size_t n) { return 100 * round + n; };
  const std::uint64_t before = by_blocks(IST_ALL_PEERS).messages_received;
  for (std::size_t n = 0; n < memory.size() && rank() == 0; ++n) {
    memory[n]->fill(random_bytes(bytes, seed(n)));
    EXPECT_EQ(IST_OK, ist_isend(memory[n]->get(), count, IST_BYTE, 1, kTag, comm(), &requests[n])) << ist_error_text();
  }
  if (rank() == 1)
    for (const auto& one : memory) one->fill(std::vector<unsigned char>(bytes, 0x5a));
  EXPECT_EQ(IST_OK, ist_barrier(comm())) << ist_error_text();
  for (std::size_t n = 0; n < memory.size() && rank() == 1; ++n)
    EXPECT_EQ(IST_OK, ist_irecv(memory[n]->get(), count, IST_BYTE, 0, kTag, comm(), &requests[n])) << ist_error_text();
  EXPECT_EQ(IST_OK, ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE))
      << ist_error_text();
  for (std::size_t n = 0; n < memory.size() && rank() == 1; ++n)
    EXPECT_EQ(-1, first_difference(random_bytes(bytes, seed(n)), memory[n]->read(bytes))) << "message " << n;
  auto came = static_cast<std::int64_t>(by_blocks(IST_ALL_PEERS).messages_received - before);
  EXPECT_EQ(IST_OK, ist_bcast(ist_host(&came), 1, IST_INT64, 1, comm())) << ist_error_text();
  return static_cast<std::size_t>(came);
}

// They wait for a block rather than take the ring, which is several times slower: without that two or three of a window get one. On a
// quiet machine all do; but a rank that the machine lets rest for milliseconds is not waited for.
TEST_P(Bouncing, SixtyFourAtOnceAllWaitForABlock) {
  NEEDS_DEVICES();
  const std::size_t bytes = std::min<std::size_t>(part() + 777, std::size_t{700} << 10);
  std::vector<std::unique_ptr<Memory>> memory;
  for (int n = 0; n < 64; ++n) memory.push_back(std::make_unique<Memory>(GetParam(), bytes + 64));
  int devices = 0;
  EXPECT_EQ(IST_OK, ist_kind_devices(world(), IST_KIND_CUDA, &devices));
  if (off() || (devices < 2 && std::getenv("ISTHMUS_TEST_OWN_DEVICES") == nullptr)) {
    EXPECT_EQ(0U, window(memory, bytes, 0));
    GTEST_SKIP() << "not covered here: waiting for a block; messages of this length go another way";
  }
  EXPECT_TRUE(opened(*memory[0], bytes)) << "nothing goes through the block";
  std::size_t most = 0;
  for (std::uint64_t round = 1; round <= 10 && most < memory.size(); ++round)
    most = std::max(most, window(memory, bytes, round));
  EXPECT_LE(memory.size() / 16, most);
  if (rank() == 1 && most < memory.size()) std::printf("%zu of %zu came through blocks\n", most, memory.size());
}

// More at a time than there are blocks, both ways: each has its own bytes.
TEST_P(Bouncing, ManyAtOnceBothWaysKeepApart) {
  NEEDS_DEVICES();
  constexpr std::size_t kMessages = 5;
  const std::size_t bytes = std::min<std::size_t>(part() + 777, std::size_t{700} << 10);
  std::vector<std::unique_ptr<Memory>> out;
  std::vector<std::unique_ptr<Memory>> into;
  for (std::size_t n = 0; n < kMessages; ++n) {
    out.push_back(std::make_unique<Memory>(GetParam(), bytes));
    into.push_back(std::make_unique<Memory>(GetParam(), bytes));
  }
  for (std::uint64_t round = 0; round < 4 && rank() < 2; ++round) {
    std::vector<ist_request> requests(2 * kMessages);
    const auto seed = [&](int of, std::size_t n) { return 100 * round + 10 * n + static_cast<std::uint64_t>(of); };
    for (std::size_t n = 0; n < kMessages; ++n) {
      out[n]->fill(random_bytes(bytes, seed(rank(), n)));
      into[n]->fill(std::vector<unsigned char>(bytes, 0x5a));
      EXPECT_EQ(IST_OK, ist_irecv(into[n]->get(), static_cast<std::int64_t>(bytes), IST_BYTE, 1 - rank(), kTag, comm(),
                                  &requests[n]));
    }
    for (std::size_t n = 0; n < kMessages; ++n)
      EXPECT_EQ(IST_OK, ist_isend(out[n]->get(), static_cast<std::int64_t>(bytes), IST_BYTE, 1 - rank(), kTag, comm(),
                                  &requests[kMessages + n]));
    EXPECT_EQ(IST_OK, ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE))
        << ist_error_text();
    for (std::size_t n = 0; n < kMessages; ++n)
      EXPECT_EQ(-1, first_difference(random_bytes(bytes, seed(1 - rank(), n)), into[n]->read(bytes))) << "message " << n;
  }
  EXPECT_EQ(IST_OK, ist_barrier(comm()));
}

// Apart from what takes one copy.
TEST(BouncingTraffic, IsCountedByItselfOnBothSides) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = (std::size_t{4} << 20) + 5;
  const Memory memory("managed", kBytes + 64);
  if (off() || !opened(memory, kBytes))
    GTEST_SKIP()
        << "not covered here: counting what goes through a block; ISTHMUS_DEVICE_IPC or ISTHMUS_BOUNCE_LIMIT allows none";
  const ist_traffic before = by_blocks(IST_ALL_PEERS);
  ASSERT_EQ(IST_CARRIER_DEVICE, carry(memory, kBytes, 9));
  const ist_traffic after = by_blocks(IST_ALL_PEERS);
  EXPECT_EQ(rank() == 0 ? 1U : 0U, after.messages_sent - before.messages_sent);
  EXPECT_EQ(rank() == 0 ? kBytes : 0U, after.bytes_sent - before.bytes_sent);
  EXPECT_EQ(rank() == 1 ? 1U : 0U, after.messages_received - before.messages_received);
  EXPECT_EQ(rank() == 1 ? kBytes : 0U, after.bytes_received - before.bytes_received);
}

INSTANTIATE_TEST_SUITE_P(Into, Bouncing, ::testing::Values("managed", "pool", "vmm"),
                         [](const auto& each) { return each.param; });

}  // namespace
