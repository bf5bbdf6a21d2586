// Virtual memory management: addresses, memory and mappings apart.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "fake_world.hpp"

using fake::Allocation;
using fake::kBlock;
using fake::Lock;
using fake::world;

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  FAKE_ENTER(cuMemGetAllocationGranularity);
  *granularity = kBlock;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t, CUdeviceptr, unsigned long long) {
  FAKE_ENTER(cuMemAddressReserve);
  const Lock lock(world().lock);
  if (size == 0 || size % kBlock != 0) return CUDA_ERROR_INVALID_VALUE;
  *address = fake::reserve(size);
  return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  FAKE_ENTER(cuMemAddressFree);
  auto& w = world();
  const Lock lock(w.lock);
  const auto found = w.reservations.find(address);
  if (found == w.reservations.end() || found->second != size) return CUDA_ERROR_INVALID_VALUE;
  w.reservations.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                     unsigned long long) {
  FAKE_ENTER_UNSAFE(cuMemCreate);
  auto& w = world();
  const Lock lock(w.lock);
  if (size == 0 || size % kBlock != 0) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.id < 0 || properties->location.id >= w.devices) return CUDA_ERROR_INVALID_DEVICE;
  if (size > w.memory - w.used[properties->location.id]) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = w.next_id++;
  const int physical = fake::physical(properties->location.id);
  const bool exportable = (properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  w.handles[*handle] = {fake::make_storage(size, physical), properties->location.id, physical, exportable};
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  FAKE_ENTER(cuMemRelease);
  const Lock lock(world().lock);
  const auto found = world().handles.find(handle);
  if (found == world().handles.end()) return CUDA_ERROR_INVALID_VALUE;
  if (--found->second.holds == 0) world().handles.erase(found);
  return CUDA_SUCCESS;
}

// The very handle that was mapped, also where its owner has released it since.
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  FAKE_ENTER(cuMemRetainAllocationHandle);
  auto& w = world();
  const Lock lock(w.lock);
  const Allocation* mapped = fake::find(reinterpret_cast<std::uint64_t>(address));
  if (mapped == nullptr || mapped->kind != fake::Class::vmm) return CUDA_ERROR_INVALID_VALUE;
  *handle = mapped->handle;
  const auto [known, revived] = w.handles.try_emplace(mapped->handle);
  if (revived)
    known->second = {mapped->storage, mapped->device, mapped->physical, mapped->exportable, mapped->ipc};
  else
    ++known->second.holds;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  FAKE_ENTER(cuMemGetAllocationPropertiesFromHandle);
  const Lock lock(world().lock);
  const auto found = world().handles.find(handle);
  if (found == world().handles.end()) return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties->location.id = found->second.device;
  properties->requestedHandleTypes =
      found->second.exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long) {
  FAKE_ENTER(cuMemMap);
  auto& w = world();
  const Lock lock(w.lock);
  const auto memory = w.handles.find(handle);
  auto after = w.reservations.upper_bound(address);
  if (memory == w.handles.end() || after == w.reservations.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto [start, length] = *std::prev(after);
  const fake::Handle& mapped = memory->second;
  if (address + size > start + length || offset + size > mapped.storage->size || fake::find(address))
    return CUDA_ERROR_INVALID_VALUE;
  Allocation made;
  made.kind = fake::Class::vmm;
  made.start = address;
  made.size = size;
  made.range_start = start;
  made.range_size = length;
  made.device = mapped.device;
  made.physical = mapped.physical;
  made.ipc = mapped.imported;
  made.reachable = !mapped.imported;  // until somebody is given access
  made.exportable = mapped.exportable;
  made.handle = handle;
  made.id = w.next_id++;
  made.storage = mapped.storage;
  made.storage_offset = offset;
  if (!mapped.imported) w.used[mapped.device] += size;
  w.allocations[address] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  FAKE_ENTER_UNSAFE(cuMemUnmap);
  auto& w = world();
  const Lock lock(w.lock);
  fake::check_at_rest(address, "cuMemUnmap");
  const auto found = w.allocations.find(address);
  if (found == w.allocations.end() || found->second.kind != fake::Class::vmm || found->second.size != size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  fake::forget(address);
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t, const CUmemAccessDesc* access, size_t count) {
  FAKE_ENTER(cuMemSetAccess);
  const Lock lock(world().lock);
  Allocation* found = fake::find(address);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const int device = access[i].location.id;
    if (device < 0 || device >= world().devices) return CUDA_ERROR_INVALID_DEVICE;
    if (fake::link(device, found->physical) == fake::Link::refused) return CUDA_ERROR_INVALID_DEVICE;
  }
  found->reachable = true;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long) {
  FAKE_ENTER(cuMemExportToShareableHandle);
  const Lock lock(world().lock);
  const auto found = world().handles.find(handle);
  if (found == world().handles.end()) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if (!found->second.exportable) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(shareable) = ::fcntl(found->second.storage->descriptor, F_DUPFD_CLOEXEC, 0);
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  FAKE_ENTER(cuMemImportFromShareableHandle);
  auto& w = world();
  const Lock lock(w.lock);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const int descriptor = ::fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)), F_DUPFD_CLOEXEC, 0);
  struct stat facts {};
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = w.next_id++;
  const int physical = fake::device_of(descriptor);
  w.handles[*handle] = {std::make_shared<fake::Storage>(descriptor, static_cast<std::size_t>(facts.st_size)),
                        fake::logical(physical), physical, true, true};
  return CUDA_SUCCESS;
}
