// Events and graphs as jacobi captures them, over the fake driver: into several streams, of the library's calls too.
#include <cuda_runtime.h>

#include <map>
#include <utility>
#include <vector>

#include "played_driver.hpp"

namespace {

using played::driver, played::told;

// The fake driver captures one stream at a time, so that a graph is captured in parts: one ends wherever its stream records an event or waits
// for one, and the next one begins. A part begins behind the part before it in its stream, and behind those whose events it waits for.
struct Part {
  CUstream stream;
  std::vector<std::size_t> behind;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUevent over = nullptr;
};
struct Graph {
  std::vector<Part> parts;
};
struct Capture {
  Graph graph;
  std::map<CUstream, std::size_t> current;
  std::map<CUevent, std::size_t> recorded;
};
Capture* capture = nullptr;

CUresult begin(CUstream stream, std::vector<std::size_t> behind) {
  capture->current[stream] = capture->graph.parts.size();
  capture->graph.parts.push_back({stream, std::move(behind)});
  return driver<CUresult(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2")(stream,
                                                                                    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}
CUresult end(std::size_t part) {
  Part& one = capture->graph.parts[part];
  return DRIVER(cuStreamEndCapture)(one.stream, &one.graph);
}

}  // namespace

extern "C" {

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (capture == nullptr || capture->current.count(stream) == 0) return told(DRIVER(cuEventRecord)(event, stream));
  const std::size_t part = capture->current[stream];
  capture->recorded[event] = part;
  const CUresult result = end(part);
  return told(result != CUDA_SUCCESS ? result : begin(stream, {part}));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (capture == nullptr || capture->recorded.count(event) == 0)
    return told(DRIVER(cuStreamWaitEvent)(stream, event, flags));
  const std::size_t other = capture->recorded[event];
  if (capture->current.count(stream) == 0) return told(begin(stream, {other}));
  const std::size_t part = capture->current[stream];
  const CUresult result = end(part);
  return told(result != CUDA_SUCCESS ? result : begin(stream, {part, other}));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  capture = new Capture;
  return told(begin(stream, {}));
}
// What was not joined would be an error of the real one; here it is part of the graph.
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* made) {
  CUresult worst = CUDA_SUCCESS;
  for (const auto& [stream, part] : capture->current)
    if (const CUresult result = end(part); result != CUDA_SUCCESS) worst = result;
  *made = reinterpret_cast<cudaGraph_t>(new Graph(std::move(capture->graph)));
  delete std::exchange(capture, nullptr);
  return told(worst);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t of, unsigned long long flags) {
  auto* const graph = new Graph(*reinterpret_cast<Graph*>(of));
  *made = reinterpret_cast<cudaGraphExec_t>(graph);
  for (Part& part : graph->parts) {
    const CUresult result = driver<CUresult(CUgraphExec*, CUgraph, unsigned long long)>("cuGraphInstantiateWithFlags")(
        &part.executable, part.graph, flags);
    if (result != CUDA_SUCCESS) return told(result);
    if (DRIVER(cuEventCreate)(&part.over, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) std::abort();
  }
  return cudaSuccess;
}
// The first part's stream is the one where it is launched.
cudaError_t cudaGraphLaunch(cudaGraphExec_t of, cudaStream_t stream) {
  const auto& graph = *reinterpret_cast<Graph*>(of);
  if (graph.parts.front().stream != stream) std::abort();
  CUresult result = CUDA_SUCCESS;
  for (const Part& part : graph.parts) {
    for (const std::size_t before : part.behind)
      if (result == CUDA_SUCCESS) result = DRIVER(cuStreamWaitEvent)(part.stream, graph.parts[before].over, 0);
    if (result == CUDA_SUCCESS) result = DRIVER(cuGraphLaunch)(part.executable, part.stream);
    if (result == CUDA_SUCCESS) result = DRIVER(cuEventRecord)(part.over, part.stream);
  }
  for (const Part& part : graph.parts)
    if (result == CUDA_SUCCESS) result = DRIVER(cuStreamWaitEvent)(stream, part.over, 0);
  return told(result);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t of) {
  auto* const graph = reinterpret_cast<Graph*>(of);
  for (const Part& part : graph->parts) {
    DRIVER(cuGraphExecDestroy)(part.executable);
    driver<CUresult(CUevent)>("cuEventDestroy_v2")(part.over);
  }
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t of) {
  auto* const graph = reinterpret_cast<Graph*>(of);
  for (const Part& part : graph->parts) DRIVER(cuGraphDestroy)(part.graph);
  delete graph;
  return cudaSuccess;
}

}  // extern "C"
