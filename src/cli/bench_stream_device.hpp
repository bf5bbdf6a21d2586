// A device whose stream is measured, and what is put into that stream as a graph.
//
// Who calls this : bench_stream, bench_lanes, bench_stream_calls and bench_kernel_limits, where the CUDA parts are built.
// Threads        : one; a StreamDevice's context is current in it while the object lives.
// Ownership      : a stream of its own goes with the object, a given one stays.
// Errors         : a Failure that names the driver's call.
#pragma once

#include <functional>

#include "cli/failure.hpp"
#include "memory/cuda/cuda_api.hpp"

namespace ist::cli {

// What a body puts into a stream, as a graph. The stream's context must be current, then and when it is launched.
class StreamGraph {
 public:
  static bool possible(const CudaApi& api) {
    return api.cuStreamBeginCapture_v2 && api.cuStreamEndCapture && api.cuGraphInstantiateWithFlags && api.cuGraphLaunch &&
           api.cuGraphExecDestroy && api.cuGraphDestroy;
  }
  // `body` says whether all of it can be captured. If not, or where this driver has no graphs, there is none.
  StreamGraph(const CudaApi& api, CUstream stream, const std::function<bool()>& body) : api_(api), stream_(stream) {
    if (!possible(api_)) return;
    must(api_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    const bool whole = body();
    CUgraph graph = nullptr;
    must(api_.cuStreamEndCapture(stream_, &graph), "cuStreamEndCapture");
    const CUresult made = whole ? api_.cuGraphInstantiateWithFlags(&executable_, graph, 0) : CUDA_SUCCESS;
    api_.cuGraphDestroy(graph);
    must(made, "cuGraphInstantiate");
  }
  StreamGraph(const StreamGraph&) = delete;
  StreamGraph& operator=(const StreamGraph&) = delete;
  ~StreamGraph() {
    if (executable_ != nullptr) api_.cuGraphExecDestroy(executable_);
  }
  bool there() const { return executable_ != nullptr; }
  void launch() const { must(api_.cuGraphLaunch(executable_, stream_), "cuGraphLaunch"); }

 private:
  void must(CUresult result, const char* what) const {
    if (result != CUDA_SUCCESS) throw Failure(cuda_error(api_, result, what));
  }
  const CudaApi& api_;
  CUstream stream_;
  CUgraphExec executable_ = nullptr;
};

// This rank's device, its context current, with a stream that was given or of its own.
class StreamDevice {
 public:
  explicit StreamDevice(int number, CUstream given = nullptr) : stream(given), given_(given != nullptr) {
    auto loaded = load_cuda_api();
    if (!loaded.ok()) throw Failure(loaded.status());
    api = *loaded;
    must(api.cuInit(0), "cuInit");
    must(api.cuDeviceGet(&device_, number), "cuDeviceGet");
    must(api.cuDeviceGetUuid_v2(&uuid, device_), "cuDeviceGetUuid");
    must(api.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    must(api.cuCtxPushCurrent_v2(context_), "cuCtxPushCurrent");
    if (!given_) must(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (!StreamGraph::possible(api)) throw Failure(1, "this CUDA driver has no graphs; install a newer one");
  }
  StreamDevice(const StreamDevice&) = delete;
  StreamDevice& operator=(const StreamDevice&) = delete;
  ~StreamDevice() {
    if (!given_) api.cuStreamDestroy_v2(stream);
    CUcontext popped = nullptr;
    api.cuCtxPopCurrent_v2(&popped);
    api.cuDevicePrimaryCtxRelease_v2(device_);
  }
  void must(CUresult result, const char* what) const {
    if (result != CUDA_SUCCESS) throw Failure(cuda_error(api, result, what));
  }
  void wait() const { must(api.cuStreamSynchronize(stream), "cuStreamSynchronize"); }
  StreamGraph graph_of(const std::function<void()>& body) const {
    return {api, stream, [&body] {
              body();
              return true;
            }};
  }

  CudaApi api{};
  CUuuid uuid{};
  CUstream stream;

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  const bool given_;
};

}  // namespace ist::cli
