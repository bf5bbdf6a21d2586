/* Global and static variables through OpenSHMEM's own calls: whatever a call does with the heap it does with them. */
#include <errno.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 3001, ADDITIONS = 2000 };

int zeroed[COUNT];
static int given[COUNT] = {1, 2, 3};
static double reals[COUNT];
static long counter = 5;
static uint64_t signal_word;
static long flag;
static long lock;
static long guarded[2];
static long source[4], result[4], wanted[4];
static long sync[SHMEM_REDUCE_SYNC_SIZE], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 4];
static int wrong_anywhere;
static const int constant = 1;
static _Thread_local int of_thread = 1;

static int me, pes, right, left;
static int wrong;

static void expect(int is, const char* what) {
  if (is) return;
  fprintf(stderr, "PE %d: wrong: %s\n", me, what);
  ++wrong;
}

static int value(int i, int pe, int seed) { return (i * 7919) ^ (pe * 104729 + seed * 31); }

static void copies(void) {
  static int within[COUNT];
  int local[COUNT];
  int* const places[] = {zeroed, given, within};
  for (int seed = 0; seed < 3; ++seed) {
    int* const place = places[seed];
    for (int i = 0; i < COUNT; ++i) local[i] = value(i, me, seed);
    memset(place, 0xa5, COUNT * sizeof *place);
    shmem_barrier_all();
    shmem_int_put(place + 1, local, COUNT - 2, right);
    shmem_barrier_all();
    int bad = 0;
    for (int i = 0; i < COUNT - 2; ++i) bad += place[i + 1] != value(i, left, seed);
    bad += place[0] != (int)0xa5a5a5a5 || place[COUNT - 1] != (int)0xa5a5a5a5;
    expect(bad == 0, "a put into a variable");
    memset(local, 0x11, sizeof local);
    shmem_int_get(local, place + 1, COUNT - 2, right);
    bad = 0;
    for (int i = 0; i < COUNT - 2; ++i) bad += local[i] != value(i, me, seed);
    expect(bad == 0, "a get from a variable");
    shmem_barrier_all();
  }
  for (int i = 0; i < COUNT; ++i) reals[i] = -1;
  double some[100];
  for (int i = 0; i < 100; ++i) some[i] = me + i;
  shmem_barrier_all();
  shmem_double_iput(reals + 3, some, 7, 1, 100, right);
  shmem_double_p(&reals[0], me + 0.5, right);
  shmem_barrier_all();
  int bad = reals[0] != left + 0.5;
  for (int i = 0; i < 100; ++i) bad += reals[3 + 7 * i] != left + i || reals[4 + 7 * i] != -1;
  expect(bad == 0, "a strided put into a variable");
  expect(shmem_double_g(&reals[0], right) == me + 0.5, "an element of a variable");
  shmem_barrier_all();
}

static void atomics(void) {
  expect(counter == 5, "what was in a variable before");
  shmem_barrier_all();
  for (int i = 0; i < ADDITIONS; ++i) shmem_long_atomic_add(&counter, 1, i % pes);
  for (int i = 0; i < ADDITIONS; ++i) (void)shmem_long_atomic_fetch_inc(&counter, 0);
  shmem_barrier_all();
  long mine = 5;
  for (int i = 0; i < ADDITIONS; ++i) mine += i % pes == me ? pes : 0;
  if (me == 0) mine += (long)ADDITIONS * pes;
  expect(counter == mine, "atomic additions to a variable");
  shmem_barrier_all();
  if (me == 0) expect(shmem_long_atomic_compare_swap(&counter, shmem_long_g(&counter, right), 8, right) != 8, "a swap");
  shmem_barrier_all();
  if (me == 1 % pes) expect(counter == 8, "a compared swap of a variable");
  shmem_barrier_all();
}

static void waits(void) {
  for (long round = 1; round <= 100; ++round) {
    const int load = value((int)round, me, 0);
    shmem_int_put_signal(&zeroed[5], &load, 1, &signal_word, (uint64_t)round, SHMEM_SIGNAL_SET, right);
    shmem_long_p(&flag, round, left);
    shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, (uint64_t)round);
    expect(zeroed[5] == value((int)round, left, 0), "what came with a signal to a variable");
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
    expect(shmem_long_test(&flag, SHMEM_CMP_GE, round) == 1, "a test of a variable");
    shmem_barrier_all();
  }
}

