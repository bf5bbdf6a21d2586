// Device memory of every class as a program gets it from the driver, on this rank's device.
//
// Who calls this : tests of what is between devices, such as bouncing_test.cpp and workers_test.cpp.
// Threads        : one.
// Ownership      : a Memory frees what it is; a shared pool is made once and stays.
// Errors         : fail the test.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <memory>
#include <string>
#include <vector>

#include "rank_test.hpp"

namespace rank_test {

template <class Function>
Function* driver_call(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}
#define DRIVER(name) driver_call<decltype(::name)>(#name)

inline void driver_ok(CUresult result) { ASSERT_EQ(CUDA_SUCCESS, result); }

// The primary context of a device, current for a scope.
class InContext {
 public:
  explicit InContext(int device) {
    CUcontext context = nullptr;
    driver_ok(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
    driver_ok(driver_call<CUresult(CUcontext)>("cuCtxPushCurrent_v2")(context));
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  ~InContext() {
    CUcontext popped = nullptr;
    driver_ok(driver_call<CUresult(CUcontext*)>("cuCtxPopCurrent_v2")(&popped));
  }
};

// cuda: as cudaMalloc gives it; managed; pool: the default one; vmm: mapped, and not to be exported. To be exported: shared_vmm, mapped from one handle;
// side_by_side, from handles of one granule each, in one range; shared_pool, one for all; own_pool, one for each.
class Memory {
 public:
  Memory(const std::string& word, std::size_t bytes) : word_(word), bytes_(bytes) {
    int devices = 0;
    ist_kind_devices(world(), IST_KIND_CUDA, &devices);
    device_ = rank() % devices;
    const InContext scope(device_);
    if (word == "cuda") driver_ok(driver_call<CUresult(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2")(&address_, bytes));
    if (word == "managed") driver_ok(DRIVER(cuMemAllocManaged)(&address_, bytes, CU_MEM_ATTACH_GLOBAL));
    if (word == "pool") driver_ok(DRIVER(cuMemAllocAsync)(&address_, bytes, nullptr));
    if (word == "shared_pool" || word == "own_pool") {
      static CUmemoryPool shared = make_pool(device_);
      pool_ = word == "own_pool" ? make_pool(device_) : shared;
      driver_ok(DRIVER(cuMemAllocFromPoolAsync)(&address_, bytes, pool_, nullptr));
    }
    if (mapped_by_program()) {
      reserve();
      map();
    }
    driver_ok(DRIVER(cuStreamSynchronize)(nullptr));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    const InContext scope(device_);
    if (word_ == "managed" || word_ == "cuda") driver_ok(driver_call<CUresult(CUdeviceptr)>("cuMemFree_v2")(address_));
    if (word_.ends_with("pool")) driver_ok(DRIVER(cuMemFreeAsync)(address_, nullptr));
    if (mapped_by_program()) {
      unmap();
      driver_ok(DRIVER(cuMemAddressFree)(address_, reserved_));
    }
    driver_ok(DRIVER(cuStreamSynchronize)(nullptr));
    if (word_ == "own_pool") driver_ok(DRIVER(cuMemPoolDestroy)(pool_));
  }
  // Other memory at the same addresses, of those that the program maps.
  void map_again() {
    const InContext scope(device_);
    unmap();
    map();
  }
  // Of what lies side by side.
  std::size_t granule() const { return granule_; }
  ist_buffer get(std::size_t offset = 0) const { return ist_cuda(reinterpret_cast<void*>(address_ + offset), nullptr); }
  void fill(const std::vector<unsigned char>& bytes, std::size_t offset = 0) const {
    EXPECT_EQ(IST_OK, ist_memory_copy(world(), get(offset), ist_host(bytes.data()), bytes.size())) << ist_error_text();
  }
  // In the device's legacy stream, behind what that holds; returns at once.
  void set_later(unsigned char value, std::size_t bytes) const {
    const InContext scope(device_);
    driver_ok(DRIVER(cuMemsetD8Async)(address_, value, bytes, nullptr));
  }
  std::vector<unsigned char> read(std::size_t bytes, std::size_t offset = 0) const {
    std::vector<unsigned char> found(bytes);
    EXPECT_EQ(IST_OK, ist_memory_copy(world(), ist_host(found.data()), get(offset), bytes)) << ist_error_text();
    return found;
  }

 private:
  static CUmemoryPool make_pool(int device) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    CUmemoryPool made = nullptr;
    driver_ok(DRIVER(cuMemPoolCreate)(&made, &properties));
    return made;
  }
  bool mapped_by_program() const { return word_.ends_with("vmm") || word_ == "side_by_side"; }
  CUmemAllocationProp properties() const {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.requestedHandleTypes = word_ == "vmm" ? CU_MEM_HANDLE_TYPE_NONE : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = device_;
    return wanted;
  }
  void reserve() {
    const CUmemAllocationProp wanted = properties();
    driver_ok(DRIVER(cuMemGetAllocationGranularity)(&granule_, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    reserved_ = (bytes_ + granule_ - 1) / granule_ * granule_;
    driver_ok(DRIVER(cuMemAddressReserve)(&address_, reserved_, 0, 0, 0));
  }
  std::size_t each() const { return word_ == "side_by_side" ? granule_ : reserved_; }
  void map() {
    const CUmemAllocationProp wanted = properties();
    CUmemAccessDesc access{};
    access.location = wanted.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (std::size_t at = 0; at < reserved_; at += each()) {
      CUmemGenericAllocationHandle handle = 0;
      driver_ok(DRIVER(cuMemCreate)(&handle, each(), &wanted, 0));
      driver_ok(DRIVER(cuMemMap)(address_ + at, each(), 0, handle, 0));
      driver_ok(DRIVER(cuMemRelease)(handle));  // the mapping holds it
    }
    driver_ok(DRIVER(cuMemSetAccess)(address_, reserved_, &access, 1));
  }
  void unmap() {
    for (std::size_t at = 0; at < reserved_; at += each()) driver_ok(DRIVER(cuMemUnmap)(address_ + at, each()));
  }

  const std::string word_;
  const std::size_t bytes_;
  int device_ = 0;
  CUdeviceptr address_ = 0;
  CUmemoryPool pool_ = nullptr;
  std::size_t reserved_ = 0;
  std::size_t granule_ = 0;
};

}  // namespace rank_test
