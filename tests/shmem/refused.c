/* A put with a signal of which one half cannot be done does nothing of the other half either. */
#include "check.h"

static int calls;
static char cause_of_last[500];
static void note(const char* call, int pe, const char* cause) {
  (void)call, (void)pe;
  ++calls;
  snprintf(cause_of_last, sizeof cause_of_last, "%s", cause);
}

static long variable;

int main(void) {
  shmem_init();
  find_pes();
  long* const heap = (long*)memory(2 * sizeof(long));
  uint64_t* const word = (uint64_t*)memory(sizeof(uint64_t));
  uint64_t stack = 0;
  long value = 5;
  heap[0] = heap[1] = variable = 77;
  *word = 88;
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
  CHECK(heap[0] == 77 && heap[1] == 77 && variable == 77 && *word == 88 && stack == 0);
  shmem_barrier_all();
  /* Nothing to put: the signal alone, wherever dest is. */
  shmem_long_put_signal((long*)&stack, &value, 0, word, 2, SHMEM_SIGNAL_ADD, right);
  shmem_barrier_all();
  CHECK(*word == 90 && stack == 0);
  shmem_barrier_all();
  return done();
}
