// The resident worker: every byte of what it copies, when it starts and leaves, what is not for it, and what happens when it dies.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include "cuda_support.hpp"
#include "memory/cuda/worker_board.hpp"
#include "memory/workers.hpp"

namespace ist::test {
namespace {

constexpr std::uint64_t kRoom = 3 * worker::kMost;

class CudaWorker : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (kind == nullptr) return;
    if (const Status against = kind->workers()->allow(0, {}); !against.ok()) GTEST_SKIP() << "SKIPPED: " << against.text();
    memory_ = must(kind->allocate(0, Bytes{kRoom}));
    stay();
  }
  void TearDown() override {
    if (memory_.object != 0) {
      EXPECT_TRUE(kind->release(memory_).ok());
    }
    CudaTest::TearDown();
  }
  static Data fresh(std::size_t size) { return random_bytes(size); }
  Piece at(std::uint64_t offset, std::uint64_t size) const { return memory_.part(Offset{offset}, Bytes{size}); }
  Ticket into(std::uint64_t offset, const Data& from) {
    return must(kind->copy(at(offset, from.size()), host_piece(from.data(), Bytes{from.size()}), {}));
  }
  Ticket out(Data& to, std::uint64_t offset) {
    return must(kind->copy(host_piece(to.data(), Bytes{to.size()}), at(offset, to.size()), {}));
  }
  static bool by_worker(const Ticket& ticket) { return CudaWorkers::owns(ticket.id()); }
  std::uint64_t launches() { return cuda().cuda_workers().launches(0); }
  // However slow the machine is.
  void stay() { cuda().cuda_workers().set_times({std::chrono::milliseconds{200}, std::chrono::seconds{20}}); }
  void go_soon() { cuda().cuda_workers().set_times({}); }
  // Until one is on the device, which the driver's copies make come.
  void awaken(int device = 0) {
    const Piece some = device == 0 ? at(0, 8) : must(kind->allocate(device, Bytes{8}));
    const Data data(8, 0);
    for (int i = 0; i < 10000 && !cuda().cuda_workers().runs(device); ++i) {
      Ticket ticket = must(kind->copy(some, host_piece(data.data(), Bytes{8}), {}));
      must(finish(ticket));
    }
    EXPECT_TRUE(cuda().cuda_workers().runs(device));
    if (device != 0) must(kind->release(some));
  }

  Piece memory_;
};

TEST_F(CudaWorker, copies_every_byte_of_every_small_size_wherever_it_lies) {
  awaken();
  for (const std::uint64_t size : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 63, 64, 511, 512, 513, 1000, 4095, 4096, 8191, 8192}) {
    for (const std::uint64_t shift : {0, 1, 2, 4, 5, 8}) {
      const Data all = fresh(kRoom);
      Ticket whole = into(0, all);  // too much for it
      ASSERT_FALSE(by_worker(whole));
      must(finish(whole));
      const Data sent = fresh(size);
      Ticket there = into(worker::kMost + shift, sent);
      EXPECT_TRUE(by_worker(there));
      must(finish(there));
      Data back(size + 2, 0xEE);
      Ticket here = must(kind->copy(host_piece(back.data() + 1, Bytes{size}), at(worker::kMost + shift, size), {}));
      EXPECT_TRUE(by_worker(here));
      must(finish(here));
      EXPECT_EQ(0xEE, back.front());
      EXPECT_EQ(0xEE, back.back());
      EXPECT_TRUE(std::equal(sent.begin(), sent.end(), back.begin() + 1)) << size << " bytes at " << shift;
      Data found(kRoom);
      Ticket rest = out(found, 0);
      must(finish(rest));
      Data expected = all;
      std::copy(sent.begin(), sent.end(), expected.begin() + static_cast<std::ptrdiff_t>(worker::kMost + shift));
      EXPECT_EQ(expected, found) << size << " bytes at " << shift;
    }
  }
}

TEST_F(CudaWorker, leaves_larger_copies_nothing_and_what_comes_after_pending_work_to_the_driver) {
  awaken();
  Data data = fresh(worker::kMost + 1);
  Ticket longer = into(0, data);
  EXPECT_FALSE(by_worker(longer));
  must(finish(longer));
  EXPECT_TRUE(must(kind->copy(at(0, 0), host_piece(data.data(), Bytes{0}), {})).empty());
  CUstream stream = make_stream(primary());
  Piece piece = at(0, 100);
  piece.queue = reinterpret_cast<std::uint64_t>(stream);
  Gate gate;
  fill_behind(gate, stream, piece.object, 100, 0x5A);
  const Ticket pending = must(kind->streams()->in_order(piece));
  ASSERT_FALSE(pending.empty());
  Data back(100, 0xEE);
  std::thread opens([&] { gate.open(); });
  Ticket behind = must(kind->copy(host_piece(back.data(), Bytes{100}), piece, pending));
  opens.join();
  EXPECT_FALSE(by_worker(behind));
  must(finish(behind));
  EXPECT_EQ(Data(100, 0x5A), back);
  // Idle: the question is asked at once, since no copy goes into that queue.
  synchronise(stream);
  awaken();
  EXPECT_TRUE(must(kind->streams()->in_order(piece)).empty());
}

