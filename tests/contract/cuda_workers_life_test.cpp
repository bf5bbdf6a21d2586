// The life of the resident worker: when it starts and leaves, what keeps it from starting, and what happens when it dies.
#include <cstdlib>

#include "cuda_workers_support.hpp"
#include "memory/worker_blocks.hpp"

namespace ist::test {
namespace {

TEST_F(CudaWorker, comes_behind_small_copies_and_leaves_when_it_is_idle) {
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

TEST_F(CudaWorker, does_not_come_for_copies_that_are_rare) {
  go_soon();
  const Data data = fresh(8);
  for (int i = 0; i < 20; ++i) {
    Ticket ticket = into(0, data);
    EXPECT_FALSE(by_worker(ticket));
    must(finish(ticket));
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  EXPECT_EQ(0U, launches());
}

TEST_F(CudaWorker, copies_nothing_where_no_worker_was_allowed) {
  if (kind->devices().size() < 2)
    GTEST_SKIP() << "SKIPPED: not covered here: a device that has no worker; there is only one";
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
  const Data sent = fresh(100);
  leave_unnoticed(sent);
  ASSERT_TRUE(cuda().cuda_workers().runs(0)) << "it is not known yet to have left";
  EXPECT_EQ(1U, launches());
  Data back(100, 0xEE);
  Ticket ticket = out(back, 0);
  ASSERT_TRUE(by_worker(ticket));
  must(finish(ticket));
  EXPECT_EQ(sent, back);
  EXPECT_EQ(2U, launches());
}

TEST_F(CudaWorker, that_cannot_be_launched_for_orders_that_wait_leaves_them_to_the_driver) {
  NEEDS_FAKE("refuse a launch");
  const Data sent = fresh(100);
  const Data more = fresh(101);
  leave_unnoticed(sent);
  fake_fail("cuLaunchKernel", 0, CUDA_ERROR_LAUNCH_FAILED);
  Data back(100, 0xEE);
  Data other(100, 0xEE);
  std::vector<Ticket> tickets;
  tickets.push_back(out(back, 0));
  tickets.push_back(into(1000, more));
  tickets.push_back(out(other, 0));
  for (Ticket& ticket : tickets) {
    EXPECT_TRUE(by_worker(ticket));
    must(finish(ticket));
  }
  EXPECT_EQ(sent, back);
  EXPECT_EQ(sent, other);
  expect_by_driver(1000, more);
}

TEST_F(CudaWorker, that_cannot_be_launched_and_whose_copies_the_driver_refuses_fails_them) {
  NEEDS_FAKE("refuse a launch and a copy");
  const Data sent = fresh(100);
  for (const char* call : {"cuMemcpyAsync", "cuStreamSynchronize"}) {
    if (call != std::string{"cuMemcpyAsync"}) {
      TearDown();
      SetUp();
    }
    leave_unnoticed(sent);
    Data back(100, 0xEE);
    std::vector<Ticket> tickets;
    for (int i = 0; i < 3; ++i) tickets.push_back(out(back, 0));
    fake_fail("cuLaunchKernel", 0, CUDA_ERROR_LAUNCH_FAILED);
    fake_fail(call, 0, CUDA_ERROR_LAUNCH_FAILED);
    for (Ticket& ticket : tickets) {
      EXPECT_TRUE(by_worker(ticket));
      const Status failed = finish(ticket);
      EXPECT_EQ(IST_ERR_DEVICE, failed.code());
      EXPECT_NE(std::string::npos, failed.text().find("cuLaunchKernel of the worker on cuda device 0")) << failed.text();
    }
    EXPECT_EQ(Data(100, 0xEE), back);
  }
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

TEST_F(CudaWorker, that_cannot_be_started_is_off_and_the_driver_copies) {
  NEEDS_FAKE("refuse a call");
  for (const char* call : {"cuStreamCreateWithPriority", "cuModuleLoadData", "cuModuleGetFunction", "cuMemHostAlloc",
                           "cuLaunchKernel", "cuStreamSynchronize", "cuFuncGetAttribute"}) {
    Result<std::unique_ptr<MemoryKind>> other = make_cuda_kind(api);
    must(other.status());
    must((*other)->workers()->allow(0, {}));
    EXPECT_EQ(Bytes{worker::kMost}, (*other)->workers()->limit(0));
    fake_fail(call, 0, CUDA_ERROR_OUT_OF_MEMORY);
    const Data sent = fresh(100);
    for (int i = 0; i < 10000 && (*other)->workers()->limit(0) > Bytes{}; ++i) {
      Ticket ticket = must((*other)->copy(at(0, 100), host_piece(sent.data(), Bytes{100}), {}));
      EXPECT_FALSE(by_worker(ticket)) << call;
      must(finish(ticket));
    }
    fake_heal();
    EXPECT_EQ(Bytes{}, (*other)->workers()->limit(0)) << call;
    EXPECT_EQ(0, workers_on(0).blocks) << call;
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
  EXPECT_EQ(0, workers_on(0).blocks);
  expect_by_driver(0, sent);
}

// For whoever fills a device with blocks.
TEST_F(CudaWorker, is_counted_with_what_its_block_takes_from_its_loading_to_its_end) {
  EXPECT_EQ(0, workers_on(0).blocks);
  awaken();
  const WorkerBlocks there = workers_on(0);
  EXPECT_EQ(1, there.blocks);
  EXPECT_EQ(static_cast<int>(worker::kThreads), there.each.threads);
  EXPECT_GT(there.each.registers, 15);
  EXPECT_LT(there.each.registers, 256);
  EXPECT_GE(there.each.shared_bytes, 0);
  if (is_fake()) {
    EXPECT_EQ(72, there.each.registers);
    EXPECT_EQ(640, there.each.shared_bytes);
  }
  {
    // Another world's.
    const auto other = must(make_cuda_kind(api));
    must(other->workers()->allow(0, {}));
    EXPECT_EQ(1, workers_on(0).blocks) << "allowed, and not loaded";
    static_cast<CudaKind&>(*other).cuda_workers().prepare(0);
    EXPECT_EQ(2, workers_on(0).blocks);
  }
  EXPECT_EQ(1, workers_on(0).blocks);
  EXPECT_EQ(0, workers_on(1).blocks);
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
  if (kind->devices().size() < 2)
    GTEST_SKIP() << "SKIPPED: not covered here: a device that has no worker; there is only one";
  EXPECT_EQ(Bytes{}, kind->workers()->limit(1));
  const Status shared = kind->workers()->allow(1, {IST_ERR_KIND, "somebody else is here"});
  EXPECT_EQ("somebody else is here", shared.text());
  EXPECT_EQ(Bytes{}, kind->workers()->limit(1));
  EXPECT_EQ(IST_ERR_ARGUMENT, kind->workers()->allow(1000, {}).code());
  EXPECT_EQ(Bytes{}, kind->workers()->limit(1000));
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  const Status blocks = kind->workers()->allow(1, {});
  ::unsetenv("CUDA_LAUNCH_BLOCKING");
  EXPECT_NE(std::string::npos, blocks.text().find("unset it")) << blocks.text();
  EXPECT_EQ(Bytes{}, kind->workers()->limit(1));
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
  const auto kind = must(make_cuda_kind(api, {.worker = true}));
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
  const auto kind = must(make_cuda_kind(api, {.worker = true}));
  EXPECT_STREQ("LAZY", std::getenv("CUDA_MODULE_LOADING"));
  EXPECT_STREQ("4", std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
  const Status refused = kind->workers()->allow(0, {});
  EXPECT_NE(std::string::npos, refused.text().find("set CUDA_MODULE_LOADING=EAGER")) << refused.text();
}

TEST_F(CudaWorkerLoading, is_refused_where_streams_would_share_its_connection) {
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  for (const char* few : {"1", "31", "many"}) {
    fake_reset();
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", few, 1);
    const auto kind = must(make_cuda_kind(api, {.worker = true}));
    EXPECT_STREQ(few, std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
    const Status refused = kind->workers()->allow(0, {});
    EXPECT_EQ(IST_ERR_KIND, refused.code());
    EXPECT_NE(std::string::npos, refused.text().find("CUDA_DEVICE_MAX_CONNECTIONS says so; set it to 32")) << refused.text();
    EXPECT_EQ(Bytes{}, kind->workers()->limit(0));
  }
  // CUDA was started with as many as it takes by itself.
  fake_reset();
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  must(api, api.cuInit(0), "cuInit");
  const auto kind = must(make_cuda_kind(api, {.worker = true}));
  const Status late = kind->workers()->allow(0, {});
  EXPECT_NE(std::string::npos, late.text().find("share 8 connections")) << late.text();
}

TEST_F(CudaWorkerLoading, came_too_late_where_the_program_started_cuda) {
  must(api, api.cuInit(0), "cuInit");
  const auto kind = must(make_cuda_kind(api, {.worker = true}));
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
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    fake_reset();
    if (lazy)
      api.cuModuleGetLoadingMode = [](CUmoduleLoadingMode* mode) {
        *mode = CU_MODULE_EAGER_LOADING;
        return CUDA_SUCCESS;
      };
    const auto kind = must(make_cuda_kind(api, {.worker = !lazy}));
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
