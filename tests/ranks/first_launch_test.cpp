// A program launches a kernel of its own for the first time while one of the library's runs on the device: the worker (ISTHMUS_WORKER=1), or
// a receive in a stream that waits for its message. Where kernels are loaded lazily that launch would wait for the other one to end; so the
// library has them loaded eagerly, where it is the first to start CUDA. Needs a real device: the driver of the tests has no kernels of a
// program's own.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "streams_support.hpp"

using namespace rank_test;

namespace {

using Clock = std::chrono::steady_clock;

// A launch, and until its work is over; many times what it takes on an idle device.
constexpr std::chrono::milliseconds kSoon{250};

constexpr const char* kStoreWord = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry store_word(.param .u64 place, .param .u32 value)
{
  .reg .b64 %place<2>;
  .reg .b32 %value;
  ld.param.u64 %place0, [place];
  cvta.to.global.u64 %place1, %place0;
  ld.param.u32 %value, [value];
  st.global.u32 [%place1], %value;
  ret;
}
)";

bool has_programs_kernels() { return driver_call<std::uint64_t(const char*)>("fake_cuda_calls") == nullptr; }

#define NEEDS_A_REAL_DEVICE()                \
  if (size() < 2 || !has_programs_kernels()) \
  GTEST_SKIP() << "not covered here: kernels of a program's own, which take two ranks and a real CUDA device"

// A module of its own, whose only kernel has never been launched; and a word for it to store.
class NewKernel {
 public:
  explicit NewKernel(const Stream& stream) : stream_(stream) {
    stream_.within([&] {
      ok(DRIVER(cuModuleLoadData)(&module_, kStoreWord));
      ok(DRIVER(cuModuleGetFunction)(&kernel_, module_, "store_word"));
      ok(DRIVER(cuMemAllocHost_v2)(&word_, sizeof(std::uint32_t)));
      std::memset(word_, 0, sizeof(std::uint32_t));
    });
  }
  NewKernel(const NewKernel&) = delete;
  NewKernel& operator=(const NewKernel&) = delete;
  ~NewKernel() {
    stream_.within([&] {
      ok(DRIVER(cuModuleUnload)(module_));
      ok(DRIVER(cuMemFreeHost)(word_));
    });
  }
  // Launched for the first time, waited for, and its word checked.
  Clock::duration launch(std::uint32_t value) {
    const auto begun = Clock::now();
    stream_.within([&] {
      void* parameters[] = {&word_, &value};
      ok(DRIVER(cuLaunchKernel)(kernel_, 1, 1, 1, 1, 1, 1, 0, stream_.driver(), parameters, nullptr));
      ok(DRIVER(cuStreamSynchronize)(stream_.driver()));
    });
    std::uint32_t found = 0;
    std::memcpy(&found, word_, sizeof found);
    EXPECT_EQ(value, found);
    return Clock::now() - begun;
  }

 private:
  const Stream& stream_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  void* word_ = nullptr;
};

// Is there a worker on this rank's device?
bool has_worker(const ist_buffer& buffer) {
  std::array<char, 4096> text{};
  EXPECT_EQ(IST_OK, ist_explain(buffer, 8, IST_BYTE, 1 - rank(), comm(), text.data(), text.size(), nullptr))
      << ist_error_text();
  return std::string{text.data()}.find("by workers") != std::string::npos;
}

// Few bytes there and back between ranks 0 and 1, until both have had enough.
void keep_a_worker_awake(const ist_buffer& buffer, const std::atomic<bool>& enough, std::atomic<int>& rounds) {
  constexpr int kAtATime = 200;
  std::int32_t all = 0;
  while (all == 0) {
    for (int n = 0; n < kAtATime; ++n, ++rounds)
      for (const int sender : {0, 1})
        ASSERT_EQ(IST_OK, rank() == sender ? ist_send(buffer, 8, IST_BYTE, 1 - rank(), 3, comm())
                                           : ist_recv(buffer, 8, IST_BYTE, 1 - rank(), 3, comm(), IST_STATUS_IGNORE))
            << ist_error_text();
    std::int32_t mine = enough.load() ? 1 : 0;
    ASSERT_EQ(IST_OK, ist_allreduce(ist_host(&mine), ist_host(&all), 1, IST_INT32, IST_MIN, comm())) << ist_error_text();
  }
}

