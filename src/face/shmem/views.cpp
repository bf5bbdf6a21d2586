// What kernels, and code beside this library, need to reach the parts of the symmetric heaps: those of all PEs, or of a team's alone.
//
// PEs of a team are at a stride from each other, and so are their parts of a heap: a team's view begins with another part, and takes longer
// steps, which go backwards in a team whose PEs do.
#include <isthmus/heap.h>

#include <string>

#include "face/shmem/errors.hpp"
#include "face/shmem/regions.hpp"
#include "face/shmem/teams.hpp"
#include "face/shmem/world.hpp"

namespace ist::shmem {
namespace {

// What device.cuh keeps in an area of the caller's begins with a multiple of this.
constexpr std::uint64_t kAreaAligned = 128;
static_assert(SHMEMX_TEAM_SYNC_BYTES(5) == IST_TEAM_SYNC_BYTES(5) + kAreaAligned,
              "one place has the size, and room to align it");

int refused(const char* call, const std::string& why) {
  remember(std::string{call} + ": " + why);
  return -1;
}

// Null, and whoever asked knows why, where there is none.
ist_heap heap_of(const char* call, int kind) {
  if (!check_pe(call, hot.pe)) return nullptr;
  if (kind == SHMEMX_KIND_HOST) return world().heap();
  for (std::size_t number = 0; number < kDeviceKinds.size(); ++number) {
    if (kind != kDeviceKinds[number]) continue;
    ist_heap heap = world().device_heap(number).heap;
    if (heap == nullptr)
      refused(call,
              "there is no heap of that kind yet; shmemx_malloc_on, called by all PEs, makes it with the first memory, and "
              "a variable as SHMEMX_SYMMETRIC_SIZE_CUDA=1G does when the program starts");
    return heap;
  }
  fail(call, no_kind(kind));
  return nullptr;
}

// Told by return value, so that a program may go on without: no way to a part is no misuse.
int heap_view(const char* call, int kind, ist_team_view* view) {
  if (view == nullptr) return refused(call, "view is null; pass the address of an ist_team_view");
  *view = {};
  ist_heap heap = heap_of(call, kind);
  if (heap == nullptr) return -1;
  return ist_heap_view(heap, view) == IST_OK ? 0 : refused(call, ist_error_text());
}

int team_view(const char* call, shmem_team_t handle, int kind, const void* sync, ist_team_view* view) {
  const Team* const team = team_of(handle);
  if (team == nullptr) return refused(call, "the team is none; pass one that this PE is a member of");
  ist_team_view all{};
  if (heap_view(call, kind, &all) != 0) return -1;
  if (view == nullptr) return refused(call, "view is null; pass the address of an ist_team_view");
  *view = {};
  const Group& group = team->group;
  if (sync == nullptr && handle != SHMEM_TEAM_WORLD)
    return refused(call, "sync is null, which is for SHMEM_TEAM_WORLD; pass SHMEMX_TEAM_SYNC_BYTES(" +
                             std::to_string(group.size) + ") bytes of shmemx_calloc_on, the same for all members");
  if (sync != nullptr) {
    const std::size_t bytes = SHMEMX_TEAM_SYNC_BYTES(group.size);
    const Place place = find(call, sync, bytes, hot.pe);
    if (place.at == nullptr) return -1;
    ist_heap heap = place.device != nullptr                 ? place.device
                    : span_of(sync, bytes) == &hot.spans[0] ? world().heap()
                                                            : nullptr;
    if (heap != heap_of(call, kind))
      return refused(call,
                     "sync is not in the heap that the view is of; pass memory that shmemx_calloc_on gave with that kind");
    const auto own = reinterpret_cast<std::uintptr_t>(all.base) + static_cast<std::uint64_t>(all.pe) * all.stride;
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(sync) - own;
    all.sync = (offset + kAreaAligned - 1) / kAreaAligned * kAreaAligned;
    all.sync_bytes = IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(group.size));
  }
  all.base += static_cast<std::uint64_t>(group.start) * all.stride;
  all.stride *= static_cast<std::uint64_t>(static_cast<std::int64_t>(group.stride));
  all.pe = group.me;
  all.pes = group.size;
  *view = all;
  return 0;
}

int device_view(const char* call, int kind, ist_device_view* view) {
  if (view == nullptr) return refused(call, "view is null; pass the address of an ist_device_view");
  *view = {};
  ist_heap heap = heap_of(call, kind);
  if (heap == nullptr) return -1;
  return ist_heap_device_view(heap, IST_OWN_DEVICE, view) == IST_OK ? 0 : refused(call, ist_error_text());
}

}  // namespace
}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

int shmemx_view(int kind, ist_team_view* view) {
  return guarded("shmemx_view", -1, [&] { return heap_view("shmemx_view", kind, view); });
}
int shmemx_team_view(shmem_team_t team, int kind, void* sync, ist_team_view* view) {
  return guarded("shmemx_team_view", -1, [&] { return team_view("shmemx_team_view", team, kind, sync, view); });
}
int shmemx_device_view(int kind, ist_device_view* view) {
  return guarded("shmemx_device_view", -1, [&] { return device_view("shmemx_device_view", kind, view); });
}
}
