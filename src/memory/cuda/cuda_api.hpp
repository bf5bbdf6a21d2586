// The CUDA driver as a table of functions, found at run time. The only file that touches the vendor's library.
//
// Who calls this : the other files of this folder; tests hand in a table of their own.
// Threads        : a table is read-only once loaded.
// Ownership      : the driver stays loaded until the process ends.
// Errors         : load_cuda_api says in one line what is missing; cuda_error turns a driver's result into a Status.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "base/hexadecimal.hpp"
#include "base/status.hpp"

// Names with the version of their binary interface: such a symbol never changes its meaning, whatever driver is found.
#define IST_CUDA_CALLS(CALL)              \
  CALL(cuInit)                            \
  CALL(cuDriverGetVersion)                \
  CALL(cuGetErrorName)                    \
  CALL(cuGetErrorString)                  \
  CALL(cuDeviceGetCount)                  \
  CALL(cuDeviceGet)                       \
  CALL(cuDeviceGetName)                   \
  CALL(cuDeviceGetUuid_v2)                \
  CALL(cuDeviceTotalMem_v2)               \
  CALL(cuDevicePrimaryCtxRetain)          \
  CALL(cuDevicePrimaryCtxRelease_v2)      \
  CALL(cuDevicePrimaryCtxGetState)        \
  CALL(cuCtxPushCurrent_v2)               \
  CALL(cuCtxPopCurrent_v2)                \
  CALL(cuCtxGetCurrent)                   \
  CALL(cuCtxGetDevice)                    \
  CALL(cuCtxGetId)                        \
  CALL(cuMemAlloc_v2)                     \
  CALL(cuMemFree_v2)                      \
  CALL(cuMemHostRegister_v2)              \
  CALL(cuMemHostUnregister)               \
  CALL(cuPointerGetAttributes)            \
  CALL(cuMemcpyAsync)                     \
  CALL(cuStreamCreate)                    \
  CALL(cuStreamDestroy_v2)                \
  CALL(cuStreamQuery)                     \
  CALL(cuStreamSynchronize)               \
  CALL(cuStreamWaitEvent)                 \
  CALL(cuStreamIsCapturing)               \
  CALL(cuStreamGetCtx)                    \
  CALL(cuThreadExchangeStreamCaptureMode) \
  CALL(cuEventCreate)                     \
  CALL(cuEventRecord)                     \
  CALL(cuEventQuery)                      \
  CALL(cuEventSynchronize)                \
  CALL(cuEventDestroy_v2)

