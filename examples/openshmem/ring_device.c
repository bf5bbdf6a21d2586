/* ring.c with the load in memory of GPUs, and still by calls of the host alone: ring_device [ROUNDS]
 *
 * What changed: the load is allocated on the device, and the processor, which cannot read it there, takes it out and puts it back. Without a
 * GPU it says so. docs/openshmem.md goes on from here. */
#include "verdict.h"

enum { LOAD = 1000 };
static uint64_t turn; /* the host waits for it, so that it stays in the host's memory */

int main(int argc, char** argv) {
  const uint64_t rounds = (uint64_t)argument(argc, argv, 1, 50);
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const int next = (me + 1) % pes;
  const size_t goes = pes > 1 ? LOAD : 0; /* who is alone has it already */
  int* const load = shmemx_malloc_on(SHMEMX_KIND_CUDA, LOAD * sizeof(int));
  if (load == NULL) {
    if (me == 0) printf("SKIPPED: %s\n", shmemx_error_text());
    shmem_finalize();
    return 0;
  }
  int here[LOAD];
  for (int i = 0; i < LOAD; ++i) here[i] = me == 0 ? i : -1;
  shmem_int_put(load, here, LOAD, me);
  shmem_barrier_all();
  for (uint64_t round = 1; round <= rounds; ++round) {
    if (me == 0) shmem_int_put_signal(load, load, goes, &turn, round, SHMEM_SIGNAL_SET, next);
    shmem_signal_wait_until(&turn, SHMEM_CMP_EQ, round);
    shmem_int_get(here, load, LOAD, me);
    for (int i = 0; i < LOAD; ++i) here[i] += 1;
    shmem_int_put(load, here, LOAD, me);
    if (me != 0) shmem_int_put_signal(load, load, goes, &turn, round, SHMEM_SIGNAL_SET, next);
  }
  int wrong = 0;
  for (int i = 0; me == 0 && i < LOAD; ++i) wrong += here[i] != i + (int)rounds * pes;
  const int status = verdict("ring_device", wrong);
  shmem_free(load);
  shmem_finalize();
  return status;
}
