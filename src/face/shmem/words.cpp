// What waits and atomics need beyond the heap of host memory, and the untyped calls of both.
#include <sched.h>

#include <string>

#include "face/shmem/also.hpp"
#include "face/shmem/atomics.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/regions.hpp"
#include "face/shmem/waits.hpp"
#include "face/shmem/world.hpp"

namespace ist::shmem {

AtomicPlace atomic_elsewhere(const char* call, const void* address, std::size_t bytes, int pe) {
  const Place place = find(call, address, bytes, pe);
  return place.device == nullptr ? AtomicPlace{place.at, nullptr} : AtomicPlace{nullptr, place.device};
}

std::uint64_t device_atomic(const char* call, ist_heap device, const DeviceAtomic& what, const void* address,
                            std::size_t bytes, int pe) {
  auto* const word = const_cast<void*>(address);
  std::uint32_t four = 0;
  std::uint64_t eight = 0;
  failed(call, bytes == sizeof four
                   ? ist_heap_atomic32(device, what.operation, static_cast<std::uint32_t*>(word),
                                       static_cast<std::uint32_t>(what.operand), &four, pe)
                   : ist_heap_atomic64(device, what.operation, static_cast<std::uint64_t*>(word), what.operand, &eight, pe));
  return bytes == sizeof four ? four : eight;
}

std::uint64_t device_compare_swap(const char* call, ist_heap device, std::uint64_t expected, std::uint64_t wanted,
                                  const void* address, std::size_t bytes, int pe) {
  auto* const word = const_cast<void*>(address);
  std::uint32_t four = 0;
  std::uint64_t eight = 0;
  failed(call, bytes == sizeof four
                   ? ist_heap_compare_swap32(device, static_cast<std::uint32_t*>(word), static_cast<std::uint32_t>(expected),
                                             static_cast<std::uint32_t>(wanted), &four, pe)
                   : ist_heap_compare_swap64(device, static_cast<std::uint64_t*>(word), expected, wanted, &eight, pe));
  return bytes == sizeof four ? four : eight;
}

OwnPlace own_elsewhere(const char* call, const volatile void* address, std::size_t bytes) {
  const Place place = find(call, address, bytes, hot.pe);
  return {place.device == nullptr ? place.at : nullptr, place.device};
}

void read_own_device(ist_heap device, const void* address, void* value, std::size_t bytes) {
  failed("shmem_wait_until", ist_heap_get(device, ist_host(value), address, bytes, hot.pe));
}

bool check_compare(const char* call, int compare) {
  if (compare >= SHMEM_CMP_EQ && compare <= SHMEM_CMP_LE) [[likely]]
    return true;
  fail(call, "the comparison is " + std::to_string(compare) + "; it must be SHMEM_CMP_EQ, NE, GT, GE, LT or LE");
  return false;
}

void tested_in_vain(const char* call) {
  static thread_local unsigned times = 0;
  static thread_local int vain_in = 0;  // the world in which what whoever left had written before has been looked at since
  if (++times % 64 != 0) return;
  const bool is_vain = nobody_comes();
  if (is_vain && vain_in == world().number()) tell_that_nobody_comes(call);
  vain_in = is_vain ? world().number() : 0;
  ::sched_yield();
}

std::size_t next_start(std::size_t count) {
  static thread_local std::size_t last = 0;
  return ++last % count;
}

}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

void pshmem_wait(long* word, long value) {
  guarded("shmem_wait", [&] { wait_until("shmem_wait", word, SHMEM_CMP_NE, value); });
}
SHMEM_ALSO(wait);
void pshmem_wait_until(long* word, int compare, long value) {
  guarded("shmem_wait_until", [&] { wait_until("shmem_wait_until", word, compare, value); });
}
SHMEM_ALSO(wait_until);
}
