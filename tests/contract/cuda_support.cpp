#include "cuda_support.hpp"

#include <dlfcn.h>

#include <thread>

#include "../fake_cuda/fake_cuda.h"

namespace ist::test {

void* driver_symbol(const char* name) {
  static void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : ::dlsym(library, name);
}

bool is_fake() { return driver_symbol("fake_cuda_reset") != nullptr; }

#define FAKE_CALL(name) driver_call<decltype(&::name)>(#name)
void fake_reset() { FAKE_CALL(fake_cuda_reset)(); }
void fake_delay(unsigned most_us) { FAKE_CALL(fake_cuda_delay)(most_us); }
void fake_fail(const char* call, int skip, CUresult result) { FAKE_CALL(fake_cuda_fail)(call, skip, result); }
void fake_heal() { FAKE_CALL(fake_cuda_heal)(); }
int fake_count(const char* what) { return FAKE_CALL(fake_cuda_count)(what); }
std::uint64_t fake_calls(const char* call) { return FAKE_CALL(fake_cuda_calls)(call); }
void fake_bad_kernel(CUstream stream) { FAKE_CALL(fake_cuda_bad_kernel)(stream); }
Data fake_bytes(std::uint64_t address, std::uint64_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(FAKE_CALL(fake_cuda_bytes)(address));
  return {bytes, bytes + size};
}

void CudaCopyTest::take_memory() {
  piece = must(kind->allocate(0, Bytes{kSize}));
  const Current scope(api, primary());
  must(api, api.cuMemHostAlloc(&pinned_, kSize, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
}

void CudaCopyTest::TearDown() {
  if (kind != nullptr && piece.object != 0) must(kind->release(piece));
  if (pinned_ != nullptr) {
    const Current scope(api, primary());
    api.cuMemFreeHost(pinned_);
  }
  CudaTest::TearDown();
}

void CudaTest::SetUp() {
  Result<CudaApi> loaded = load_cuda_api();
  if (!loaded.ok()) GTEST_SKIP() << "SKIPPED: " << loaded.status().text();
  api = *loaded;
  if (is_fake()) fake_heal();
  Result<std::unique_ptr<MemoryKind>> made = make_cuda_kind(api);
  if (!made.ok()) GTEST_SKIP() << "SKIPPED: " << made.status().text();
  kind = std::move(made).value();
}

void CudaTest::TearDown() {
  if (is_fake()) fake_heal();
  for (CUstream stream : streams_) {
    api.cuStreamSynchronize(stream);
    api.cuStreamDestroy_v2(stream);
  }
  kind.reset();
  while (!contexts_.empty()) destroy_context(contexts_.back());
  for (const int device : retained_) api.cuDevicePrimaryCtxRelease_v2(device);
}

CUcontext CudaTest::primary(int device) {
  CUcontext context = nullptr;
  must(api, api.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  retained_.push_back(device);
  return context;
}

CUcontext CudaTest::make_context() {
  using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
  CUcontext context = nullptr;
  must(api, driver_call<Create>("cuCtxCreate_v2")(&context, 0, 0), "cuCtxCreate");
  CUcontext popped = nullptr;
  must(api, api.cuCtxPopCurrent_v2(&popped), "cuCtxPopCurrent");
  contexts_.push_back(context);
  return context;
}

void CudaTest::destroy_context(CUcontext context) {
  std::erase(contexts_, context);
  must(api, driver_call<CUresult (*)(CUcontext)>("cuCtxDestroy_v2")(context), "cuCtxDestroy");
}

CUstream CudaTest::make_stream(CUcontext context, unsigned flags) {
  const Current scope(api, context);
  CUstream stream = nullptr;
  must(api, api.cuStreamCreate(&stream, flags), "cuStreamCreate");
  streams_.push_back(stream);
  return stream;
}

void Gate::close(const CudaApi& api, CUstream stream) {
  using Shared = std::shared_ptr<std::atomic<bool>>;
  const auto wait_for_it = [](void* argument) {
    const std::unique_ptr<Shared> gate(static_cast<Shared*>(argument));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (!**gate && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(std::chrono::microseconds{100});
  };
  must(api, api.cuLaunchHostFunc(stream, wait_for_it, new Shared(open_)), "cuLaunchHostFunc");
}

std::thread open_later(Gate& gate, std::atomic<bool>& opened) {
  return std::thread{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    opened = true;
    gate.open();
  }};
}

void CudaTest::fill_behind(Gate& gate, CUstream stream, std::uint64_t address, std::uint64_t size, unsigned char value) {
  gate.close(api, stream);
  must(api, api.cuMemsetD8Async(address, value, size, stream), "cuMemsetD8Async");
}

void CudaTest::fill_slowly(CUstream stream, std::uint64_t address, std::uint64_t size, unsigned char value,
                           std::chrono::milliseconds delay) {
  const auto sleep = [](void* argument) {
    std::this_thread::sleep_for(std::chrono::milliseconds{reinterpret_cast<std::intptr_t>(argument)});
  };
  must(api, api.cuLaunchHostFunc(stream, sleep, reinterpret_cast<void*>(delay.count())), "cuLaunchHostFunc");
  must(api, api.cuMemsetD8Async(address, value, size, stream), "cuMemsetD8Async");
}

void CudaTest::synchronise(CUstream stream) { must(api, api.cuStreamSynchronize(stream), "cuStreamSynchronize"); }

CUcontext CudaTest::current() const {
  CUcontext context = nullptr;
  api.cuCtxGetCurrent(&context);
  return context;
}

Piece CudaTest::device_piece(std::uint64_t address, std::uint64_t size, CUstream queue) const {
  Piece piece;
  piece.kind = KindId::cuda;
  piece.object = address;
  piece.size = Bytes{size};
  piece.queue = reinterpret_cast<std::uint64_t>(queue);
  return piece;
}

Status finish(Ticket& ticket) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (!ticket.empty()) {
    const Result<bool> done = ticket.kind()->finished(ticket);
    if (!done.ok()) return done.status();
    if (*done) break;
    if (std::chrono::steady_clock::now() > limit) return {IST_ERR_INTERNAL, "not finished after ten seconds"};
    std::this_thread::yield();
  }
  return {};
}

}  // namespace ist::test
