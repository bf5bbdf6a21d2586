// Messages in one copy between devices, or between a device and page-locked host memory: one rank opens the other's device memory.
// Needs ranks with CUDA devices; the environment says what limits there are.
#include <isthmus/collective.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "device_ranks.hpp"

using namespace rank_test;

namespace {

constexpr int kTag = 5;

bool off() { return ipc_is_off(); }

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

// All ranks on one device, which they take turns on.
bool one_device() {
  int devices = 0;
  EXPECT_EQ(IST_OK, ist_kind_devices(world(), IST_KIND_CUDA, &devices));
  return devices == 1 && std::getenv("ISTHMUS_TEST_OWN_DEVICES") == nullptr;
}

// So much at least is copied within one device.
constexpr std::size_t kLeastWithin = 2 << 20;

// Enough for one copy, wherever the two ranks are.
std::size_t enough(std::size_t bytes) { return one_device() ? std::max(bytes, kLeastWithin) : bytes; }

TEST(Lending, MessagesOfEverySizeTakeOneCopyOnceTheMemoryIsOpen) {
  NEEDS_DEVICES();
  constexpr std::size_t kRoom = (4 << 20) + 77;
  GuardedBuffer buffer(IST_KIND_CUDA, kRoom);
  const bool open = !off() && opened(buffer, enough(1000));
  EXPECT_EQ(!off(), open) << "the driver of this machine lends no memory?";
  for (const std::size_t bytes : border_sizes()) {
    if (bytes > kRoom) continue;
    const int carrier = carry(buffer, bytes, bytes + 3, std::to_string(bytes) + " bytes");
    const bool whole = open && bytes >= (one_device() ? kLeastWithin : 1);
    EXPECT_EQ(whole, carrier == IST_CARRIER_DEVICE) << bytes << " bytes by " << ist_carrier_name(carrier);
  }
}

TEST(Lending, MemoryThatIsFreedAndAllocatedAgainIsNeverReadFromTheOldPlace) {
  NEEDS_DEVICES();
  int by_device = 0;
  for (std::uint64_t round = 0; round < (one_device() ? 30 : 150); ++round) {
    const std::size_t bytes = enough(3000) + round % 3 * 40000;
    GuardedBuffer buffer(IST_KIND_CUDA, bytes);
    for (std::uint64_t n = 0; n < 4; ++n) {
      by_device += carry(buffer, bytes, 1000 * round + n, "round " + std::to_string(round)) == IST_CARRIER_DEVICE ? 1 : 0;
      // A driver takes some milliseconds to open memory; now and then it gets them.
      if (n == 1) std::this_thread::sleep_for(std::chrono::milliseconds{round % 16 == 0 ? 30 : 2});
    }
  }
  if (off()) {
    EXPECT_EQ(0, by_device);
  } else {
    EXPECT_GT(by_device, 0);
  }
}

// What is known of a piece is known for one start.
TEST(Lending, APersistentReceiveIntoMemoryThatWasFreedAndAllocatedAgainGetsItsBytes) {
  NEEDS_DEVICES();
  if (rank() > 1) return;
  const std::size_t bytes = enough(3000);
  const auto count = static_cast<std::int64_t>(bytes);
  auto buffer = std::make_unique<GuardedBuffer>(IST_KIND_CUDA, bytes);
  ist_request request = IST_REQUEST_NULL;
  for (std::uint64_t round = 0; round < 60; ++round) {
    const auto wanted = random_bytes(bytes, round);
    const std::uint64_t address = buffer->get().object;
    if (rank() == 0) {
      send(*buffer, wanted);
    } else {
      if (request == IST_REQUEST_NULL) {
        ASSERT_EQ(IST_OK, ist_recv_init(buffer->get(), count, IST_BYTE, 0, kTag, comm(), &request)) << ist_error_text();
      }
      buffer->poison();
      EXPECT_EQ(IST_OK, ist_start(&request)) << ist_error_text();
      EXPECT_EQ(IST_OK, ist_wait(&request, IST_STATUS_IGNORE)) << ist_error_text();
      buffer->expect(wanted, "round " + std::to_string(round));
    }
    if (round % 4 != 3) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    buffer.reset();
    buffer = std::make_unique<GuardedBuffer>(IST_KIND_CUDA, bytes);
    if (rank() == 1 && buffer->get().object != address) {
      EXPECT_EQ(IST_OK, ist_request_free(&request)) << ist_error_text();
    }
  }
  if (request != IST_REQUEST_NULL) {
    EXPECT_EQ(IST_OK, ist_request_free(&request)) << ist_error_text();
  }
}

// With ISTHMUS_MAPPED_LIMIT=1MiB only two of them stay open.
TEST(Lending, ManyAllocationsInTurnAllArriveWhateverStaysOpen) {
  NEEDS_DEVICES();
  const std::size_t bytes = enough(500000);
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  for (int i = 0; i < 8; ++i) buffers.push_back(std::make_unique<GuardedBuffer>(IST_KIND_CUDA, bytes));
  int by_device = 0;
  for (std::uint64_t n = 0; n < 80; ++n) {
    by_device += carry(*buffers[n / 5 % 8], bytes, n, "message " + std::to_string(n)) == IST_CARRIER_DEVICE ? 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_EQ(off(), by_device == 0);
}

TEST(Lending, ALongerMessageThanItsReceiveIsTruncatedAndTheNextOneComes) {
  NEEDS_DEVICES();
  const std::size_t bytes = enough(100001);
  GuardedBuffer buffer(IST_KIND_CUDA, bytes);
  const bool open = !off() && opened(buffer, bytes);
  EXPECT_EQ(!off(), open);
  const auto data = random_bytes(bytes, 9);
  for (const std::size_t room : {std::size_t{1}, std::size_t{5000}, bytes - 1}) {
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
    carry(buffer, bytes, room, "after one that was too long");
  }
}

TEST(Lending, AHostThatReceivesGetsCellsAndADeviceAfterItIsFoundAgain) {
  NEEDS_DEVICES();
  if (one_device()) GTEST_SKIP() << "not covered here: little is copied within one device";
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

// ---- page-locked host memory ----

constexpr std::size_t kAboveEager = (16 << 10) + 1;

// Of one rank, registered for as long as this lives.
class Registered {
 public:
  explicit Registered(void* address, std::size_t bytes) : address_(address) {
    EXPECT_EQ(IST_OK, ist_register(world(), address, bytes)) << ist_error_text();
  }
  ~Registered() { EXPECT_EQ(IST_OK, ist_unregister(world(), address_)) << ist_error_text(); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  void* address_;
};

// Rank `host` has ordinary memory, page-locked if wanted, and the others have a device's.
struct Sides {
  Sides(int host, std::size_t bytes, bool locked) : buffer(rank() == host ? IST_KIND_HOST : IST_KIND_CUDA, bytes) {
    if (rank() == host && locked) {
      const ist_buffer place = buffer.get();
      registered.emplace(reinterpret_cast<void*>(place.object + place.offset), bytes);
    }
  }
  GuardedBuffer buffer;
  std::optional<Registered> registered;
};

void every_size_by_the_device(int host) {
  constexpr std::size_t kRoom = (5 << 20) + 77;
  Sides sides(host, kRoom, true);
  const bool open = !off() && opened(sides.buffer, kAboveEager);
  EXPECT_EQ(!off(), open) << "the driver of this machine lends no memory?";
  for (const std::size_t bytes : border_sizes()) {
    if (bytes > kRoom) continue;
    const int carrier = carry(sides.buffer, bytes, bytes + 3, std::to_string(bytes) + " bytes");
    if (bytes >= kAboveEager || !open) {
      EXPECT_EQ(open, carrier == IST_CARRIER_DEVICE) << bytes << " bytes by " << ist_carrier_name(carrier);
    }
  }
}

TEST(Lending, PageLockedHostMemoryIsCopiedIntoADeviceAtOnce) {
  NEEDS_DEVICES();
  every_size_by_the_device(0);
}

TEST(Lending, AndOutOfADevice) {
  NEEDS_DEVICES();
  every_size_by_the_device(1);
}

TEST(Lending, OrdinaryHostMemoryTakesTheRing) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = 3000001;  // in several parts, each long enough for several threads
  for (const int host : {0, 1}) {
    Sides sides(host, kBytes, false);
    for (std::uint64_t n = 0; n < 20; ++n)
      EXPECT_EQ(IST_CARRIER_RING, carry(sides.buffer, kBytes, n, "message " + std::to_string(n)));
  }
}

TEST(Lending, BothSidesReceiveAtOnceFromEachOther) {
  NEEDS_DEVICES();
  if (rank() > 1) return;
  constexpr std::size_t kBytes = 700001;
  Sides sides(0, kBytes, true);
  GuardedBuffer in(rank() == 0 ? IST_KIND_CUDA : IST_KIND_HOST, kBytes);
  for (std::uint64_t n = 0; n < 50; ++n) {
    sides.buffer.fill(random_bytes(kBytes, 2 * n + static_cast<std::uint64_t>(rank())));
    in.poison();
    ist_status status{};
    IST_OK_OR_FAIL(ist_sendrecv(sides.buffer.get(), kBytes, IST_BYTE, 1 - rank(), kTag, in.get(), kBytes, IST_BYTE,
                                1 - rank(), kTag, comm(), &status));
    in.expect(random_bytes(kBytes, 2 * n + static_cast<std::uint64_t>(1 - rank())), "message " + std::to_string(n));
  }
}

using ManySides = std::vector<std::unique_ptr<Sides>>;

// Each rank of the two sends all of `out` and receives all of `in` at once.
void exchange(const ManySides& out, const ManySides& in, std::size_t bytes, std::uint64_t round) {
  const auto count = static_cast<std::int64_t>(bytes);
  const auto seed = [&](std::size_t i, int sender) { return 100 * round + 2 * i + static_cast<std::uint64_t>(sender); };
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i]->buffer.fill(random_bytes(bytes, seed(i, rank())));
    in[i]->buffer.poison();
  }
  std::vector<ist_request> requests(2 * out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    IST_OK_OR_FAIL(ist_irecv(in[i]->buffer.get(), count, IST_BYTE, 1 - rank(), kTag, comm(), &requests[2 * i]));
    IST_OK_OR_FAIL(ist_isend(out[i]->buffer.get(), count, IST_BYTE, 1 - rank(), kTag, comm(), &requests[2 * i + 1]));
  }
  IST_OK_OR_FAIL(ist_waitall(static_cast<int>(requests.size()), requests.data(), nullptr));
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i]->buffer.expect(random_bytes(bytes, seed(i, 1 - rank())),
                         "message " + std::to_string(i) + " of round " + std::to_string(round));
}