TEST_F(CudaWorker, does_not_touch_managed_memory_mappings_or_memory_of_other_contexts) {
  awaken();
  CUcontext own = make_context();
  CUdeviceptr address = 0;
  {
    const Current scope(api, own);
    must(api, api.cuMemAlloc_v2(&address, 64), "cuMemAlloc");
  }
  Piece foreign = device_piece(address, 64);
  must(kind->check(foreign));
  const Data data = fresh(64);
  Ticket ticket = must(kind->copy(foreign, host_piece(data.data(), Bytes{64}), {}));
  EXPECT_FALSE(by_worker(ticket));
  must(finish(ticket));
  const Current scope(api, primary());
  if (api.cuMemAllocManaged != nullptr) {
    must(api, api.cuMemAllocManaged(&address, 64, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
    Piece managed = device_piece(address, 64);
    must(kind->check(managed));
    Ticket copied = must(kind->copy(managed, host_piece(data.data(), Bytes{64}), {}));
    EXPECT_FALSE(by_worker(copied));
    must(finish(copied));
    must(api, api.cuMemFree_v2(address), "cuMemFree");
  }
}

TEST_F(CudaWorker, comes_behind_the_first_small_copy_and_leaves_when_it_is_idle) {
  go_soon();
  EXPECT_EQ(0U, launches());
  const Data data = fresh(8);
  for (std::uint64_t round = 1; round <= 5; ++round) {
    for (const std::uint64_t before = launches(); launches() == before;) {
      Ticket ticket = into(0, data);
      must(finish(ticket));
    }
    EXPECT_GE(launches(), round);
    // Nothing of it keeps anybody from waiting for the whole device.
    const Current scope(api, primary());
    const auto begun = std::chrono::steady_clock::now();
    must(api, api.cuCtxSynchronize(), "cuCtxSynchronize");
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds{5});
    EXPECT_FALSE(cuda().cuda_workers().runs(0));
  }
}

TEST_F(CudaWorker, copies_nothing_where_no_worker_was_allowed) {
  const Piece other = must(kind->allocate(1, Bytes{8}));
  const Data data = fresh(8);
  for (int i = 0; i < 10; ++i) {
    Ticket ticket = must(kind->copy(other, host_piece(data.data(), Bytes{8}), {}));
    EXPECT_FALSE(by_worker(ticket));
    must(finish(ticket));
  }
  EXPECT_EQ(0U, cuda().cuda_workers().launches(1));
  must(kind->release(other));
}

// As if it had left in the moment in which it is given an order.
TEST_F(CudaWorker, that_has_left_after_all_is_launched_again_for_an_order_that_waits) {
  go_soon();
  const Data sent = fresh(100);
  Ticket first = into(0, sent);
  must(finish(first));
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  stay();
  ASSERT_TRUE(cuda().cuda_workers().runs(0)) << "it is not known yet to have left";
  EXPECT_EQ(1U, launches());
  Data back(100, 0xEE);
  Ticket ticket = out(back, 0);
  ASSERT_TRUE(by_worker(ticket));
  must(finish(ticket));
  EXPECT_EQ(sent, back);
  EXPECT_EQ(2U, launches());
}

TEST_F(CudaWorker, that_cannot_be_launched_for_an_order_that_waits_fails_it) {
  NEEDS_FAKE("refuse a launch");
  go_soon();
  const Data sent = fresh(100);
  Ticket first = into(0, sent);
  must(finish(first));
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  stay();
  fake_fail("cuLaunchKernel", 0, CUDA_ERROR_LAUNCH_FAILED);
  Data back(100, 0xEE);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(out(back, 0));
  for (Ticket& ticket : tickets) {
    EXPECT_TRUE(by_worker(ticket));
    const Status failed = finish(ticket);
    EXPECT_EQ(IST_ERR_DEVICE, failed.code());
    EXPECT_NE(std::string::npos, failed.text().find("cuLaunchKernel of the worker on cuda device 0")) << failed.text();
  }
  EXPECT_EQ(Data(100, 0xEE), back);
  Ticket later = out(back, 0);
  EXPECT_FALSE(by_worker(later));
  must(finish(later));
  EXPECT_EQ(sent, back);
}

TEST_F(CudaWorker, whoever_waits_for_the_device_goes_on_while_orders_keep_coming) {
  go_soon();
  std::atomic<bool> over{false};
  std::atomic<int> given{0};
  std::thread orders([&] {
    const Data data = fresh(64);
    while (!over) {
      Ticket ticket = into(0, data);
      must(finish(ticket));
      ++given;
    }
  });
  while (given < 10) std::this_thread::yield();
  const Current scope(api, primary());
  for (int i = 0; i < 20; ++i) {
    must(api, api.cuCtxSynchronize(), "cuCtxSynchronize");
    CUdeviceptr address = 0;
    must(api, api.cuMemAlloc_v2(&address, 1000), "cuMemAlloc");
    must(api, api.cuMemFree_v2(address), "cuMemFree");
  }
  over = true;
  orders.join();
}

TEST_F(CudaWorker, more_orders_than_it_has_places_for_go_by_the_driver_and_all_arrive) {
  awaken();
  constexpr std::size_t kCount = 5 * worker::kSlots;
  constexpr std::size_t kSize = kRoom / kCount;
  std::vector<Data> sent;
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < kCount; ++i) {
    sent.push_back(fresh(kSize));
    tickets.push_back(into(i * kSize, sent.back()));
  }
  const auto count = static_cast<std::size_t>(std::count_if(tickets.begin(), tickets.end(), by_worker));
  EXPECT_EQ(worker::kSlots, count);  // nobody has asked yet whether one is over
  for (Ticket& ticket : tickets) must(finish(ticket));
  std::vector<Data> back(kCount, Data(kSize, 0xEE));
  tickets.clear();
  for (std::size_t i = 0; i < kCount; ++i) tickets.push_back(out(back[i], i * kSize));
  for (std::size_t i = kCount; i-- > 0;) must(finish(tickets[i]));
  EXPECT_EQ(sent, back);
}

