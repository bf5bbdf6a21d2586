// Ranks that share a device: copies that would wait for a turn on it go by its copy engines, or through the host; nothing of that where each
// has one of its own.
#include <algorithm>

#include "device_ranks.hpp"
#include "driver_memory.hpp"

using namespace rank_test;

namespace {

constexpr std::size_t kByEngine = 1 << 20;  // from here on a copy from the host is one
constexpr std::size_t kMost = kByEngine + 40;
constexpr std::size_t kByHost = 2 << 20;  // from here on a copy within a device is one, wherever it is

std::uint64_t count_of(const char* call) {
  auto* const calls = driver_call<std::uint64_t(const char*)>("fake_cuda_calls");
  return calls == nullptr ? 0 : calls(call);
}
bool counts() { return driver_call<std::uint64_t(const char*)>("fake_cuda_calls") != nullptr; }
bool shared() { return own_devices() < size(); }

const std::vector<std::size_t>& sizes() {
  static const std::vector<std::size_t> all{
      0, 1, 2, 3, 4, 5, 7, 8, 9, 64, 255, 4095, 4096, 4097, 16384, 16385, 32767, kByEngine - 1, kByEngine, kByEngine + 1};
  return all;
}

// All of a buffer: what was asked for, and nothing beside it.
std::vector<unsigned char> around(const std::vector<unsigned char>& bytes, std::size_t offset) {
  std::vector<unsigned char> whole(kMost + 8, 0xa5);
  std::copy(bytes.begin(), bytes.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset));
  return whole;
}

TEST(Turns, MessagesOfEverySizeArriveWholeAtOddPlacesToo) {
  NEEDS_DEVICES();
  if (rank() > 1) return;
  const Memory memory("cuda", kMost + 8);
  std::uint64_t seed = 0;
  for (const std::size_t bytes : sizes())
    for (const std::size_t offset : {std::size_t{0}, std::size_t{3}}) {
      const auto sent = random_bytes(bytes, ++seed);
      const auto count = static_cast<std::int64_t>(bytes);
      memory.fill(around(rank() == 0 ? sent : std::vector<unsigned char>{}, offset));
      const std::uint64_t before = count_of("cuMemcpy3DAsync_v2"), written = count_of("cuStreamBatchMemOp_v2");
      if (rank() == 0) {
        IST_OK_OR_FAIL(ist_send(memory.get(offset), count, IST_BYTE, 1, 3, comm()));
      } else {
        IST_OK_OR_FAIL(ist_recv(memory.get(offset), count, IST_BYTE, 0, 3, comm(), IST_STATUS_IGNORE));
        EXPECT_EQ(-1, first_difference(around(sent, offset), memory.read(kMost + 8))) << bytes << " bytes at " << offset;
      }
      const std::uint64_t rows = count_of("cuMemcpy3DAsync_v2") - before;
      if (!counts()) continue;
      // Few bytes are values, which wait for no turn.
      const bool few = bytes > 0 && bytes <= 24 && bytes % 4 == 0 && offset % 4 == 0;
      if (shared()) {
        EXPECT_EQ(rank() == 1 && few ? 1 : 0, count_of("cuStreamBatchMemOp_v2") - written) << bytes;
      }
      // Of an odd number the last two bytes go once more. What is longer than a slot of the ring goes in several.
      if (rank() == 0 || !shared() || bytes < 2 || few) {
        EXPECT_EQ(0, rows) << bytes;
      } else if (bytes < 65536) {
        EXPECT_EQ(1 + bytes % 2, rows) << bytes;
      } else {
        EXPECT_LT(0, rows) << bytes;
      }
    }
}

TEST(Turns, CopiesOfEverySizeIntoTheDeviceAndWithinIt) {
  NEEDS_DEVICES();
  const Memory first("cuda", kMost + 8);
  const Memory second("cuda", kMost + 8);
  std::uint64_t seed = 100;
  for (const std::size_t bytes : sizes()) {
    const auto wanted = random_bytes(bytes, ++seed);
    first.fill(around({}, 0));
    second.fill(around({}, 0));
    const std::uint64_t rows = count_of("cuMemcpy3DAsync_v2");
    first.fill(wanted, 5);
    // Of an odd number the last two bytes go once more.
    const bool in_rows = counts() && shared() && bytes > 1 && bytes < kByEngine;
    EXPECT_EQ(in_rows ? 1 + bytes % 2 : 0, count_of("cuMemcpy3DAsync_v2") - rows) << bytes;
    EXPECT_EQ(-1, first_difference(around(wanted, 5), first.read(kMost + 8))) << bytes << " bytes into the device";
    const std::uint64_t copies = count_of("cuMemcpyAsync") + count_of("cuMemcpy3DAsync_v2");
    IST_OK_OR_FAIL(ist_memory_copy(world(), second.get(2), first.get(5), bytes));
    const std::uint64_t made = count_of("cuMemcpyAsync") + count_of("cuMemcpy3DAsync_v2") - copies;
    EXPECT_EQ(counts() && shared() && bytes > 0, made > 1) << "through the host, of " << bytes << " bytes";
    EXPECT_EQ(-1, first_difference(around(wanted, 2), second.read(kMost + 8))) << bytes << " bytes within the device";
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Turns, FromTwoMiBOnACopyWithinTheDeviceIsOne) {
  NEEDS_DEVICES();
  const Memory first("cuda", kByHost + 1);
  const Memory second("cuda", kByHost + 1);
  for (const std::size_t bytes : {kByHost - 1, kByHost, kByHost + 1}) {
    const auto wanted = random_bytes(bytes, bytes);
    first.fill(wanted);
    second.fill(std::vector<unsigned char>(kByHost + 1, 0xa5));
    const std::uint64_t copies = count_of("cuMemcpyAsync");
    IST_OK_OR_FAIL(ist_memory_copy(world(), second.get(), first.get(), bytes));
    const std::uint64_t made = count_of("cuMemcpyAsync") - copies;
    if (counts()) {
      // In chunks of at most a MiB, each out and in.
      EXPECT_EQ(shared() && bytes<kByHost, made> 1) << bytes;
    }
    EXPECT_EQ(-1, first_difference(wanted, second.read(bytes))) << bytes << " bytes within the device";
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

}  // namespace
