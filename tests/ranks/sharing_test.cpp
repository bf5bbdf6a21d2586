// Messages in one copy into device memory that the program mapped, or that a pool gave, where it was made so that other processes can
// open it. Needs ranks with CUDA devices; the environment says what limits there are, and whether each rank sees a device of its own
// alone.
#include <isthmus/collective.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "../fake_cuda/fake_cuda.h"
#include "device_ranks.hpp"
#include "driver_memory.hpp"

using namespace rank_test;

namespace {

constexpr int kTag = 9;

bool off() { return ipc_is_off(); }

// All ranks on one device: less than this is not copied by it there.
std::size_t enough(std::size_t bytes) {
  const bool one = own_devices() == 1 && std::getenv("ISTHMUS_TEST_OWN_DEVICES") == nullptr;
  return one ? std::max(bytes, std::size_t{2} << 20) : bytes;
}

struct Place {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// From rank 0 to rank 1, whose memory was poisoned around the place, too.
int carry(const Memory& memory, Place place, std::uint64_t seed) {
  constexpr std::size_t kGuard = 64;
  const auto wanted = random_bytes(place.bytes, seed);
  const auto count = static_cast<std::int64_t>(place.bytes);
  ist_status status{};
  if (rank() == 0) {
    memory.fill(wanted, place.offset + kGuard);
    EXPECT_EQ(IST_OK, ist_send(memory.get(place.offset + kGuard), count, IST_BYTE, 1, kTag, comm())) << ist_error_text();
  } else if (rank() == 1) {
    std::vector<unsigned char> expected(place.bytes + 2 * kGuard, 0x5a);
    memory.fill(expected, place.offset);
    EXPECT_EQ(IST_OK, ist_recv(memory.get(place.offset + kGuard), count, IST_BYTE, 0, kTag, comm(), &status))
        << ist_error_text();
    std::copy(wanted.begin(), wanted.end(), expected.begin() + kGuard);
    EXPECT_EQ(-1, first_difference(expected, memory.read(place.bytes + 2 * kGuard, place.offset)))
        << place.bytes << " bytes";
    EXPECT_EQ(count, status.bytes);
  }
  std::int32_t carrier = status.carrier;
  EXPECT_EQ(IST_OK, ist_bcast(ist_host(&carrier), 1, IST_INT32, 1, comm())) << ist_error_text();
  return carrier;
}

// The first messages find that the memory is not open yet.
bool opened(const Memory& memory, Place place) {
  for (std::uint64_t n = 0; n < 2000; ++n) {
    if (carry(memory, place, n) == IST_CARRIER_DEVICE) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return false;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) static_cast<void>(entry), ++count;
  return count;
}

constexpr std::array kShared{"shared_vmm", "shared_pool", "own_pool"};

class Sharing : public ::testing::TestWithParam<const char*> {};

// Below the size of a cell nothing goes through a block: what the device carries there is one copy.
TEST_P(Sharing, MessagesOfEverySizeTakeOneCopyOnceTheMemoryIsOpen) {
  NEEDS_DEVICES();
  constexpr std::size_t kRoom = 3 << 20;
  const Memory memory(GetParam(), kRoom + 4096);
  const bool open = !off() && opened(memory, {0, enough(1000)});
  EXPECT_EQ(!off(), open) << "the driver of this machine lends no such memory?";
  for (const std::size_t bytes : border_sizes()) {
    if (bytes > kRoom) continue;
    const int carrier = carry(memory, {0, bytes}, bytes + 3);
    EXPECT_EQ(open && bytes >= enough(1), carrier == IST_CARRIER_DEVICE)
        << bytes << " bytes by " << ist_carrier_name(carrier);
    const std::size_t at = 65536 - 64 - bytes % 4096;
    if (bytes < kRoom / 2) carry(memory, {at, bytes}, bytes + 4);
  }
}

// Nor does a descriptor stay, of the memory that is gone.
TEST_P(Sharing, WhatIsFreedAndAllocatedAgainIsNeverTheOldPlaceAndLeavesNoDescriptor) {
  NEEDS_DEVICES();
  constexpr std::uint64_t kRounds = 60;
  int by_device = 0;
  std::size_t before = 0;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::size_t bytes = enough(3000) + round % 3 * 40000;
    const Memory memory(GetParam(), bytes + 128);
    for (std::uint64_t n = 0; n < 4; ++n) {
      by_device += carry(memory, {0, bytes}, 1000 * round + n) == IST_CARRIER_DEVICE ? 1 : 0;
      if (n == 1) std::this_thread::sleep_for(std::chrono::milliseconds{8});
    }
    if (round == 10) before = open_descriptors();
  }
  // Of the 40 rounds whose messages are all announced; a driver may be slow to open the memory, and pools that live so short are not
  // opened for long.
  if (std::string{GetParam()} == "shared_vmm") {
    EXPECT_EQ(off(), by_device < 15) << by_device;
  }
  if (off()) {
    EXPECT_EQ(0, by_device);
  }
  EXPECT_LE(open_descriptors(), before + 12)
      << "before " << kRounds - 11 << " of " << kRounds << " rounds there were " << before;
}

// With ISTHMUS_MAPPED_LIMIT=5MiB only two of them stay open.
TEST_P(Sharing, ManyInTurnAllArriveWhateverStaysOpen) {
  NEEDS_DEVICES();
  const std::size_t bytes = enough(300000);
  std::vector<std::unique_ptr<Memory>> memories;
  for (int i = 0; i < 6; ++i) memories.push_back(std::make_unique<Memory>(GetParam(), bytes + 128));
  int by_device = 0;
  for (std::uint64_t n = 0; n < 90; ++n) {
    by_device += carry(*memories[n / 5 % 6], {0, bytes}, n) == IST_CARRIER_DEVICE ? 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_EQ(off(), by_device == 0);
}

// Into it the sender copies, out of it the receiver.
TEST_P(Sharing, PageLockedHostMemoryIsCopiedIntoItAndOutOfItAtOnce) {
  NEEDS_DEVICES();
  constexpr std::size_t kBytes = 300001;
  for (const int host : {0, 1}) {
    std::vector<unsigned char> bytes(kBytes);
    const Memory memory(GetParam(), kBytes);
    const bool on_host = rank() == host;
    if (on_host) {
      EXPECT_EQ(IST_OK, ist_register(world(), bytes.data(), kBytes)) << ist_error_text();
    }
    const ist_buffer place = on_host ? ist_host(bytes.data()) : memory.get();
    int by_device = 0;
    for (std::uint64_t n = 0; n < 60; ++n) {
      const auto wanted = random_bytes(kBytes, n);
      const auto set = rank() == 0 ? wanted : std::vector<unsigned char>(kBytes, 0x5a);
      if (on_host) {
        std::copy(set.begin(), set.end(), bytes.begin());  // which stays where it is
      } else {
        memory.fill(set);
      }
      ist_status status{};
      if (rank() == 0) {
        EXPECT_EQ(IST_OK, ist_send(place, kBytes, IST_BYTE, 1, kTag, comm())) << ist_error_text();
      } else if (rank() == 1) {
        EXPECT_EQ(IST_OK, ist_recv(place, kBytes, IST_BYTE, 0, kTag, comm(), &status)) << ist_error_text();
        EXPECT_EQ(-1, first_difference(wanted, on_host ? bytes : memory.read(kBytes))) << "message " << n;
        by_device += status.carrier == IST_CARRIER_DEVICE ? 1 : 0;
      }
      if (n < 50) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    if (rank() == 1) {
      EXPECT_EQ(off(), by_device == 0) << "rank " << host << " has the host memory";
    }
    if (on_host) {
      EXPECT_EQ(IST_OK, ist_unregister(world(), bytes.data()));
    }
    EXPECT_EQ(IST_OK, ist_barrier(comm()));
  }
}

// Several into one piece of memory at a time, both ways, and from a third rank, too.
TEST_P(Sharing, ManyAtOnceFromEveryRankKeepApart) {
  NEEDS_DEVICES();
  constexpr std::size_t kMessages = 4;
  const std::size_t bytes = enough(20000) + 13;
  const std::size_t each = bytes + 64;
  const auto others = static_cast<std::size_t>(size() - 1);
  const Memory out(GetParam(), kMessages * each);
  const Memory into(GetParam(), kMessages * others * each);
  const auto seed = [&](std::uint64_t round, int from, int to, std::size_t n) {
    return 1000 * round + 100 * static_cast<std::uint64_t>(from) + 10 * static_cast<std::uint64_t>(to) + n;
  };
  for (std::uint64_t round = 0; round < 12; ++round) {
    std::vector<ist_request> requests;
    into.fill(std::vector<unsigned char>(kMessages * others * each, 0x5a));
    std::size_t place = 0;
    for (int from = 0; from < size(); ++from) {
      for (std::size_t n = 0; from != rank() && n < kMessages; ++n)
        IST_OK_OR_FAIL(ist_irecv(into.get(place++ * each), static_cast<std::int64_t>(bytes), IST_BYTE, from,
                                 static_cast<int>(n), comm(), &requests.emplace_back()));
    }
    for (std::size_t n = 0; n < kMessages; ++n) out.fill(random_bytes(bytes, seed(round, rank(), 0, n)), n * each);
    for (int to = 0; to < size(); ++to) {
      for (std::size_t n = 0; to != rank() && n < kMessages; ++n)
        IST_OK_OR_FAIL(ist_isend(out.get(n * each), static_cast<std::int64_t>(bytes), IST_BYTE, to, static_cast<int>(n),
                                 comm(), &requests.emplace_back()));
    }
    EXPECT_EQ(IST_OK, ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE))
        << ist_error_text();
    place = 0;
    for (int from = 0; from < size(); ++from) {
      for (std::size_t n = 0; from != rank() && n < kMessages; ++n)
        EXPECT_EQ(-1, first_difference(random_bytes(bytes, seed(round, from, 0, n)), into.read(bytes, place++ * each)))
            << "message " << n << " of rank " << from;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Into, Sharing, ::testing::ValuesIn(kShared), [](const auto& each) { return each.param; });

// Its borrower asks after what it does not use, and lets go of it, however it was opened. All ways at once: it asks every few seconds.
TEST(SharingReturned, WhatIsFreedIsClosedThoughNothingFollows) {
  NEEDS_DEVICES();
  if (DRIVER(fake_cuda_count) == nullptr)
    GTEST_SKIP() << "not covered here: what a process has open; this is not the fake driver, which counts it";
  const auto open_now = [] { return DRIVER(fake_cuda_count)("allocations") + DRIVER(fake_cuda_count)("pools"); };
  if (off()) return;
  const std::size_t bytes = enough(3000);
  const auto of_each_kind = [&] {
    std::vector<std::unique_ptr<Memory>> memories;
    for (const char* word : kShared) memories.push_back(std::make_unique<Memory>(word, bytes + 128));
    return memories;
  };
  for (const auto& memory : of_each_kind()) EXPECT_TRUE(opened(*memory, {0, bytes}));  // what is kept is made, too
  std::this_thread::sleep_for(std::chrono::milliseconds{2500});
  auto memories = of_each_kind();
  const int before = open_now();
  for (const auto& memory : memories) EXPECT_TRUE(opened(*memory, {0, bytes}));
  if (rank() != 0) memories.clear();
  for (int n = 0; rank() == 0 && n < 2000 && open_now() > before; ++n)
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  EXPECT_GE(before, rank() == 0 ? open_now() : 0) << "some of them are still open";
  EXPECT_EQ(IST_OK, ist_barrier(comm()));
}

std::size_t free_memory() {
  const InContext scope(rank() % own_devices());
  std::size_t free = 0;
  std::size_t total = 0;
  driver_ok(driver_call<CUresult(std::size_t*, std::size_t*)>("cuMemGetInfo_v2")(&free, &total));
  return free;
}

// A rank that has opened it lets go of it once its owner's next loan says that it is freed.
TEST(SharingReturned, WhatIsFreedIsFreeMemoryOfTheDeviceAgain) {
  NEEDS_DEVICES();
  if (std::getenv("ISTHMUS_MAPPED_LIMIT") != nullptr) GTEST_SKIP() << "not covered here: so much is never open";
  constexpr std::size_t kBytes = 40 << 20;
  constexpr std::size_t kRounds = 4;
  const Place message{0, enough(20000)};
  for (const char* word : {"cuda", "shared_vmm"}) {
    {
      const Memory first(word, kBytes);
      if (!off()) {
        EXPECT_TRUE(opened(first, message));
      }
    }
    const std::size_t before = free_memory();
    for (std::size_t round = 0; round < kRounds; ++round) {
      const Memory memory(word, kBytes);
      if (!off()) {
        EXPECT_TRUE(opened(memory, message));
      }
    }
    std::int32_t returned = 0;
    for (std::uint64_t n = 0; n < 1000 && returned == 0; ++n) {
      const Memory fresh(word, enough(20000) + 128);
      carry(fresh, message, n);
      returned = free_memory() + kBytes / 2 >= before ? 1 : 0;
      IST_OK_OR_FAIL(ist_bcast(ist_host(&returned), 1, IST_INT32, 1, comm()));
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    EXPECT_EQ(1, returned) << word << ": " << before << " bytes were free before " << kRounds << " times " << kBytes
                           << ", and are " << free_memory() << " now";
  }
}

// Opening a pool takes a borrower milliseconds, in the driver's locks: of which all is freed between messages is not opened each time,
// and is once something of it stays.
TEST(SharingPools, OneOfWhichAllIsFreedAgainAndAgainIsOpenedWhenItLivesLonger) {
  NEEDS_DEVICES();
  if (off()) GTEST_SKIP() << "not covered here: memory of pools is opened; ISTHMUS_DEVICE_IPC is never";
  const std::size_t bytes = enough(20000);
  auto* const calls = DRIVER(fake_cuda_calls);
  const auto openings = [&] { return calls == nullptr ? 0 : calls("cuMemPoolImportFromShareableHandle"); };
  const std::uint64_t before = openings();
  for (std::uint64_t round = 0; round < 40; ++round) {
    const Memory memory("shared_pool", bytes + 128);
    for (std::uint64_t n = 0; n < 3; ++n) carry(memory, {0, bytes}, 10 * round + n);
  }
  EXPECT_LE(openings(), before + 8);
  const Memory stays("shared_pool", bytes + 128);
  EXPECT_TRUE(opened(stays, {0, bytes}));
  if (calls != nullptr && rank() == 0) {
    EXPECT_LT(before, openings());
  }
}

// What waits for a block while its pool comes to be worth opening takes that way, and lets those behind it have the block.
TEST(SharingPools, OneThatIsOpenedWhileMessagesWaitForABlockKeepsNoneOfThemWaiting) {
  NEEDS_DEVICES();
  constexpr std::size_t kMessages = 64;
  const std::size_t each = 20000 + 77;
  for (std::uint64_t round = 0; round < 6; ++round) {
    const Memory memory("shared_pool", kMessages * each);
    carry(memory, {0, each}, round);
  }
  const Memory stays("shared_pool", kMessages * each);
  std::vector<unsigned char> all;
  for (std::size_t n = 0; n < kMessages; ++n) {
    const auto bytes = random_bytes(each, 100 + n);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  stays.fill(rank() == 0 ? all : std::vector<unsigned char>(all.size(), 0x5a));
  IST_OK_OR_FAIL(ist_barrier(comm()));
  std::vector<ist_request> requests(rank() < 2 ? kMessages : 0);
  for (std::size_t n = 0; n < requests.size(); ++n)
    IST_OK_OR_FAIL(
        rank() == 0 ? ist_isend(stays.get(n * each), static_cast<std::int64_t>(each), IST_BYTE, 1, 5, comm(), &requests[n])
                    : ist_irecv(stays.get(n * each), static_cast<std::int64_t>(each), IST_BYTE, 0, 5, comm(), &requests[n]));
  IST_OK_OR_FAIL(ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE));
  if (rank() < 2) {
    EXPECT_EQ(-1, first_difference(all, stays.read(all.size())));
  }
}

// Nor does a pool live any longer than its program says.
TEST(SharingPools, OneThatIsDestroyedIsGone) {
  NEEDS_DEVICES();
  auto* const count = DRIVER(fake_cuda_count);
  if (count == nullptr) GTEST_SKIP() << "SKIPPED: only the fake driver counts pools";
  const std::size_t bytes = enough(20000);
  { const Memory first("own_pool", bytes); }  // and the one pool for all is made
  const int before = count("pools");
  for (int round = 0; round < 3; ++round) {
    const Memory memory("own_pool", bytes + 128);
    if (!off()) {
      EXPECT_TRUE(opened(memory, {0, bytes}));
    }
  }
  std::int32_t gone = 0;
  for (std::uint64_t n = 0; n < 2000 && gone != size(); ++n) {
    const Memory other("cuda", bytes + 128);  // with whose loan its borrower hears of it
    carry(other, {0, bytes}, n);
    const std::int32_t here = count("pools") <= before ? 1 : 0;
    IST_OK_OR_FAIL(ist_allreduce(ist_host(&here), ist_host(&gone), 1, IST_INT32, IST_SUM, comm()));
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  EXPECT_EQ(size(), gone) << count("pools") << " pools, " << before << " before";
}

// As PyTorch's expandable segments are: what lies in one handle's mapping is lent, what spans two goes another way.
TEST(SharingSideBySide, OneMappingIsLentAndWhatSpansSeveralArrives) {
  NEEDS_DEVICES();
  std::size_t granule = 0;
  {
    const Memory probe("side_by_side", 1);
    granule = probe.granule();
  }
  const Memory memory("side_by_side", 6 * granule);
  const bool whole = enough(1) < granule;  // else no message inside of one mapping is worth a copy by the device
  const std::size_t bytes = whole ? granule - 128 : granule / 2;
  for (std::size_t i = 0; i < 3; ++i) {
    const Place inside{2 * i * granule, bytes};
    if (whole && !off()) {
      EXPECT_TRUE(opened(memory, inside));
    }
    const int carrier = carry(memory, inside, i);
    EXPECT_EQ(whole && !off(), carrier == IST_CARRIER_DEVICE) << ist_carrier_name(carrier);
    for (const std::size_t length : {std::size_t{1000}, granule, 3 * granule - 777}) {
      const Place across{2 * i * granule + granule - 600, length};
      if (across.offset + length + 128 < 6 * granule) carry(memory, across, i + length);
    }
  }
}

TEST(SharingMappedAgain, OtherMemoryAtTheSameAddressesIsNeverTheOldOne) {
  NEEDS_DEVICES();
  for (const char* word : {"shared_vmm", "side_by_side"}) {
    const std::size_t bytes = enough(20000);  // announced, each of them
    Memory memory(word, bytes + 128);
    std::int32_t by_device = 0;
    // A busy machine may take longer to open it than a round takes.
    for (std::uint64_t round = 0; round < 40 || (!off() && by_device == 0 && round < 400); ++round) {
      for (std::uint64_t n = 0; n < 4; ++n) {
        by_device += carry(memory, {0, bytes}, 100 * round + n) == IST_CARRIER_DEVICE ? 1 : 0;
        if (n == 1) std::this_thread::sleep_for(std::chrono::milliseconds{3 + round / 4});
      }
      memory.map_again();
    }
    EXPECT_EQ(off(), by_device == 0) << word;
  }
}

}  // namespace
