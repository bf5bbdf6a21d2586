// What the other threads of a process do with CUDA while a kernel of its stays: each kind of call with what it needs beforehand and its proof
// afterwards.
//
// Who calls this : heap_view_test.cpp, in ranks that it forked.
// Threads        : a Work is one thread's at a time; different ones may run at once. All of its device.
// Ownership      : a Work keeps its stream and memory until its end, which waits for what runs on the device.
// Errors         : the words of what went wrong; empty: nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace heap_kernels {

class Work {
 public:
  Work(const char* name, bool may_wait) : name_(name), may_wait_(may_wait) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  const char* name() const { return name_; }
  // By what CUDA says of it, or leaves open, it may last until kernels that run have ended.
  bool may_wait() const { return may_wait_; }
  // One after the other, any number of times; make() is what is looked at.
  virtual std::string prepare() { return {}; }
  virtual std::string make() = 0;
  virtual std::string prove() { return {}; }

 private:
  const char* name_;
  bool may_wait_;
};

// Is an error, and spoils the capture, while any stream of the device is captured.
inline constexpr const char* kWaitsForDevice = "cudaDeviceSynchronize";
// One of each kind.
std::vector<std::unique_ptr<Work>> all_work(int device);

}  // namespace heap_kernels
