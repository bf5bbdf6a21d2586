// Stream capture, as far as others must keep out of its way: what is captured is dropped.
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
  return valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
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
