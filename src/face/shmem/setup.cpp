// Beginning, end, and who is where.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "face/shmem/also.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/regions.hpp"
#include "face/shmem/world.hpp"

namespace ist::shmem {
namespace {

// The standard's variable of that name, or the one that it has deprecated: what the first one says holds where both are set.
bool is_set(const char* name) {
  const char* value = std::getenv((std::string{"SHMEM_"} + name).c_str());
  if (value == nullptr) value = std::getenv((std::string{"SMA_"} + name).c_str());
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

// SHMEM_VERSION and SHMEM_INFO, as the standard has them.
void introduce() {
  if (hot.pe != 0) return;
  if (is_set("VERSION"))
    std::fprintf(stderr, "OpenSHMEM %d.%d, %s\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING);
  if (is_set("INFO"))
    std::fprintf(stderr,
                 "OpenSHMEM %d.%d, %s: %d PEs. Variables: SHMEM_SYMMETRIC_SIZE, bytes of each PE's heap, as 64M or 1.5G "
                 "(unset: it grows as needed); SHMEMX_SYMMETRIC_SIZE_CUDA and _OPENCL, bytes of a heap in each PE's device "
                 "from the start; "
                 "SHMEM_VERSION; SHMEM_INFO; SHMEM_DEBUG, which says no more here. The standard's also as SMA_..., which "
                 "is deprecated. Isthmus's own: isthmus info --settings\n",
                 SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING, hot.pes);
}

std::mutex& beginning() {
  static std::mutex mutex;
  return mutex;
}

void begin(const char* call, int threads) {
  const std::lock_guard lock(beginning());
  const bool first = !world().is_open();
  world().open(call, threads);
  if (first) introduce();
}

const void* remote(const void* address, int pe, bool devices) {
  const Place place = look(address, 1, pe);
  if (place.device == nullptr) return place.at;
  return devices ? reach_on_device(place, pe) : nullptr;
}

}  // namespace
}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

void pshmem_init() {
  guarded("shmem_init", [] { begin("shmem_init", SHMEM_THREAD_SINGLE); });
}
SHMEM_ALSO(init);
int pshmem_init_thread(int requested, int* provided) {
  if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) return -1;
  return guarded("shmem_init_thread", -1, [&] {
    begin("shmem_init_thread", requested);
    if (provided != nullptr) *provided = world().threads();
    return 0;
  });
}
SHMEM_ALSO(init_thread);
void pshmem_query_thread(int* provided) { *provided = world().threads(); }
SHMEM_ALSO(query_thread);
int pshmem_my_pe() { return hot.pe; }
SHMEM_ALSO(my_pe);
int pshmem_n_pes() { return hot.pes; }
SHMEM_ALSO(n_pes);
void pshmem_finalize() {
  guarded("shmem_finalize", [] {
    const std::lock_guard lock(beginning());
    world().close("shmem_finalize");
  });
}
SHMEM_ALSO(finalize);
void pshmem_global_exit(int status) { world().end_job(status); }
SHMEM_ALSO(global_exit);
int pshmem_pe_accessible(int pe) { return pe >= 0 && pe < hot.pes ? 1 : 0; }
SHMEM_ALSO(pe_accessible);
int pshmem_addr_accessible(const void* address, int pe) { return look(address, 1, pe).at != nullptr ? 1 : 0; }
SHMEM_ALSO(addr_accessible);
void* pshmem_ptr(const void* address, int pe) { return const_cast<void*>(remote(address, pe, false)); }
SHMEM_ALSO(ptr);
void* shmemx_ptr(const void* address, int pe) { return const_cast<void*>(remote(address, pe, true)); }
void pshmem_info_get_version(int* major, int* minor) {
  *major = SHMEM_MAJOR_VERSION;
  *minor = SHMEM_MINOR_VERSION;
}
SHMEM_ALSO(info_get_version);
void pshmem_info_get_name(char* name) {
  static_assert(sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN);
  std::memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
}
SHMEM_ALSO(info_get_name);
int pshmem_initialized() { return world().is_open() ? 1 : 0; }
SHMEM_ALSO(initialized);
int pshmem_finalized() { return world().was_closed() ? 1 : 0; }
SHMEM_ALSO(finalized);
void pshmem_query_initialized(int* initialized) { *initialized = world().is_open() ? 1 : 0; }
SHMEM_ALSO(query_initialized);
int pshmem_query_interoperability(int) { return 0; }
SHMEM_ALSO(query_interoperability);
// For profilers, which define their own.
void pshmem_pcontrol(int, ...) {}
SHMEM_ALSO(pcontrol);
}
