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

Memory::Memory(Place& place, Class of, std::size_t bytes) : place_(place) {
  block_.of = of;
  block_.bytes = bytes;
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
      SOAK_CUDA(cuMemAlloc_v2, &block_.address, bytes);
      break;
    case Class::managed:
      SOAK_CUDA(cuMemAllocManaged, &block_.address, bytes, CU_MEM_ATTACH_GLOBAL);
      break;
    case Class::pool:
      SOAK_CUDA(cuMemAllocAsync, &block_.address, bytes, nullptr);
      break;
    case Class::shared_pool:
      SOAK_CUDA(cuMemAllocFromPoolAsync, &block_.address, bytes, place.shared_pool, nullptr);
      break;
    case Class::vmm:
    case Class::shared_vmm:
      map();
      break;
    case Class::opencl:
      SOAK_IST(ist_memory_alloc, place.world, IST_KIND_OPENCL, IST_OWN_DEVICE, bytes, &block_.whole);
      break;
  }
  if (host != nullptr) block_.address = reinterpret_cast<CUdeviceptr>(host);
  // Of a pool: the memory is there when the stream has come to it.
  if (of == Class::pool || of == Class::shared_pool) SOAK_CUDA(cuStreamSynchronize, nullptr);
  place.history.add("allocated", of, block_.address, bytes);
}

void Memory::map() {
  const CUmemAllocationProp wanted = properties(place_.device, block_.of == Class::shared_vmm);
  std::size_t granule = 0;
  SOAK_CUDA(cuMemGetAllocationGranularity, &granule, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  block_.reserved = (block_.bytes + granule - 1) / granule * granule;
  SOAK_CUDA(cuMemAddressReserve, &block_.address, block_.reserved, 0, 0, 0);
  CUmemGenericAllocationHandle handle = 0;
  SOAK_CUDA(cuMemCreate, &handle, block_.reserved, &wanted, 0);
  SOAK_CUDA(cuMemMap, block_.address, block_.reserved, 0, handle, 0);
  SOAK_CUDA(cuMemRelease, handle);  // the mapping holds it
  CUmemAccessDesc access{};
  access.location = wanted.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  SOAK_CUDA(cuMemSetAccess, block_.address, block_.reserved, &access, 1);
}

namespace {

void release(Place& place, const Block& block) {
  place.history.add("freed", block.of, block.address, block.bytes);
  void* const host = reinterpret_cast<void*>(block.address);
  switch (block.of) {
    case Class::registered:
      SOAK_IST(ist_unregister, place.world, host);
      [[fallthrough]];
    case Class::host:
      std::free(host);
      break;
    case Class::pinned:
      SOAK_CUDA(cuMemFreeHost, host);
      break;
    case Class::cuda:
    case Class::managed:
      SOAK_CUDA(cuMemFree_v2, block.address);
      break;
    case Class::pool:
    case Class::shared_pool:
      SOAK_CUDA(cuMemFreeAsync, block.address, nullptr);
      break;
    case Class::vmm:
    case Class::shared_vmm:
      SOAK_CUDA(cuMemUnmap, block.address, block.reserved);
      SOAK_CUDA(cuMemAddressFree, block.address, block.reserved);
      break;
    case Class::opencl:
      SOAK_IST(ist_memory_free, place.world, block.whole);
      break;
  }
}

// Not freed is a leak, which the samples show; but it is told here, where the reason is known.
void release_or_tell(Place& place, const Block& block) {
  try {
    release(place, block);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "memory of class %s is not freed: %s\n", name_of(block.of), error.what());
  }
}

bool waits_for_device(Class one) {
  return one == Class::cuda || one == Class::managed || one == Class::pinned || one == Class::registered;
}

}  // namespace

void free_rest(Place& place) {
  std::vector<Block> unfreed;
  {
    const std::lock_guard lock(place.unfreed_mutex);
    unfreed.swap(place.unfreed);
  }
  for (const Block& block : unfreed) release_or_tell(place, block);
}

Memory::~Memory() {
  if (!waits_for_device(block_.of)) {
    release_or_tell(place_, block_);
    return;
  }
  const std::unique_lock lock(place_.frees, std::try_to_lock);
  if (!lock.owns_lock()) {
    const std::lock_guard unfreed(place_.unfreed_mutex);
    place_.unfreed.push_back(block_);
    return;
  }
  release_or_tell(place_, block_);
  free_rest(place_);
}

ist_buffer Memory::at(std::size_t offset, CUstream stream) const {
  if (block_.of == Class::opencl) return ist_buffer_at(block_.whole, offset);
  if (on_device(block_.of)) return ist_cuda(address() + offset, stream);
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
