#include "memory/cuda/cuda_mapping.hpp"

#include <cstring>

#include "base/log.hpp"
#include "memory/cuda/cuda_door.hpp"

namespace ist {
namespace {

// The driver takes a descriptor where it takes a handle, and does not keep it.
void* as_handle(const FileDescriptor& descriptor) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get()));
}

// For the device that will copy, whether or not it is the one that the memory is on, and whether or not that one can be seen here.
CUmemAccessDesc access_for(const CudaContext& context) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = context.device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

Status open_handle(const CudaApi& api, CudaBorrowed& made, const Loan& loan) {
  CUipcMemHandle handle{};
  std::memcpy(&handle, loan.handle.data(), sizeof handle);
  const CUresult result = api.cuIpcOpenMemHandle_v2(&made.address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  // What was freed meanwhile has one of these; not permitted once, when Himeno's memory was freed between four H200 (2026-11-29).
  if (result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_PERMITTED)
    return {IST_ERR_HANDLE, cuda_error(api, result, "cuIpcOpenMemHandle").text()};
  if (result != CUDA_SUCCESS) return cuda_error(api, result, "cuIpcOpenMemHandle");
  made.size = Bytes{loan.size};
  return {};
}

// What was reserved and mapped before a step failed is given back.
Status map(const CudaApi& api, CudaBorrowed& made, CUmemGenericAllocationHandle memory, std::uint64_t size) {
  CUresult result = api.cuMemAddressReserve(&made.address, size, 0, 0, 0);
  if (result != CUDA_SUCCESS) return cuda_error(api, result, "cuMemAddressReserve of " + std::to_string(size) + " bytes");
  result = api.cuMemMap(made.address, size, 0, memory, 0);
  if (result == CUDA_SUCCESS) {
    made.size = Bytes{size};
    const CUmemAccessDesc access = access_for(made.context);
    result = api.cuMemSetAccess(made.address, size, &access, 1);
    if (result == CUDA_SUCCESS) return {};
    close_mapping(api, made);
    return cuda_error(api, result, "cuMemSetAccess for cuda device " + std::to_string(made.context.device));
  }
  api.cuMemAddressFree(made.address, size);
  return cuda_error(api, result, "cuMemMap of another process's memory");
}

// For whoever looks for the reason of an access that a device reports as illegal.
void tell(const char* what, CUdeviceptr address, Bytes size, const CudaContext& context, std::uint64_t allocation) {
  if (log::enabled(log::Level::debug))
    log::debug(std::string{what} + " for cuda device " + std::to_string(context.device) + " at " + hexadecimal(address) +
               ", " + std::to_string(size.value) + " bytes, allocation " + std::to_string(allocation));
}

DoorNote asking_for(DoorSubject subject, std::uint64_t number, const Loan& loan) {
  DoorNote note = door_note(subject, number);
  put_into(note, loan.borrower);
  return note;
}

Status open_descriptor(const CudaApi& api, CudaBorrowed& made, const Loan& loan, DoorCall& call) {
  FileDescriptor descriptor;
  auto answer = call.ask(asking_for(DoorSubject::memory, loan.allocation, loan), &descriptor);
  if (!answer.ok()) return answer.status();
  CUmemGenericAllocationHandle memory = 0;
  const CUresult result = api.cuMemImportFromShareableHandle(&memory, as_handle(descriptor), kPosixDescriptor);
  if (result != CUDA_SUCCESS) return cuda_error(api, result, "cuMemImportFromShareableHandle");
  const Status mapped = map(api, made, memory, loan.size);
  api.cuMemRelease(memory);  // the mapping holds it
  return mapped;
}

Status open_pool(const CudaApi& api, CudaBorrowed& made, const Loan& loan, DoorCall& call) {
  FileDescriptor descriptor;
  auto answer = call.ask(asking_for(DoorSubject::pool, loan.pool, loan), &descriptor);
  if (!answer.ok()) return answer.status();
  CUresult result = api.cuMemPoolImportFromShareableHandle(&made.pool, as_handle(descriptor), kPosixDescriptor, 0);
  if (result != CUDA_SUCCESS) return cuda_error(api, result, "cuMemPoolImportFromShareableHandle");
  const CUmemAccessDesc access = access_for(made.context);
  result = api.cuMemPoolSetAccess(made.pool, &access, 1);
  if (result == CUDA_SUCCESS) return {};
  api.cuMemPoolDestroy(made.pool);
  return cuda_error(api, result, "cuMemPoolSetAccess for cuda device " + std::to_string(made.context.device));
}

}  // namespace

