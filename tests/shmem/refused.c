/* What cannot be done as a whole is not done at all, and told once: a put with a signal, copies of blocks some of which lie elsewhere. And what
 * names nothing needs no addresses. refused [cuda | opencl] */
#include "check.h"

static int calls;
static char cause_of_last[500];
static void note(const char* call, int pe, const char* cause) {
  (void)call, (void)pe;
  ++calls;
  snprintf(cause_of_last, sizeof cause_of_last, "%s", cause);
}

static long variable;

/* One call of the handler, and nothing else. */
#define TOLD_ONCE(what, call)                                   \
  do {                                                          \
    calls = 0;                                                  \
    call;                                                       \
    CHECK_OF(calls == 1 && strstr(cause_of_last, what), #call); \
  } while (0)
static void blocks(long* heap) {
  const ptrdiff_t far = (ptrdiff_t)1 << 40;
  const long values[4] = {5, 6, 7, 8};
  long got[4] = {1, 2, 3, 4};
  const shmemx_error_handler_t usual = shmemx_set_error_handler(note);
  for (int of_heap = 0; of_heap < 2; ++of_heap) {
    long* const at = of_heap ? heap : &variable;
    TOLD_ONCE("not symmetric", shmem_long_iput(at, values, far, 1, 4, right));
    TOLD_ONCE("not symmetric", shmem_long_iput(at, values, -far, 1, 4, right));
    TOLD_ONCE("not symmetric", shmem_long_iget(got, at, 1, far, 4, right));
    TOLD_ONCE("not symmetric", shmem_long_ibput(at, values, far, 2, 1, 2, right));
    TOLD_ONCE("not symmetric", shmem_long_ibget(got, at, 2, -far, 1, 2, right));
    TOLD_ONCE("than there are addresses", shmem_long_iput(at, values, 2, 1, SIZE_MAX / 2, right));
    TOLD_ONCE("than there are addresses", shmem_long_iget(got, at, 1, PTRDIFF_MIN, 2, right));
    TOLD_ONCE("than there are addresses", shmem_long_ibget(got, at, 1, 1, SIZE_MAX / 2, 2, right));
    TOLD_ONCE("there are PEs 0 to", shmem_long_iput(at, values, 1, 1, 0, pes));
    TOLD_ONCE("not symmetric", CHECK(shmem_long_alltoalls(SHMEM_TEAM_WORLD, at, heap, far, 1, 2) != 0));
    TOLD_ONCE("not symmetric", CHECK(shmem_long_alltoalls(SHMEM_TEAM_WORLD, heap, at, 1, far, 2) != 0));
    TOLD_ONCE("than there are addresses", CHECK(shmem_long_alltoalls(SHMEM_TEAM_WORLD, at, at, 1, 1, SIZE_MAX / 2) != 0));
  }
  TOLD_ONCE("not symmetric", CHECK(shmem_long_collect(SHMEM_TEAM_WORLD, got, heap, me == 0 ? 2 : 1) != 0));
  TOLD_ONCE("not symmetric", CHECK(shmem_long_collect(SHMEM_TEAM_WORLD, heap + far, heap, 1) != 0));
  shmemx_set_error_handler(usual);
  shmem_barrier_all();
  CHECK(SEEN(long, heap) == 77 && SEEN(long, heap + 1) == 77 && variable == 77);
  for (long i = 0; i < 4; ++i) CHECK(got[i] == i + 1);
  shmem_barrier_all();
  /* Backwards the last block comes first. */
  shmem_long_iput(heap + 1, values, -1, 2, 2, right);
  shmem_barrier_all();
  CHECK(SEEN(long, heap + 1) == 5 && SEEN(long, heap) == 7);
  shmem_long_iget(got + 3, heap + 1, -3, -1, 2, right);
  CHECK(got[3] == 5 && got[0] == 7 && got[1] == 2 && got[2] == 3);
  shmem_barrier_all();
}
/* The standard has it of every call that takes a pointer and a number: the one may be null where the other is 0. */
static void nothing(void) {
  shmem_putmem(NULL, NULL, 0, right);
  shmem_getmem(NULL, NULL, 0, right);
  shmem_long_put_nbi(NULL, NULL, 0, right);
  shmem_long_get_nbi(NULL, NULL, 0, right);
  shmem_long_iput(NULL, NULL, 1, 1, 0, right);
  shmem_long_iget(NULL, NULL, 2, 1, 0, right);
  shmem_long_ibput(NULL, NULL, 1, 1, 3, 0, right);
  shmem_long_ibget(NULL, NULL, 1, 1, 0, 3, right);
  CHECK(shmem_broadcastmem(SHMEM_TEAM_WORLD, NULL, NULL, 0, 0) == 0 &&
        shmem_collectmem(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0);
  CHECK(shmem_fcollectmem(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0 && shmem_alltoallmem(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0);
  CHECK(shmem_long_alltoalls(SHMEM_TEAM_WORLD, NULL, NULL, 1, 1, 0) == 0);
  CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0 &&
        shmem_long_sum_exscan(SHMEM_TEAM_WORLD, NULL, NULL, 0) == 0);
  shmem_long_wait_until_all(NULL, 0, NULL, SHMEM_CMP_EQ, 1);
  CHECK(shmem_long_wait_until_any(NULL, 0, NULL, SHMEM_CMP_EQ, 1) == SIZE_MAX);
  CHECK(shmem_long_wait_until_some(NULL, 0, NULL, NULL, SHMEM_CMP_EQ, 1) == 0);
  CHECK(shmem_long_test_some_vector(NULL, 0, NULL, NULL, SHMEM_CMP_EQ, NULL) == 0);
  shmem_pe_quiet(NULL, 0);
}

int main(int count, char** arguments) {
  if (!started(count, arguments)) return done();
  long* const heap = (long*)symmetric(2 * sizeof(long));
  uint64_t* const word = (uint64_t*)symmetric(sizeof(uint64_t));
  uint64_t stack = 0;
  long value = 5;
  variable = 77;
  GIVE(long, heap, 77);
  GIVE(long, heap + 1, 77);
  GIVE(uint64_t, word, 88);
  shmem_barrier_all();
  const shmemx_error_handler_t usual = shmemx_set_error_handler(note);
  for (int nbi = 0; nbi < 2; ++nbi)
    for (int of_heap = 0; of_heap < 2; ++of_heap) {
      long* const dest = of_heap ? heap : &variable;
      calls = 0;
      if (nbi) {
        shmem_long_put_signal_nbi(dest, &value, 1, word, 1, 9, right);
        CHECK(calls == 1 && strstr(cause_of_last, "operation is 9") != NULL);
        shmem_long_put_signal_nbi(dest, &value, 1, &stack, 1, SHMEM_SIGNAL_SET, right);
        shmem_long_put_signal_nbi((long*)&stack, &value, 1, word, 1, SHMEM_SIGNAL_ADD, right);
        shmem_long_put_signal_nbi(dest, &value, 1, word, 1, SHMEM_SIGNAL_ADD, pes);
      } else {
        shmem_long_put_signal(dest, &value, 1, word, 1, 9, right);
        CHECK(calls == 1 && strstr(cause_of_last, "operation is 9") != NULL);
        shmem_long_put_signal(dest, &value, 1, &stack, 1, SHMEM_SIGNAL_SET, right);
        shmem_long_put_signal((long*)&stack, &value, 1, word, 1, SHMEM_SIGNAL_ADD, right);
        shmem_long_put_signal(dest, &value, 1, word, 1, SHMEM_SIGNAL_ADD, pes);
      }
      CHECK(calls == 4);
    }
  calls = 0;
  const int named[2] = {right, pes};
  shmem_pe_quiet(named, 1);
  CHECK(calls == 0);
  shmem_pe_quiet(named, 2);
  CHECK(calls == 1 && strstr(cause_of_last, "there are PEs 0 to") != NULL);
  shmemx_set_error_handler(usual);
  shmem_barrier_all();
  CHECK(SEEN(long, heap) == 77 && SEEN(long, heap + 1) == 77 && variable == 77 && SEEN(uint64_t, word) == 88 && stack == 0);
  shmem_barrier_all();
  /* Nothing to put: the signal alone, wherever dest is. */
  shmem_long_put_signal((long*)&stack, &value, 0, word, 2, SHMEM_SIGNAL_ADD, right);
  shmem_barrier_all();
  shmem_long_put_signal_nbi(NULL, NULL, 0, word, 1, SHMEM_SIGNAL_ADD, right);
  shmem_barrier_all();
  CHECK(SEEN(uint64_t, word) == 91 && stack == 0);
  shmem_barrier_all();
  blocks(heap);
  nothing();
  shmem_free(word);
  shmem_free(heap);
  return done();
}
