#include "cli/bench_memory.hpp"

#include "cli/failure.hpp"

#ifdef ISTHMUS_CUDA_COMPILED

#include <string>

#include "memory/cuda/cuda_api.hpp"

namespace ist::cli {
namespace {

class CudaMemory final : public ClassedMemory {
 public:
  CudaMemory(const CudaApi& api, const Place& place, std::size_t bytes) : api_(api), bytes_(bytes), text_(place.text()) {
    must(api_.cuDeviceGet(&device_, place.device), "cuDeviceGet");
    must(api_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    const Current current(*this);
    must(api_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    try {
      if (place.word == "managed") {
        needs(api_.cuMemAllocManaged != nullptr, "cuMemAllocManaged");
        must(api_.cuMemAllocManaged(&address_, bytes, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
      } else if (place.word == "vmm") {
        map();
      } else {
        take_from_pool(place.word == "shared-pool");
      }
    } catch (...) {
      if (address_ != 0) give_back();
      release();
      throw;
    }
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  ~CudaMemory() override {
    {
      const Current current(*this);
      if (address_ != 0) give_back();
      release();
    }
    api_.cuDevicePrimaryCtxRelease_v2(device_);
  }
  ist_buffer buffer() const override {
    return ist_cuda(reinterpret_cast<const void*>(address_), stream_);  // NOLINT(performance-no-int-to-ptr)
  }

 private:
  struct Current {
    explicit Current(const CudaMemory& memory) : api(memory.api_) { api.cuCtxPushCurrent_v2(memory.context_); }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      CUcontext before = nullptr;
      api.cuCtxPopCurrent_v2(&before);
    }
    const CudaApi& api;
  };
  void must(CUresult result, const char* call) const {
    if (result != CUDA_SUCCESS)
      throw Failure(cuda_error(api_, result, std::string{call} + " for " + std::to_string(bytes_) + " bytes of " + text_));
  }
  void needs(bool there, const char* call) const {
    if (!there) throw Failure(2, text_ + " cannot be had: this driver has no " + call);
  }
  CUmemAllocationProp sharable() const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device_;
    return properties;
  }
  void map() {
    needs(api_.cuMemCreate && api_.cuMemAddressReserve && api_.cuMemMap && api_.cuMemSetAccess, "cuMemCreate");
    const CUmemAllocationProp properties = sharable();
    std::size_t granularity = 0;
    must(api_.cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
         "cuMemGetAllocationGranularity");
    mapped_ = (bytes_ + granularity - 1) / granularity * granularity;
    CUmemGenericAllocationHandle handle = 0;
    must(api_.cuMemCreate(&handle, mapped_, &properties, 0), "cuMemCreate");
    CUresult result = api_.cuMemAddressReserve(&address_, mapped_, 0, 0, 0);
    if (result == CUDA_SUCCESS) {
      result = api_.cuMemMap(address_, mapped_, 0, handle, 0);
      if (result != CUDA_SUCCESS) {
        api_.cuMemAddressFree(address_, mapped_);
        address_ = 0;
      }
    }
    api_.cuMemRelease(handle);  // the mapping keeps it
    must(result, "cuMemMap");
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    must(api_.cuMemSetAccess(address_, mapped_, &access, 1), "cuMemSetAccess");
  }
  void take_from_pool(bool shared) {
    needs(api_.cuMemAllocAsync && api_.cuMemAllocFromPoolAsync && api_.cuMemPoolCreate && api_.cuMemPoolDestroy,
          "cuMemAllocAsync");
    if (shared) {
      CUmemPoolProps properties{};
      properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
      properties.location = sharable().location;
      must(api_.cuMemPoolCreate(&pool_, &properties), "cuMemPoolCreate");
      must(api_.cuMemAllocFromPoolAsync(&address_, bytes_, pool_, stream_), "cuMemAllocFromPoolAsync");
    } else {
      must(api_.cuMemAllocAsync(&address_, bytes_, stream_), "cuMemAllocAsync");
    }
    must(api_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }
  void give_back() {
    if (mapped_ != 0) {
      api_.cuMemUnmap(address_, mapped_);
      api_.cuMemAddressFree(address_, mapped_);
    } else if (pool_ != nullptr || text_.starts_with("pool")) {
      api_.cuMemFreeAsync(address_, stream_);
      api_.cuStreamSynchronize(stream_);
    } else {
      api_.cuMemFree_v2(address_);
    }
  }
  void release() {
    if (pool_ != nullptr) api_.cuMemPoolDestroy(pool_);
    api_.cuStreamDestroy_v2(stream_);
  }

  const CudaApi api_;
  const std::size_t bytes_;
  const std::string text_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUmemoryPool pool_ = nullptr;
  CUdeviceptr address_ = 0;
  std::size_t mapped_ = 0;  // of vmm
};

}  // namespace

std::unique_ptr<ClassedMemory> ClassedMemory::take(const Place& place, std::size_t bytes) {
  const auto api = load_cuda_api();
  if (!api.ok()) throw Failure(api.status());
  return std::make_unique<CudaMemory>(*api, place, bytes);
}

}  // namespace ist::cli

#else

namespace ist::cli {

std::unique_ptr<ClassedMemory> ClassedMemory::take(const Place& place, std::size_t /*bytes*/) {
  throw Failure(2, place.text() + " cannot be had: this isthmus was built without CUDA");
}

}  // namespace ist::cli

#endif
