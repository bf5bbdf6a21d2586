#include "memory/cuda/cuda_api.hpp"

#include "base/dynamic_library.hpp"

namespace ist {

Result<CudaApi> load_cuda_api(const std::string& file) {
  Result<DynamicLibrary> library = DynamicLibrary::open(file);
  if (!library.ok()) return Status{IST_ERR_KIND, library.status().text() + "; install the NVIDIA driver"};
  CudaApi api;
  std::string absent;
#define IST_CUDA_FIND(name) api.name = reinterpret_cast<decltype(api.name)>(library->find(#name));
#define IST_CUDA_NEED(name) \
  IST_CUDA_FIND(name)       \
  if (api.name == nullptr && absent.empty()) absent = #name;
  IST_CUDA_CALLS(IST_CUDA_NEED)
  IST_CUDA_OPTIONAL_CALLS(IST_CUDA_FIND)
#undef IST_CUDA_NEED
#undef IST_CUDA_FIND
  if (!absent.empty()) {
    return Status{IST_ERR_KIND, file + " has no " + absent + "; install an NVIDIA driver for CUDA 12 or newer"};
  }
  return api;
}

Status cuda_error(const CudaApi& api, CUresult result, const std::string& what) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.cuGetErrorName(result, &name);
  api.cuGetErrorString(result, &text);
  std::string message = what + ": " + (name ? name : "unknown CUDA error " + std::to_string(static_cast<int>(result)));
  if (text != nullptr) message += std::string(", ") + text;
  return Status{result == CUDA_ERROR_OUT_OF_MEMORY ? IST_ERR_MEMORY : IST_ERR_DEVICE, std::move(message)};
}

#if CUDA_VERSION >= 13000
bool has_joint_copies(const CudaApi& api) { return api.cuMemcpyBatchAsync_v2 != nullptr; }

CUresult copy_jointly(const CudaApi& api, CudaCopies& copies, CUstream stream) {
  if (!has_joint_copies(api)) return CUDA_ERROR_NOT_SUPPORTED;
  CUmemcpyAttributes as_one{};
  as_one.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  std::size_t first = 0;
  return api.cuMemcpyBatchAsync_v2(copies.to.data(), copies.from.data(), copies.sizes.data(), copies.sizes.size(), &as_one,
                                   &first, 1, stream);
}
#else
bool has_joint_copies(const CudaApi&) { return false; }
CUresult copy_jointly(const CudaApi&, CudaCopies&, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
#endif

DriverScope::DriverScope(const CudaApi& api, CUcontext context) : api_(api) {
  api_.cuThreadExchangeStreamCaptureMode(&mode_);
  if (context != nullptr) enter(context);
}

void DriverScope::enter(CUcontext context) {
  const CUresult result = api_.cuCtxPushCurrent_v2(context);
  pushed_ = result == CUDA_SUCCESS;
  if (!pushed_) status_ = cuda_error(api_, result, "cuCtxPushCurrent");
}

DriverScope::~DriverScope() {
  CUcontext popped = nullptr;
  if (pushed_) api_.cuCtxPopCurrent_v2(&popped);
  api_.cuThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace ist
