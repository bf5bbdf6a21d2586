#include "cli/bench_driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cli/failure.hpp"

namespace ist::cli {
namespace {

int device_of(const Place& place, const Place& other) {
  return std::max(0, place.on_device() ? place.device : other.device);
}

}  // namespace

const Driver& Driver::get() {
  static const Driver driver;
  return driver;
}

Driver::Driver() {
  auto api = load_cuda_api();
  if (!api.ok()) {
    reason_ = api.status().text();
    return;
  }
  api_ = *api;
  CUresult result = api_.cuInit(0);
  if (result == CUDA_SUCCESS) result = api_.cuDeviceGetCount(&devices_);
  if (result != CUDA_SUCCESS) reason_ = cuda_error(api_, result, "cuInit").text();
}

void Driver::must(CUresult result, const std::string& what) const {
  if (result != CUDA_SUCCESS) throw Failure(cuda_error(api_, result, what));
}

DriverSide::DriverSide(const Driver& driver, int number) : driver_(driver), number_(number) {
  driver_.must(driver_.api().cuDeviceGet(&device_, number), "cuDeviceGet of " + std::to_string(number));
  driver_.must(driver_.api().cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  use();
  for (CUstream& stream : streams_)
    driver_.must(driver_.api().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  leave();
}

DriverSide::~DriverSide() {
  use();
  for (CUstream stream : streams_) driver_.api().cuStreamDestroy_v2(stream);
  leave();
  driver_.api().cuDevicePrimaryCtxRelease_v2(device_);
}

void DriverSide::wait() const {
  for (CUstream stream : streams_) driver_.must(driver_.api().cuStreamSynchronize(stream), "cuStreamSynchronize");
}

bool DriverSide::reach(const DriverSide& other) const {
  if (!driver_.api().cuCtxEnablePeerAccess) throw Failure(1, "this driver has no cuCtxEnablePeerAccess");
  use();
  const CUresult result = driver_.api().cuCtxEnablePeerAccess(other.context_, 0);
  leave();
  if (result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) return false;
  if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) driver_.must(result, "cuCtxEnablePeerAccess");
  return true;
}

unsigned DriverSide::multiprocessors() const {
  int found = 0;
  const auto ask = driver_.api().cuDeviceGetAttribute;
  if (ask == nullptr || ask(&found, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device_) != CUDA_SUCCESS) return 0;
  return static_cast<unsigned>(std::max(found, 0));
}

DriverMemory::DriverMemory(const Driver& driver, const Place& place, const DriverSide& side, std::size_t bytes)
    : driver_(driver), place_(place), side_(side) {
  if (place.on_device()) {
    side_.use();
    driver_.must(driver_.api().cuMemAlloc_v2(&address_, bytes), "cuMemAlloc of " + std::to_string(bytes) + " bytes");
    driver_.must(driver_.api().cuMemsetD8Async(address_, 1, bytes, side_.stream(0)), "cuMemsetD8Async");
    driver_.must(driver_.api().cuStreamSynchronize(side_.stream(0)), "cuStreamSynchronize");
    side_.leave();
    return;
  }
  void* host = nullptr;
  if (place.pinned()) {
    side_.use();
    driver_.must(driver_.api().cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
    side_.leave();
  } else {
    constexpr std::size_t kPage = 4096;
    host = std::aligned_alloc(kPage, (bytes / kPage + 1) * kPage);
    if (host == nullptr) throw Failure(1, "no " + std::to_string(bytes) + " bytes of host memory");
  }
  std::memset(host, 1, bytes);
  address_ = reinterpret_cast<CUdeviceptr>(host);
}

DriverMemory::~DriverMemory() {
  side_.use();
  if (place_.on_device())
    driver_.api().cuMemFree_v2(address_);
  else if (place_.pinned())
    driver_.api().cuMemFreeHost(reinterpret_cast<void*>(address_));
  else
    std::free(reinterpret_cast<void*>(address_));
  side_.leave();
}

void DriverMemory::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const {
  side_.use();
  const CUresult result = driver_.api().cuMemcpyAsync(to, from, bytes, side_.stream(0));
  side_.leave();
  driver_.must(result, "cuMemcpyAsync of " + std::to_string(bytes) + " bytes");
  driver_.must(driver_.api().cuStreamSynchronize(side_.stream(0)), "cuStreamSynchronize");
}

void DriverMemory::write(std::span<const std::byte> bytes) const {
  if (!place_.on_device())
    std::memcpy(reinterpret_cast<void*>(address_), bytes.data(), bytes.size());
  else
    copy(address_, reinterpret_cast<CUdeviceptr>(bytes.data()), bytes.size());
}

void DriverMemory::read(std::span<std::byte> bytes) const {
  if (!place_.on_device())
    std::memcpy(bytes.data(), reinterpret_cast<const void*>(address_), bytes.size());
  else
    copy(reinterpret_cast<CUdeviceptr>(bytes.data()), address_, bytes.size());
}

DriverPair::DriverPair(const Driver& driver_to_use, const Place& first, const Place& second, std::size_t bytes)
    : driver(driver_to_use),
      from(first),
      to(second),
      most(bytes),
      here(driver, device_of(from, to)),
      there(driver, device_of(to, from)),
      source(driver, from, here, most),
      target(driver, to, there, most),
      back_source(driver, to, there, most),
      back_target(driver, from, here, most) {
  if (!two_devices()) return;
  const bool forth = here.reach(there);
  const bool back = there.reach(here);
  reached = forth && back;
}

}  // namespace ist::cli
