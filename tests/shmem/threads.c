/* Threads of one PE, each with a context, a team and pSync arrays of its own, all at once; and each splits its team, and splits again. */
#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { THREADS = 3, ROUNDS = 200, APART = 7 * SHMEM_SYNC_SIZE };
static long *counts, *cells;
static shmem_team_t teams[THREADS];
/* Of variables, and of the heap, at distances that many tables of words begin again at. */
static long sync_words[THREADS][SHMEM_SYNC_SIZE], sync_cells[THREADS];
static long* heap_words;

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

/* Nobody passes a barrier before the others have come to it, whatever other threads do meanwhile. */
static void meet(int id, long* sync, long round) {
  long* const cell = sync == sync_words[id] ? &sync_cells[id] : cells + 4 * id + 2;
  for (int pe = 0; pe < pes; ++pe)
    if (pe != me) shmem_long_atomic_add(cell, 1, pe);
  shmem_barrier(0, 0, pes, sync);
  CHECK(shmem_long_atomic_fetch(cell, me) == (round + 1) * (pes - 1));
  shmem_barrier(0, 0, pes, sync);
}
static void* meet_in_sets(void* argument) {
  const int id = *(const int*)argument;
  for (long round = 0; round < ROUNDS; ++round) {
    meet(id, sync_words[id], round);
    meet(id, heap_words + id * APART, round);
    for (int i = 0; i < id; ++i) sched_yield();
  }
  return NULL;
}

/* What is split at the same time by several threads is not mixed up. */
static void* split(void* argument) {
  const int id = *(const int*)argument;
  long* const sum = cells + 4 * id;
  for (long round = 0; round < ROUNDS; ++round) {
    shmem_team_t part = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_strided(teams[id], 0, 1, pes, NULL, 0, &part) == 0 && part != SHMEM_TEAM_INVALID);
    for (long again = 0; again < 4; ++again) {
      sum[1] = round * (id + 1) + again * me;
      CHECK(shmem_long_sum_reduce(part, sum, sum + 1, 1) == 0);
      CHECK(*sum == round * (id + 1) * pes + again * pes * (pes - 1) / 2);
    }
    shmem_team_destroy(part);
  }
  return NULL;
}

static void all_at_once(void* (*what)(void*)) {
  pthread_t threads[THREADS];
  int ids[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    ids[i] = i;
    pthread_create(&threads[i], NULL, what, &ids[i]);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  shmem_barrier_all();
}

int main(void) {
  int provided = 0;
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE);
  find_pes();
  counts = (long*)shmem_calloc(1, sizeof(long));
  cells = (long*)shmem_calloc(4 * THREADS, sizeof(long));
  heap_words = (long*)shmem_calloc(THREADS * APART, sizeof(long));
  for (int i = 0; i < THREADS; ++i) CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &teams[i]) == 0);
  all_at_once(work);
  long all = 0;
  for (int pe = 0; pe < pes; ++pe) all += shmem_long_g(counts, pe);
  CHECK(all == (long)ROUNDS * THREADS * pes);
  all_at_once(meet_in_sets);
  all_at_once(split);
  shmem_barrier_all();
  return done();
}