TEST_F(CudaWorker, what_comes_after_an_order_comes_after_it) {
  awaken();
  for (int round = 0; round < 100; ++round) {
    const Data sent = fresh(200);
    Data middle(200, 0xEE);
    Data back(200, 0xEE);
    const Piece held = host_piece(middle.data(), Bytes{200});
    Ticket first = into(0, sent);
    Ticket second = must(kind->copy(held, at(0, 200), first));
    Ticket third = must(kind->copy(at(5000, 200), held, second));
    Ticket none = must(kind->copy(at(0, 0), host_piece(nullptr, Bytes{0}), third));
    Ticket within = must(kind->copy(at(9000, 200), at(5000, 200), third));
    EXPECT_FALSE(by_worker(within));
    must(finish(within));
    Ticket last = out(back, 9000);
    for (Ticket* each : {&last, &first, &second, &third, &none}) must(finish(*each));
    EXPECT_EQ(sent, middle);
    EXPECT_EQ(sent, back);
  }
}

TEST_F(CudaWorker, forgotten_orders_leave_memory_alone_and_their_places_free) {
  awaken();
  std::vector<Data> buffers(20 * worker::kSlots, Data(100, 0xEE));
  for (Data& each : buffers) const Ticket forgotten = out(each, 0);
  const std::vector<Data> before = buffers;
  const Data sent = fresh(100);
  Ticket ticket = into(0, sent);
  EXPECT_TRUE(by_worker(ticket));
  must(finish(ticket));
  EXPECT_EQ(before, buffers);
}

