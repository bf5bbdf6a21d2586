/* How long puts, gets and atomic operations take between PE 0 and the last one, and how many bytes go at once, in global memory and in the
 * heap: latency [LONGEST_BYTES] [REPETITIONS]
 *
 * Nothing is timed before its result was checked. The other PEs wait. */
#include <stdint.h>
#include <string.h>

#include "verdict.h"

enum { GLOBAL_BYTES = 1 << 20, WINDOW = 64 };
static unsigned char global_target[GLOBAL_BYTES];
static unsigned char global_source[GLOBAL_BYTES];
static long counter;
static uint64_t ping;

static int peer;
static long repetitions;
static int wrong;

static unsigned char byte_at(long i, long seed) { return (unsigned char)((i * 31 + seed * 17 + (i >> 8)) & 0xff); }

static void fill(unsigned char* bytes, long count, long seed) {
  for (long i = 0; i < count; ++i) bytes[i] = byte_at(i, seed);
}

/* The bytes that were meant, and not one more. */
static void check(const char* what, const unsigned char* bytes, long count, long seed, unsigned char beyond) {
  int found = bytes[count] != beyond;
  for (long i = 0; i < count; ++i) found += bytes[i] != byte_at(i, seed);
  if (found != 0) fprintf(stderr, "latency: %s of %ld bytes: %d bytes are wrong\n", what, count, found);
  wrong += found;
}

static void check_value(const char* what, long found, long expected) {
  if (found == expected) return;
  fprintf(stderr, "latency: %s gave %ld, not %ld\n", what, found, expected);
  ++wrong;
}

typedef struct {
  const char* name;
  unsigned char *target, *source;
  long longest;
} Memory;

static double per_call(double start) { return 1e6 * (seconds() - start) / (double)repetitions; }

/* Columns: bytes, microseconds of a put that is complete, of a get, and millions of bytes a second of many puts. */
static void time_copies(const Memory* memory, unsigned char* own, long bytes) {
  fill(memory->source, bytes, bytes);
  memset(own, 0xa5, (size_t)bytes + 1);
  shmem_putmem(memory->target, own, (size_t)bytes + 1, peer);
  shmem_putmem(memory->target, memory->source, (size_t)bytes, peer);
  shmem_quiet();
  shmem_getmem(own, memory->target, (size_t)bytes + 1, peer);
  check("a put and a get", own, bytes, bytes, 0xa5);

  double start = seconds();
  for (long i = 0; i < repetitions; ++i) {
    shmem_putmem(memory->target, memory->source, (size_t)bytes, peer);
    shmem_quiet();
  }
  const double put = per_call(start);
  start = seconds();
  for (long i = 0; i < repetitions; ++i) shmem_getmem(own, memory->target, (size_t)bytes, peer);
  const double get = per_call(start);
  start = seconds();
  for (long i = 0; i < repetitions; ++i) {
    for (int j = 0; j < WINDOW; ++j) shmem_putmem_nbi(memory->target, memory->source, (size_t)bytes, peer);
    shmem_quiet();
  }
  const double many = per_call(start);
  printf("%-7s %9ld %12.3f %12.3f %12.1f\n", memory->name, bytes, put, get, (double)(bytes * WINDOW) / many);
}

#define TIME_ATOMIC(name, call)                          \
  do {                                                   \
    const double start = seconds();                      \
    for (long i = 0; i < repetitions; ++i) (void)(call); \
    printf("%-24s %12.3f\n", name, per_call(start));     \
  } while (0)

static void time_atomics(void) {
  shmem_long_atomic_set(&counter, 5, peer);
  check_value("fetch after set", shmem_long_atomic_fetch(&counter, peer), 5);
  check_value("fetch_add", shmem_long_atomic_fetch_add(&counter, 3, peer), 5);
  check_value("fetch_inc", shmem_long_atomic_fetch_inc(&counter, peer), 8);
  check_value("compare_swap that differs", shmem_long_atomic_compare_swap(&counter, 1, 2, peer), 9);
  check_value("compare_swap", shmem_long_atomic_compare_swap(&counter, 9, 2, peer), 9);
  check_value("swap", shmem_long_atomic_swap(&counter, 11, peer), 2);
  shmem_long_atomic_add(&counter, 2, peer);
  shmem_long_atomic_inc(&counter, peer);
  shmem_quiet();
  check_value("add and inc", shmem_long_g(&counter, peer), 14);
  TIME_ATOMIC("shmem_long_atomic_fetch", shmem_long_atomic_fetch(&counter, peer));
  TIME_ATOMIC("...fetch_add", shmem_long_atomic_fetch_add(&counter, 1, peer));
  TIME_ATOMIC("...fetch_inc", shmem_long_atomic_fetch_inc(&counter, peer));
  TIME_ATOMIC("...swap", shmem_long_atomic_swap(&counter, i, peer));
  TIME_ATOMIC("...compare_swap", shmem_long_atomic_compare_swap(&counter, i - 1, i, peer));
  shmem_long_atomic_set(&counter, 0, peer);
  TIME_ATOMIC("...add", (shmem_long_atomic_add(&counter, 1, peer), 0));
  shmem_quiet();
  check_value("many adds", shmem_long_atomic_fetch(&counter, peer), repetitions);
}

/* A word there and back: half of it is one way. */
static void time_ping(void) {
  const int me = shmem_my_pe();
  if (me != 0 && me != peer) return;
  const int other = me == 0 ? peer : 0;
  const double start = seconds();
  for (uint64_t i = 1; i <= (uint64_t)repetitions; ++i) {
    if (me == 0) shmem_uint64_p(&ping, i, other);
    shmem_uint64_wait_until(&ping, SHMEM_CMP_GE, i);
    if (me != 0) shmem_uint64_p(&ping, i, other);
  }
  if (me == 0) printf("%-24s %12.3f\n", "one way of a word", per_call(start) / 2);
}

int main(int argc, char** argv) {
  const long longest = argument(argc, argv, 1, 1 << 16);
  repetitions = argument(argc, argv, 2, 200);
  shmem_init();
  peer = shmem_n_pes() - 1;
  unsigned char* heap = shmem_malloc(2 * (size_t)longest + 128);
  unsigned char* own = malloc((size_t)longest + 1);
  if (heap == NULL || own == NULL) {
    fprintf(stderr, "latency: no memory for %ld bytes\n", longest);
    shmem_global_exit(1);
  }
  const Memory memories[] = {{"heap", heap, heap + longest + 64, longest},
                             {"globals", global_target, global_source, longest < GLOBAL_BYTES ? longest : GLOBAL_BYTES - 1}};
  if (shmem_my_pe() == 0) {
    printf("memory      bytes       put us       get us     many MB/s\n");
    for (int m = 0; m < 2; ++m)
      for (long bytes = 1; bytes <= memories[m].longest; bytes *= 4) time_copies(&memories[m], own, bytes);
    printf("atomic operations                  us\n");
    time_atomics();
  }
  shmem_barrier_all();
  if (shmem_n_pes() > 1) time_ping();
  const int status = verdict("latency", wrong);
  free(own);
  shmem_free(heap);
  shmem_finalize();
  return status;
}
