// What the tests of the resident worker share.
//
// Who calls this : cuda_workers_test.cpp, cuda_workers_life_test.cpp.
// Threads        : any.
// Ownership      : as CudaTest.
// Errors         : as CudaTest; where no worker can be the tests skip, and say why.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "cuda_support.hpp"
#include "memory/cuda/worker_board.hpp"
#include "memory/workers.hpp"

namespace ist::test {

inline constexpr std::uint64_t kWorkerRoom = 24576;  // more than three times what it copies

class CudaWorker : public CudaTest {
 protected:
  void SetUp() override {
    // As the library says where it is the first to start CUDA.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    CudaTest::SetUp();
    if (kind == nullptr) return;
    if (const Status against = kind->workers()->allow(0, {}); !against.ok())
      GTEST_SKIP() << "SKIPPED: not covered here: workers: " << against.text();
    memory_ = must(kind->allocate(0, Bytes{kWorkerRoom}));
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
  // The driver brings what lies there.
  void expect_by_driver(std::uint64_t offset, const Data& wanted) {
    Data back(wanted.size(), 0xEE);
    Ticket ticket = out(back, offset);
    EXPECT_FALSE(by_worker(ticket));
    must(finish(ticket));
    EXPECT_EQ(wanted, back);
  }
  std::uint64_t launches() { return cuda().cuda_workers().launches(0); }
  // However slow the machine is.
  void stay() { cuda().cuda_workers().set_times({std::chrono::milliseconds{200}, std::chrono::seconds{20}}); }
  void go_soon() { cuda().cuda_workers().set_times({}); }
  // What is sent lies at the beginning; a worker was launched, and has left, which its process does not know yet.
  void leave_unnoticed(const Data& sent) {
    go_soon();
    while (launches() == 0) {
      Ticket first = into(0, sent);
      must(finish(first));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    stay();
  }
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

}  // namespace ist::test
