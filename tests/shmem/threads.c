/* Threads of one PE, each with a context and a team of its own, all at once. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 3, ROUNDS = 200 };
static long *counts, *cells;
static shmem_team_t teams[THREADS];

static void* work(void* argument) {
  const int id = *(const int*)argument;
  shmem_ctx_t context;
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) == 0);
  long* const sum = cells + 4 * id;
  for (int round = 0; round < ROUNDS; ++round) {
    shmem_ctx_long_atomic_inc(context, counts, round % pes);
    sum[1] = round * (id + 1) + me;
    if (shmem_long_sum_reduce(teams[id], sum, sum + 1, 1) != 0 ||
        *sum != (long)round * (id + 1) * pes + (long)pes * (pes - 1) / 2) {
      CHECK(!"the sum of this thread's team");
      break;
    }
  }
  shmem_ctx_quiet(context);
  shmem_ctx_destroy(context);
  return NULL;
}

int main(void) {
  int provided = 0;
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE);
  find_pes();
  counts = (long*)shmem_calloc(1, sizeof(long));
  cells = (long*)shmem_calloc(4 * THREADS, sizeof(long));
  pthread_t threads[THREADS];
  int ids[THREADS];
  for (int i = 0; i < THREADS; ++i) CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &teams[i]) == 0);
  for (int i = 0; i < THREADS; ++i) {
    ids[i] = i;
    pthread_create(&threads[i], NULL, work, &ids[i]);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  shmem_barrier_all();
  long all = 0;
  for (int pe = 0; pe < pes; ++pe) all += shmem_long_g(counts, pe);
  CHECK(all == (long)ROUNDS * THREADS * pes);
  shmem_barrier_all();
  return done();
}
