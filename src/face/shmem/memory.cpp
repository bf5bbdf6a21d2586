#include "face/shmem/memory.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "face/shmem/also.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/heap_size.hpp"
#include "face/shmem/ordering.hpp"
#include "face/shmem/regions.hpp"
#include "face/shmem/world.hpp"
#include "memory/host/host_space.hpp"

namespace ist::shmem {
namespace {

// What was asked for at each address, which shmem_realloc has to know.
std::unordered_map<void*, std::size_t>& sizes() {
  static auto* const all = new std::unordered_map<void*, std::size_t>;
  return *all;
}
std::mutex& sizes_mutex() {
  static std::mutex mutex;
  return mutex;
}
void remember_size(void* address, std::size_t size) {
  const std::lock_guard lock(sizes_mutex());
  sizes()[address] = size;
}
std::size_t forget_size(void* address) {
  const std::lock_guard lock(sizes_mutex());
  const auto found = sizes().find(address);
  if (found == sizes().end()) return 0;
  const std::size_t size = found->second;
  sizes().erase(found);
  return size;
}

// As ist_heap_aligned has it of all kinds but the host's.
constexpr std::size_t kMostAlignedOnDevice = std::size_t{2} << 20U;

struct Wanted {
  std::size_t size;
  std::size_t alignment = 0;  // 0: the usual one
  bool zero = false;
};

int try_once(const Wanted& wanted, ist_heap heap, void** memory) {
  if (wanted.zero) return ist_heap_calloc(heap, 1, wanted.size, memory);
  if (wanted.alignment != 0) return ist_heap_aligned(heap, wanted.alignment, wanted.size, memory);
  return ist_heap_alloc(heap, wanted.size, memory);
}

// ist_heap_alloc() names a call that programs of OpenSHMEM do not have.
std::string no_room(std::size_t wanted) {
  std::uint64_t bytes = 0, largest = 0;
  if (ist_heap_room(world().heap(), &bytes, &largest) != IST_OK) return ist_error_text();
  return std::to_string(wanted) + " bytes were asked for; of each PE's symmetric heap " + std::to_string(bytes) +
         " bytes are free, the largest block has " + std::to_string(largest) +
         ", and it may not have so many more; free some, or set SHMEM_SYMMETRIC_SIZE to what the program needs";
}

// Null where there is no room, at all PEs; remember() has why. What PEs disagree on is no matter of room.
void* allocate(const char* call, const Wanted& wanted) {
  if (wanted.size == 0 || !check_pe(call, hot.pe)) return nullptr;
  void* memory = nullptr;
  int code = try_once(wanted, world().heap(), &memory);
  if (code == IST_ERR_MEMORY) {
    remember(no_room(wanted.size));
    if (!world().grow_heap(call, sum(wanted.size, wanted.alignment))) return nullptr;
    code = try_once(wanted, world().heap(), &memory);
    remember(code == IST_ERR_MEMORY ? no_room(wanted.size) : std::string{});
  }
  if (code == IST_ERR_MEMORY || failed(call, code)) return nullptr;
  remember_size(memory, wanted.size);
  barrier_all(call);
  return memory;
}

void* allocate_on_device(const char* call, std::size_t number, const Wanted& wanted) {
  const std::size_t room = sum(wanted.size, wanted.alignment);
  if (wanted.size == 0 || !check_pe(call, hot.pe) || !world().open_device_heap(call, number, room)) return nullptr;
  ist_heap heap = world().device_heap(number).heap;
  void* memory = nullptr;
  int code = try_once(wanted, heap, &memory);
  if (code == IST_ERR_MEMORY && world().grow_device_heap(number, room)) code = try_once(wanted, heap, &memory);
  if (code != IST_OK) {
    remember(ist_error_text());
    return nullptr;
  }
  remember_size(memory, wanted.size);
  barrier_all(call);
  return memory;
}

void release(const char* call, void* address) {
  if (address == nullptr) return;
  const Place place = find(call, address, 1, hot.pe);
  if (place.at == nullptr) return;
  barrier_all(call);
  forget_size(address);
  failed(call, ist_heap_free(place.device != nullptr ? place.device : world().heap(), address));
}

void* resize(const char* call, void* address, std::size_t size) {
  if (address == nullptr) return allocate(call, {size});
  if (size == 0) {
    release(call, address);
    return nullptr;
  }
  std::size_t old = 0;
  {
    const std::lock_guard lock(sizes_mutex());
    const auto found = sizes().find(address);
    old = found == sizes().end() ? 0 : found->second;
  }
  if (old == 0) {
    fail(call, "nothing was allocated at the address; was it freed before, or is it the middle of something?");
    return nullptr;
  }
  const Place place = find(call, address, 1, hot.pe);
  if (place.device != nullptr) {
    fail(call,
         "the address is device memory, which stays as it was allocated; allocate anew (shmemx_malloc_on), copy "
         "(shmem_putmem to this PE itself), and shmem_free the old one");
    return nullptr;
  }
  barrier_all(call);
  if (size <= old) return address;  // what is there has the room; so it does when it grows again
  void* const moved = allocate(call, {size});
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, address, std::min(old, size));
  release(call, address);
  barrier_all(call);
  return moved;
}

// Of that kind; null, and fail() was called, where there is none such.
void* allocate_on(const char* call, int kind, const Wanted& wanted) {
  if (kind == SHMEMX_KIND_HOST) return allocate(call, wanted);
  for (std::size_t number = 0; number < kDeviceKinds.size(); ++number)
    if (kind == kDeviceKinds[number]) return allocate_on_device(call, number, wanted);
  fail(call, no_kind(kind));
  return nullptr;
}

void* align_on(const char* call, int kind, std::size_t alignment, std::size_t size) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    remember(std::string{call} + ": the alignment is " + std::to_string(alignment) + "; it must be a power of two");
    return nullptr;
  }
  const std::size_t most = kind == SHMEMX_KIND_HOST ? HostSpace::kMostAligned : kMostAlignedOnDevice;
  if (alignment > most) {
    remember(std::string{call} + ": the alignment is " + std::to_string(alignment) + "; it may be at most " +
             std::to_string(most) + ", since the PEs' parts begin at multiples of that");
    return nullptr;
  }
  return allocate_on(call, kind, {size, alignment});
}
void* align(const char* call, std::size_t alignment, std::size_t size) {
  return align_on(call, SHMEMX_KIND_HOST, alignment, size);
}

