#include "memory/cuda/cuda_pins.hpp"

#include "base/log.hpp"

namespace ist {

CudaPins::~CudaPins() {
  for (const auto& [address, pinned] : pinned_) {
    if (!pinned.locked) continue;
    const ContextScope scope(api_, *context_);
    api_.cuMemHostUnregister(address);
  }
}

Status CudaPins::lock_pages(void* address, Pinned& pinned) {
  const ContextScope scope(api_, *context_);
  IST_TRY(scope.status());
  // Portable: locked for every context of the process; kernels in all of them reach it.
  const CUresult result =
      api_.cuMemHostRegister_v2(address, pinned.size.value, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result != CUDA_SUCCESS) {
    return cuda_error(api_, result,
                      "cuMemHostRegister of " + std::to_string(pinned.size.value) + " bytes at " +
                          hexadecimal(reinterpret_cast<std::uint64_t>(address)));
  }
  pinned.locked = true;
  return {};
}

Status CudaPins::pin(void* address, Bytes size) {
  if (size.value == 0) return {};
  contexts_.any();  // a context the caller already works in will do; it is announced through start()
  const std::lock_guard lock(mutex_);
  const auto [place, added] = pinned_.try_emplace(address, Pinned{size, false, {}});
  if (!added) {
    return {IST_ERR_ARGUMENT, "the memory at " + hexadecimal(reinterpret_cast<std::uint64_t>(address)) +
                                  " is page-locked already; unlock it first"};
  }
  if (context_ == nullptr) return {};
  Status locked = lock_pages(address, place->second);
  if (!locked.ok()) pinned_.erase(place);
  return locked;
}

void CudaPins::pin_with_first(void* address, Bytes size) {
  const std::lock_guard lock(mutex_);
  pinned_.try_emplace(address, Pinned{size, false, {}});
}

void CudaPins::unpin(void* address) {
  const std::lock_guard lock(mutex_);
  const auto place = pinned_.find(address);
  if (place == pinned_.end()) return;
  if (place->second.locked) {
    const ContextScope scope(api_, *context_);
    api_.cuMemHostUnregister(address);
  }
  pinned_.erase(place);
}

Result<std::byte*> CudaPins::mapped(void* address, int device) {
  const std::string what = "cuMemHostGetDevicePointer of " + hexadecimal(reinterpret_cast<std::uint64_t>(address)) +
                           " on cuda device " + std::to_string(device);
  if (api_.cuMemHostGetDevicePointer_v2 == nullptr)
    return Status{IST_ERR_UNSUPPORTED, what + ": this driver has no such call; kernels reach no host memory with it"};
  const Result<CudaContext*> context = contexts_.primary(device);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  CUdeviceptr found = 0;
  const CUresult result = api_.cuMemHostGetDevicePointer_v2(&found, address, 0);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, what);
  return reinterpret_cast<std::byte*>(found);
}

bool CudaPins::maps(const CudaContext& context) const {
  int maps = 0;
  if (api_.cuMemHostGetDevicePointer_v2 == nullptr || api_.cuDeviceGetAttribute == nullptr) return false;
  return api_.cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, contexts_.device(context.device)) ==
             CUDA_SUCCESS &&
         maps != 0;
}

std::optional<std::uint64_t> CudaPins::ask_place(const CudaContext& context, void* address) const {
  const ContextScope scope(api_, context);
  CUdeviceptr found = 0;
  if (!scope.status().ok() || api_.cuMemHostGetDevicePointer_v2(&found, address, 0) != CUDA_SUCCESS) return std::nullopt;
  return found;
}

std::optional<std::uint64_t> CudaPins::reached(CudaContext& context, std::span<const std::byte> stretch) {
  if (!maps(context)) return std::nullopt;
  if (stretch.empty()) return 0;
  const auto begin = reinterpret_cast<std::uint64_t>(stretch.data());
  const std::lock_guard lock(mutex_);
  auto behind = pinned_.upper_bound(const_cast<std::byte*>(stretch.data()));
  if (behind == pinned_.begin()) return std::nullopt;
  auto& [address, pinned] = *--behind;
  const std::uint64_t further = begin - reinterpret_cast<std::uint64_t>(address);
  if (!pinned.locked || further > pinned.size.value || stretch.size() > pinned.size.value - further) return std::nullopt;
  const auto [known, added] = pinned.places.try_emplace(&context);
  if (added) known->second = ask_place(context, address);
  return known->second ? std::optional{*known->second + further} : std::nullopt;
}

bool CudaPins::unpin_now(void* address) {
  return quiet_.now([this, address] { unpin(address); });
}

void CudaPins::start(CudaContext& context) {
  if (!context.primary) {
    // Comes back here if it is new.
    const Result<CudaContext*> primary = contexts_.primary(context.device);
    if (!primary.ok()) log::warning("memory is not page-locked, copies will be slower: " + primary.status().text());
    return;
  }
  const std::lock_guard lock(mutex_);
  if (context_ != nullptr) return;
  context_ = &context;
  for (auto& [address, pinned] : pinned_) {
    const Status locked = lock_pages(address, pinned);
    if (!locked.ok()) log::warning("memory is not page-locked, copies will be slower: " + locked.text());
  }
}

}  // namespace ist
