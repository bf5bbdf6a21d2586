// The part of the CUDA runtime that the played programs call, over the fake driver, but for events and what is captured, which each has its own way of.
#include <cuda_runtime.h>

#include <cstring>

#include "played_driver.hpp"

using played::driver, played::number_of, played::told;

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
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return told(driver<decltype(cuMemGetInfo)>("cuMemGetInfo_v2")(free, total));
}
cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  return told(driver<CUresult(CUdeviceptr, unsigned char, size_t, CUstream)>("cuMemsetD8Async")(
      number_of(address), static_cast<unsigned char>(value), bytes, stream));
}
cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  const cudaError_t result = cudaMemsetAsync(address, value, bytes, nullptr);
  return result != cudaSuccess ? result : cudaStreamSynchronize(nullptr);
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
}  // extern "C"