bool opens(const CudaApi& api, Loan::Way way) {
  switch (way) {
    case Loan::Way::handle:
      return api.cuIpcOpenMemHandle_v2 != nullptr && api.cuIpcCloseMemHandle != nullptr;
    case Loan::Way::descriptor:
      return api.cuMemImportFromShareableHandle != nullptr && api.cuMemAddressReserve != nullptr &&
             api.cuMemMap != nullptr && api.cuMemSetAccess != nullptr && api.cuMemUnmap != nullptr &&
             api.cuMemAddressFree != nullptr && api.cuMemRelease != nullptr;
    case Loan::Way::pool:
      return api.cuMemPoolImportFromShareableHandle != nullptr && api.cuMemPoolSetAccess != nullptr &&
             api.cuMemPoolDestroy != nullptr && api.cuMemPoolImportPointer != nullptr;
  }
  return false;
}

Result<std::unique_ptr<CudaBorrowed>> open_mapping(const CudaApi& api, CudaContext& context, const Loan& loan,
                                                   const std::atomic<bool>& ends) {
  auto made = std::make_unique<CudaBorrowed>(context, loan.way);
  const ContextScope scope(api, context);
  IST_TRY(scope.status());
  made->allocation = loan.way == Loan::Way::pool ? loan.pool : loan.allocation;
  if (loan.way == Loan::Way::handle) {
    IST_TRY(open_handle(api, *made, loan));
    tell("opened by its handle", made->address, made->size, context, made->allocation);
    return made;
  }
  auto call = DoorCall::connect(loan.door, ends);
  if (!call.ok()) return call.status();
  const bool pool = loan.way == Loan::Way::pool;
  const Status opened = pool ? open_pool(api, *made, loan, *call) : open_descriptor(api, *made, loan, *call);
  if (opened.ok()) {
    tell(pool ? "opened a pool" : "mapped by its descriptor", made->address, made->size, context, made->allocation);
    return made;
  }
  // Not at hand any more: that is no inability.
  if (opened.code() != IST_ERR_HANDLE) call->tell(asking_for(DoorSubject::cannot, pool ? loan.pool : loan.allocation, loan));
  return opened;
}

Result<CUdeviceptr> import_piece(const CudaApi& api, const CudaBorrowed& pool, const Loan& loan) {
  const ContextScope scope(api, pool.context);
  IST_TRY(scope.status());
  CUmemPoolPtrExportData data{};
  static_assert(sizeof data == sizeof loan.handle);
  std::memcpy(&data, loan.handle.data(), sizeof data);
  CUdeviceptr address = 0;
  const CUresult result = api.cuMemPoolImportPointer(&address, pool.pool, &data);
  if (result != CUDA_SUCCESS) return cuda_error(api, result, "cuMemPoolImportPointer");
  tell("imported a piece of a pool", address, Bytes{loan.size}, pool.context, loan.allocation);
  return address;
}

// The driver takes back an imported pointer at once, without waiting for anything.
void close_piece(const CudaApi& api, CudaContext& context, CUdeviceptr address) {
  const ContextScope scope(api, context);
  if (!scope.status().ok()) return;
  tell("lets go of a piece of a pool", address, Bytes{}, context, 0);
  api.cuMemFree_v2(address);
}

void close_mapping(const CudaApi& api, const CudaBorrowed& memory) {
  tell("closes", memory.address, memory.size, memory.context, memory.allocation);
  if (memory.way == Loan::Way::handle) {
    const ContextScope scope(api, memory.context);
    if (scope.status().ok()) api.cuIpcCloseMemHandle(memory.address);
    return;
  }
  const DriverScope scope(api, nullptr);  // these belong to no context
  if (memory.way == Loan::Way::pool) {
    api.cuMemPoolDestroy(memory.pool);
    return;
  }
  api.cuMemUnmap(memory.address, memory.size.value);
  api.cuMemAddressFree(memory.address, memory.size.value);
}

}  // namespace ist