TEST_F(CudaWorker, that_comes_and_goes_copies_every_byte_all_the_same) {
  go_soon();
  int workers = 0;
  for (int i = 0; i < 3000; ++i) {
    const Data sent = fresh(1 + static_cast<std::size_t>(i) % 600);
    Ticket there = into(0, sent);
    workers += by_worker(there) ? 1 : 0;
    must(finish(there));
    Data back(sent.size(), 0xEE);
    Ticket here = out(back, 0);
    workers += by_worker(here) ? 1 : 0;
    must(finish(here));
    ASSERT_EQ(sent, back);
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  RecordProperty("by_worker", workers);
  EXPECT_GT(launches(), 1U);
}

TEST_F(CudaWorker, several_threads_give_orders_at_once_and_each_gets_its_own_bytes) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([this, t] {
      std::mt19937 random(static_cast<unsigned>(t) + 1);
      const std::uint64_t place = kRoom / kThreads * static_cast<std::uint64_t>(t);
      for (int i = 0; i < 300; ++i) {
        Data sent(1 + random() % (kRoom / kThreads));
        for (std::uint8_t& byte : sent) byte = static_cast<std::uint8_t>(random());
        Ticket there = into(place, sent);
        must(finish(there));
        Data back(sent.size(), 0xEE);
        Ticket here = out(back, place);
        must(finish(here));
        ASSERT_EQ(sent, back);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaWorker, needs_no_call_of_the_driver_but_to_ask_whose_the_memory_is) {
  NEEDS_FAKE("count its calls");
  awaken();
  Data data = fresh(64);
  const std::uint64_t launched = launches();
  const char* const calls[] = {"cuMemcpyAsync", "cuEventRecord", "cuEventQuery", "cuStreamWaitEvent"};
  std::vector<std::uint64_t> before;
  for (const char* call : calls) before.push_back(fake_calls(call));
  for (int i = 0; i < 50; ++i) {
    Ticket there = into(0, data);
    must(finish(there));
    Ticket here = out(data, 0);
    must(finish(here));
  }
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i], fake_calls(calls[i])) << calls[i];
  EXPECT_EQ(launched, launches());
}

TEST_F(CudaWorker, that_cannot_be_started_is_off_and_the_driver_copies) {
  NEEDS_FAKE("refuse a call");
  for (const char* call : {"cuStreamCreateWithPriority", "cuModuleLoadData", "cuModuleGetFunction", "cuMemHostAlloc",
                           "cuLaunchKernel", "cuStreamSynchronize"}) {
    Result<std::unique_ptr<MemoryKind>> other = make_cuda_kind(api);
    must(other.status());
    must((*other)->workers()->allow(0, {}));
    EXPECT_EQ(Bytes{worker::kMost}, (*other)->workers()->limit(0));
    fake_fail(call, 0, CUDA_ERROR_OUT_OF_MEMORY);
    const Data sent = fresh(100);
    Ticket ticket = must((*other)->copy(at(0, 100), host_piece(sent.data(), Bytes{100}), {}));
    EXPECT_FALSE(by_worker(ticket)) << call;
    must(finish(ticket));
    fake_heal();
    EXPECT_EQ(Bytes{}, (*other)->workers()->limit(0)) << call;
    Data back(100, 0xEE);
    Ticket again = must((*other)->copy(host_piece(back.data(), Bytes{100}), at(0, 100), {}));
    EXPECT_FALSE(by_worker(again));
    must(finish(again));
    EXPECT_EQ(sent, back);
  }
}

TEST_F(CudaWorker, that_cannot_be_launched_again_is_off) {
  NEEDS_FAKE("refuse a launch");
  go_soon();
  awaken();
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  fake_fail("cuLaunchKernel", 0, CUDA_ERROR_LAUNCH_FAILED);
  const Data sent = fresh(100);
  for (int i = 0; i < 10000 && kind->workers()->limit(0) > Bytes{}; ++i) {
    Ticket ticket = into(0, sent);
    must(finish(ticket));
    EXPECT_TRUE(ticket.empty());
  }
  EXPECT_EQ(Bytes{}, kind->workers()->limit(0));
  Data back(100, 0xEE);
  Ticket later = out(back, 0);
  EXPECT_FALSE(by_worker(later));
  must(finish(later));
  EXPECT_EQ(sent, back);
}

TEST_F(CudaWorker, whose_device_is_lost_fails_its_orders_and_nobody_hangs) {
  NEEDS_FAKE("lose a device");
  must(kind->workers()->allow(1, {}));
  Piece there = must(kind->allocate(1, Bytes{100}));
  const Data sent = fresh(100);
  const Piece here = host_piece(sent.data(), Bytes{100});
  awaken(1);
  CUstream stream = make_stream(primary(1));
  fake_bad_kernel(stream);
  api.cuStreamSynchronize(stream);
  Status found;
  for (int i = 0; i < 1000 && found.ok(); ++i) {
    Result<Ticket> ticket = kind->copy(there, here, {});
    found = ticket.ok() ? finish(*ticket) : ticket.status();
  }
  EXPECT_EQ(IST_ERR_DEVICE, found.code());
  EXPECT_NE(std::string::npos, found.text().find("CUDA_ERROR_ILLEGAL_ADDRESS")) << found.text();
}

// ---- what stands against it ----

TEST_F(CudaWorker, is_refused_with_the_reason_and_the_remedy) {
  EXPECT_EQ(Bytes{}, kind->workers()->limit(1));
  const Status shared = kind->workers()->allow(1, {IST_ERR_KIND, "somebody else is here"});
  EXPECT_EQ("somebody else is here", shared.text());
  EXPECT_EQ(Bytes{}, kind->workers()->limit(1));
  EXPECT_EQ(IST_ERR_ARGUMENT, kind->workers()->allow(1000, {}).code());
  EXPECT_EQ(Bytes{}, kind->workers()->limit(1000));
  const CudaApi whole = api;
  api.cuModuleGetLoadingMode = nullptr;
  Result<std::unique_ptr<MemoryKind>> old = make_cuda_kind(api);
  const Status lacks = (*old)->workers()->allow(0, {});
  EXPECT_NE(std::string::npos, lacks.text().find("install an NVIDIA driver")) << lacks.text();
  api = whole;
}

class CudaWorkerLoading : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_FAKE("start anew");
    const auto loaded = load_cuda_api();
    api = *loaded;
    clear();
    ::setenv("FAKE_CUDA_LAZY", "1", 1);
    fake_reset();
  }
  void TearDown() override {
    if (!is_fake()) return;
    clear();
    fake_reset();
  }
  static void clear() {
    for (const char* name : {"FAKE_CUDA_LAZY", "CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS"}) ::unsetenv(name);
  }
  CudaApi api;
};

