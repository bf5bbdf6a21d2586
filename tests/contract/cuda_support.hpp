// What the tests of the CUDA kind share: the driver, the fake's controls if it is the fake, and a user of the driver.
//
// Who calls this : cuda_*.cpp of this folder.
// Threads        : any.
// Ownership      : each test makes its own kind.
// Errors         : a failed step throws, and so ends the test with its text. Without a driver the tests skip.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "memory/cuda/cuda_kind.hpp"
#include "memory/cuda/cuda_memory.hpp"
#include "support.hpp"

namespace ist::test {

// A symbol of the loaded driver that the kind itself has no use for; null if there is none.
void* driver_symbol(const char* name);
template <class Function>
Function driver_call(const char* name) {
  return reinterpret_cast<Function>(driver_symbol(name));
}
// True on the fake driver.
bool is_fake();

// Only meaningful on the fake; see tests/fake_cuda/fake_cuda.h.
void fake_reset();
void fake_delay(unsigned most_us);
void fake_fail(const char* call, int skip, CUresult result);
void fake_heal();
int fake_count(const char* what);
std::uint64_t fake_calls(const char* call);
void fake_bad_kernel(CUstream stream);
Data fake_bytes(std::uint64_t address, std::uint64_t size);

inline void must(const CudaApi& api, CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(cuda_error(api, result, call).text());
}

// A context made current for a scope, as a user would.
class Current {
 public:
  Current(const CudaApi& api, CUcontext context) : api_(api) { must(api_, api_.cuCtxPushCurrent_v2(context), "push"); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    CUcontext popped = nullptr;
    api_.cuCtxPopCurrent_v2(&popped);
  }

 private:
  const CudaApi& api_;
};

// Work in a stream that ends when the test lets it: so "not finished yet" is certain however slow the machine is. Opens by
// itself at the end of the scope, and after ten seconds.
class Gate {
 public:
  Gate() : open_(std::make_shared<std::atomic<bool>>(false)) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }
  void open() { *open_ = true; }
  // Puts it into the stream.
  void close(const CudaApi& api, CUstream stream);

 private:
  std::shared_ptr<std::atomic<bool>> open_;
};

// Opens the gate in a while, and notes before that it does.
std::thread open_later(Gate& gate, std::atomic<bool>& opened);

class CudaTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // The user's own hold on the primary context.
  CUcontext primary(int device = 0);
  // A context of the user's own on device 0, not left current; destroyed at the end if the test does not.
  CUcontext make_context();
  void destroy_context(CUcontext context);
  CUstream make_stream(CUcontext context, unsigned flags = CU_STREAM_NON_BLOCKING);
  // Fills the memory once the gate is open.
  void fill_behind(Gate& gate, CUstream stream, std::uint64_t address, std::uint64_t size, unsigned char value);
  // Enqueues something that takes so long, and then fills the memory.
  void fill_slowly(CUstream stream, std::uint64_t address, std::uint64_t size, unsigned char value,
                   std::chrono::milliseconds delay);
  void synchronise(CUstream stream);
  CUcontext current() const;
  Piece device_piece(std::uint64_t address, std::uint64_t size, CUstream queue = nullptr) const;

  CudaApi api;
  std::unique_ptr<MemoryKind> kind;
  CudaKind& cuda() { return static_cast<CudaKind&>(*kind); }

 private:
  std::vector<int> retained_;
  std::vector<CUstream> streams_;
  std::vector<CUcontext> contexts_;
};

// With memory of the kind's on device 0, and page-locked memory of the user's.
class CudaCopyTest : public CudaTest {
 protected:
  static constexpr std::uint64_t kSize = 1 << 20;
  void take_memory();  // once the kind is the test's
  void TearDown() override;
  Piece host(std::uint64_t at = 0, std::uint64_t size = kSize) const { return host_piece(bytes() + at, Bytes{size}); }
  unsigned char* bytes() const { return static_cast<unsigned char*>(pinned_); }

  Piece piece;

 private:
  void* pinned_ = nullptr;
};

// Waits, gives the status.
Status finish(Ticket& ticket);

}  // namespace ist::test

#define NEEDS_FAKE(what)                                                                        \
  if (!ist::test::is_fake()) {                                                                  \
    GTEST_SKIP() << "SKIPPED: this is not the fake driver, and only the fake driver can " what; \
  }
