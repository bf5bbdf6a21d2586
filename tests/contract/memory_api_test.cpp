// The C calls about memory in a world with two kinds of device, seen from the driver: the fake one counts what is page-locked.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <isthmus/isthmus.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../fake_cuda/fake_cuda.h"

namespace {

using Data = std::vector<unsigned char>;

#define MUST(call) ASSERT_EQ(IST_OK, (call)) << ist_error_text()

Data random_bytes(std::size_t size) {
  static std::mt19937_64 engine{std::random_device{}()};
  Data data(size);
  for (auto& byte : data) byte = static_cast<unsigned char>(engine());
  return data;
}

template <class Function>
Function driver_call(const char* name) {
  static void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}
#define DRIVER_CALL(name) driver_call<decltype(&::name)>(#name)

// A world of one in which one staged copy needs all the staging memory there is.
class MemoryApi : public testing::Test {
 protected:
  void SetUp() override {
    if (DRIVER_CALL(fake_cuda_calls) == nullptr) GTEST_SKIP() << "SKIPPED: this is not the fake driver, which counts";
    ASSERT_EQ(0, setenv("ISTHMUS_PINNED_POOL_LIMIT", "1048576", 1));
    MUST(ist_world_create(&world_));
    MUST(ist_world_comm(world_, &comm_));
    for (const ist_kind kind : {IST_KIND_CUDA, IST_KIND_OPENCL}) {
      int devices = 0;
      MUST(ist_kind_devices(world_, kind, &devices));
      if (devices == 0) GTEST_SKIP() << "SKIPPED: kind " << kind << " has no device here";
    }
  }
  void TearDown() override {
    for (const ist_buffer& each : taken_) EXPECT_EQ(IST_OK, ist_memory_free(world_, each)) << ist_error_text();
    if (world_ == IST_WORLD_NULL) return;
    EXPECT_EQ(IST_OK, ist_world_destroy(&world_));
  }
  ist_buffer take(ist_kind kind, std::size_t size) {
    ist_buffer buffer{};
    EXPECT_EQ(IST_OK, ist_memory_alloc(world_, kind, 0, size, &buffer)) << ist_error_text();
    taken_.push_back(buffer);
    return buffer;
  }
  void write(const ist_buffer& to, const Data& bytes) {
    EXPECT_EQ(IST_OK, ist_memory_copy(world_, to, ist_host(bytes.data()), bytes.size())) << ist_error_text();
  }
  Data read(const ist_buffer& from, std::size_t size) {
    Data bytes(size, 0xEE);
    EXPECT_EQ(IST_OK, ist_memory_copy(world_, ist_host(bytes.data()), from, size)) << ist_error_text();
    return bytes;
  }
  void send_to_myself(const ist_buffer& to, const ist_buffer& from, std::int64_t size, ist_request requests[2]) {
    MUST(ist_irecv(to, size, IST_BYTE, 0, 5, comm_, &requests[0]));
    MUST(ist_isend(from, size, IST_BYTE, 0, 5, comm_, &requests[1]));
  }

  ist_world world_ = IST_WORLD_NULL;
  ist_comm comm_ = IST_COMM_NULL;

