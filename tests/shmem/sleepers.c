/* sleepers WHERE WHAT: PEs on processors "apart", on one "together" or "anywhere"; whoever waits long "sleeps" or "stays", as ISTHMUS_WAIT
 * says and as there are processors. PE 0 waits for PE 1, which looks how often PE 0 gives its processor away by itself: that tells which. */
#define _GNU_SOURCE
#include <sched.h>
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

/* By the main thread of that process. */
static long times_given_away(long process) {
  char name[64], line[200];
  long times = -1;
  snprintf(name, sizeof name, "/proc/%ld/status", process);
  FILE* const status = fopen(name, "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) sscanf(line, "voluntary_ctxt_switches: %ld", &times);
  if (status != NULL) fclose(status);
  return times;
}

/* Who sleeps does so soon, but a busy machine takes its time; who stays does so for 400 ms. */
static void look_at(long process, int sleeps) {
  enum { kSome = 30, kMostMs = 20000, kStayMs = 400 };
  const long before = times_given_away(process);
  CHECK(before >= 0);
  long times = 0;
  for (int ms = 0; ms < (sleeps ? kMostMs : kStayMs) && times < kSome; ms += 10) {
    usleep(10000);
    times = times_given_away(process) - before;
  }
  if (sleeps != (times >= kSome)) fprintf(stderr, "given away %ld times\n", times);
  CHECK(sleeps == (times >= kSome));
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
  long* const words = (long*)shmem_calloc(2, sizeof(long));
  if (me == 0) {
    shmem_long_p(words + 1, getpid(), 1);
    shmem_long_wait_until(words, SHMEM_CMP_EQ, 1);
  }
  if (me == 1) {
    shmem_long_wait_until(words + 1, SHMEM_CMP_NE, 0);
    look_at(words[1], sleeps);
    shmem_long_p(words, 1, 0);
  }
  shmem_barrier_all();
  return done();
}
