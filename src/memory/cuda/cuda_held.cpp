#include "memory/cuda/cuda_held.hpp"

#include <chrono>
#include <thread>
#include <vector>

namespace ist {
namespace {

// A copy of a few bytes out of a device takes some 20 us; where it takes longer, somebody asks again.
constexpr std::chrono::milliseconds kPatienceWithLooks{2};

}  // namespace

CudaHeld::~CudaHeld() {
  for (auto& [context, place] : places_) {
    const ContextScope scope(api_, *context);
    if (scope.status().ok() && place.stream != nullptr) api_.cuStreamDestroy_v2(place.stream);
    if (scope.status().ok() && place.word != 0) api_.cuMemFree_v2(place.word);
    if (scope.status().ok() && place.seen != nullptr) api_.cuMemFreeHost(place.seen);
  }
}

// Zero before any kernel counts. A stream of its own waits for nothing else.
Status CudaHeld::make(Place& place) const {
  const std::string device = " for waits in streams of cuda device " + std::to_string(place.context->device);
  if (api_.cuMemHostAlloc == nullptr || api_.cuMemFreeHost == nullptr)
    return {IST_ERR_UNSUPPORTED, "this driver has no cuMemHostAlloc" + device};
  const char* call = "cuMemHostAlloc of 8 bytes";
  CUresult result = CUDA_SUCCESS;
  if (place.seen == nullptr) {
    void* seen = nullptr;
    result = api_.cuMemHostAlloc(&seen, sizeof *place.seen, CU_MEMHOSTALLOC_PORTABLE);
    if (result == CUDA_SUCCESS) place.seen = static_cast<std::uint64_t*>(seen);
  }
  if (result == CUDA_SUCCESS && place.word == 0) {
    call = "cuMemAlloc of 8 bytes";
    result = api_.cuMemAlloc_v2(&place.word, sizeof *place.seen);
  }
  if (result == CUDA_SUCCESS && place.stream == nullptr) {
    call = "cuStreamCreate";
    result = api_.cuStreamCreate(&place.stream, CU_STREAM_NON_BLOCKING);
  }
  if (result == CUDA_SUCCESS) {
    call = "cuMemcpyAsync of 8 bytes";
    *place.seen = 0;
    result = api_.cuMemcpyAsync(place.word, reinterpret_cast<CUdeviceptr>(place.seen), sizeof *place.seen, place.stream);
    if (result == CUDA_SUCCESS) result = api_.cuStreamSynchronize(place.stream);
  }
  return result == CUDA_SUCCESS ? Status{} : cuda_error(api_, result, call + device);
}

// With the table's lock. Where it fails the place keeps what it has already for the next try.
Status CudaHeld::prepare(CudaContext& context, Place& place) const {
  if (place.context != nullptr) return {};
  place.context = &context;
  Status made = make(place);
  if (!made.ok()) place.context = nullptr;
  return made;
}

Status CudaHeld::prepare(CudaContext& context) {
  const std::lock_guard lock(mutex_);
  return prepare(context, places_[&context]);
}

Result<std::uint64_t*> CudaHeld::begin(CudaContext& context) {
  const std::lock_guard lock(mutex_);
  Place& place = places_[&context];
  IST_TRY(prepare(context, place));
  place.put.fetch_add(1);
  return reinterpret_cast<std::uint64_t*>(place.word);
}

void CudaHeld::never(CudaContext& context) {
  const std::lock_guard lock(mutex_);
  places_[&context].put.fetch_sub(1);
}

bool CudaHeld::over() {
  const std::lock_guard looks(look_mutex_);
  std::vector<Place*> all;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [context, place] : places_)
      if (place.context != nullptr) all.push_back(&place);
  }
  bool over = true;
  for (Place* const place : all) over = over_in(*place) && over;
  return over;
}

// Where the last look has not come back its bytes may still arrive: no other one is begun.
bool CudaHeld::over_in(Place& place) const {
  const std::uint64_t put = place.put.load();
  if (place.over >= put) return true;
  const ContextScope scope(api_, *place.context);
  if (!scope.status().ok()) return true;
  CUresult result = CUDA_SUCCESS;
  if (!place.looking) {
    const auto seen = reinterpret_cast<CUdeviceptr>(place.seen);
    result = api_.cuMemcpyAsync(seen, place.word, sizeof *place.seen, place.stream);
    place.looking = result == CUDA_SUCCESS;
  }
  const auto patience = std::chrono::steady_clock::now() + kPatienceWithLooks;
  while (result == CUDA_SUCCESS && (result = api_.cuStreamQuery(place.stream)) == CUDA_ERROR_NOT_READY &&
         std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
    result = CUDA_SUCCESS;
  }
  if (result == CUDA_ERROR_NOT_READY) return false;
  place.looking = false;
  if (result != CUDA_SUCCESS) return true;
  place.over = *place.seen;
  return place.over >= put;
}

}  // namespace ist