void* zeroed_on(const char* call, int kind, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    remember(std::string{call} + ": " + std::to_string(count) + " times " + std::to_string(size) +
             " bytes are more than there are addresses");
    return nullptr;
  }
  return allocate_on(call, kind, {bytes, 0, true});
}

int opencl_buffer(const void* address, void** memory, std::size_t* offset) {
  constexpr const char* kCall = "shmemx_opencl_buffer";
  if (memory != nullptr) *memory = nullptr;
  const Place place = find(kCall, address, 1, hot.pe);
  if (place.at == nullptr) return -1;
  ist_buffer own{};
  if (place.device != nullptr && failed(kCall, ist_heap_buffer(place.device, address, &own))) return -1;
  if (own.kind != IST_KIND_OPENCL || memory == nullptr || offset == nullptr) {
    fail(kCall, own.kind != IST_KIND_OPENCL
                    ? "the address is in no OpenCL memory; name what shmemx_malloc_on gave with SHMEMX_KIND_OPENCL"
                    : "memory or offset is null; pass the addresses of two variables");
    return -1;
  }
  *memory = reinterpret_cast<void*>(own.object);
  *offset = own.offset;
  return 0;
}

}  // namespace

void forget_sizes() {
  const std::lock_guard lock(sizes_mutex());
  sizes().clear();
}

}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

void* pshmem_malloc(std::size_t size) {
  return guarded("shmem_malloc", nullptr, [&] { return allocate("shmem_malloc", {size}); });
}
SHMEM_ALSO(malloc);
void* pshmem_malloc_with_hints(std::size_t size, long) {
  return guarded("shmem_malloc_with_hints", nullptr, [&] { return allocate("shmem_malloc_with_hints", {size}); });
}
SHMEM_ALSO(malloc_with_hints);
void pshmem_free(void* address) {
  guarded("shmem_free", [&] { release("shmem_free", address); });
}
SHMEM_ALSO(free);
void* pshmem_realloc(void* address, std::size_t size) {
  return guarded("shmem_realloc", nullptr, [&] { return resize("shmem_realloc", address, size); });
}
SHMEM_ALSO(realloc);
void* pshmem_align(std::size_t alignment, std::size_t size) {
  return guarded("shmem_align", nullptr, [&] { return align("shmem_align", alignment, size); });
}
SHMEM_ALSO(align);
void* pshmem_calloc(std::size_t count, std::size_t size) {
  return guarded("shmem_calloc", nullptr, [&] { return zeroed_on("shmem_calloc", SHMEMX_KIND_HOST, count, size); });
}
SHMEM_ALSO(calloc);

void* shmalloc(std::size_t size) {
  return guarded("shmalloc", nullptr, [&] { return allocate("shmalloc", {size}); });
}
void shfree(void* address) {
  guarded("shfree", [&] { release("shfree", address); });
}
void* shrealloc(void* address, std::size_t size) {
  return guarded("shrealloc", nullptr, [&] { return resize("shrealloc", address, size); });
}
void* shmemalign(std::size_t alignment, std::size_t size) {
  return guarded("shmemalign", nullptr, [&] { return align("shmemalign", alignment, size); });
}

void* shmemx_malloc_on(int kind, std::size_t size) {
  return guarded("shmemx_malloc_on", nullptr, [&] { return allocate_on("shmemx_malloc_on", kind, {size}); });
}
void* shmemx_calloc_on(int kind, std::size_t count, std::size_t size) {
  return guarded("shmemx_calloc_on", nullptr, [&] { return zeroed_on("shmemx_calloc_on", kind, count, size); });
}
void* shmemx_align_on(int kind, std::size_t alignment, std::size_t size) {
  return guarded("shmemx_align_on", nullptr, [&] { return align_on("shmemx_align_on", kind, alignment, size); });
}

int shmemx_opencl_buffer(const void* address, void** memory, std::size_t* offset) {
  return guarded("shmemx_opencl_buffer", -1, [&] { return opencl_buffer(address, memory, offset); });
}
}
