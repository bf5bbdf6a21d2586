#include "memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace soak {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostSpare = 8;
constexpr std::size_t kMostEvents = 300;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

CUmemAllocationProp properties(int device, bool shared) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = shared ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = device;
  return wanted;
}

void make_pool(Place& place) {
  CUmemPoolProps wanted{};
  wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = place.device;
  SOAK_CUDA(cuMemPoolCreate, &place.shared_pool, &wanted);
}

}  // namespace

const char* name_of(Class one) {
  constexpr const char* kNames[kClasses] = {"host",       "registered", "pinned",      "cuda",    "vmm",
                                            "shared_vmm", "pool",       "shared_pool", "managed", "opencl"};
  return kNames[static_cast<int>(one)];
}

void History::add(const char* what, Class of, CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  events_.push_back({std::chrono::steady_clock::now(), what, of, address, bytes});
  if (events_.size() > kMostEvents) events_.pop_front();
}

std::string History::text() const {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  std::string found;
  for (const Event& event : events_) {
    char line[160];
    std::snprintf(line, sizeof line, "  %9.3f ms ago: %s %s, %zu bytes at 0x%llx\n",
                  std::chrono::duration<double, std::milli>(now - event.when).count(), event.what, name_of(event.of),
                  event.bytes, static_cast<unsigned long long>(event.address));
    found += line;
  }
  return found;
}

void ok(int code, const char* call) {
  if (code != IST_OK) throw std::runtime_error(std::string{call} + ": " + ist_code_name(code) + ": " + ist_error_text());
}

unsigned usable(Place& place) {
  const auto bit = [](Class one) { return 1U << static_cast<unsigned>(one); };
  unsigned found = bit(Class::host) | bit(Class::registered);
  int devices = 0;
  SOAK_IST(ist_kind_devices, place.world, IST_KIND_OPENCL, &devices);
  if (devices > 0) found |= bit(Class::opencl);
  SOAK_IST(ist_kind_devices, place.world, IST_KIND_CUDA, &devices);
  if (devices == 0) return found;
  // The device that the library calls this rank's own.
  ist_buffer own{};
  SOAK_IST(ist_memory_alloc, place.world, IST_KIND_CUDA, IST_OWN_DEVICE, 1, &own);
  place.device = std::max(own.device, 0);
  SOAK_IST(ist_memory_free, place.world, own);
  SOAK_CUDA(cuDevicePrimaryCtxRetain, &place.context, place.device);
  SOAK_CUDA(cuCtxSetCurrent, place.context);
  make_pool(place);
  for (const Class one :
       {Class::pinned, Class::cuda, Class::vmm, Class::shared_vmm, Class::pool, Class::shared_pool, Class::managed})
    try {
      const Memory tried(place, one, kPage);
      found |= bit(one);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "not covered here: memory of class %s: %s\n", name_of(one), error.what());
    }
  return found;
}

void give_back(Place& place) {
  if (place.shared_pool != nullptr) SOAK_CUDA(cuMemPoolDestroy, std::exchange(place.shared_pool, nullptr));
}

Memory::Memory(Place& place, Class of, std::size_t bytes) : place_(place), class_(of), bytes_(bytes) {
  const std::unique_lock lock(place.frees);
  void* host = nullptr;
  switch (of) {
    case Class::host:
    case Class::registered:
      host = std::aligned_alloc(kPage, whole_pages(bytes));
      if (host == nullptr) throw std::bad_alloc();
      if (of == Class::registered) SOAK_IST(ist_register, place.world, host, whole_pages(bytes));
      break;
    case Class::pinned:
      SOAK_CUDA(cuMemHostAlloc, &host, bytes, 0);
      break;
    case Class::cuda:
      SOAK_CUDA(cuMemAlloc_v2, &address_, bytes);
      break;
    case Class::managed:
      SOAK_CUDA(cuMemAllocManaged, &address_, bytes, CU_MEM_ATTACH_GLOBAL);
      break;
    case Class::pool:
      SOAK_CUDA(cuMemAllocAsync, &address_, bytes, nullptr);
      break;
    case Class::shared_pool:
      SOAK_CUDA(cuMemAllocFromPoolAsync, &address_, bytes, place.shared_pool, nullptr);
      break;
    case Class::vmm:
    case Class::shared_vmm:
      map();
      break;
    case Class::opencl:
      SOAK_IST(ist_memory_alloc, place.world, IST_KIND_OPENCL, IST_OWN_DEVICE, bytes, &whole_);
      break;
  }
  if (host != nullptr) address_ = reinterpret_cast<CUdeviceptr>(host);
  // Of a pool: the memory is there when the stream has come to it.
  if (of == Class::pool || of == Class::shared_pool) SOAK_CUDA(cuStreamSynchronize, nullptr);
  place.history.add("allocated", of, address_, bytes);
}

