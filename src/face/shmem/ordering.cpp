#include "face/shmem/ordering.hpp"

#include "face/shmem/also.hpp"
#include "face/shmem/contexts.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/groups.hpp"
#include "face/shmem/regions.hpp"
#include "face/shmem/teams.hpp"

namespace ist::shmem {

namespace {
bool each_device_heap(const char* call, int (*what)(ist_heap)) {
  for (std::size_t number = 0; number < kDeviceKinds.size(); ++number)
    if (const DeviceHeap device = world().device_heap(number); device.heap != nullptr && failed(call, what(device.heap)))
      return false;
  return true;
}
}  // namespace

bool quiet_devices(const char* call) { return each_device_heap(call, ist_heap_quiet); }
bool fence_devices(const char* call) { return each_device_heap(call, ist_heap_fence); }

bool sync_all(const char* call) { return check_pe(call, hot.pe) && sync(call, {0, 1, hot.pes, hot.pe, kWorldSlot}); }

bool barrier_all(const char* call) {
  quiet(call);
  return sync_all(call);
}

namespace {
bool sync_in_call(const char* call, const Group& group) {
  const InCall in{call, group};
  return in && sync(call, group);
}
void sync_set(const char* call, int start, int log_stride, int size, const long* words) {
  if (const Group group = active_group(call, start, log_stride, size, words); group.size > 0) sync_in_call(call, group);
}
// Of those PEs, and as quickly of all.
void quiet_with(const char* call, shmem_ctx_t context, const int* pes, std::size_t count) {
  if (!is_there(call, context)) return;
  for (std::size_t i = 0; i < count; ++i)
    if (int pe = pes[i]; !to_world(call, context, pe) || !check_pe(call, pe)) return;
  if (count > 0) quiet(call);
}
}  // namespace

}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

void pshmem_fence() {
  guarded("shmem_fence", [] { fence(); });
}
SHMEM_ALSO(fence);
void pshmem_ctx_fence(shmem_ctx_t context) {
  guarded("shmem_ctx_fence", [&] {
    if (is_there("shmem_ctx_fence", context)) fence("shmem_ctx_fence");
  });
}
SHMEM_ALSO(ctx_fence);
void pshmem_quiet() {
  guarded("shmem_quiet", [] { quiet(); });
}
SHMEM_ALSO(quiet);
void pshmem_ctx_quiet(shmem_ctx_t context) {
  guarded("shmem_ctx_quiet", [&] {
    if (is_there("shmem_ctx_quiet", context)) quiet("shmem_ctx_quiet");
  });
}
SHMEM_ALSO(ctx_quiet);
void pshmem_pe_quiet(const int* pes, size_t count) {
  guarded("shmem_pe_quiet", [&] { quiet_with("shmem_pe_quiet", SHMEM_CTX_DEFAULT, pes, count); });
}
SHMEM_ALSO(pe_quiet);
void pshmem_ctx_pe_quiet(shmem_ctx_t ctx, const int* pes, size_t count) {
  guarded("shmem_ctx_pe_quiet", [&] { quiet_with("shmem_ctx_pe_quiet", ctx, pes, count); });
}
SHMEM_ALSO(ctx_pe_quiet);
void pshmem_barrier_all() {
  guarded("shmem_barrier_all", [] { barrier_all("shmem_barrier_all"); });
}
SHMEM_ALSO(barrier_all);
void pshmem_sync_all() {
  guarded("shmem_sync_all", [] { sync_all("shmem_sync_all"); });
}
SHMEM_ALSO(sync_all);

void pshmem_barrier(int start, int log_stride, int size, long* words) {
  guarded("shmem_barrier", [&] {
    quiet("shmem_barrier");
    sync_set("shmem_barrier", start, log_stride, size, words);
  });
}
SHMEM_ALSO(barrier);
void pshmem_sync(int start, int log_stride, int size, long* words) {
  guarded("shmem_sync", [&] { sync_set("shmem_sync", start, log_stride, size, words); });
}
SHMEM_ALSO(sync);
int pshmem_team_sync(shmem_team_t team) {
  return guarded("shmem_team_sync", -1, [&] {
    const Team* const found = team_of(team);
    return found != nullptr && sync_in_call("shmem_team_sync", found->group) ? 0 : -1;
  });
}
SHMEM_ALSO(team_sync);
}