// Memory of the other classes, what lends memory to other processes, and kernels. Null where a driver lacks one.
#if CUDA_VERSION >= 13000
#define IST_CUDA_CALLS_OF_13(CALL) CALL(cuMemcpyBatchAsync_v2) CALL(cuDeviceGetHostAtomicCapabilities)
#else
#define IST_CUDA_CALLS_OF_13(CALL)
#endif
#define IST_CUDA_OPTIONAL_CALLS(CALL)          \
  IST_CUDA_CALLS_OF_13(CALL)                   \
  CALL(cuDeviceGetAttribute)                   \
  CALL(cuDeviceCanAccessPeer)                  \
  CALL(cuDeviceGetP2PAttribute)                \
  CALL(cuCtxEnablePeerAccess)                  \
  CALL(cuMemHostAlloc)                         \
  CALL(cuMemHostGetDevicePointer_v2)           \
  CALL(cuMemFreeHost)                          \
  CALL(cuMemAllocManaged)                      \
  CALL(cuMemAllocAsync)                        \
  CALL(cuMemAllocFromPoolAsync)                \
  CALL(cuMemFreeAsync)                         \
  CALL(cuMemPoolCreate)                        \
  CALL(cuMemPoolDestroy)                       \
  CALL(cuMemGetAllocationGranularity)          \
  CALL(cuMemAddressReserve)                    \
  CALL(cuMemAddressFree)                       \
  CALL(cuMemCreate)                            \
  CALL(cuMemRelease)                           \
  CALL(cuMemMap)                               \
  CALL(cuMemUnmap)                             \
  CALL(cuMemSetAccess)                         \
  CALL(cuMemExportToShareableHandle)           \
  CALL(cuMemImportFromShareableHandle)         \
  CALL(cuIpcGetMemHandle)                      \
  CALL(cuIpcOpenMemHandle_v2)                  \
  CALL(cuIpcCloseMemHandle)                    \
  CALL(cuModuleLoadData)                       \
  CALL(cuModuleGetFunction)                    \
  CALL(cuModuleUnload)                         \
  CALL(cuFuncGetAttribute)                     \
  CALL(cuLaunchKernel)                         \
  CALL(cuMemsetD8Async)                        \
  CALL(cuMemcpy3DAsync_v2)                     \
  CALL(cuLaunchHostFunc)                       \
  CALL(cuCtxSynchronize)                       \
  CALL(cuStreamWaitValue32_v2)                 \
  CALL(cuStreamWaitValue64_v2)                 \
  CALL(cuGraphInstantiateWithFlags)            \
  CALL(cuGraphLaunch)                          \
  CALL(cuGraphExecDestroy)                     \
  CALL(cuGraphDestroy)                         \
  CALL(cuStreamBeginCapture_v2)                \
  CALL(cuMemRetainAllocationHandle)            \
  CALL(cuMemGetAllocationPropertiesFromHandle) \
  CALL(cuMemPoolExportToShareableHandle)       \
  CALL(cuMemPoolImportFromShareableHandle)     \
  CALL(cuMemPoolExportPointer)                 \
  CALL(cuMemPoolImportPointer)                 \
  CALL(cuMemPoolSetAccess)                     \
  CALL(cuStreamWriteValue32_v2)                \
  CALL(cuStreamWriteValue64_v2)                \
  CALL(cuStreamBatchMemOp_v2)                  \
  CALL(cuPointerSetAttribute)                  \
  CALL(cuModuleGetLoadingMode)                 \
  CALL(cuCtxGetStreamPriorityRange)            \
  CALL(cuStreamCreateWithPriority)             \
  CALL(cuStreamEndCapture)

namespace ist {

struct CudaApi {
#define IST_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  IST_CUDA_CALLS(IST_CUDA_MEMBER)
  IST_CUDA_OPTIONAL_CALLS(IST_CUDA_MEMBER)
#undef IST_CUDA_MEMBER
};

// Opens the driver's library and finds every call; does not initialise it.
Result<CudaApi> load_cuda_api(const std::string& file = "libcuda.so.1");

// "cuMemAlloc of 4096 bytes on cuda device 1: CUDA_ERROR_OUT_OF_MEMORY, out of memory". `what` begins with the call.
Status cuda_error(const CudaApi& api, CUresult result, const std::string& what);

// While a stream is being captured, the driver has a range of errors for what cannot be.
constexpr bool of_a_capture(CUresult result) {
  return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

// Several copies of device memory, in one call in a stream of its context: less time than one call each takes, and than those copies do
// (docs/measured). CUDA_ERROR_NOT_SUPPORTED: there is no such call (before CUDA 13, in the driver or where this was compiled).
struct CudaCopies {
  std::vector<CUdeviceptr> to;
  std::vector<CUdeviceptr> from;
  std::vector<std::size_t> sizes;  // none is 0
};
bool has_joint_copies(const CudaApi& api);
CUresult copy_jointly(const CudaApi& api, CudaCopies& copies, CUstream stream);

// Makes a context current for the calls of one scope, and restores the caller's whatever happens in between. Also keeps the
// calling thread's calls from spoiling a stream capture that the application has under way in this or another thread:
// while one runs in global mode, even an event query of an unrelated stream would invalidate it.
class DriverScope {
 public:
  // With a null context only the capture mode is looked after; event queries need no context.
  DriverScope(const CudaApi& api, CUcontext context);
  DriverScope(const DriverScope&) = delete;
  DriverScope& operator=(const DriverScope&) = delete;
  ~DriverScope();
  const Status& status() const { return status_; }

 protected:
  void enter(CUcontext context);
  void refuse(Status why) { status_ = std::move(why); }

 private:
  const CudaApi& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool pushed_ = false;
  Status status_;
};

}  // namespace ist