TEST_F(CudaWorkerLoading, is_asked_for_eagerly_where_cuda_starts_with_the_library) {
  const auto kind = must(make_cuda_kind(api, true));
  EXPECT_STREQ("EAGER", std::getenv("CUDA_MODULE_LOADING"));
  EXPECT_STREQ("32", std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
  EXPECT_TRUE(kind->workers()->allow(0, {}).ok());
}

TEST_F(CudaWorkerLoading, keeps_what_the_program_said_and_says_nothing_for_programs_that_want_no_worker) {
  {
    const auto kind = must(make_cuda_kind(api));
    EXPECT_EQ(nullptr, std::getenv("CUDA_MODULE_LOADING"));
  }
  fake_reset();
  ::setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
  const auto kind = must(make_cuda_kind(api, true));
  EXPECT_STREQ("LAZY", std::getenv("CUDA_MODULE_LOADING"));
  EXPECT_STREQ("4", std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
  const Status refused = kind->workers()->allow(0, {});
  EXPECT_NE(std::string::npos, refused.text().find("set CUDA_MODULE_LOADING=EAGER")) << refused.text();
}

TEST_F(CudaWorkerLoading, came_too_late_where_the_program_started_cuda) {
  must(api, api.cuInit(0), "cuInit");
  const auto kind = must(make_cuda_kind(api, true));
  EXPECT_EQ(nullptr, std::getenv("CUDA_MODULE_LOADING"));
  const Status refused = kind->workers()->allow(0, {});
  EXPECT_EQ(IST_ERR_KIND, refused.code());
  EXPECT_NE(std::string::npos, refused.text().find("CUDA was started before this world")) << refused.text();
  EXPECT_EQ(Bytes{}, kind->workers()->limit(0));
}

// Also on a driver that loads lazily whatever it says: the worker leaves by itself.
TEST_F(CudaWorkerLoading, lets_a_kernel_be_launched_for_the_first_time_while_it_runs) {
  for (const bool lazy : {false, true}) {
    clear();
    ::setenv("FAKE_CUDA_LAZY", "1", 1);
    fake_reset();
    if (lazy)
      api.cuModuleGetLoadingMode = [](CUmoduleLoadingMode* mode) {
        *mode = CU_MODULE_EAGER_LOADING;
        return CUDA_SUCCESS;
      };
    const auto kind = must(make_cuda_kind(api, !lazy));
    must(kind->workers()->allow(0, {}));
    std::atomic<bool> over{false};
    const Piece memory = must(kind->allocate(0, Bytes{128}));
    std::thread orders([&] {
      const Data data(64, 1);
      while (!over) {
        Ticket ticket = must(kind->copy(memory.part(Offset{64}, Bytes{64}), host_piece(data.data(), Bytes{64}), {}));
        must(finish(ticket));
      }
    });
    for (const Reduction reduction : {Reduction::sum, Reduction::product, Reduction::minimum, Reduction::maximum}) {
      Ticket ticket = must(kind->arithmetic()->combine(reduction, IST_INT32, memory.part(Offset{0}, Bytes{32}),
                                                       memory.part(Offset{32}, Bytes{32}), {}));
      must(finish(ticket));
    }
    over = true;
    orders.join();
    must(kind->release(memory));
  }
}

}  // namespace
}  // namespace ist::test
