/* sleepers WHERE WHAT: PEs on processors "apart", on one "together" or "anywhere"; whoever waits long "sleeps" or "stays", as ISTHMUS_WAIT
 * says and as there are processors. PE 0 waits for PE 1, which does something else; how often PE 0 gave its processor away by itself tells
 * which. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/* To the first of the processors that there are, or the next; whatever the launcher has bound this PE to. */
static int bind_to(int number) {
  cpu_set_t one;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0 && number-- == 0) return 1;
  }
  return 0;
}

static int bind_to_all(void) {
  cpu_set_t all;
  memset(&all, 0xff, sizeof all);
  return sched_setaffinity(0, sizeof all, &all) == 0;
}

static long times_given_away(void) {
  struct rusage now;
  getrusage(RUSAGE_THREAD, &now);
  return now.ru_nvcsw;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* const where = argv[argc - 2];
  const int rank = getenv("ISTHMUS_RANK") != NULL ? atoi(getenv("ISTHMUS_RANK")) : 0;
  const int apart = strcmp(where, "apart") == 0, sleeps = strcmp(argv[argc - 1], "sleeps") == 0;
  if (strcmp(where, "anywhere") == 0 ? !bind_to_all() : !bind_to(1) || !bind_to(apart ? rank : 0)) { /* at all PEs alike */
    printf("there is one processor alone\n");
    return 77;
  }
  shmem_init();
  find_pes();
  long* const word = (long*)shmem_calloc(1, sizeof(long));
  /* On a busy machine the turns before the first sleep take long, too. */
  const struct timespec long_enough = {sleeps ? 1 : 0, sleeps ? 0 : 400000000};
  if (me == 1) {
    nanosleep(&long_enough, NULL);
    shmem_long_p(word, 1, 0);
  }
  if (me == 0) {
    const long before = times_given_away();
    shmem_long_wait_until(word, SHMEM_CMP_EQ, 1);
    const long times = times_given_away() - before;
    if (sleeps ? times < 30 : times > 20) fprintf(stderr, "given away %ld times\n", times);
    CHECK(sleeps ? times >= 30 : times <= 20);
  }
  shmem_barrier_all();
  return done();
}
