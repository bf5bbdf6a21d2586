// Small messages by resident workers (ISTHMUS_WORKER=1): the environment says so, and each rank has a device of its own, or, in a run
// for that, all have one, and then no worker.
#include <isthmus/collective.h>
#include <isthmus/worker.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "device_ranks.hpp"
#include "driver_memory.hpp"

using namespace rank_test;

namespace {

constexpr std::size_t kLimit = 2048;

const std::vector<std::size_t>& sizes() {
  static const std::vector<std::size_t> all{0,   1,   2,    3,    7,    8,    9,    16,   31,     240,        511,   512,
                                            513, 999, 1000, 2048, 4095, 4096, 4097, 8191, kLimit, kLimit + 1, 16384, 16385};
  return all;
}

std::uint64_t count_of(const char* call) {
  auto* const calls = driver_call<std::uint64_t(const char*)>("fake_cuda_calls");
  return calls == nullptr ? 0 : calls(call);
}
bool is_fake() { return driver_call<std::uint64_t(const char*)>("fake_cuda_calls") != nullptr; }

bool alone() { return own_devices() >= size(); }

// There and back between ranks 0 and 1, checked on both.
void exchange(ist_kind mine, ist_kind theirs, std::size_t bytes, std::uint64_t seed) {
  if (rank() > 1) return;
  GuardedBuffer buffer(rank() == 0 ? mine : theirs, bytes);
  const auto there = random_bytes(bytes, seed);
  const auto back = random_bytes(bytes, seed + 1);
  const auto count = static_cast<std::int64_t>(bytes);
  const std::string what = std::to_string(bytes) + " bytes, seed " + std::to_string(seed);
  if (rank() == 0) {
    buffer.fill(there);
    IST_OK_OR_FAIL(ist_send(buffer.get(), count, IST_BYTE, 1, 3, comm()));
    buffer.poison();
    IST_OK_OR_FAIL(ist_recv(buffer.get(), count, IST_BYTE, 1, 4, comm(), IST_STATUS_IGNORE));
    buffer.expect(back, what);
  } else {
    buffer.poison();
    IST_OK_OR_FAIL(ist_recv(buffer.get(), count, IST_BYTE, 0, 3, comm(), IST_STATUS_IGNORE));
    buffer.expect(there, what);
    buffer.fill(back);
    IST_OK_OR_FAIL(ist_send(buffer.get(), count, IST_BYTE, 0, 4, comm()));
  }
}

TEST(Workers, MessagesOfEverySmallSizeBetweenDevicesAndHostMemoryArriveWhole) {
  NEEDS_DEVICES();
  std::uint64_t seed = 0;
  for (const auto& [mine, theirs] : {std::pair{IST_KIND_CUDA, IST_KIND_CUDA}, std::pair{IST_KIND_CUDA, IST_KIND_HOST},
                                     std::pair{IST_KIND_HOST, IST_KIND_CUDA}})
    for (int round = 0; round < 3; ++round)
      for (const std::size_t bytes : sizes()) exchange(mine, theirs, bytes, seed += 2);
}

// The one rank's device is its own then, so that it may have a worker also on a machine with one device.
TEST(Workers, OfTheOnlyRankWithADeviceItServesMessagesToAndFromTheOthersHostMemory) {
  std::int32_t mine = own_devices() > 0 ? 1 : 0;
  std::int32_t having = 0;
  IST_OK_OR_FAIL(ist_allreduce(ist_host(&mine), ist_host(&having), 1, IST_INT32, IST_SUM, comm()));
  if (size() != 2 || having != 1) GTEST_SKIP() << "not covered here: two ranks of which one has a CUDA device";
  if (mine == 1) {
    const Memory memory("cuda", 8);
    std::array<char, 4096> text{};
    IST_OK_OR_FAIL(ist_explain(memory.get(), 8, IST_BYTE, 1 - rank(), comm(), text.data(), text.size(), nullptr));
    EXPECT_NE(std::string::npos, std::string{text.data()}.find("by workers")) << "there is no worker: " << text.data();
  }
  const ist_kind kinds[] = {mine == (rank() == 0 ? 1 : 0) ? IST_KIND_CUDA : IST_KIND_HOST,
                            mine == rank() ? IST_KIND_CUDA : IST_KIND_HOST};
  std::uint64_t seed = 0;
  for (int round = 0; round < 10; ++round)
    for (const std::size_t bytes : sizes()) exchange(kinds[0], kinds[1], bytes, seed += 2);
}

// From one set of buffers, so that nothing but messages happens in between.
TEST(Workers, ManyInARowArriveWholeAndTheWorkerHasItsShare) {
  NEEDS_DEVICES();
  if (rank() > 1) return;
  constexpr int kMessages = 2000;
  constexpr std::size_t kHalf = 4096;
  const Memory memory("cuda", 2 * kHalf);
  const auto mine = random_bytes(kHalf, static_cast<std::uint64_t>(70 + rank()));
  const auto theirs = random_bytes(kHalf, static_cast<std::uint64_t>(71 - rank()));
  std::vector<unsigned char> expected(2 * kHalf, 0xa5);
  std::copy(mine.begin(), mine.end(), expected.begin());
  memory.fill(expected);
  const std::uint64_t copies = count_of("cuMemcpyAsync");
  const auto begun = std::chrono::steady_clock::now();
  for (int n = 0; n < kMessages; ++n) {
    const std::int64_t bytes = 1 + n % 200;
    const std::size_t from = static_cast<std::size_t>(n) * 7 % (kHalf - 200);
    if ((rank() == 0) == (n % 2 == 0)) {
      IST_OK_OR_FAIL(ist_send(memory.get(from), bytes, IST_BYTE, 1 - rank(), 3, comm()));
    } else {
      IST_OK_OR_FAIL(ist_recv(memory.get(kHalf + from), bytes, IST_BYTE, 1 - rank(), 3, comm(), IST_STATUS_IGNORE));
      std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(kHalf + from));
    }
  }
  // What launch.cuh asks about: one of the devices that this rank sees has its worker.
  int workers = 0;
  for (int device = 0; device < own_devices(); ++device) {
    ist_worker_blocks taken{-1, -1, -1, -1};
    IST_OK_OR_FAIL(ist_worker_blocks_on(device, &taken));
    workers += taken.blocks;
    EXPECT_EQ(taken.blocks == 1 ? 256 : 0, taken.threads);
    EXPECT_EQ(taken.blocks == 1, taken.registers > 0);
  }
  EXPECT_EQ(alone() ? 1 : 0, workers);
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_worker_blocks_on(0, nullptr));
  const std::uint64_t by_driver = count_of("cuMemcpyAsync") - copies;
  EXPECT_EQ(-1, first_difference(expected, memory.read(2 * kHalf)));
  RecordProperty("by_driver", static_cast<int>(by_driver));
  if (!is_fake()) return;
  if (alone()) {
    // It leaves 100 us after its last order. With a processor for each rank and each device's thread it has nine copies of ten; where they
    // share two processors, some; where others have those, perhaps none.
    const auto each = (std::chrono::steady_clock::now() - begun) / kMessages;
    if (each < std::chrono::microseconds{400}) {
      EXPECT_GT(count_of("cuStreamCreateWithPriority"), 0U);
      const std::uint64_t share = each < std::chrono::microseconds{60} ? 10 : 1;
      EXPECT_LT(by_driver, static_cast<std::uint64_t>(kMessages) / share);
    }
  } else {
    EXPECT_EQ(0U, count_of("cuStreamCreateWithPriority")) << "a worker on a device that two ranks have";
  }
}

