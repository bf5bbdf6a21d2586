// What tests of messages in streams share: a stream of the program's own on this rank's device, graphs of it, and checked messages.
//
// Who calls this : streams_test.cpp, streams_graph_test.cpp, streams_layouts_test.cpp.
// Threads        : one.
// Ownership      : a Stream destroys its stream.
// Errors         : a driver's call that fails is a test that fails.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <isthmus/collective.h>
#include <isthmus/stream.h>

#include <algorithm>
#include <cstdlib>

#include "rank_test.hpp"

namespace rank_test {

constexpr int kTag = 5;
constexpr std::size_t kSmall = 8192;        // the longest message of packets
constexpr std::size_t kInFlight = 8 << 20;  // so much of a message fits a channel

template <class Function>
Function* driver_call(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}
#define DRIVER(name) ::rank_test::driver_call<decltype(::name)>(#name)

inline void ok(CUresult result) { EXPECT_EQ(CUDA_SUCCESS, result); }

inline int devices() {
  int count = 0;
  return ist_kind_devices(world(), IST_KIND_CUDA, &count) == IST_OK ? count : 0;
}
#define NEEDS_DEVICES()                                       \
  if (::rank_test::size() < 2 || ::rank_test::devices() == 0) \
  GTEST_SKIP() << "not covered here: messages in streams, which take two ranks and a CUDA device"

class Stream {
 public:
  Stream() : device_(rank() % devices()) {
    ok(DRIVER(cuDevicePrimaryCtxRetain)(&context_, device_));
    ok(DRIVER(cuCtxPushCurrent_v2)(context_));
    ok(DRIVER(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
    pop();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    wait();
    ok(DRIVER(cuStreamDestroy_v2)(stream_));
    ok(DRIVER(cuDevicePrimaryCtxRelease_v2)(device_));
  }
  void* get() const { return stream_; }
  CUstream driver() const { return stream_; }
  // With its context current.
  template <class Body>
  void within(const Body& body) const {
    ok(DRIVER(cuCtxPushCurrent_v2)(context_));
    body();
    pop();
  }
  void wait() const {
    within([&] { ok(DRIVER(cuStreamSynchronize)(stream_)); });
  }

 private:
  static void pop() {
    CUcontext popped = nullptr;
    ok(DRIVER(cuCtxPopCurrent_v2)(&popped));
  }
  int device_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
};

// What is put into the stream while this is open, to be run as often as wanted.
class Graph {
 public:
  template <class Body>
  Graph(const Stream& stream, const Body& body) : stream_(stream) {
    stream.within([&] {
      CUgraph graph = nullptr;
      ok(DRIVER(cuStreamBeginCapture_v2)(stream.driver(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
      body();
      ok(DRIVER(cuStreamEndCapture)(stream.driver(), &graph));
      ok(DRIVER(cuGraphInstantiateWithFlags)(&executable_, graph, 0));
      ok(DRIVER(cuGraphDestroy)(graph));
    });
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { ok(DRIVER(cuGraphExecDestroy)(executable_)); }
  void launch() const {
    stream_.within([&] { ok(DRIVER(cuGraphLaunch)(executable_, stream_.driver())); });
  }

 private:
  const Stream& stream_;
  CUgraphExec executable_ = nullptr;
};

inline std::int64_t count(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

inline void send_on(const Stream& stream, const ist_buffer& buffer, std::size_t bytes, int to, int tag = kTag) {
  EXPECT_EQ(IST_OK, ist_send_on(stream.get(), buffer, count(bytes), IST_BYTE, to, tag, comm())) << ist_error_text();
}
inline void receive_on(const Stream& stream, const ist_buffer& buffer, std::size_t bytes, int from, int tag = kTag) {
  EXPECT_EQ(IST_OK, ist_recv_on(stream.get(), buffer, count(bytes), IST_BYTE, from, tag, comm())) << ist_error_text();
}
inline void together() { EXPECT_EQ(IST_OK, ist_barrier(comm())) << ist_error_text(); }

// The call failed so, and its text has these words.
inline void fails(int wanted, int found, const std::vector<std::string>& words) {
  EXPECT_EQ(wanted, found) << ist_code_name(found);
  const std::string text = ist_error_text();
  for (const std::string& word : words) EXPECT_NE(std::string::npos, text.find(word)) << '"' << word << "\" in: " << text;
}

}  // namespace rank_test