/* Two words that only together make sense, changed by everybody. */
static void locks(void) {
  for (int i = 0; i < 50; ++i) {
    shmem_set_lock(&lock);
    const long first = shmem_long_g(&guarded[0], 0);
    const long second = shmem_long_g(&guarded[1], 0);
    expect(second == 2 * first, "what a lock in a variable guards");
    shmem_long_p(&guarded[0], first + 1, 0);
    shmem_long_p(&guarded[1], second + 2, 0);
    shmem_quiet();
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
  if (me == 0) expect(guarded[0] == 50L * pes, "how often a lock was held");
  shmem_barrier_all();
}

/* With the teams of today and the sets of before, whose arrays are static in most programs. */
static void collectives(void) {
  for (int i = 0; i < 4; ++i) source[i] = me * 10 + i, wanted[i] = 10L * pes * (pes - 1) / 2 + (long)i * pes;
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, result, source, 4);
  expect(memcmp(result, wanted, sizeof result) == 0, "a reduction of variables");
  for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) sync[i] = SHMEM_SYNC_VALUE;
  memset(result, 0, sizeof result);
  shmem_barrier_all();
  shmem_long_sum_to_all(result, source, 4, 0, 0, pes, work, sync);
  expect(memcmp(result, wanted, sizeof result) == 0, "a reduction of variables in an active set");
  shmem_barrier_all();
  shmem_long_broadcast(SHMEM_TEAM_WORLD, result, source, 4, pes - 1);
  expect(result[3] == (pes - 1) * 10 + 3, "a broadcast of variables");
  shmem_barrier_all();
}

static void addresses(void) {
  static int within;
  int on_stack = 0;
  int* const allocated = malloc(sizeof *allocated);
  int* const symmetric = shmem_malloc(sizeof *symmetric);
  for (int pe = 0; pe < pes; ++pe) {
    expect(shmem_addr_accessible(zeroed, pe) == 1, "a global is accessible");
    expect(shmem_addr_accessible(given + COUNT - 1, pe) == 1, "the end of one is");
    expect(shmem_addr_accessible(&within, pe) == 1, "a static of a function is");
    expect(shmem_addr_accessible(symmetric, pe) == 1, "the heap is");
    expect(shmem_addr_accessible(&on_stack, pe) == 0, "the stack is not");
    expect(shmem_addr_accessible(allocated, pe) == 0, "what malloc gives is not");
    expect(shmem_addr_accessible(&constant, pe) == 0, "a constant is not");
    expect(shmem_addr_accessible(&of_thread, pe) == 0, "a thread's variable is not");
    expect(shmem_addr_accessible(&errno, pe) == 0, "errno is not");
    expect(shmem_addr_accessible((const void*)(uintptr_t)&addresses, pe) == 0, "a function is not");
  }
  expect(shmem_ptr(&on_stack, right) == NULL, "the stack has no pointer");
  int* const theirs = shmem_ptr(&within, right);
  expect(theirs != NULL, "a static has a pointer");
  if (theirs != NULL) *theirs = 1000 + me;
  shmem_barrier_all();
  expect(within == 1000 + left, "a store through a pointer to a variable");
  shmem_free(symmetric);
  free(allocated);
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
  right = (me + 1) % pes;
  left = (me + pes - 1) % pes;
  copies();
  atomics();
  waits();
  locks();
  collectives();
  addresses();
  for (int pe = 0; pe < pes; ++pe) shmem_int_atomic_add(&wrong_anywhere, wrong, pe);
  shmem_barrier_all();
  const int status = wrong_anywhere == 0 ? 0 : 1;
  shmem_finalize();
  /* They are the program's own again, with what was in them. */
  if (wrong_anywhere != 0 || counter == 0 || guarded[me == 0 ? 0 : 1] != (me == 0 ? 50L * pes : 0)) return 1;
  zeroed[0] = 4;
  return status;
}