TEST(FirstLaunch, BesideAWorkerThatCopiesMessagesIsOverSoon) {
  NEEDS_A_REAL_DEVICE();
  const bool mine = devices() > 0;
  GuardedBuffer buffer(mine ? IST_KIND_CUDA : IST_KIND_HOST, 8);
  std::int32_t worker = mine && has_worker(buffer.get()) ? 1 : 0;
  std::int32_t workers = 0;
  IST_OK_OR_FAIL(ist_allreduce(ist_host(&worker), ist_host(&workers), 1, IST_INT32, IST_SUM, comm()));
  if (size() != 2 || workers == 0) GTEST_SKIP() << "not covered here: two ranks, and a worker on the device of one of them";
  std::atomic<bool> enough{false};
  std::atomic<int> rounds{0};
  std::thread messages([&] { keep_a_worker_awake(buffer.get(), enough, rounds); });
  // A message that fails ends the other thread, and then nothing more is counted.
  const auto wait_for_round = [&](int wanted) {
    const auto limit = Clock::now() + std::chrono::seconds{20};
    while (rounds.load() < wanted && Clock::now() < limit) std::this_thread::yield();
    EXPECT_GE(rounds.load(), wanted) << "messages have come to an end";
  };
  wait_for_round(100);
  Clock::duration longest{0};
  const int before = rounds.load();
  if (worker == 1) {
    const Stream stream;
    for (std::uint32_t n = 1; n <= 20 && !HasFailure(); ++n) {
      NewKernel kernel(stream);
      wait_for_round(rounds.load() + 20);  // the worker is back after what loading a module waited for
      longest = std::max(longest, kernel.launch(n));
    }
  }
  enough = true;
  messages.join();
  EXPECT_LT(longest, kSoon) << "a first launch took " << std::chrono::duration<double, std::milli>(longest).count() << " ms";
  EXPECT_GE(rounds.load() - before, worker == 1 ? 20 * 20 : 0);
}

TEST(FirstLaunch, BehindNothingWhileAReceiveInAnotherStreamWaitsIsOverSoon) {
  NEEDS_A_REAL_DEVICE();
  std::int32_t mine = devices();
  std::int32_t fewest = 0;
  IST_OK_OR_FAIL(ist_allreduce(ist_host(&mine), ist_host(&fewest), 1, IST_INT32, IST_MIN, comm()));
  if (fewest == 0) GTEST_SKIP() << "not covered here: a CUDA device of each rank";
  if (rank() > 1) return;
  const char* loading = std::getenv("CUDA_MODULE_LOADING");
  ASSERT_TRUE(loading != nullptr && std::string{loading} == "EAGER") << "the environment of this test must say so";
  for (const int receiver : {0, 1}) {
    const Stream stream;
    const Stream other;
    GuardedBuffer buffer(IST_KIND_CUDA, 1000);
    IST_OK_OR_FAIL(ist_prepare_on(stream.get(), 1 - rank(), kTag, rank() == receiver ? IST_RECEIVES : IST_SENDS, comm()));
    const auto data = random_bytes(1000, static_cast<std::uint64_t>(receiver) + 1);
    std::int32_t go = 1;
    if (rank() == receiver) {
      NewKernel kernel(other);
      buffer.poison();
      receive_on(stream, buffer.get(), 1000, 1 - rank());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const auto took = kernel.launch(7);
      EXPECT_LT(took, kSoon) << "the first launch took " << std::chrono::duration<double, std::milli>(took).count() << " ms";
      stream.within([&] { EXPECT_EQ(CUDA_ERROR_NOT_READY, DRIVER(cuStreamQuery)(stream.driver())); });
      IST_OK_OR_FAIL(ist_send(ist_host(&go), 1, IST_INT32, 1 - rank(), 9, comm()));
      stream.wait();
      buffer.expect(data, "after the launch");
    } else {
      buffer.fill(data);
      IST_OK_OR_FAIL(ist_recv(ist_host(&go), 1, IST_INT32, 1 - rank(), 9, comm(), IST_STATUS_IGNORE));
      send_on(stream, buffer.get(), 1000, 1 - rank());
      stream.wait();
    }
  }
}

}  // namespace
