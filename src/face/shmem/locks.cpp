// Locks: first come, first served.
//
// The word that counts is one PE's copy. Its lower half is the next ticket, its upper half the ticket that is served; both are 0 again
// when nobody holds the lock or waits, which is the value that programs begin with. A ticket is the last step of whoever takes it, so
// that it is one atomic operation, and the upper half is changed by the holder alone.
#include <string>

#include "face/shmem/also.hpp"
#include "face/shmem/atomics.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/ordering.hpp"
#include "face/shmem/patience.hpp"

namespace ist::shmem {
namespace {

constexpr std::uint64_t kServed = std::uint64_t{1} << 32U;
std::uint64_t next_of(std::uint64_t word) { return word % kServed; }
std::uint64_t served_of(std::uint64_t word) { return word / kServed; }

// Locks beside each other are kept by different PEs.
std::uint64_t* word_of(const char* call, const long* lock) {
  const auto offset = (reinterpret_cast<std::uintptr_t>(lock) - hot.begin) / sizeof(long);
  const bool spread = hot.pes != 0 && reach(lock, sizeof *lock, hot.pe) != nullptr;
  int pe = spread ? static_cast<int>(offset % static_cast<std::uintptr_t>(hot.pes)) : 0;
  const AtomicPlace place = atomic_word(call, SHMEM_CTX_DEFAULT, lock, pe);
  if (place.device != nullptr)
    fail(call, "the lock is in device memory; take one that shmem_malloc gave, or a global variable");
  return reinterpret_cast<std::uint64_t*>(place.at);
}

void set(long* lock) {
  constexpr const char* kCall = "shmem_set_lock";
  std::uint64_t* const word = word_of(kCall, lock);
  if (word == nullptr) return;
  const std::uint64_t ticket = next_of(__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST));
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
  return is_free && __atomic_compare_exchange_n(word, &found, found + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED) ? 0 : 1;
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
    const std::uint64_t after = next_of(found) == served_of(found) + 1 ? 0 : found + kServed;
    if (__atomic_compare_exchange_n(word, &found, after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return;
  }
}

}  // namespace
}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

void pshmem_set_lock(long* lock) { set(lock); }
SHMEM_ALSO(set_lock);
void pshmem_clear_lock(long* lock) { clear(lock); }
SHMEM_ALSO(clear_lock);
int pshmem_test_lock(long* lock) { return test(lock); }
SHMEM_ALSO(test_lock);
}
