// Allocation of every class but VMM and pools, and what can be asked of an address.
#include <sys/mman.h>

#include <iterator>
#include <string_view>

#include "fake_world.hpp"

using fake::Allocation;
using fake::Class;
using fake::current;
using fake::Lock;
using fake::world;

namespace fake {

namespace {
constexpr std::uint64_t kPage = 4096;

std::uint64_t round_up(std::uint64_t size, std::uint64_t unit) { return (size + unit - 1) / unit * unit; }

// Lets the owner of an address use it, for memory that hosts can reach.
void open_to_host(const Allocation& allocation) {
  ::mmap(reinterpret_cast<void*>(allocation.start), allocation.storage->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
         allocation.storage->descriptor, 0);
}
}  // namespace

void check_at_rest(std::uint64_t start, const char* call) {
  const auto& all = world().allocations;
  const auto found = all.find(start);
  if (found == all.end()) return;
  for (const auto& [from, size] : world().in_flight) {
    if (from >= start + found->second.size || from + size <= start) continue;
    std::fprintf(stderr, "fake driver: %s of %llu bytes at 0x%llx, of class %d%s, of which a copy is in flight\n", call,
                 static_cast<unsigned long long>(found->second.size), static_cast<unsigned long long>(start),
                 static_cast<int>(found->second.kind), found->second.ipc ? ", of another process" : "");
    std::abort();
  }
}

void forget(std::uint64_t start) {
  World& w = world();
  const auto found = w.allocations.find(start);
  if (found == w.allocations.end()) return;
  const Allocation& gone = found->second;
  if (gone.kind == Class::managed || gone.kind == Class::pinned) {
    ::mmap(reinterpret_cast<void*>(start), gone.storage->size, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  if (gone.kind != Class::registered && gone.kind != Class::vmm) w.reservations.erase(start);
  if (!gone.host() && !gone.ipc) w.used[gone.device] -= gone.size;
  if (gone.ipc) let_go_of_piece(gone);
  if (!gone.ipc) check_pieces(gone);
  CUmemoryPool pool = gone.pool;
  w.allocations.erase(found);
  if (pool != nullptr) end_pool_if_unused(pool);
}

CUresult add_device_memory(CUdeviceptr* address, std::size_t size, Class kind, CUmemoryPool pool) {
  World& w = world();
  if (const CUresult result = usable(current()); result != CUDA_SUCCESS) return result;
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  const CUdevice device = pool ? pool->device : current()->device;
  if (kind != Class::pinned && size > w.memory - w.used[device]) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t start = reserve(size);
  if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation made;
  made.kind = kind;
  made.start = made.range_start = start;
  made.size = made.range_size = size;
  made.device = device;
  made.context = pool ? nullptr : current();
  made.pool = pool;
  made.id = w.next_id++;
  made.physical = physical(device);
  made.storage = make_storage(round_up(size, kPage), made.physical);
  if (pool != nullptr && pool->shared != nullptr) {
    made.shared = pool->shared;
    made.place = pool->given++ % SharedPool::kPieces;
  }
  if (kind == Class::managed || kind == Class::pinned) open_to_host(made);
  if (kind != Class::pinned) w.used[device] += size;
  w.allocations[start] = std::move(made);
  *address = start;
  return CUDA_SUCCESS;
}

namespace {

unsigned type_of(const Allocation* found) {
  if (found == nullptr) return 0;
  return found->host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

// The driver's answers for addresses it does not know are zeros, and -2 for the device.
void answer(CUpointer_attribute attribute, void* to, const Allocation* found, std::uint64_t address) {
  const bool blocks = found && found->kind != Class::registered;
  const std::uint64_t mapped_size = !found ? 0 : blocks ? round_up(found->size, kBlock) : round_up(found->size, kPage);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(to) = found ? found->context : nullptr;
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(to) = type_of(found);
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(to) = found ? found->id : 0;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(to) = found && found->kind == Class::managed;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(to) = found ? found->device : -2;
      break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<unsigned*>(to) = found && found->kind == Class::device;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(to) = found ? found->range_start : 0;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(to) = found ? found->range_size : 0;
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(to) = found != nullptr;
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(to) = found ? found->pool : nullptr;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:  // for the current context; zero where there is none
      *static_cast<CUdeviceptr*>(to) = found != nullptr && current() != nullptr ? address : 0;
      break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      *static_cast<std::size_t*>(to) = mapped_size;
      break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      *static_cast<CUdeviceptr*>(to) = !found ? 0 : blocks ? found->start : found->start / kPage * kPage;
      break;
    default:
      *static_cast<std::uint64_t*>(to) = address;
      break;
  }
}

}  // namespace

}  // namespace fake

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  FAKE_ENTER(cuPointerSetAttribute);
  const Lock lock(world().lock);
  const Allocation* found = fake::find(address);
  const bool known = found != nullptr && !found->host() && value != nullptr;
  return known && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr address) {
  FAKE_ENTER(cuPointerGetAttributes);
  const Lock lock(world().lock);
  const Allocation* found = fake::find(address);
  for (unsigned i = 0; i < count; ++i) fake::answer(attributes[i], data[i], found, address);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t size) {
  FAKE_ENTER_UNSAFE(cuMemAlloc_v2);
  const Lock lock(world().lock);
  return fake::add_device_memory(address, size, Class::device, nullptr);
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  FAKE_ENTER(cuMemGetInfo_v2);
  const Lock lock(world().lock);
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  *total = world().memory;
  *free = world().memory - world().used[current()->device];
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned) {
  FAKE_ENTER_UNSAFE(cuMemAllocManaged);
  const Lock lock(world().lock);
  return fake::add_device_memory(address, size, Class::managed, nullptr);
}

CUresult cuMemHostAlloc(void** address, size_t size, unsigned) {
  FAKE_ENTER_UNSAFE(cuMemHostAlloc);
  const Lock lock(world().lock);
  CUdeviceptr made = 0;
  const CUresult result = fake::add_device_memory(&made, size, Class::pinned, nullptr);
  if (result == CUDA_SUCCESS) *address = reinterpret_cast<void*>(made);
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  FAKE_ENTER_UNSAFE(cuMemFree_v2);
  auto& w = world();
  Lock lock(w.lock);
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  if (address == 0) return CUDA_SUCCESS;
  fake::check_at_rest(address, "cuMemFree");
  auto found = w.allocations.find(address);
  // Of memory that a pool gave the driver believes that nobody uses it any more.
  if (found == w.allocations.end() || found->second.kind != Class::pool) fake::wait_for_device(lock);
  found = w.allocations.find(address);
  if (found == w.allocations.end() || found->second.host() || found->second.kind == Class::vmm)
    return CUDA_ERROR_INVALID_VALUE;
  fake::forget(address);
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* address) {
  FAKE_ENTER_UNSAFE(cuMemFreeHost);
  auto& w = world();
  Lock lock(w.lock);
  fake::check_at_rest(reinterpret_cast<std::uint64_t>(address), "cuMemFreeHost");
  fake::wait_for_device(lock);
  const auto found = w.allocations.find(reinterpret_cast<std::uint64_t>(address));
  if (found == w.allocations.end() || found->second.kind != Class::pinned) return CUDA_ERROR_INVALID_VALUE;
  fake::forget(found->first);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* address, size_t size, unsigned) {
  FAKE_ENTER_UNSAFE(cuMemHostRegister_v2);
  auto& w = world();
  const Lock lock(w.lock);
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  const auto start = reinterpret_cast<std::uint64_t>(address);
  if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto next = w.allocations.lower_bound(start);
  if (fake::find(start) != nullptr || (next != w.allocations.end() && next->first < start + size)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  Allocation made;
  made.kind = Class::registered;
  made.start = made.range_start = start;
  made.size = made.range_size = size;
  made.device = current()->device;
  made.context = current();
  made.id = w.next_id++;
  w.allocations[start] = std::move(made);
  return CUDA_SUCCESS;
}

// FAKE_CUDA_HOST_SHIFT: kernels would find host memory so many bytes further on; `each`: memory that was locked by each call elsewhere.
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* to, void* address, unsigned flags) {
  FAKE_ENTER(cuMemHostGetDevicePointer_v2);
  const Lock lock(world().lock);
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  const auto start = reinterpret_cast<std::uint64_t>(address);
  const Allocation* const found = fake::find(start);
  if (to == nullptr || flags != 0 || found == nullptr || !found->host()) return CUDA_ERROR_INVALID_VALUE;
  const char* const shift = std::getenv("FAKE_CUDA_HOST_SHIFT");
  *to = start + (shift == nullptr                    ? 0
                 : std::string_view{shift} == "each" ? found->id << 30U
                                                     : std::strtoull(shift, nullptr, 10));
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* address) {
  FAKE_ENTER_UNSAFE(cuMemHostUnregister);
  auto& w = world();
  Lock lock(w.lock);
  fake::check_at_rest(reinterpret_cast<std::uint64_t>(address), "cuMemHostUnregister");
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  fake::wait_for_device(lock);
  const auto found = w.allocations.find(reinterpret_cast<std::uint64_t>(address));
  if (found == w.allocations.end() || found->second.kind != Class::registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  fake::forget(found->first);
  return CUDA_SUCCESS;
}
