// The fake driver itself: it must catch what a real device would, or the tests on it prove little.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda_support.hpp"
#include "fake_cuda.h"

namespace ist::test {
namespace {

// What a handler of atexit() is to push.
struct Pushes {
  const CudaApi* api;
  CUcontext context;
  static inline const Pushes* only = nullptr;
};

class FakeCuda : public CudaTest {
 protected:
  void SetUp() override {
    NEEDS_FAKE("be tested here");
    CudaTest::SetUp();
  }
  // Ends with the exit status of what the child does.
  template <class Work>
  int in_child(Work work) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGSEGV, SIG_DFL);
      ::_exit(work());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
};

// Where those of the main thread are gone: what was given back then is somebody else's.
void push_behind_the_end() {
  constexpr std::size_t kMost = 64;
  std::array<std::array<std::vector<unsigned char>, 16>, kMost / 8> taken;
  for (std::size_t words = 1; words <= kMost / 8; ++words)
    for (auto& block : taken[words - 1]) block.assign(8 * words, 0x5a);
  CUcontext popped = nullptr;
  CUcontext left = nullptr;
  const Pushes& pushes = *Pushes::only;
  for (int i = 0; i < 3; ++i) pushes.api->cuCtxPushCurrent_v2(pushes.context);
  for (int i = 0; i < 3; ++i) pushes.api->cuCtxPopCurrent_v2(&popped);
  pushes.api->cuCtxPopCurrent_v2(&left);
  bool untouched = popped == pushes.context && left == pushes.context;
  for (const auto& blocks : taken)
    for (const auto& block : blocks)
      for (const unsigned char byte : block) untouched = untouched && byte == 0x5a;
  ::_exit(untouched ? 0 : 1);
}

TEST_F(FakeCuda, static_objects_may_call_when_the_process_ends) {
  Pushes pushes{&api, primary()};
  const int status = in_child([&] {
    Pushes::only = &pushes;
    for (int i = 0; i < 4; ++i) api.cuCtxPushCurrent_v2(pushes.context);
    CUcontext popped = nullptr;
    for (int i = 0; i < 3; ++i) api.cuCtxPopCurrent_v2(&popped);
    std::atexit(push_behind_the_end);
    std::exit(2);
    return 2;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

TEST_F(FakeCuda, device_memory_cannot_be_read_by_a_processor) {
  const Piece piece = must(kind->allocate(0, Bytes{4096}));
  const int status = in_child([&] { return *reinterpret_cast<volatile int*>(piece.address()); });
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it could be read";
  must(kind->release(piece));
}

TEST_F(FakeCuda, a_copy_that_does_not_wait_for_a_stream_gets_the_old_bytes) {
  CUstream stream = make_stream(primary());
  const Piece piece = must(kind->allocate(0, Bytes{64}));
  {
    const Current scope(api, primary());
    must(api, api.cuMemsetD8Async(piece.object, 1, 64, stream), "cuMemsetD8Async");
    synchronise(stream);
  }
  Gate gate;
  fill_behind(gate, stream, piece.object, 64, 2);
  Data back(64, 0xEE);
  Ticket out = must(kind->copy(host_piece(back.data(), Bytes{64}), piece, {}));
  must(finish(out));
  EXPECT_EQ(back, Data(64, 1));
  gate.open();
  synchronise(stream);
  must(kind->release(piece));
}

TEST_F(FakeCuda, whoever_frees_what_is_being_copied_is_ended) {
  CUstream stream = make_stream(primary());
  const Piece from = must(kind->allocate(0, Bytes{64}));
  const Piece to = must(kind->allocate(0, Bytes{64}));
  Gate gate;
  fill_behind(gate, stream, from.object, 64, 2);
  const Current scope(api, primary());
  must(api, api.cuMemcpyAsync(to.object, from.object, 64, stream), "cuMemcpyAsync");
  for (const Piece& piece : {from, to}) {
    const int status = in_child([&] { return static_cast<int>(api.cuMemFree_v2(piece.object)); });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  }
  gate.open();
  synchronise(stream);
  must(kind->release(from));
  must(kind->release(to));
}

TEST_F(FakeCuda, another_process_can_open_memory_by_its_handle) {
  const Piece piece = must(kind->allocate(1, Bytes{5000}));
  CUipcMemHandle handle{};
  must(api, api.cuIpcGetMemHandle(&handle, piece.object), "cuIpcGetMemHandle");
  // A new program, because a driver does not survive fork.
  char text[2 * sizeof(handle) + 1] = {};
  for (std::size_t i = 0; i < sizeof(handle); ++i)
    std::snprintf(text + 2 * i, 3, "%02x", static_cast<unsigned char>(handle.reserved[i]));
  ::setenv("FAKE_CUDA_TEST_HANDLE", text, 1);
  const int status = in_child([] {
    ::execl("/proc/self/exe", "cuda_kind_test", "--gtest_filter=FakeCudaOther.fills_the_memory_it_was_lent", nullptr);
    return 1;
  });
  ::unsetenv("FAKE_CUDA_TEST_HANDLE");
  EXPECT_EQ(status, 0);
  Data back(5000, 0xEE);
  Ticket out = must(kind->copy(host_piece(back.data(), Bytes{5000}), piece, {}));
  must(finish(out));
  EXPECT_EQ(back, Data(5000, 77));
  CUdeviceptr own = 0;
  const Current scope(api, primary());
  EXPECT_NE(api.cuIpcOpenMemHandle_v2(&own, handle, 1), CUDA_SUCCESS) << "not in the process that owns it";
  must(kind->release(piece));
}

using FakeCudaOther = FakeCuda;

TEST_F(FakeCudaOther, fills_the_memory_it_was_lent) {
  const char* text = std::getenv("FAKE_CUDA_TEST_HANDLE");
  if (text == nullptr) GTEST_SKIP() << "SKIPPED: only as the other process of another_process_can_open_memory_by_its_handle";
  CUipcMemHandle handle{};
  for (std::size_t i = 0; i < sizeof(handle); ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(std::string(text + 2 * i, 2), nullptr, 16));
  }
  const Current scope(api, primary());
  CUdeviceptr memory = 0;
  must(api, api.cuIpcOpenMemHandle_v2(&memory, handle, 1), "cuIpcOpenMemHandle");
  Piece piece = device_piece(memory, 5000);
  must(kind->check(piece));
  const Data bytes(5000, 77);
  Ticket in = must(kind->copy(piece, host_piece(bytes.data(), Bytes{5000}), {}));
  must(finish(in));
  must(api, api.cuIpcCloseMemHandle(memory), "cuIpcCloseMemHandle");
}

TEST_F(FakeCuda, exported_memory_is_the_same_memory_when_imported) {
  const Current scope(api, primary());
  CUmemAllocationProp properties{};
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::size_t size = 0;
  must(api, api.cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "granularity");
  CUdeviceptr places = 0;
  CUmemGenericAllocationHandle original = 0;
  CUmemGenericAllocationHandle imported = 0;
  int descriptor = -1;
  must(api, api.cuMemAddressReserve(&places, 2 * size, 0, 0, 0), "cuMemAddressReserve");
  must(api, api.cuMemCreate(&original, size, &properties, 0), "cuMemCreate");
  must(api, api.cuMemExportToShareableHandle(&descriptor, original, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), "export");
  must(api,
       api.cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
       "import");
  must(api, api.cuMemMap(places, size, 0, original, 0), "cuMemMap");
  must(api, api.cuMemMap(places + size, size, 0, imported, 0), "cuMemMap");
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  must(api, api.cuMemSetAccess(places + size, size, &access, 1), "cuMemSetAccess");
  const Data bytes = random_bytes(1000);
  Data back(1000, 0xEE);
  Ticket in = must(kind->copy(device_piece(places, 1000), host_piece(bytes.data(), Bytes{1000}), {}));
  Ticket out = must(kind->copy(host_piece(back.data(), Bytes{1000}), device_piece(places + size, 1000), in));
  must(finish(in));
  must(finish(out));
  EXPECT_EQ(back, bytes);
  for (const CUdeviceptr each : {places, places + size}) must(api, api.cuMemUnmap(each, size), "cuMemUnmap");
  for (const auto each : {original, imported}) must(api, api.cuMemRelease(each), "cuMemRelease");
  must(api, api.cuMemAddressFree(places, 2 * size), "cuMemAddressFree");
  ::close(descriptor);
}

}  // namespace
}  // namespace ist::test