TEST(Workers, MemoryOfEveryClassIsCarriedWhetherAWorkerMayTouchItOrNot) {
  NEEDS_DEVICES();
  if (rank() > 1) return;
  for (const char* word : {"cuda", "managed", "pool", "vmm", "shared_vmm", "side_by_side", "shared_pool"})
    for (std::uint64_t n = 0; n < 20; ++n) {
      const std::size_t bytes = 1 + n * 37;
      const Memory memory(word, 4096);
      const auto wanted = random_bytes(bytes, n);
      if (rank() == 0) {
        memory.fill(wanted);
        IST_OK_OR_FAIL(ist_send(memory.get(), static_cast<std::int64_t>(bytes), IST_BYTE, 1, 3, comm()));
      } else {
        memory.fill(std::vector<unsigned char>(bytes, 0xa5));
        IST_OK_OR_FAIL(ist_recv(memory.get(), static_cast<std::int64_t>(bytes), IST_BYTE, 0, 3, comm(), IST_STATUS_IGNORE));
        EXPECT_EQ(-1, first_difference(wanted, memory.read(bytes))) << word << " " << bytes;
      }
    }
}

// The buffer's stream is busy when the send begins, and the next time idle.
TEST(Workers, AMessageIsSentAfterWhatItsStreamHoldsAndNotBefore) {
  NEEDS_DEVICES();
  if (rank() > 1) return;
  const Memory memory("cuda", 64);
  for (int n = 0; n < 200; ++n) {
    const auto value = static_cast<unsigned char>(n + 1);
    if (rank() == 0) {
      memory.set_later(value, 64);
      IST_OK_OR_FAIL(ist_send(memory.get(), 64, IST_BYTE, 1, 3, comm()));
    } else {
      std::vector<unsigned char> found(64);
      IST_OK_OR_FAIL(ist_recv(ist_host(found.data()), 64, IST_BYTE, 0, 3, comm(), IST_STATUS_IGNORE));
      EXPECT_EQ(std::vector<unsigned char>(64, value), found);
    }
  }
}