// One engine of the host's device makes the copies of both ways.
TEST(Lending, PageLockedHostMemoryAndADeviceExchangeManyMessagesBothWaysAtOnce) {
  NEEDS_DEVICES();
  if (rank() > 1) return;
  for (const std::size_t bytes : {64UL << 10, (64UL << 10) + 1, 1UL << 20, 700001UL}) {
    ManySides out, in;
    for (std::size_t i = 0; i < 6; ++i) {
      out.push_back(std::make_unique<Sides>(0, bytes, true));
      in.push_back(std::make_unique<Sides>(0, bytes, true));
    }
    for (std::uint64_t round = 0; round < 8; ++round) exchange(out, in, bytes, round);
  }
}

TEST(Lending, ALongerMessageFromADeviceIsTruncatedInPageLockedMemory) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = 100001;
  Sides sides(1, kBytes, true);
  const bool open = !off() && opened(sides.buffer, kBytes);
  EXPECT_EQ(!off(), open);
  const auto data = random_bytes(kBytes, 9);
  for (const std::size_t room : {std::size_t{1}, std::size_t{50000}, kBytes - 1}) {
    if (rank() == 0) {
      send(sides.buffer, data);
    } else if (rank() == 1) {
      ist_status status{};
      sides.buffer.poison();
      EXPECT_EQ(IST_ERR_TRUNCATE,
                ist_recv(sides.buffer.get(), static_cast<std::int64_t>(room), IST_BYTE, 0, kTag, comm(), &status));
      EXPECT_EQ(static_cast<std::int64_t>(room), status.bytes);
      sides.buffer.expect({data.begin(), data.begin() + static_cast<std::ptrdiff_t>(room)}, "the first bytes");
    }
    carry(sides.buffer, kBytes, room, "after one that was too long");
  }
}

