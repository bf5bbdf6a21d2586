// The part of the CUDA runtime that jacobi calls, over the fake driver.
#include <cuda_runtime.h>

#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "played_driver.hpp"

namespace {

using played::driver;
using played::number_of;

cudaError_t told(CUresult result) { return static_cast<cudaError_t>(result); }

// What is captured: the stream where it began, and those that wait for events of captured streams, each by itself, since the fake driver
// captures one stream at a time.
struct Capture {
  std::vector<CUstream> streams;
  std::set<CUevent> events;
  bool has(CUstream stream) const {
    for (CUstream one : streams)
      if (one == stream) return true;
    return false;
  }
};
Capture* capture = nullptr;

CUresult begin(CUstream stream) {
  capture->streams.push_back(stream);
  return driver<CUresult(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2")(stream,
                                                                                    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

// The first stream's part, and the others', which begin with it and end ahead of what comes behind it.
struct Graph {
  std::vector<CUstream> streams;
  std::vector<CUgraph> graphs;
  std::vector<CUgraphExec> executables;
  std::vector<CUevent> events;
};

}  // namespace

extern "C" {

const char* cudaGetErrorString(cudaError_t) { return "an error of the fake driver"; }
cudaError_t cudaGetDeviceCount(int* count) {
  const CUresult result = DRIVER(cuInit)(0);
  return told(result != CUDA_SUCCESS ? result : DRIVER(cuDeviceGetCount)(count));
}
cudaError_t cudaGetDevice(int* device) { return told(DRIVER(cuCtxGetDevice)(device)); }
cudaError_t cudaSetDevice(int device) {
  CUcontext context = nullptr;
  const CUresult result = DRIVER(cuDevicePrimaryCtxRetain)(&context, device);
  return told(result != CUDA_SUCCESS ? result : DRIVER(cuCtxSetCurrent)(context));
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 4;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::strcpy(properties->name, "played");
  return told(driver<CUresult(CUuuid*, CUdevice)>("cuDeviceGetUuid_v2")(&properties->uuid, device));
}
cudaError_t cudaDeviceSynchronize() { return told(DRIVER(cuCtxSynchronize)()); }
cudaError_t cudaMalloc(void** address, size_t bytes) {
  return told(driver<CUresult(CUdeviceptr*, size_t)>("cuMemAlloc_v2")(reinterpret_cast<CUdeviceptr*>(address), bytes));
}
cudaError_t cudaFree(void* address) { return told(driver<CUresult(CUdeviceptr)>("cuMemFree_v2")(number_of(address))); }
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags) {
  return told(DRIVER(cuMemHostAlloc)(address, bytes, flags));
}
cudaError_t cudaFreeHost(void* address) { return told(DRIVER(cuMemFreeHost)(address)); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return told(driver<CUresult(CUdeviceptr, CUdeviceptr, size_t, CUstream)>("cuMemcpyAsync")(number_of(to), number_of(from),
                                                                                            bytes, stream));
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t result = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  return result != cudaSuccess ? result : cudaStreamSynchronize(nullptr);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  for (size_t y = 0; y < height; ++y) {
    const cudaError_t result = cudaMemcpy(static_cast<unsigned char*>(to) + y * to_pitch,
                                          static_cast<const unsigned char*>(from) + y * from_pitch, width, kind);
    if (result != cudaSuccess) return result;
  }
  return cudaSuccess;
}
cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  const CUresult result = driver<CUresult(CUdeviceptr, unsigned char, size_t, CUstream)>("cuMemsetD8Async")(
      number_of(address), static_cast<unsigned char>(value), bytes, nullptr);
  return result != CUDA_SUCCESS ? told(result) : cudaStreamSynchronize(nullptr);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return told(DRIVER(cuStreamCreate)(stream, flags));
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return told(driver<CUresult(CUstream)>("cuStreamDestroy_v2")(stream)); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return told(DRIVER(cuStreamSynchronize)(stream)); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return told(DRIVER(cuStreamQuery)(stream)); }
cudaError_t cudaEventCreate(cudaEvent_t* event) { return told(DRIVER(cuEventCreate)(event, 0)); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return told(DRIVER(cuEventCreate)(event, flags));
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return told(driver<CUresult(CUevent)>("cuEventDestroy_v2")(event)); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return told(DRIVER(cuEventSynchronize)(event)); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (capture == nullptr || !capture->has(stream)) return told(DRIVER(cuEventRecord)(event, stream));
  capture->events.insert(event);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (capture == nullptr || capture->events.count(event) == 0) return told(DRIVER(cuStreamWaitEvent)(stream, event, flags));
  return capture->has(stream) ? cudaSuccess : told(begin(stream));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  capture = new Capture;
  return told(begin(stream));
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* made) {
  auto* const graph = new Graph{std::move(capture->streams), {}, {}, {}};
  delete std::exchange(capture, nullptr);
  *made = reinterpret_cast<cudaGraph_t>(graph);
  CUresult worst = CUDA_SUCCESS;
  for (CUstream stream : graph->streams) {
    const CUresult result = DRIVER(cuStreamEndCapture)(stream, &graph->graphs.emplace_back());
    if (result != CUDA_SUCCESS) worst = result;
  }
  return told(worst);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t of, unsigned long long flags) {
  auto* const graph = new Graph(*reinterpret_cast<Graph*>(of));
  *made = reinterpret_cast<cudaGraphExec_t>(graph);
  for (CUgraph part : graph->graphs) {
    const CUresult result = driver<CUresult(CUgraphExec*, CUgraph, unsigned long long)>("cuGraphInstantiateWithFlags")(
        &graph->executables.emplace_back(), part, flags);
    if (result != CUDA_SUCCESS) return told(result);
    if (DRIVER(cuEventCreate)(&graph->events.emplace_back(), CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) std::abort();
  }
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t of, cudaStream_t) {
  const auto& graph = *reinterpret_cast<Graph*>(of);
  CUresult result = DRIVER(cuEventRecord)(graph.events[0], graph.streams[0]);
  for (std::size_t part = 0; part < graph.streams.size() && result == CUDA_SUCCESS; ++part) {
    if (part != 0) result = DRIVER(cuStreamWaitEvent)(graph.streams[part], graph.events[0], 0);
    if (result == CUDA_SUCCESS) result = DRIVER(cuGraphLaunch)(graph.executables[part], graph.streams[part]);
    if (part != 0 && result == CUDA_SUCCESS) result = DRIVER(cuEventRecord)(graph.events[part], graph.streams[part]);
  }
  for (std::size_t part = 1; part < graph.streams.size() && result == CUDA_SUCCESS; ++part)
    result = DRIVER(cuStreamWaitEvent)(graph.streams[0], graph.events[part], 0);
  return told(result);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t of) {
  auto* const graph = reinterpret_cast<Graph*>(of);
  for (CUgraphExec part : graph->executables) DRIVER(cuGraphExecDestroy)(part);
  for (CUevent event : graph->events) driver<CUresult(CUevent)>("cuEventDestroy_v2")(event);
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t of) {
  auto* const graph = reinterpret_cast<Graph*>(of);
  for (CUgraph part : graph->graphs) DRIVER(cuGraphDestroy)(part);
  delete graph;
  return cudaSuccess;
}

}  // extern "C"
