// cuInit and what can be asked of a device without a context.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "fake_world.hpp"

using fake::Lock;
using fake::world;

namespace {

long variable(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? std::strtol(text, nullptr, 10) : otherwise;
}

// The numbers that the visible devices have without CUDA_VISIBLE_DEVICES, in the order of that list. As in the driver, the
// list ends at the first entry that is no device.
std::vector<int>& visible_devices() {
  static std::vector<int> devices;
  return devices;
}

void choose_devices(int there) {
  auto& visible = visible_devices();
  visible.clear();
  const char* list = variable("FAKE_CUDA_VISIBLE", 0) != 0 ? std::getenv("CUDA_VISIBLE_DEVICES") : nullptr;
  for (int device = 0; list == nullptr && device < there; ++device) visible.push_back(device);
  while (list != nullptr && *list != 0) {
    char* end = nullptr;
    const long device = std::strtol(list, &end, 10);
    if (end == list || device < 0 || device >= there) return;
    visible.push_back(static_cast<int>(device));
    list = *end == ',' ? end + 1 : nullptr;
  }
}

bool known(CUdevice device) { return device >= 0 && device < world().devices; }

// "0-1:spoiled,0-2:refused"
void read_links() {
  auto& links = world().links;
  links.clear();
  const char* text = std::getenv("FAKE_CUDA_LINKS");
  while (text != nullptr && *text != 0) {
    int a = 0;
    int b = 0;
    char word[16] = {};
    if (std::sscanf(text, "%d-%d:%15[a-z]", &a, &b, word) != 3) return;
    links[std::minmax(a, b)] = std::string_view{word} == "spoiled" ? fake::Link::spoiled : fake::Link::refused;
    text = std::strchr(text, ',');
    if (text != nullptr) ++text;
  }
}

struct Named {
  CUresult result;
  const char* name;
  const char* text;
};
#define FAKE_NAMED(result, text) \
  { result, #result, text }
constexpr Named kNames[] = {
    FAKE_NAMED(CUDA_SUCCESS, "no error"),
    FAKE_NAMED(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    FAKE_NAMED(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    FAKE_NAMED(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    FAKE_NAMED(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    FAKE_NAMED(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    FAKE_NAMED(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    FAKE_NAMED(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    FAKE_NAMED(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    FAKE_NAMED(CUDA_ERROR_NOT_READY, "device not ready"),
    FAKE_NAMED(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
    FAKE_NAMED(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    FAKE_NAMED(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
    FAKE_NAMED(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    FAKE_NAMED(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    FAKE_NAMED(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    FAKE_NAMED(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    FAKE_NAMED(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    FAKE_NAMED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    FAKE_NAMED(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    FAKE_NAMED(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
               "operation would make the legacy stream depend on a capturing blocking stream"),
    FAKE_NAMED(CUDA_ERROR_UNKNOWN, "unknown error"),
};

}  // namespace

int fake::longest_pitch() { return static_cast<int>(variable("FAKE_CUDA_MAX_PITCH", 0x7fffffff)); }

namespace fake {

int physical(CUdevice device) { return visible_devices()[static_cast<std::size_t>(device)]; }

CUdevice logical(int physical) {
  const auto& visible = visible_devices();
  const auto found = std::find(visible.begin(), visible.end(), physical);
  return found == visible.end() ? -1 : static_cast<CUdevice>(found - visible.begin());
}

Link link(CUdevice from, int to) {
  const int own = physical(from);
  if (!world().peer && own != to) return Link::refused;
  const auto found = world().links.find(std::minmax(own, to));
  return found == world().links.end() ? Link::whole : found->second;
}

}  // namespace fake

using fake::physical;

CUresult cuInit(unsigned flags) {
  FAKE_ENTER(cuInit);
  auto& w = world();
  const Lock lock(w.lock);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (w.initialised) return CUDA_SUCCESS;
  if (const long result = variable("FAKE_CUDA_INIT", 0); result != 0) return static_cast<CUresult>(result);
  choose_devices(static_cast<int>(variable("FAKE_CUDA_DEVICES", 2)));
  w.devices = static_cast<int>(visible_devices().size());
  w.delay_us = static_cast<unsigned>(variable("FAKE_CUDA_DELAY_US", 50));
  w.memory = static_cast<std::uint64_t>(variable("FAKE_CUDA_MEMORY_MIB", 1024)) << 20;
  w.peer = variable("FAKE_CUDA_PEER", 1) != 0;
  w.out_us = static_cast<unsigned>(variable("FAKE_CUDA_OUT_US", 0));
  w.strict = variable("FAKE_CUDA_STRICT", 1) != 0;
  const char* loading = std::getenv("CUDA_MODULE_LOADING");
  w.lazy = variable("FAKE_CUDA_LAZY", 0) != 0 && (loading == nullptr || std::string_view{loading} != "EAGER");
  read_links();
  if (w.devices == 0) return CUDA_ERROR_NO_DEVICE;
  w.initialised = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  FAKE_ENTER(cuDriverGetVersion);
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  for (const Named& each : kNames) {
    if (each.result == error) return *text = each.name, CUDA_SUCCESS;
  }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  for (const Named& each : kNames) {
    if (each.result == error) return *text = each.text, CUDA_SUCCESS;
  }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) {
  FAKE_ENTER(cuDeviceGetCount);
  *count = world().devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_ENTER(cuDeviceGet);
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  FAKE_ENTER(cuDeviceGetName);
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU %d", physical(device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  FAKE_ENTER(cuDeviceGetUuid_v2);
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid->bytes, 0xfa, sizeof(uuid->bytes));
  uuid->bytes[15] = static_cast<char>(physical(device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  FAKE_ENTER(cuDeviceTotalMem_v2);
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = world().memory;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  FAKE_ENTER(cuDeviceGetAttribute);
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  const bool offered = attribute == CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING ||
                       attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY ||
                       attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ||
                       attribute == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED ||
                       (attribute == CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY && variable("FAKE_CUDA_MAPS_HOST", 1) != 0) ||
                       attribute == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
  *value = offered ? 1 : 0;
  if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = 9;
  if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = 64;
  if (attribute == CU_DEVICE_ATTRIBUTE_MAX_PITCH) *value = fake::longest_pitch();
#if CUDA_VERSION < 13000
  if (attribute == CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED)
    *value = variable("FAKE_CUDA_HOST_ATOMICS", 0) == 2 ? 1 : 0;
#endif
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
// FAKE_CUDA_HOST_ATOMICS=2: as where device and processor share memory; 1: sums and exchanges alone, as over PCI Express.
CUresult cuDeviceGetHostAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations, unsigned count,
                                           CUdevice device) {
  FAKE_ENTER(cuDeviceGetHostAtomicCapabilities);
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (capabilities == nullptr || operations == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto offered = variable("FAKE_CUDA_HOST_ATOMICS", 0);
  for (unsigned i = 0; i < count; ++i) {
    const bool few = operations[i] == CU_ATOMIC_OPERATION_INTEGER_ADD || operations[i] == CU_ATOMIC_OPERATION_EXCHANGE;
    capabilities[i] = offered == 2 || (offered == 1 && few)
                          ? CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64
                          : 0U;
  }
  return CUDA_SUCCESS;
}
#endif

// FAKE_CUDA_ATOMICS=0: as between devices on PCI Express.
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  FAKE_ENTER(cuDeviceGetP2PAttribute);
  if (!known(device) || !known(peer) || device == peer) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED && variable("FAKE_CUDA_ATOMICS", 1) != 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  FAKE_ENTER(cuDeviceCanAccessPeer);
  if (!known(device) || !known(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer && fake::link(device, physical(peer)) != fake::Link::refused ? 1 : 0;
  return CUDA_SUCCESS;
}
