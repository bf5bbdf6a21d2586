// A device whose stream is measured, and what is put into that stream as a graph.
//
// Who calls this : bench_stream and bench_lanes, where the CUDA parts are built.
// Threads        : one; the device's context is current in it while the object lives.
// Ownership      : a stream of its own goes with the object, a given one stays.
// Errors         : a Failure that names the driver's call.
#pragma once

#include <functional>

#include "cli/failure.hpp"
#include "memory/cuda/cuda_api.hpp"

namespace ist::cli {

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
    if (!api.cuGraphInstantiateWithFlags || !api.cuGraphLaunch || !api.cuGraphExecDestroy || !api.cuGraphDestroy)
      throw Failure(1, "this CUDA driver has no graphs; install a newer one");
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

  CudaApi api{};
  CUuuid uuid{};
  CUstream stream;

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  const bool given_;
};

// What a body puts into the stream, as a graph.
class StreamGraph {
 public:
  StreamGraph(const StreamDevice& device, const std::function<void()>& body) : device_(device) {
    device.must(device.api.cuStreamBeginCapture_v2(device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                "cuStreamBeginCapture");
    body();
    CUgraph graph = nullptr;
    device.must(device.api.cuStreamEndCapture(device.stream, &graph), "cuStreamEndCapture");
    device.must(device.api.cuGraphInstantiateWithFlags(&executable_, graph, 0), "cuGraphInstantiate");
    device.api.cuGraphDestroy(graph);
  }
  StreamGraph(const StreamGraph&) = delete;
  StreamGraph& operator=(const StreamGraph&) = delete;
  ~StreamGraph() { device_.api.cuGraphExecDestroy(executable_); }
  void launch() const { device_.must(device_.api.cuGraphLaunch(executable_, device_.stream), "cuGraphLaunch"); }

 private:
  const StreamDevice& device_;
  CUgraphExec executable_ = nullptr;
};

}  // namespace ist::cli
