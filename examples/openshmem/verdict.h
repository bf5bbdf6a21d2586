/* How these programs end: every PE says how much it found wrong, and all of them end with status 1 if anybody did. */
#ifndef VERDICT_H
#define VERDICT_H

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int verdict_wrong;

/* Collective, behind a barrier of its own. */
static inline int verdict(const char* program, int wrong) {
  const int me = shmem_my_pe();
  if (wrong != 0) fprintf(stderr, "%s: PE %d found %d things wrong\n", program, me, wrong);
  for (int pe = 0; wrong != 0 && pe < shmem_n_pes(); ++pe) shmem_int_atomic_add(&verdict_wrong, wrong, pe);
  shmem_barrier_all();
  const int all = verdict_wrong;
  if (me == 0 && all == 0) printf("%s: right on %d PEs\n", program, shmem_n_pes());
  return all == 0 ? 0 : 1;
}

/* The argument at that place, or a default. */
static inline long argument(int argc, char** argv, int place, long otherwise) {
  return argc > place ? strtol(argv[place], NULL, 0) : otherwise;
}

static inline double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