 private:
  std::vector<ist_buffer> taken_;
};

TEST_F(MemoryApi, staged_copies_use_the_same_page_locked_block_again_and_again) {
  constexpr std::size_t kSize = (2 << 20) + 1;
  const ist_buffer cuda = take(IST_KIND_CUDA, kSize);
  const ist_buffer opencl = take(IST_KIND_OPENCL, kSize);
  std::uint64_t locks = 0;
  for (int round = 0; round < 5; ++round) {
    const Data bytes = random_bytes(kSize);
    write(cuda, bytes);
    write(opencl, Data(kSize, 0xA5));
    MUST(ist_memory_copy(world_, opencl, cuda, kSize));
    EXPECT_EQ(read(opencl, kSize), bytes) << "round " << round;
    const std::uint64_t now = DRIVER_CALL(fake_cuda_calls)("cuMemHostRegister_v2");
    EXPECT_EQ(now, round == 0 ? now : locks) << "round " << round << " page-locked memory of its own";
    locks = now;
  }
}

TEST_F(MemoryApi, a_staged_copy_does_not_wait_for_ever_for_memory_that_a_message_of_the_same_thread_holds) {
  constexpr std::size_t kSize = (3 << 20) + 5;
  const ist_buffer source = take(IST_KIND_CUDA, kSize);
  const ist_buffer target = take(IST_KIND_OPENCL, kSize);
  const ist_buffer other = take(IST_KIND_OPENCL, kSize);
  const Data bytes = random_bytes(kSize);
  write(source, bytes);
  write(target, Data(kSize, 0xA5));
  write(other, Data(kSize, 0xA5));
  static std::atomic<bool> gate{false};  // outlives the stream, whatever fails here
  const auto wait_for_gate = [](void* open) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (!*static_cast<std::atomic<bool>*>(open) && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  };
  ASSERT_EQ(DRIVER_CALL(cuLaunchHostFunc)(reinterpret_cast<CUstream>(source.queue), wait_for_gate, &gate), CUDA_SUCCESS);
  ist_request requests[2] = {IST_REQUEST_NULL, IST_REQUEST_NULL};
  send_to_myself(target, source, kSize, requests);
  // The message takes the block, and cannot fill it before the gate is open.
  for (int looks = 0, complete = 0; looks < 10; ++looks) {
    MUST(ist_test(&requests[0], &complete, IST_STATUS_IGNORE));
    ASSERT_EQ(complete, 0);
  }
  gate = true;
  MUST(ist_memory_copy(world_, other, source, kSize));
  EXPECT_EQ(read(other, kSize), bytes);
  MUST(ist_waitall(2, requests, IST_STATUSES_IGNORE));
  EXPECT_EQ(read(target, kSize), bytes);
}

// The memory of the paths: this rank's cells to itself, and those it shows to others.
TEST_F(MemoryApi, a_copy_within_one_queue_comes_behind_its_work_and_asks_nothing_of_it) {
  constexpr std::size_t kSize = 5001;
  const ist_buffer source = take(IST_KIND_CUDA, kSize), target = take(IST_KIND_CUDA, kSize);
  ASSERT_EQ(source.queue, target.queue);
  write(source, Data(kSize, 0xA5));
  write(target, Data(kSize, 0x5A));
  const auto queue = reinterpret_cast<CUstream>(source.queue);
  const auto slow = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{10}); };
  ASSERT_EQ(DRIVER_CALL(cuLaunchHostFunc)(queue, slow, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(DRIVER_CALL(cuMemsetD8Async)(source.object, 0x17, kSize, queue), CUDA_SUCCESS);
  const std::uint64_t asked = DRIVER_CALL(fake_cuda_calls)("cuStreamQuery");
  MUST(ist_memory_copy(world_, target, source, kSize));
  EXPECT_EQ(DRIVER_CALL(fake_cuda_calls)("cuStreamQuery"), asked);
  EXPECT_EQ(read(target, kSize), Data(kSize, 0x17));
}

TEST_F(MemoryApi, the_second_kind_of_device_that_messages_use_has_the_paths_page_locked_too) {
  const ist_buffer opencl[2] = {take(IST_KIND_OPENCL, 1000), take(IST_KIND_OPENCL, 1000)};
  const ist_buffer cuda[2] = {take(IST_KIND_CUDA, 1000), take(IST_KIND_CUDA, 1000)};
  const auto allocations = [] { return DRIVER_CALL(fake_cuda_count)("allocations"); };
  const int before = allocations();
  ist_request requests[2] = {IST_REQUEST_NULL, IST_REQUEST_NULL};
  send_to_myself(opencl[0], opencl[1], 1000, requests);
  MUST(ist_waitall(2, requests, IST_STATUSES_IGNORE));
  EXPECT_EQ(allocations(), before) << "nothing is page-locked for a driver that no message has used";
  for (int round = 0; round < 3; ++round) {
    send_to_myself(cuda[0], cuda[1], 1000, requests);
    MUST(ist_waitall(2, requests, IST_STATUSES_IGNORE));
    EXPECT_EQ(allocations(), before + 2);
  }
}

// Devices would go on with the old pages, and whoever gets the address next would send those.
TEST_F(MemoryApi, host_memory_that_is_registered_is_freed_only_after_it_was_unregistered) {
  for (const std::size_t size : {std::size_t{4096}, std::size_t{1} << 20}) {
    ist_buffer buffer{};
    MUST(ist_memory_alloc(world_, IST_KIND_HOST, 0, size, &buffer));
    auto* const bytes = reinterpret_cast<unsigned char*>(buffer.object);
    bytes[0] = 0x37;
    MUST(ist_register(world_, bytes, size));
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_memory_free(world_, buffer));
    EXPECT_NE(nullptr, std::strstr(ist_error_text(), "ist_unregister")) << ist_error_text();
    EXPECT_EQ(0x37, bytes[0]);
    MUST(ist_unregister(world_, bytes));
    MUST(ist_memory_free(world_, buffer));
  }
}

TEST_F(MemoryApi, a_freed_opencl_buffer_is_refused_by_every_call_that_names_it) {
  Data host(100, 0xEE);
  ist_buffer freed{};
  MUST(ist_memory_alloc(world_, IST_KIND_OPENCL, 0, host.size(), &freed));
  MUST(ist_memory_free(world_, freed));
  const auto size = static_cast<std::int64_t>(host.size());
  EXPECT_EQ(IST_ERR_HANDLE, ist_send(freed, size, IST_BYTE, 0, 1, comm_));
  EXPECT_NE(std::string{ist_error_text()}.find("ist_memory_free has released"), std::string::npos) << ist_error_text();
  EXPECT_EQ(IST_ERR_HANDLE, ist_recv(freed, size, IST_BYTE, 0, 1, comm_, IST_STATUS_IGNORE));
  EXPECT_EQ(IST_ERR_HANDLE, ist_memory_copy(world_, ist_host(host.data()), freed, host.size()));
  EXPECT_EQ(host, Data(100, 0xEE));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_memory_free(world_, freed));
}

}  // namespace