void Memory::map() {
  const CUmemAllocationProp wanted = properties(place_.device, class_ == Class::shared_vmm);
  std::size_t granule = 0;
  SOAK_CUDA(cuMemGetAllocationGranularity, &granule, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  reserved_ = (bytes_ + granule - 1) / granule * granule;
  SOAK_CUDA(cuMemAddressReserve, &address_, reserved_, 0, 0, 0);
  CUmemGenericAllocationHandle handle = 0;
  SOAK_CUDA(cuMemCreate, &handle, reserved_, &wanted, 0);
  SOAK_CUDA(cuMemMap, address_, reserved_, 0, handle, 0);
  SOAK_CUDA(cuMemRelease, handle);  // the mapping holds it
  CUmemAccessDesc access{};
  access.location = wanted.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  SOAK_CUDA(cuMemSetAccess, address_, reserved_, &access, 1);
}

void Memory::release() {
  switch (class_) {
    case Class::registered:
      SOAK_IST(ist_unregister, place_.world, address());
      [[fallthrough]];
    case Class::host:
      std::free(address());
      break;
    case Class::pinned:
      SOAK_CUDA(cuMemFreeHost, address());
      break;
    case Class::cuda:
    case Class::managed:
      SOAK_CUDA(cuMemFree_v2, address_);
      break;
    case Class::pool:
    case Class::shared_pool:
      SOAK_CUDA(cuMemFreeAsync, address_, nullptr);
      break;
    case Class::vmm:
    case Class::shared_vmm:
      SOAK_CUDA(cuMemUnmap, address_, reserved_);
      SOAK_CUDA(cuMemAddressFree, address_, reserved_);
      break;
    case Class::opencl:
      SOAK_IST(ist_memory_free, place_.world, whole_);
      break;
  }
}

Memory::~Memory() {
  const std::unique_lock lock(place_.frees);
  place_.history.add("freed", class_, address_, bytes_);
  try {
    release();
  } catch (const std::exception& error) {
    // Not freed is a leak, which the samples show; but it is told here, where the reason is known.
    std::fprintf(stderr, "memory of class %s is not freed: %s\n", name_of(class_), error.what());
  }
}

ist_buffer Memory::at(std::size_t offset, CUstream stream) const {
  if (class_ == Class::opencl) return ist_buffer_at(whole_, offset);
  if (on_device(class_)) return ist_cuda(address() + offset, stream);
  return ist_host(address() + offset);
}

std::unique_ptr<Memory> Shelf::take(Class of, std::size_t bytes, Dice& dice) {
  const auto fits = [&](const auto& one) { return one->of() == of && one->bytes() >= bytes; };
  const auto found = std::find_if(spare_.begin(), spare_.end(), fits);
  if (found == spare_.end() || dice.one_in(4)) return std::make_unique<Memory>(place_, of, bytes);
  auto memory = std::move(*found);
  spare_.erase(found);
  return memory;
}

void Shelf::give_back(std::unique_ptr<Memory> memory, Dice& dice) {
  if (dice.one_in(3)) return;
  spare_.push_back(std::move(memory));
  if (spare_.size() > kMostSpare) spare_.pop_front();
}

}  // namespace soak
