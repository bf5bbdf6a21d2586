// Where the memory of a PE runs out inside a call, no exception comes to the program, which may be of C: the handler of errors is told the call, the PE
// and why. And calls on much data take little of it. With an argument the usual handler is told, and ends the job.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "check.h"

static thread_local bool is_none_left = false;
static thread_local std::size_t most_taken = 0;

void* operator new(std::size_t bytes) {
  if (bytes > most_taken) most_taken = bytes;
  void* const made = is_none_left ? nullptr : std::malloc(bytes);
  if (made == nullptr) throw std::bad_alloc{};
  return made;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

static int told;
static char told_call[100], told_cause[300];
static int told_pe;
static void handler(const char* call, int pe, const char* cause) {
  ++told;
  told_pe = pe;
  std::snprintf(told_call, sizeof told_call, "%s", call);
  std::snprintf(told_cause, sizeof told_cause, "%s", cause);
}

// The call tells that, once.
template <class What>
static void without_memory(const char* call, const What& what) {
  told = 0;
  told_call[0] = told_cause[0] = '\0';
  is_none_left = true;
  what();
  is_none_left = false;
  CHECK_OF(told == 1, call);
  CHECK_OF(std::string(call) == told_call, told_call);
  CHECK_OF(told_pe == me, call);
  CHECK_OF(std::string(told_cause).find("no host memory is left") == 0, told_cause);
}

static constexpr std::size_t kMany = 1 << 20;

// Each on a team of its own, so that nobody waits for who cannot go on.
static void calls_tell_it(shmem_team_t alone, long* dest, const long* source) {
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  shmem_team_t made = SHMEM_TEAM_INVALID;
  long stack = 0;
  without_memory("shmem_long_sum_reduce", [&] { CHECK(shmem_long_sum_reduce(alone, dest, source, kMany) == -1); });
  without_memory("shmem_long_sum_inscan", [&] { CHECK(shmem_long_sum_inscan(alone, dest, source, kMany) == -1); });
  without_memory("shmem_long_sum_to_all",
                 [&] { shmem_long_sum_to_all(dest, source, static_cast<int>(kMany), me, 0, 1, nullptr, dest + kMany); });
  without_memory("shmem_team_split_strided",
                 [&] { CHECK(shmem_team_split_strided(alone, 0, 1, 1, nullptr, 0, &made) == -1); });
  CHECK(made == SHMEM_TEAM_INVALID);
  without_memory("shmem_ctx_create", [&] { CHECK(shmem_ctx_create(0, &context) == -1); });
  CHECK(context == SHMEM_CTX_INVALID);
  // What is wrong takes memory to say.
  without_memory("shmem_long_p", [&] { shmem_long_p(&stack, 1, me); });
  without_memory("shmem_ctx_long_g", [&] { CHECK(shmem_ctx_long_g(SHMEM_CTX_INVALID, source, me) == 0); });
  without_memory("shmem_long_wait_until_any",
                 [&] { CHECK(shmem_long_wait_until_any(&stack, 1, nullptr, SHMEM_CMP_EQ, 1) == SIZE_MAX); });
  without_memory("shmem_signal_add", [&] { shmem_signal_add(reinterpret_cast<std::uint64_t*>(&stack), 1, me); });
  without_memory("shmem_clear_lock", [&] { shmem_clear_lock(&stack); });
  without_memory("shmemx_malloc_on", [&] { CHECK(shmemx_malloc_on(9, 8) == nullptr); });
  without_memory("shmemx_view", [&] { CHECK(shmemx_view(9, nullptr) == -1); });
}

// Much data is gone through in pieces.
static void calls_take_little(shmem_team_t alone, long* dest, long* source) {
  for (std::size_t i = 0; i < kMany; ++i) source[i] = static_cast<long>(mixed(i) >> 8U) + me;
  shmem_barrier_all();
  most_taken = 0;
  CHECK(shmem_long_sum_reduce(alone, dest, source, kMany) == 0);
  CHECK(std::memcmp(dest, source, kMany * sizeof(long)) == 0);
  std::memset(dest, 0x55, kMany * sizeof(long));
  CHECK(shmem_long_sum_inscan(SHMEM_TEAM_WORLD, dest, source, kMany) == 0);
  bool right_sums = true;
  for (std::size_t i = 0; i < kMany; ++i)
    right_sums = right_sums && dest[i] == (me + 1) * static_cast<long>(mixed(i) >> 8U) + me * (me + 1) / 2;
  CHECK(right_sums);
  shmem_barrier_all();
  // In place.
  CHECK(shmem_long_sum_exscan(SHMEM_TEAM_WORLD, source, source, kMany) == 0);
  for (std::size_t i = 0; i < kMany; ++i)
    right_sums = right_sums && source[i] == me * static_cast<long>(mixed(i) >> 8U) + me * (me - 1) / 2;
  CHECK(right_sums);
  CHECK(most_taken <= 300000);
}

// A program of C++ may leave a call by an exception of its handler's.
static void throwing(const char*, int, const char* cause) {
  ++told;
  throw std::runtime_error(cause);
}
static void handlers_may_throw() {
  shmemx_set_error_handler(throwing);
  told = 0;
  bool came = false;
  long stack = 0;
  try {
    shmem_long_p(&stack, 1, me);
  } catch (const std::runtime_error&) {
    came = true;
  }
  CHECK(came && told == 1);
  shmemx_set_error_handler(handler);
  without_memory("shmem_long_p", [&] { shmem_long_p(&stack, 1, me); });
}

int main(int argc, char**) {
  shmem_init();
  find_pes();
  most_taken = 0;
  shmem_team_t alone = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0, &alone) == 0);
  for (int pe = 1; pe < pes; ++pe) {
    shmem_team_t made = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, pe, 1, 1, nullptr, 0, &made) == 0);
    if (pe == me) alone = made;
  }
  if (most_taken == 0) {
    std::puts("not covered here: memory that runs out; the library has an operator new of its own");
    return done();
  }
  auto* const source = static_cast<long*>(memory(kMany * sizeof(long)));
  auto* const dest = static_cast<long*>(memory((kMany + SHMEM_REDUCE_SYNC_SIZE) * sizeof(long)));
  shmemx_set_error_handler(handler);
  if (argc > 1) {  // the usual handler ends the job
    shmemx_set_error_handler(nullptr);
    is_none_left = me == pes - 1;
    if (is_none_left) shmem_long_sum_reduce(alone, dest, source, kMany);
    shmem_barrier_all();
    return 8;
  }
  calls_tell_it(alone, dest, source);
  handlers_may_throw();
  shmemx_set_error_handler(nullptr);
  shmem_barrier_all();
  calls_take_little(alone, dest, source);
  shmem_barrier_all();
  return done();
}
