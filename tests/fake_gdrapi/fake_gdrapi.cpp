// gdrcopy over the fake CUDA driver: device memory that a processor copies through windows of whole pages, which end with the memory.
#include "fake_gdrapi.h"

#include <cuda.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr std::uint64_t kPage = 65536;

struct Pin {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  unsigned long long buffer_id = 0;
  std::byte* place = nullptr;  // nobody can touch it: who reads or writes there himself ends
};

struct World {
  std::mutex lock;
  std::map<unsigned long, Pin> pins;
  std::map<std::string, int> counts;
  std::map<std::string, int> failures;
  unsigned long last = 0;
};

World& world() {
  static World all;
  return all;
}

template <class Function>
Function* cuda(const char* name) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

std::byte* bytes_at(std::uint64_t address) {
  auto* const call = cuda<void*(std::uint64_t)>("fake_cuda_bytes");
  return call == nullptr ? nullptr : static_cast<std::byte*>(call(address));
}

unsigned long long id_of(std::uint64_t address) {
  auto* const call = cuda<decltype(::cuPointerGetAttributes)>("cuPointerGetAttributes");
  unsigned long long id = 0;
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID;
  void* answer = &id;
  if (call == nullptr || call(1, &attribute, &answer, address) != CUDA_SUCCESS) return 0;
  return id;
}

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

int failure(const char* call) {
  const auto found = world().failures.find(call);
  return found == world().failures.end() ? 0 : found->second;
}

// Where the bytes behind a place in a window are; null, and that is counted, if the memory is gone.
std::byte* behind(unsigned long handle, const void* place, std::size_t size) {
  const auto found = world().pins.find(handle);
  if (found == world().pins.end() || found->second.place == nullptr) return nullptr;
  const Pin& pin = found->second;
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(place) - pin.place);
  if (offset > pin.size || size > pin.size - offset) return nullptr;
  const std::uint64_t address = pin.start + offset;
  if (id_of(address) != pin.buffer_id || id_of(address + size - 1) != pin.buffer_id) {
    ++world().counts["stale"];
    return nullptr;
  }
  return bytes_at(address);
}

}  // namespace

extern "C" {

void fake_gdr_fail(const char* call, int result) {
  const std::lock_guard lock(world().lock);
  world().failures[call] = result;
}

int fake_gdr_count(const char* what) {
  const std::lock_guard lock(world().lock);
  return world().counts[what];
}

struct gdr {
  int unused;
};
struct gdr_mh_t {
  unsigned long h;
};
struct gdr_info {
  std::uint64_t va;
  std::uint64_t mapped_size;
  std::uint32_t page_size;
  std::uint64_t cycles;
  std::uint32_t cycles_per_ms;
  unsigned mapped : 1;
  unsigned wc_mapping : 1;
  int type;
};

FAKE_GDR_EXPORT gdr* gdr_open() {
  static gdr one{};
  if (number_of("FAKE_GDR_DRIVER", 1) == 0) return nullptr;
  const std::lock_guard lock(world().lock);
  ++world().counts["sessions"];
  return &one;
}

FAKE_GDR_EXPORT int gdr_close(gdr*) {
  const std::lock_guard lock(world().lock);
  --world().counts["sessions"];
  return 0;
}

FAKE_GDR_EXPORT void gdr_runtime_get_version(int* major, int* minor) {
  *major = number_of("FAKE_GDR_VERSION", 2);
  *minor = 5;
}

FAKE_GDR_EXPORT int gdr_driver_get_version(gdr*, int* major, int* minor) {
  const std::lock_guard lock(world().lock);
  *major = number_of("FAKE_GDR_DRIVER_VERSION", 2);
  *minor = 4;
  return failure("gdr_driver_get_version");
}

FAKE_GDR_EXPORT int gdr_pin_buffer(gdr*, unsigned long address, std::size_t size, std::uint64_t, std::uint32_t,
                                   gdr_mh_t* handle) {
  const std::lock_guard lock(world().lock);
  if (const int failed = failure("gdr_pin_buffer"); failed != 0) return failed;
  if (address % kPage != 0 || size == 0 || size % kPage != 0 || bytes_at(address) == nullptr) return EINVAL;
  handle->h = ++world().last;
  world().pins[handle->h] = {address, size, id_of(address), nullptr};
  ++world().counts["pins"];
  return 0;
}

FAKE_GDR_EXPORT int gdr_unpin_buffer(gdr*, gdr_mh_t handle) {
  const std::lock_guard lock(world().lock);
  const auto found = world().pins.find(handle.h);
  if (found == world().pins.end() || found->second.place != nullptr) std::abort();  // unmapped first
  world().pins.erase(found);
  --world().counts["pins"];
  return 0;
}

FAKE_GDR_EXPORT int gdr_get_info_v2(gdr*, gdr_mh_t handle, gdr_info* info) {
  const std::lock_guard lock(world().lock);
  if (const int failed = failure("gdr_get_info_v2"); failed != 0) return failed;
  const Pin& pin = world().pins.at(handle.h);
  *info = {pin.start, pin.size, kPage, 0, 0, pin.place != nullptr, 1, 1};
  return 0;
}

FAKE_GDR_EXPORT int gdr_map(gdr*, gdr_mh_t handle, void** place, std::size_t size) {
  const std::lock_guard lock(world().lock);
  if (const int failed = failure("gdr_map"); failed != 0) return failed;
  Pin& pin = world().pins.at(handle.h);
  if (size != pin.size || pin.place != nullptr) return EINVAL;
  *place = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  pin.place = static_cast<std::byte*>(*place);
  ++world().counts["maps"];
  return 0;
}

FAKE_GDR_EXPORT int gdr_unmap(gdr*, gdr_mh_t handle, void* place, std::size_t size) {
  const std::lock_guard lock(world().lock);
  Pin& pin = world().pins.at(handle.h);
  if (pin.place != place || pin.size != size) std::abort();
  ::munmap(place, size);
  pin.place = nullptr;
  --world().counts["maps"];
  return 0;
}

FAKE_GDR_EXPORT int gdr_copy_to_mapping(gdr_mh_t handle, void* place, const void* from, std::size_t size) {
  const std::lock_guard lock(world().lock);
  if (const int failed = failure("gdr_copy_to_mapping"); failed != 0) return failed;
  std::byte* const to = behind(handle.h, place, size);
  if (to == nullptr) return EFAULT;
  std::memcpy(to, from, size);
  ++world().counts["into"];
  return 0;
}

FAKE_GDR_EXPORT int gdr_copy_from_mapping(gdr_mh_t handle, void* to, const void* place, std::size_t size) {
  const std::lock_guard lock(world().lock);
  if (const int failed = failure("gdr_copy_from_mapping"); failed != 0) return failed;
  const std::byte* const from = behind(handle.h, place, size);
  if (from == nullptr) return EFAULT;
  std::memcpy(to, from, size);
  ++world().counts["out"];
  return 0;
}
}