// Of every other call that waits for the device, and of a stream that is being captured, meanwhile.
TEST(Workers, OthersWaitForTheDeviceAndCaptureWhileMessagesGoOn) {
  NEEDS_DEVICES();
  if (rank() > 1) return;
  std::atomic<bool> over{false};
  const int device = rank() % own_devices();
  std::thread other([&] {
    const InContext scope(device);
    while (!over) {
      driver_ok(DRIVER(cuCtxSynchronize)());
      CUdeviceptr address = 0;
      driver_ok(driver_call<CUresult(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2")(&address, 1000));
      driver_ok(driver_call<CUresult(CUdeviceptr)>("cuMemFree_v2")(address));
      CUstream stream = nullptr;
      driver_ok(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
      driver_ok(driver_call<CUresult(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2")(
          stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
      CUgraph graph = nullptr;
      driver_ok(DRIVER(cuStreamEndCapture)(stream, &graph));
      driver_ok(DRIVER(cuGraphDestroy)(graph));
      driver_ok(driver_call<CUresult(CUstream)>("cuStreamDestroy_v2")(stream));
    }
  });
  for (std::uint64_t n = 0; n < 60; ++n) exchange(IST_KIND_CUDA, IST_KIND_CUDA, 1 + n % 500, 1000 + 2 * n);
  over = true;
  other.join();
}

TEST(Workers, SeveralMessagesAtOnceEachGetTheirOwnBytes) {
  NEEDS_DEVICES();
  if (rank() > 1) return;
  constexpr int kAtOnce = 40;
  constexpr std::size_t kEach = 300;
  const Memory memory("cuda", kAtOnce * kEach);
  for (std::uint64_t round = 0; round < 10; ++round) {
    const auto wanted = random_bytes(kAtOnce * kEach, round);
    std::vector<ist_request> requests(kAtOnce);
    memory.fill(rank() == 0 ? wanted : std::vector<unsigned char>(wanted.size(), 0xa5));
    for (int i = 0; i < kAtOnce; ++i) {
      const ist_buffer place = memory.get(static_cast<std::size_t>(i) * kEach);
      if (rank() == 0) {
        IST_OK_OR_FAIL(ist_isend(place, kEach, IST_BYTE, 1, i, comm(), &requests[at(i)]));
      } else {
        IST_OK_OR_FAIL(ist_irecv(place, kEach, IST_BYTE, 0, kAtOnce - 1 - i, comm(), &requests[at(i)]));
      }
    }
    IST_OK_OR_FAIL(ist_waitall(kAtOnce, requests.data(), IST_STATUSES_IGNORE));
    if (rank() != 1) continue;
    std::vector<unsigned char> turned(wanted.size());
    for (std::size_t i = 0; i < kAtOnce; ++i)
      std::copy_n(wanted.begin() + static_cast<std::ptrdiff_t>((kAtOnce - 1 - i) * kEach), kEach,
                  turned.begin() + static_cast<std::ptrdiff_t>(i * kEach));
    EXPECT_EQ(turned, memory.read(wanted.size()));
  }
}

}  // namespace
