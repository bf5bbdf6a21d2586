// Puts, gets and barriers in the order of a CUDA stream: the calls return at once, and what they do is done when the stream comes to it.
//
// A copy is the driver's, to or from where this process has the other PE's part. A barrier is a function of the host that the stream calls:
// everything before it in the stream is over then, and what follows begins when all PEs' streams have come as far.
#include <string>

#include "face/shmem/errors.hpp"
#include "face/shmem/groups.hpp"
#include "face/shmem/regions.hpp"
#if ISTHMUS_HAVE_CUDA
#include "memory/cuda/cuda_api.hpp"
#endif

namespace ist::shmem {
namespace {

#if ISTHMUS_HAVE_CUDA

// In the stream's own context, whatever is current.
template <class What>
void in_stream(const char* call, void* stream, const char* name, const What& what) {
  static const auto* const driver = new Result<CudaApi>(load_cuda_api());
  if (!driver->ok()) return fail(call, driver->status().text());
  const CudaApi& api = **driver;
  CUcontext context = nullptr;
  if (const CUresult result = api.cuStreamGetCtx(static_cast<CUstream>(stream), &context); result != CUDA_SUCCESS)
    return fail(call, cuda_error(api, result, "cuStreamGetCtx of the stream").text());
  const DriverScope scope(api, context);
  if (!scope.status().ok()) return fail(call, scope.status().text());
  if (const CUresult result = what(api); result != CUDA_SUCCESS) fail(call, cuda_error(api, result, name).text());
}

void copy(const char* call, void* to, const void* from, std::size_t bytes, void* stream) {
  const auto number = [](const void* address) {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(address));
  };
  in_stream(call, stream, "cuMemcpyAsync", [&](const CudaApi& api) {
    return api.cuMemcpyAsync(number(to), number(from), bytes, static_cast<CUstream>(stream));
  });
}

void CUDA_CB meet(void*) { sync("shmemx_barrier_all_on_stream", {0, 1, hot.pes, hot.pe, kStreamSlot}); }

void barrier(const char* call, void* stream) {
  in_stream(call, stream, "cuLaunchHostFunc", [&](const CudaApi& api) {
    return api.cuLaunchHostFunc == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                           : api.cuLaunchHostFunc(static_cast<CUstream>(stream), meet, nullptr);
  });
}

#else

constexpr const char* kWithout = "this library was built without CUDA (ISTHMUS_CUDA), and knows no streams";
void copy(const char* call, void*, const void*, std::size_t, void*) { fail(call, kWithout); }
void barrier(const char* call, void*) { fail(call, kWithout); }

#endif

// Null, and whoever asked was told, where no stream gets there.
void* reach_in_stream(const char* call, const void* address, std::size_t bytes, int pe) {
  const Place place = find(call, address, bytes, pe);
  if (place.at == nullptr || place.device == nullptr) return place.at;
  void* const there = reach_on_device(place, pe);
  if (there == nullptr) fail(call, ist_error_text());
  return there;
}

}  // namespace
}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

void shmemx_putmem_on_stream(void* dest, const void* source, std::size_t bytes, int pe, void* stream) {
  constexpr const char* kCall = "shmemx_putmem_on_stream";
  if (bytes == 0) return static_cast<void>(check_pe(kCall, pe));
  if (void* const to = reach_in_stream(kCall, dest, bytes, pe); to != nullptr) copy(kCall, to, source, bytes, stream);
}
void shmemx_getmem_on_stream(void* dest, const void* source, std::size_t bytes, int pe, void* stream) {
  constexpr const char* kCall = "shmemx_getmem_on_stream";
  if (bytes == 0) return static_cast<void>(check_pe(kCall, pe));
  if (const void* const from = reach_in_stream(kCall, source, bytes, pe); from != nullptr)
    copy(kCall, dest, from, bytes, stream);
}
void shmemx_barrier_all_on_stream(void* stream) {
  if (check_pe("shmemx_barrier_all_on_stream", hot.pe)) barrier("shmemx_barrier_all_on_stream", stream);
}
}
