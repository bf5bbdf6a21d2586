// Puts, gets and barriers in the order of a CUDA stream: the calls return at once, and what they do is done when the stream comes to it.
//
// A copy is the driver's, to or from where this process has the other PE's part. Signals, waits for them and barriers are those of the heap of
// CUDA memory (isthmus/heap_stream.h), which need no processor. Where there is no such heap that all PEs reach, or where two PEs have one device,
// a barrier is a function of the host that the stream calls: everything before it in the stream is over then, and what follows begins when all
// PEs' streams have come as far. A default stream is that of the PE's own device, where the heap is, whichever device is current.
#include <isthmus/heap_stream.h>

#include <mutex>
#include <string>

#include "face/shmem/copies.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/groups.hpp"
#include "face/shmem/regions.hpp"
#include "face/shmem/waits.hpp"
#include "face/shmem/world.hpp"
#if ISTHMUS_HAVE_CUDA
#include "memory/cuda/cuda_api.hpp"
#endif

namespace ist::shmem {
namespace {

#if ISTHMUS_HAVE_CUDA

bool is_default(void* stream) {
  const auto handle = static_cast<CUstream>(stream);
  return handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

// Of which device that memory is; the library holds its primary context for as long as the world.
Result<CUcontext> context_at(const CudaApi& api, std::uintptr_t address) {
  int ordinal = -1;
  CUpointer_attribute asked = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
  void* answer = &ordinal;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUresult result = api.cuPointerGetAttributes(1, &asked, &answer, static_cast<CUdeviceptr>(address));
  if (result == CUDA_SUCCESS) result = api.cuDeviceGet(&device, ordinal);
  if (result == CUDA_SUCCESS) result = api.cuDevicePrimaryCtxRetain(&context, device);
  if (result != CUDA_SUCCESS) return cuda_error(api, result, "cuDevicePrimaryCtxRetain of this PE's own device");
  api.cuDevicePrimaryCtxRelease_v2(device);
  return context;
}

// Where the PE's own device has its memory, the heap's, too. Of the heap nothing is allocated or freed for it: both may wait for streams, of
// which one may wait for what this thread does next. Before there is a heap no stream waits for a signal.
Result<CUcontext> own_context(const CudaApi& api) {
  static std::mutex mutex;
  static CUcontext found = nullptr;
  static int world_of_it = 0;
  const std::lock_guard lock(mutex);
  if (world_of_it == world().number()) return found;
  ist_buffer byte{};
  std::uintptr_t address = world().device_heap(kOnCuda).begin;
  if (address == 0) {
    if (ist_memory_alloc(world().handle(), IST_KIND_CUDA, IST_OWN_DEVICE, 1, &byte) != IST_OK)
      return Status{IST_ERR_DEVICE, std::string{"a default stream is of this PE's own device: "} + ist_error_text()};
    address = static_cast<std::uintptr_t>(byte.object + byte.offset);
  }
  const auto context = context_at(api, address);
  if (byte.object != 0) static_cast<void>(ist_memory_free(world().handle(), byte));
  if (!context.ok()) return context.status();
  found = *context;
  world_of_it = world().number();
  return found;
}

Result<CUcontext> context_of(const CudaApi& api, void* stream) {
  if (is_default(stream)) return own_context(api);
  CUcontext context = nullptr;
  if (const CUresult result = api.cuStreamGetCtx(static_cast<CUstream>(stream), &context); result != CUDA_SUCCESS)
    return cuda_error(api, result, "cuStreamGetCtx of the stream");
  return context;
}

// In the stream's own context, whatever is current. False: fail() was called.
template <class What>
bool in_stream(const char* call, void* stream, const char* name, const What& what) {
  const auto refuse = [call](const Status& why) {
    fail(call, why.text());
    return false;
  };
  static const auto* const driver = new Result<CudaApi>(load_cuda_api());
  if (!driver->ok()) return refuse(driver->status());
  const CudaApi& api = **driver;
  const auto context = context_of(api, stream);
  if (!context.ok()) return refuse(context.status());
  const DriverScope scope(api, *context);
  if (!scope.status().ok()) return refuse(scope.status());
  const CUresult result = what(api);
  return result == CUDA_SUCCESS || refuse(cuda_error(api, result, name));
}

bool copy(const char* call, void* to, const void* from, std::size_t bytes, void* stream) {
  const auto number = [](const void* address) {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(address));
  };
  return in_stream(call, stream, "cuMemcpyAsync", [&](const CudaApi& api) {
    return api.cuMemcpyAsync(number(to), number(from), bytes, static_cast<CUstream>(stream));
  });
}

// A stream does one thing after the other, also in other PEs' memory.
void look_at(const char* call, void* stream) {
  in_stream(call, stream, "", [](const CudaApi&) { return CUDA_SUCCESS; });
}

void CUDA_CB meet(void*) {
  constexpr const char* kCall = "shmemx_barrier_all_on_stream";
  guarded(kCall, [] { sync(kCall, {0, 1, hot.pes, hot.pe, kStreamSlot}); });
}

void barrier_by_host(const char* call, void* stream) {
  in_stream(call, stream, "cuLaunchHostFunc", [&](const CudaApi& api) {
    return api.cuLaunchHostFunc == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                           : api.cuLaunchHostFunc(static_cast<CUstream>(stream), meet, nullptr);
  });
}

#else

constexpr const char* kWithout = "this library was built without CUDA (ISTHMUS_CUDA), and knows no streams";
bool copy(const char* call, void*, const void*, std::size_t, void*) {
  fail(call, kWithout);
  return false;
}
void look_at(const char* call, void*) { fail(call, kWithout); }
void barrier_by_host(const char* call, void*) { fail(call, kWithout); }

#endif

// All PEs find the same. IST_ERR_UNSUPPORTED is more PEs than meet in streams, two of them on one device, or a driver without what that takes.
void barrier(const char* call, void* stream) {
  const DeviceHeap cuda = world().device_heap(kOnCuda);
  if (cuda.heap == nullptr || !world().meets_in_streams(kOnCuda)) return barrier_by_host(call, stream);
  const int code = ist_heap_barrier_on(cuda.heap, stream);
  if (code == IST_ERR_UNSUPPORTED) return barrier_by_host(call, stream);
  failed(call, code);
}

// The heap that the signal is in; null, and whoever asked was told, where streams have none such.
ist_heap heap_of_signal(const char* call, const std::uint64_t* word, int pe) {
  const Place place = find(call, word, sizeof *word, pe);
  if (place.at == nullptr) return nullptr;
  if (place.device != nullptr && place.device == world().device_heap(kOnCuda).heap) return place.device;
  fail(call,
       "the signal is not in CUDA memory, and streams change and wait for words of that alone; take one that "
       "shmemx_calloc_on(SHMEMX_KIND_CUDA, ...) gave");
  return nullptr;
}

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
  guarded(kCall, [&] {
    if (bytes == 0) return static_cast<void>(check_pe(kCall, pe));
    if (void* const to = reach_in_stream(kCall, dest, bytes, pe); to != nullptr) copy(kCall, to, source, bytes, stream);
  });
}
void shmemx_getmem_on_stream(void* dest, const void* source, std::size_t bytes, int pe, void* stream) {
  constexpr const char* kCall = "shmemx_getmem_on_stream";
  guarded(kCall, [&] {
    if (bytes == 0) return static_cast<void>(check_pe(kCall, pe));
    if (const void* const from = reach_in_stream(kCall, source, bytes, pe); from != nullptr)
      copy(kCall, dest, from, bytes, stream);
  });
}
void shmemx_putmem_signal_on_stream(void* dest, const void* source, std::size_t bytes, std::uint64_t* word,
                                    std::uint64_t value, int operation, int pe, void* stream) {
  constexpr const char* kCall = "shmemx_putmem_signal_on_stream";
  guarded(kCall, [&] {
    if (operation != SHMEM_SIGNAL_SET && operation != SHMEM_SIGNAL_ADD) return fail(kCall, no_signal_operation(operation));
    ist_heap heap = heap_of_signal(kCall, word, pe);
    if (heap == nullptr) return;
    ist_buffer near = ist_host(nullptr);
    if (bytes != 0 && look(dest, bytes, pe).device == heap) {
      near = ist_auto(source);
    } else if (bytes != 0) {
      void* const to = reach_in_stream(kCall, dest, bytes, pe);
      if (to == nullptr || !copy(kCall, to, source, bytes, stream)) return;
      dest = word, bytes = 0;  // the word alone is left
    }
    failed(kCall, ist_heap_put_signal_on(heap, stream, dest, near, bytes, word, value,
                                         operation == SHMEM_SIGNAL_SET ? IST_SIGNAL_SET : IST_SIGNAL_ADD, pe));
  });
}
void shmemx_signal_wait_until_on_stream(std::uint64_t* word, int compare, std::uint64_t value, void* stream) {
  constexpr const char* kCall = "shmemx_signal_wait_until_on_stream";
  guarded(kCall, [&] {
    ist_heap heap = heap_of_signal(kCall, word, hot.pe);
    if (heap == nullptr || !check_compare(kCall, compare)) return;
    failed(kCall, ist_heap_wait_until_on(heap, stream, word, IST_UINT64, static_cast<ist_compare>(compare),
                                         static_cast<std::int64_t>(value)));
  });
}
void shmemx_quiet_on_stream(void* stream) {
  constexpr const char* kCall = "shmemx_quiet_on_stream";
  guarded(kCall, [&] {
    if (check_pe(kCall, hot.pe)) look_at(kCall, stream);
  });
}
void shmemx_barrier_all_on_stream(void* stream) {
  constexpr const char* kCall = "shmemx_barrier_all_on_stream";
  guarded(kCall, [&] {
    if (check_pe(kCall, hot.pe)) barrier(kCall, stream);
  });
}
}
