// CUDA memory, streams, events and graphs of example programs, which go with their scope.
//
// Who calls this : the CUDA forms of jacobi, pixels, particles, himeno and lbm.
// Threads        : one; the device that was current when they were made.
// Ownership      : Stream, Event and Graph own what they made; none copies, and a Graph moves.
// Errors         : std::runtime_error with the call and the driver's words.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace example::cuda {

inline void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + call + " failed: " + cudaGetErrorString(code));
}

// `count` elements of the current device, of any value.
template <class T>
std::shared_ptr<T[]> memory(std::size_t count) {
  void* made = nullptr;
  check(cudaMalloc(&made, count * sizeof(T)), "cudaMalloc");
  return {static_cast<T*>(made), [](T* address) { cudaFree(address); }};
}

// Page-locked, and the device's kernels see it at the same address.
template <class T>
std::shared_ptr<T[]> pinned(std::size_t count) {
  void* made = nullptr;
  check(cudaHostAlloc(&made, count * sizeof(T), cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
  return {static_cast<T*>(made), [](T* address) { cudaFreeHost(address); }};
}

class Stream {
 public:
  // One that is not urgent makes way for those that are.
  explicit Stream(bool urgent = true) {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? greatest : least),
          "cudaStreamCreateWithPriority");
  }
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }
  // What `second` does from here on begins behind what `first` was given so far.
  void order(const Stream& first, const Stream& second) const {
    check(cudaEventRecord(event_, first.get()), "cudaEventRecord");
    check(cudaStreamWaitEvent(second.get(), event_, 0), "cudaStreamWaitEvent");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// What was captured, as often as it is launched.
class Graph {
 public:
  Graph() = default;
  // Takes what was captured, also where this throws.
  explicit Graph(cudaGraph_t captured) {
    const cudaError_t code = cudaGraphInstantiateWithFlags(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    check(code, "cudaGraphInstantiateWithFlags");
  }
  Graph(Graph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }
  ~Graph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  // Whether there is anything to launch.
  explicit operator bool() const { return graph_ != nullptr; }
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(graph_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

// What `body` puts into the stream, and into others that begin behind it and that it waits for in the end. Where `body` throws, the stream
// is captured no longer, and can be used as before.
template <class Body>
Graph captured(cudaStream_t stream, const Body& body) {
  cudaGraph_t made = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    body();
  } catch (...) {
    cudaStreamEndCapture(stream, &made);
    if (made != nullptr) cudaGraphDestroy(made);
    throw;
  }
  check(cudaStreamEndCapture(stream, &made), "cudaStreamEndCapture");
  return Graph(made);
}

}  // namespace example::cuda