std::string refusal(void* address, std::size_t bytes) {
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_register(world(), address, bytes));
  return ist_error_text();
}

TEST(Registering, WhatOverlapsOrIsNotThereIsRefusedAndTheRestStays) {
  std::vector<unsigned char> bytes(100000);
  unsigned char* const middle = bytes.data() + 40000;
  {
    const Registered whole(middle, 20000);
    for (unsigned char* at : {middle, middle + 1, middle + 19999, middle - 1}) {
      const std::string said = refusal(at, at < middle ? 2 : 1);
      EXPECT_NE(std::string::npos, said.find("overlap 20000 bytes at address")) << said;
    }
    const Registered before(bytes.data(), 40000);
    const Registered after(middle + 20000, 40000);
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_unregister(world(), middle + 1));
    EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find("no memory was registered at address"));
  }
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_unregister(world(), middle));
  EXPECT_NE(std::string::npos, refusal(nullptr, 1).find("expected host memory"));
  EXPECT_NE(std::string::npos, refusal(middle, 0).find("at least one byte"));
  EXPECT_EQ(IST_ERR_HANDLE, ist_register(IST_WORLD_NULL, middle, 1));
  EXPECT_EQ(IST_ERR_HANDLE, ist_unregister(IST_WORLD_NULL, middle));
  const Registered again(bytes.data(), bytes.size());
}

}  // namespace
