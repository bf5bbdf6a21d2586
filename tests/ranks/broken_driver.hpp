// The fake CUDA driver as a forked rank breaks it: calls that fail, kernels that do not end, kernels that crash.
//
// Who calls this : failures_test.cpp, pending_failures_test.cpp.
// Threads        : one per rank; gates are opened from any.
// Ownership      : a Buffer frees its memory; a Gate must outlive the stream's work.
// Errors         : counted by Checks, and said on stderr.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>

#include "../fake_cuda/fake_cuda.h"
#include "forked_ranks.hpp"
#include "rank_test.hpp"

namespace forked_ranks {

using Data = std::vector<unsigned char>;
using rank_test::first_difference;
using rank_test::random_bytes;

inline void* driver_symbol(const char* name) {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : ::dlsym(library, name);
}
template <class Function>
Function driver_call(const char* name) {
  return reinterpret_cast<Function>(driver_symbol(name));
}
inline bool is_fake() { return driver_symbol("fake_cuda_reset") != nullptr; }

#define NEEDS_FAKE_DRIVER() \
  if (!is_fake()) GTEST_SKIP() << "SKIPPED: only the fake CUDA driver can be broken, and it is not in LD_LIBRARY_PATH"

// After `skip` more of these calls, one fails.
inline void break_call(const char* call, int skip, CUresult result = CUDA_ERROR_UNKNOWN) {
  driver_call<decltype(&::fake_cuda_fail)>("fake_cuda_fail")(call, skip, result);
}
inline void heal() { driver_call<decltype(&::fake_cuda_heal)>("fake_cuda_heal")(); }

// What one rank finds wrong.
class Checks {
 public:
  explicit Checks(const Here& here) : rank_(here.rank) {}
  void that(bool as_it_should_be, const std::string& what) {
    if (as_it_should_be) return;
    ++wrong_;
    std::fprintf(stderr, "[%d] not so: %s; last error: %s\n", rank_, what.c_str(), ist_error_text());
  }
  void ok(int code, const std::string& what) { that(code == IST_OK, what + ": " + ist_code_name(code)); }
  // The call failed with this code, and its text has these words.
  void fails(int code, int wanted, const std::vector<std::string>& words, const std::string& what) {
    that(code == wanted, what + " gives " + ist_code_name(wanted) + ", not " + ist_code_name(code));
    const std::string text = ist_error_text();
    for (const std::string& word : words) that(text.find(word) != std::string::npos, what + " says \"" + word + "\"");
  }
  int wrong() const { return wrong_; }

 private:
  int rank_;
  int wrong_ = 0;
};

// Memory of the fake device, or of the host, which the rank fills and reads.
class Buffer {
 public:
  Buffer(const Here& here, std::size_t bytes, ist_kind kind = IST_KIND_CUDA, int device = 0)
      : world_(here.world), bytes_(bytes) {
    if (ist_memory_alloc(world_, kind, device, bytes, &buffer_) != IST_OK) {
      std::fprintf(stderr, "[%d] no memory: %s\n", here.rank, ist_error_text());
      ::_exit(98);
    }
    fill(Data(bytes, 0xa5));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ist_memory_free(world_, buffer_); }

  ist_buffer get() const { return buffer_; }
  void* stream() const { return reinterpret_cast<void*>(buffer_.queue); }
  void fill(const Data& bytes) {
    if (ist_memory_copy(world_, buffer_, ist_host(bytes.data()), bytes.size()) == IST_OK) return;
    std::fprintf(stderr, "a buffer is not filled: %s\n", ist_error_text());
  }
  Data read() const {
    Data bytes(bytes_);
    ist_memory_copy(world_, ist_host(bytes.data()), buffer_, bytes_);
    return bytes;
  }
  // The first bytes are these, and the rest was never touched.
  bool holds(Data wanted) const {
    wanted.resize(bytes_, 0xa5);
    return first_difference(wanted, read()) < 0;
  }

 private:
  ist_world world_;
  std::size_t bytes_;
  ist_buffer buffer_{};
};

// A kernel that runs until it is let go; after eight seconds it ends by itself, and says that it did.
class Gate {
 public:
  void close(void* stream) {
    driver_call<CUresult (*)(CUstream, CUhostFn, void*)>("cuLaunchHostFunc")(static_cast<CUstream>(stream), wait, this);
  }
  void open() { open_ = true; }
  bool opened_itself() const { return opened_itself_; }

 private:
  static void wait(void* self) {
    auto* gate = static_cast<Gate*>(self);
    const auto limit = Clock::now() + std::chrono::seconds(8);
    while (!gate->open_ && Clock::now() < limit) std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (!gate->open_) gate->opened_itself_ = true;
  }
  std::atomic<bool> open_{false};
  std::atomic<bool> opened_itself_{false};
};

// A kernel behind the gate that fills the buffer.
inline void fill_behind(Gate& gate, const Buffer& buffer, std::size_t bytes, unsigned char value) {
  gate.close(buffer.stream());
  const auto fill = driver_call<CUresult (*)(CUdeviceptr, unsigned char, std::size_t, CUstream)>("cuMemsetD8Async");
  fill(buffer.get().object, value, bytes, static_cast<CUstream>(buffer.stream()));
}
// A kernel behind the gate that writes where it must not; nothing of its device works afterwards.
inline void crash_behind(Gate& gate, const Buffer& buffer) {
  gate.close(buffer.stream());
  driver_call<decltype(&::fake_cuda_bad_kernel)>("fake_cuda_bad_kernel")(buffer.stream());
}

inline std::int64_t count(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

// Messages between the devices of two ranks until the victim, which is killed meanwhile, is found dead; `both_ways`: in turn, so that
// whatever carries them is under way on either side, or else from rank 0 alone. As expect_death().
inline int messages_until_death(const char* what, const Here& here, int victim, std::size_t bytes, bool both_ways) {
  static Buffer& buffer = *new Buffer(here, bytes, IST_KIND_CUDA, here.rank);
  const auto go_on = [&] {
    int code = IST_OK;
    for (int n = 1; code == IST_OK; ++n) {
      const bool sends = (here.rank == 0) != (both_ways && n % 2 != 0);
      code = sends ? ist_send(buffer.get(), count(bytes), IST_BYTE, 1 - here.rank, 7, here.comm)
                   : ist_recv(buffer.get(), count(bytes), IST_BYTE, 1 - here.rank, 7, here.comm, IST_STATUS_IGNORE);
    }
    return code;
  };
  if (here.rank == victim) {
    std::thread killer([] { die_soon(); });
    go_on();
    for (;;) ::pause();
  }
  const auto killed = Clock::now() + kBefore + std::chrono::milliseconds(200);
  return expect_death(what, here, victim, killed, go_on);
}

}  // namespace forked_ranks
