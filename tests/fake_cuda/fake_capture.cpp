// Stream capture of one stream at a time, and graphs of what was captured.
#include <algorithm>

#include "fake_world.hpp"

using fake::Lock;
using fake::world;

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  FAKE_ENTER(cuThreadExchangeStreamCaptureMode);
  std::swap(*mode, fake::thread_capture_mode());
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  FAKE_ENTER(cuStreamBeginCapture_v2);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  if (stream->legacy || stream->capture != CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  stream->capture_mode = mode;
  stream->capture_owner = std::this_thread::get_id();
  stream->captured.clear();
  world().captures.push_back(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  FAKE_ENTER(cuStreamEndCapture);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  if (stream->capture == CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_INVALID_VALUE;
  const bool valid = stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
  std::erase(world().captures, stream);
  *graph = nullptr;
  if (!valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  world().graphs.push_back(std::make_unique<CUgraph_st>());
  *graph = world().graphs.back().get();
  (*graph)->work = std::move(stream->captured);
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  FAKE_ENTER_UNSAFE(cuGraphInstantiateWithFlags);
  const Lock lock(world().lock);
  if (const CUresult result = fake::usable(fake::current()); result != CUDA_SUCCESS) return result;
  world().executables.push_back(std::make_unique<CUgraphExec_st>());
  *executable = world().executables.back().get();
  (*executable)->work = graph->work;
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream handle) {
  FAKE_ENTER(cuGraphLaunch);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  for (const auto& work : executable->work) fake::enqueue(stream, work);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  FAKE_ENTER(cuGraphExecDestroy);
  const Lock lock(world().lock);
  executable->work.clear();
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  FAKE_ENTER(cuGraphDestroy);
  const Lock lock(world().lock);
  graph->work.clear();
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  FAKE_ENTER(cuStreamIsCapturing);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  if (stream->legacy) {
    for (CUstream other : world().captures) {
      if (other->blocking && other->context == stream->context) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  *status = stream->capture;
  return CUDA_SUCCESS;
}
