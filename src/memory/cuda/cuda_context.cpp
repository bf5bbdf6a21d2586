#include "memory/cuda/cuda_context.hpp"

#include <algorithm>
#include <cstring>

namespace ist {
namespace {

// The driver's number of the allocation that is at that address, never used again; 0: there is none.
unsigned long long number_of(const CudaApi& api, CUdeviceptr address) {
  unsigned long long number = 0;
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID;
  void* answer = &number;
  return api.cuPointerGetAttributes(1, &attribute, &answer, address) == CUDA_SUCCESS ? number : 0;
}

}  // namespace

bool lives(const CudaApi& api, const CudaContext& context) {
  if (context.primary) return true;
  unsigned long long identity = 0;
  // Where there was no memory left for a witness there is only the context to ask after.
  if (context.witness == 0) return api.cuCtxGetId(context.handle, &identity) == CUDA_SUCCESS && identity == context.identity;
  return number_of(api, context.witness) == context.witness_id;
}

ContextScope::ContextScope(const CudaApi& api, const CudaContext& context) : DriverScope(api, nullptr) {
  if (lives(api, context))
    enter(context.handle);
  else
    refuse(cuda_error(api, CUDA_ERROR_CONTEXT_IS_DESTROYED, "cuCtxPushCurrent"));
}

CudaContexts::CudaContexts(const CudaApi& api, std::vector<CUdevice> devices, std::function<void(CudaContext&)> greet)
    : api_(api), devices_(std::move(devices)), uuids_(devices_.size()), greet_(std::move(greet)), primary_(devices_.size()) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    CUuuid found{};
    if (api_.cuDeviceGetUuid_v2(&found, devices_[i]) == CUDA_SUCCESS)
      std::memcpy(uuids_[i].data(), found.bytes, uuids_[i].size());
  }
}

CudaContexts::~CudaContexts() {
  for (auto& record : records_) close(*record);
}

void CudaContexts::settle() {
  for (auto& record : records_) {
    const ContextScope scope(api_, *record);
    if (scope.status().ok()) settle(*record);
  }
}

void CudaContexts::settle(CudaContext& context) const {
  for (auto& direction : context.lanes)
    for (auto& lane : direction)
      if (lane->unfinished > 0) api_.cuStreamSynchronize(lane->stream);
}

void CudaContexts::close(CudaContext& context) {
  {
    // A driver that is shutting down answers each call with an error, and that is fine.
    const ContextScope scope(api_, context);
    if (!scope.status().ok()) return;
    settle(context);
    for (auto& direction : context.lanes)
      for (auto& lane : direction) api_.cuStreamDestroy_v2(lane->stream);
    if (context.queue != nullptr) api_.cuStreamDestroy_v2(context.queue);
    if (context.module != nullptr) api_.cuModuleUnload(context.module);
    if (context.witness != 0) api_.cuMemFree_v2(context.witness);
  }
  if (context.primary) api_.cuDevicePrimaryCtxRelease_v2(devices_[static_cast<std::size_t>(context.device)]);
}

CudaContext* CudaContexts::add(CUcontext handle, int device, bool primary) {
  auto record = std::make_unique<CudaContext>();
  record->handle = handle;
  record->device = device;
  record->primary = primary;
  api_.cuCtxGetId(handle, &record->identity);
  if (!primary) leave_witness(*record);
  records_.push_back(std::move(record));
  CudaContext* added = records_.back().get();
  if (primary) primary_[static_cast<std::size_t>(device)].store(added, std::memory_order_release);
  return added;
}

void CudaContexts::leave_witness(CudaContext& context) const {
  const DriverScope scope(api_, context.handle);
  if (!scope.status().ok() || api_.cuMemAlloc_v2(&context.witness, 1) != CUDA_SUCCESS) {
    context.witness = 0;
    return;
  }
  context.witness_id = number_of(api_, context.witness);
  if (context.witness_id != 0) return;
  api_.cuMemFree_v2(context.witness);
  context.witness = 0;
}

Result<CudaContext*> CudaContexts::primary(int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= primary_.size()) {
    return Status{IST_ERR_ARGUMENT, "cuda device " + std::to_string(device) + " asked, but this machine has " +
                                        std::to_string(primary_.size())};
  }
  auto& known = primary_[static_cast<std::size_t>(device)];
  if (CudaContext* context = known.load(std::memory_order_acquire)) return context;
  CudaContext* added = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (CudaContext* context = known.load(std::memory_order_acquire)) return context;
    const DriverScope scope(api_, nullptr);
    CUcontext handle = nullptr;
    const CUresult result = api_.cuDevicePrimaryCtxRetain(&handle, devices_[static_cast<std::size_t>(device)]);
    if (result != CUDA_SUCCESS) {
      return cuda_error(api_, result, "cuDevicePrimaryCtxRetain of cuda device " + std::to_string(device));
    }
    added = add(handle, device, true);
  }
  greet_(*added);
  return added;
}

bool CudaContexts::is_primary(CUcontext handle, int ordinal) {
  const CUdevice device = devices_[static_cast<std::size_t>(ordinal)];
  unsigned flags = 0;
  int active = 0;
  if (api_.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0) return false;
  CUcontext primary = nullptr;
  if (api_.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) return false;
  api_.cuDevicePrimaryCtxRelease_v2(device);
  return primary == handle;
}

Result<CudaContext*> CudaContexts::find(CUcontext handle, int device) {
  const bool in_range = device >= 0 && static_cast<std::size_t>(device) < primary_.size();
  if (handle == nullptr || !in_range) return primary(device);
  CudaContext* known = primary_[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
  if (known != nullptr && known->handle == handle) return known;
  CudaContext* added = nullptr;
  {
    const std::lock_guard lock(mutex_);
    unsigned long long identity = 0;
    const CUresult result = api_.cuCtxGetId(handle, &identity);
    if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuCtxGetId of the context of a cuda buffer");
    for (auto& record : records_) {
      if (!record->primary && record->handle == handle && record->identity == identity) return record.get();
    }
    if (!is_primary(handle, device)) added = add(handle, device, false);
  }
  if (added == nullptr) return primary(device);
  greet_(*added);
  return added;
}

int CudaContexts::ordinal(CUdevice device) const {
  return static_cast<int>(std::find(devices_.begin(), devices_.end(), device) - devices_.begin());
}

int CudaContexts::ordinal_of(const std::array<std::byte, 16>& uuid) const {
  const auto found = std::find(uuids_.begin(), uuids_.end(), uuid);
  return found == uuids_.end() ? -1 : static_cast<int>(found - uuids_.begin());
}

std::array<std::byte, 16> CudaContexts::uuid(int ordinal) const {
  const auto at = static_cast<std::size_t>(ordinal);
  return ordinal >= 0 && at < uuids_.size() ? uuids_[at] : std::array<std::byte, 16>{};
}

CudaContext* CudaContexts::any() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& record : records_) {
      if (record->primary) return record.get();
    }
  }
  CUcontext current = nullptr;
  CUdevice device = -1;
  if (api_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return nullptr;
  if (api_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  Result<CudaContext*> found = find(current, ordinal(device));
  return found.ok() ? *found : nullptr;
}

}  // namespace ist
