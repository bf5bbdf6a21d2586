// Messages from device to device in one copy: the receiver opens the sender's memory. Needs ranks with CUDA devices; the
// environment says what limits there are.
#include <isthmus/collective.h>

#include <cstdlib>
#include <thread>

#include "rank_test.hpp"

using namespace rank_test;

namespace {

constexpr int kTag = 5;

bool off() {
  const char* setting = std::getenv("ISTHMUS_DEVICE_IPC");
  return setting != nullptr && std::string{setting} == "never";
}

bool usable() {
  int devices = 0;
  return size() >= 2 && ist_kind_devices(world(), IST_KIND_CUDA, &devices) == IST_OK && devices > 0;
}

#define NEEDS_DEVICES() \
  if (!usable())        \
  GTEST_SKIP() << "not covered here: messages in one copy between devices, which take two ranks and a CUDA device"

void send(GuardedBuffer& buffer, const std::vector<unsigned char>& bytes) {
  buffer.fill(bytes);
  EXPECT_EQ(IST_OK, ist_send(buffer.get(), static_cast<std::int64_t>(bytes.size()), IST_BYTE, 1, kTag, comm()))
      << ist_error_text();
}

// From rank 0 to rank 1, which checks it, and tells everybody what carried it.
int carry(GuardedBuffer& buffer, std::size_t bytes, std::uint64_t seed, const std::string& what) {
  const auto wanted = random_bytes(bytes, seed);
  const auto count = static_cast<std::int64_t>(bytes);
  ist_status status{};
  if (rank() == 0) {
    send(buffer, wanted);
  } else if (rank() == 1) {
    buffer.poison();
    EXPECT_EQ(IST_OK, ist_recv(buffer.get(), count, IST_BYTE, 0, kTag, comm(), &status)) << ist_error_text();
    EXPECT_EQ(count, status.bytes);
    buffer.expect(wanted, what);
  }
  std::int32_t carrier = status.carrier;
  EXPECT_EQ(IST_OK, ist_bcast(ist_host(&carrier), 1, IST_INT32, 1, comm())) << ist_error_text();
  return carrier;
}

// Until the receiver has opened the memory, others carry its messages.
bool opened(GuardedBuffer& buffer, std::size_t bytes) {
  for (std::uint64_t n = 0; n < 2000; ++n) {
    if (carry(buffer, bytes, n, "message " + std::to_string(n)) == IST_CARRIER_DEVICE) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return false;
}

TEST(Lending, MessagesOfEverySizeTakeOneCopyOnceTheMemoryIsOpen) {
  NEEDS_DEVICES();
  constexpr std::size_t kRoom = (4 << 20) + 77;
  GuardedBuffer buffer(IST_KIND_CUDA, kRoom);
  const bool open = !off() && opened(buffer, 1000);
  EXPECT_EQ(!off(), open) << "the driver of this machine lends no memory?";
  for (const std::size_t bytes : border_sizes()) {
    if (bytes > kRoom) continue;
    const int carrier = carry(buffer, bytes, bytes + 3, std::to_string(bytes) + " bytes");
    EXPECT_EQ(open && bytes > 0, carrier == IST_CARRIER_DEVICE) << bytes << " bytes by " << ist_carrier_name(carrier);
  }
}

TEST(Lending, MemoryThatIsFreedAndAllocatedAgainIsNeverReadFromTheOldPlace) {
  NEEDS_DEVICES();
  int by_device = 0;
  for (std::uint64_t round = 0; round < 150; ++round) {
    const std::size_t bytes = 3000 + round % 3 * 40000;
    GuardedBuffer buffer(IST_KIND_CUDA, bytes);
    for (std::uint64_t n = 0; n < 4; ++n) {
      by_device += carry(buffer, bytes, 1000 * round + n, "round " + std::to_string(round)) == IST_CARRIER_DEVICE ? 1 : 0;
      if (n == 1) std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
  }
  if (off()) {
    EXPECT_EQ(0, by_device);
  } else {
    EXPECT_GT(by_device, 0);
  }
}

// With ISTHMUS_MAPPED_LIMIT=1MiB only two of them stay open.
TEST(Lending, ManyAllocationsInTurnAllArriveWhateverStaysOpen) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = 500000;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  for (int i = 0; i < 8; ++i) buffers.push_back(std::make_unique<GuardedBuffer>(IST_KIND_CUDA, kBytes));
  int by_device = 0;
  for (std::uint64_t n = 0; n < 80; ++n) {
    by_device += carry(*buffers[n / 5 % 8], kBytes, n, "message " + std::to_string(n)) == IST_CARRIER_DEVICE ? 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_EQ(off(), by_device == 0);
}

TEST(Lending, ALongerMessageThanItsReceiveIsTruncatedAndTheNextOneComes) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = 100001;
  GuardedBuffer buffer(IST_KIND_CUDA, kBytes);
  const bool open = !off() && opened(buffer, kBytes);
  EXPECT_EQ(!off(), open);
  const auto data = random_bytes(kBytes, 9);
  for (const std::size_t room : {std::size_t{1}, std::size_t{5000}, kBytes - 1}) {
    if (rank() == 0) {
      send(buffer, data);
    } else if (rank() == 1) {
      ist_status status{};
      buffer.poison();
      EXPECT_EQ(IST_ERR_TRUNCATE,
                ist_recv(buffer.get(), static_cast<std::int64_t>(room), IST_BYTE, 0, kTag, comm(), &status));
      EXPECT_EQ(static_cast<std::int64_t>(room), status.bytes);
      buffer.expect({data.begin(), data.begin() + static_cast<std::ptrdiff_t>(room)}, "the first bytes");
    }
    carry(buffer, kBytes, room, "after one that was too long");
  }
}

TEST(Lending, AHostThatReceivesGetsCellsAndADeviceAfterItIsFoundAgain) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = 4000;
  GuardedBuffer buffer(IST_KIND_CUDA, kBytes);
  const bool open = !off() && opened(buffer, kBytes);
  EXPECT_EQ(!off(), open);
  int in_cells = 0;
  for (std::uint64_t n = 0; n < 40; ++n) {
    const auto wanted = random_bytes(kBytes, n);
    if (rank() == 0) {
      send(buffer, wanted);
    } else if (rank() == 1) {
      GuardedBuffer host(IST_KIND_HOST, kBytes);
      ist_status status{};
      IST_OK_OR_FAIL(ist_recv(host.get(), kBytes, IST_BYTE, 0, kTag, comm(), &status));
      host.expect(wanted, "on the host, message " + std::to_string(n));
      in_cells += status.carrier == IST_CARRIER_CELL ? 1 : 0;
    }
  }
  if (rank() == 1) {
    EXPECT_GE(in_cells, 30);
  }
  int by_device = 0;
  for (std::uint64_t n = 0; n < 40; ++n)
    by_device += carry(buffer, kBytes, n, "on the device again") == IST_CARRIER_DEVICE ? 1 : 0;
  if (open) {
    EXPECT_GE(by_device, 20);
  }
}

}  // namespace
