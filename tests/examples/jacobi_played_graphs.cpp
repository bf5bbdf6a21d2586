// Events and graphs as jacobi captures them, over the fake driver: into several streams, of the library's calls too.
#include <cuda_runtime.h>

#include <set>
#include <utility>
#include <vector>

#include "played_driver.hpp"

namespace {

using played::driver, played::told;

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
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t of, unsigned long long flags) {
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
