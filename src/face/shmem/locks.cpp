// Locks: first come, first served.
//
// The word that counts is one PE's copy. Its upper half is the next ticket, its lower half the ticket that is served; both are 0 again
// when nobody holds the lock or waits, which is the value that programs begin with. A ticket is the last step of whoever takes it, so
// that it is one atomic operation, and the lower half is changed by the holder alone. Tickets begin again with 0 behind the last one: what
// is beyond the upper half is nowhere, and the holder keeps the lower half within itself.
#include <string>

#include "face/shmem/also.hpp"
#include "face/shmem/atomics.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/ordering.hpp"
#include "face/shmem/patience.hpp"
#include "face/shmem/regions.hpp"
#include "face/shmem/waits.hpp"

namespace ist::shmem {
namespace {

constexpr unsigned kHalf = 32;
constexpr std::uint64_t kTicket = std::uint64_t{1} << kHalf;
std::uint32_t next_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> kHalf); }
std::uint32_t served_of(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
std::uint64_t served_one_more(std::uint64_t word) { return word / kTicket * kTicket + (served_of(word) + 1U); }

// Locks beside each other are kept by different PEs.
std::uint64_t* word_of(const char* call, const long* lock) {
  const Span* const span = hot.pes != 0 ? span_of(lock, sizeof *lock) : nullptr;
  int pe = 0;
  if (span != nullptr) pe = static_cast<int>(offset_in(*span, lock) / sizeof(long) % static_cast<std::uintptr_t>(hot.pes));
  const AtomicPlace place = atomic_word(call, SHMEM_CTX_DEFAULT, lock, pe);
  if (place.device != nullptr)
    fail(call, "the lock is in device memory; take one that shmem_malloc gave, or a global variable");
  return reinterpret_cast<std::uint64_t*>(place.at);
}

void set(long* lock) {
  constexpr const char* kCall = "shmem_set_lock";
  std::uint64_t* const word = word_of(kCall, lock);
  if (word == nullptr) return;
  const std::uint32_t ticket = next_of(__atomic_fetch_add(word, kTicket, __ATOMIC_SEQ_CST));
  Patience patience{kCall};
  while (served_of(__atomic_load_n(word, __ATOMIC_ACQUIRE)) != ticket)
    if (!patience.go_on()) return;
}

int test(long* lock) {
  constexpr const char* kCall = "shmem_test_lock";
  std::uint64_t* const word = word_of(kCall, lock);
  if (word == nullptr) return 1;
  std::uint64_t found = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  const bool is_free = next_of(found) == served_of(found);
  if (is_free && __atomic_compare_exchange_n(word, &found, found + kTicket, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
    return 0;
  tested_in_vain(kCall);
  return 1;
}

void clear(long* lock) {
  constexpr const char* kCall = "shmem_clear_lock";
  std::uint64_t* const word = word_of(kCall, lock);
  if (word == nullptr) return;
  quiet(kCall);
  std::uint64_t found = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  if (next_of(found) == served_of(found)) return fail(kCall, "nobody holds the lock");
  for (;;) {
    // Nobody waits: as it was at first. Otherwise the next one.
    const std::uint64_t next = served_one_more(found);
    const std::uint64_t after = next_of(next) == served_of(next) ? 0 : next;
    if (__atomic_compare_exchange_n(word, &found, after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return;
  }
}

}  // namespace
}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

void pshmem_set_lock(long* lock) {
  guarded("shmem_set_lock", [&] { set(lock); });
}
SHMEM_ALSO(set_lock);
void pshmem_clear_lock(long* lock) {
  guarded("shmem_clear_lock", [&] { clear(lock); });
}
SHMEM_ALSO(clear_lock);
int pshmem_test_lock(long* lock) {
  return guarded("shmem_test_lock", 1, [&] { return test(lock); });
}
SHMEM_ALSO(test_lock);
}
