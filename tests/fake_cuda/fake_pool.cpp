// Pools, and those that other processes can be given. Whoever imports a piece of one must let go of it before its owner frees it; an
// owner that does not wait is ended, as a real driver would hand out memory that somebody still writes to.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fake_world.hpp"

using fake::Allocation;
using fake::Class;
using fake::current;
using fake::Lock;
using fake::SharedPool;
using fake::world;

namespace {

constexpr std::uint64_t kPoolMagic = 0x66616b65706f6f6c;

struct Exported {
  std::uint64_t magic;
  std::int32_t owner;
  std::int32_t descriptor;
  std::uint64_t pool;
  std::uint64_t size;
  std::uint64_t place;
  std::uint64_t id;
};
static_assert(sizeof(Exported) <= sizeof(CUmemPoolPtrExportData));

SharedPool* map_shared(int descriptor) {
  void* mapped = ::mmap(nullptr, sizeof(SharedPool), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<SharedPool*>(mapped);
}

// One that has died, waited for or not, has no program any more.
bool still_runs(int process) {
  char text[8];
  return ::readlink(("/proc/" + std::to_string(process) + "/exe").c_str(), text, sizeof text) > 0;
}

void give_up(CUmemoryPool pool) {
  if (pool->shared != nullptr) ::munmap(pool->shared, sizeof(SharedPool));
  if (pool->descriptor >= 0) ::close(pool->descriptor);
  --world().live_pools;
  delete pool;
}

}  // namespace

namespace fake {

void check_pieces(const Allocation& freed) {
  if (freed.shared == nullptr) return;
  for (const auto& holder : freed.shared->holders[freed.place]) {
    const int process = holder.load();
    if (process == 0 || !still_runs(process)) continue;
    std::fprintf(stderr, "fake driver: a piece of a pool is freed while process %d still has it imported\n", process);
    std::abort();
  }
}

void let_go_of_piece(const Allocation& imported) {
  if (imported.shared == nullptr) return;
  for (auto& holder : imported.shared->holders[imported.place]) {
    std::int32_t mine = ::getpid();
    if (holder.compare_exchange_strong(mine, 0)) return;
  }
}

void end_pool_if_unused(CUmemoryPool pool) {
  const auto uses = [pool](const auto& entry) { return entry.second.pool == pool; };
  const auto& all = world().allocations;
  if (pool->destroyed && std::none_of(all.begin(), all.end(), uses)) give_up(pool);
}

}  // namespace fake

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  FAKE_ENTER(cuMemPoolCreate);
  const Lock lock(world().lock);
  auto* made = new CUmemPoolHandle_st;
  made->device = properties->location.id;
  made->physical = fake::physical(made->device);
  made->exportable = (properties->handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  if (made->exportable) {
    made->descriptor = ::memfd_create("fake_pool", MFD_CLOEXEC);
    if (made->descriptor < 0 || ::ftruncate(made->descriptor, sizeof(SharedPool)) != 0) std::abort();
    made->shared = map_shared(made->descriptor);
    made->shared->magic = kPoolMagic;
    made->shared->owner = ::getpid();
    made->shared->physical = made->physical;
    made->shared->number = world().next_id++;
  }
  ++world().live_pools;
  *pool = made;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  FAKE_ENTER(cuMemPoolDestroy);
  const Lock lock(world().lock);
  pool->destroyed = true;
  fake::end_pool_if_unused(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t size, CUmemoryPool pool, CUstream) {
  FAKE_ENTER(cuMemAllocFromPoolAsync);
  const Lock lock(world().lock);
  return fake::add_device_memory(address, size, Class::pool, pool);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream handle) {
  FAKE_ENTER(cuMemAllocAsync);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  CUmemoryPool& pool = world().default_pools[stream->context->device];
  if (pool == nullptr) {
    pool = new CUmemPoolHandle_st;
    pool->device = stream->context->device;
    pool->physical = fake::physical(pool->device);
  }
  return fake::add_device_memory(address, size, Class::pool, pool);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  FAKE_ENTER(cuMemFreeAsync);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  if (!world().allocations.contains(address)) return CUDA_ERROR_INVALID_VALUE;
  fake::check_at_rest(address, "cuMemFreeAsync");
  fake::enqueue(stream, [address] {
    const Lock inner(world().lock);
    fake::forget(address);
  });
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void* shareable, CUmemoryPool pool, CUmemAllocationHandleType type,
                                          unsigned long long) {
  FAKE_ENTER(cuMemPoolExportToShareableHandle);
  const Lock lock(world().lock);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if (!pool->exportable) return CUDA_ERROR_INVALID_VALUE;
  pool->exported = true;
  *static_cast<int*>(shareable) = ::fcntl(pool->descriptor, F_DUPFD_CLOEXEC, 0);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  FAKE_ENTER(cuMemPoolExportPointer);
  const Lock lock(world().lock);
  const Allocation* found = fake::find(address);
  if (found == nullptr || found->kind != Class::pool || found->ipc || !found->pool->exported || found->start != address)
    return CUDA_ERROR_INVALID_VALUE;
  const Exported exported{kPoolMagic,   ::getpid(), found->storage->descriptor, found->pool->shared->number, found->size,
                          found->place, found->id};
  std::memset(data, 0, sizeof *data);
  std::memcpy(data, &exported, sizeof exported);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool, void* shareable, CUmemAllocationHandleType type,
                                            unsigned long long) {
  FAKE_ENTER(cuMemPoolImportFromShareableHandle);
  const Lock lock(world().lock);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  SharedPool* shared = map_shared(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)));
  if (shared == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (shared->magic != kPoolMagic || shared->owner == ::getpid()) {
    ::munmap(shared, sizeof(SharedPool));
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto* made = new CUmemPoolHandle_st;
  made->physical = shared->physical;
  made->device = fake::logical(made->physical);
  made->imported = true;
  made->reachable = false;
  made->shared = shared;
  ++world().live_pools;
  *pool = made;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) {
  FAKE_ENTER(cuMemPoolSetAccess);
  const Lock lock(world().lock);
  for (std::size_t i = 0; i < count; ++i) {
    const int device = access[i].location.id;
    if (device < 0 || device >= world().devices) return CUDA_ERROR_INVALID_DEVICE;
    if (fake::link(device, pool->physical) == fake::Link::refused) return CUDA_ERROR_INVALID_DEVICE;
  }
  pool->reachable = true;
  return CUDA_SUCCESS;
}

// Of this very pool, and by a process once at a time.
CUresult cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  FAKE_ENTER(cuMemPoolImportPointer);
  auto& w = world();
  const Lock lock(w.lock);
  Exported exported{};
  std::memcpy(&exported, data, sizeof exported);
  if (exported.magic != kPoolMagic || !pool->imported || exported.owner != pool->shared->owner ||
      exported.pool != pool->shared->number)
    return CUDA_ERROR_INVALID_VALUE;
  const auto again = [&](const auto& entry) {
    return entry.second.shared != nullptr && entry.second.ipc && entry.second.origin == exported.id &&
           entry.second.pool == pool;
  };
  if (std::any_of(w.allocations.begin(), w.allocations.end(), again)) return CUDA_ERROR_INVALID_VALUE;
  const std::string path = "/proc/" + std::to_string(exported.owner) + "/fd/" + std::to_string(exported.descriptor);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat facts {};
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0 || facts.st_size < static_cast<off_t>(exported.size)) {
    if (descriptor >= 0) ::close(descriptor);
    return CUDA_ERROR_INVALID_VALUE;
  }
  Allocation made;
  made.kind = Class::pool;
  made.ipc = true;
  made.start = made.range_start = fake::reserve(exported.size);
  made.size = made.range_size = exported.size;
  made.device = pool->device;
  made.physical = pool->physical;
  made.pool = pool;
  made.reachable = pool->reachable;
  made.shared = pool->shared;
  made.place = exported.place;
  made.origin = exported.id;
  made.id = w.next_id++;
  made.storage = std::make_shared<fake::Storage>(descriptor, static_cast<std::size_t>(facts.st_size));
  for (auto& holder : pool->shared->holders[exported.place]) {
    std::int32_t free = 0;
    if (holder.compare_exchange_strong(free, ::getpid())) break;
  }
  *address = made.start;
  w.allocations[made.start] = std::move(made);
  return CUDA_SUCCESS;
}
