/* A token with a load goes round the PEs, and each adds its number to it: ring [ROUNDS]
 *
 * Global and static variables are symmetric, so that nothing is allocated. */
#include "verdict.h"

enum { LOAD = 1000 };
long token;
static long turn;
static int load[LOAD];

static void pass_on(long round, int to) {
  shmem_int_put(load, load, LOAD, to);
  shmem_long_p(&token, token, to);
  shmem_fence();
  shmem_long_p(&turn, round, to);
}

int main(int argc, char** argv) {
  const long rounds = argument(argc, argv, 1, 500);
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const int next = (me + 1) % pes;
  int wrong = 0;
  for (int i = 0; i < LOAD; ++i) load[i] = me == 0 ? i : -1;
  shmem_barrier_all();
  for (long round = 1; round <= rounds; ++round) {
    if (me == 0) pass_on(round, next);
    shmem_long_wait_until(&turn, SHMEM_CMP_EQ, round);
    token += me;
    for (int i = 0; i < LOAD; ++i) load[i] += 1;
    if (me != 0) pass_on(round, next);
  }
  const long once = (long)pes * (pes - 1) / 2;
  if (me == 0 && token != rounds * once) {
    fprintf(stderr, "ring: the token is %ld after %ld rounds, not %ld\n", token, rounds, rounds * once);
    ++wrong;
  }
  for (int i = 0; me == 0 && i < LOAD; ++i) wrong += load[i] != i + (int)rounds * pes;
  const int status = verdict("ring", wrong);
  shmem_finalize();
  return status;
}
