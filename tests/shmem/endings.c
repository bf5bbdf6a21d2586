/* endings NAME: ends in a way of its own, which harms nobody and is no error. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int is(const char* a, const char* b) { return strcmp(a, b) == 0; }

static void end_once_more(void) { shmem_finalize(); }

/* Behind the destructors of what the main thread has. */
static void nothing(const char* call, int pe, const char* cause) { (void)call, (void)pe, (void)cause; }
static void fail_late(void) {
  long word = 0;
  shmem_long_put(&word, &word, 1, pes); /* its text is longer than the one before */
  if (strstr(shmemx_error_text(), "shmem_long_put") == NULL) _exit(4);
}

/* Threads are inside calls when the process ends, and go on behind the end of OpenSHMEM, for a while. */
static void nap(void) { usleep(200000); }
static void sleep_long(void) { usleep(700000); }
static void* write_for_ever(void* word) {
  for (;;) shmem_long_atomic_inc((long*)word, right);
  return NULL;
}
static void* wait_for_ever(void* word) {
  for (;;) shmem_long_wait_until((long*)word + 1, SHMEM_CMP_EQ, 1);
  return NULL;
}
static void* test_for_ever(void* word) {
  while (shmem_long_test((long*)word + 1, SHMEM_CMP_EQ, 1) == 0) continue;
  return NULL;
}
static void be_inside(void) {
  long* const word = (long*)shmem_calloc(2, sizeof(long));
  pthread_t thread;
  pthread_create(&thread, NULL, write_for_ever, word);
  pthread_create(&thread, NULL, wait_for_ever, word);
  pthread_create(&thread, NULL, test_for_ever, word);
  usleep(20000);
}

/* PE 0's thread still waits, for what nobody can write any more, while the process ends. The others leave once PE 0 has. */
static void leave_first(void) {
  long* const word = (long*)shmem_calloc(2, sizeof(long));
  pthread_t thread;
  if (me == 0) {
    pthread_create(&thread, NULL, wait_for_ever, word);
    usleep(20000);
    return;
  }
  shmemx_set_error_handler(nothing);
  shmem_sync(0, 0, pes, word);
}

static int is_blocked(const char* thread, int signal) {
  char name[300], line[200];
  snprintf(name, sizeof name, "/proc/self/task/%s/status", thread);
  FILE* const status = fopen(name, "r");
  unsigned long long blocked = 0;
  while (status != NULL && fgets(line, sizeof line, status) != NULL) sscanf(line, "SigBlk: %llx", &blocked);
  if (status != NULL) fclose(status);
  return (blocked >> (signal - 1) & 1) != 0;
}
/* Signals of the program are not for threads of the library, but stores of theirs into variables that are just being moved wait, too. */
static void look_at_threads(void) {
  int others = 0;
  DIR* const tasks = opendir("/proc/self/task");
  CHECK(tasks != NULL);
  for (struct dirent* each = NULL; (each = readdir(tasks)) != NULL;) {
    const char* const thread = each->d_name;
    if (thread[0] == '.' || atoi(thread) == getpid()) continue;
    /* One that only just begins has all blocked. */
    for (int i = 0; i < 2000 && is_blocked(thread, SIGSEGV); ++i) usleep(1000);
    CHECK_OF(!is_blocked(thread, SIGSEGV), thread);
    CHECK_OF(is_blocked(thread, SIGUSR1) && is_blocked(thread, SIGTERM), thread);
    ++others;
  }
  closedir(tasks);
  CHECK(others > 0);
}

/* What a forked child ends is itself alone. Should it wait for others, it is ended. */
static int status_of_child(const char* what) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    if (is(what, "finalize")) shmem_finalize();
    if (is(what, "global_exit")) shmem_global_exit(7);
    if (is(what, "wrong")) shmem_long_p(NULL, 1, 0);
    exit(5);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void fork_children(void) {
  long* const word = (long*)shmem_calloc(1, sizeof(long));
  for (long round = 1; round <= 3; ++round) {
    CHECK(status_of_child("exit") == 5);
    CHECK(status_of_child("finalize") == 5);
    CHECK(status_of_child("global_exit") == 7);
    CHECK(status_of_child("wrong") == 1);
    for (int pe = 0; pe < pes; ++pe) shmem_long_atomic_inc(word, pe);
    shmem_barrier_all();
    CHECK(*word == round * pes);
    shmem_barrier_all();
  }
  shmem_free(word);
}

int main(int argc, char** argv) {
  const char* const what = argv[argc - 1];
  /* Handlers run in the opposite order: behind those of shmem_init. */
  if (is(what, "late") || is(what, "twice")) atexit(end_once_more);
  if (is(what, "failing")) atexit(fail_late);
  if (is(what, "inside")) atexit(nap);
  if (is(what, "first")) atexit(sleep_long);
  if (is(what, "before")) shmem_finalize();
  if (is(what, "inside"))
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, NULL); /* so that who sees all others leave may still wait */
  else
    shmem_init();
  find_pes();
  look_at_threads();
  if (is(what, "first")) leave_first();
  if (is(what, "failing")) {
    shmemx_set_error_handler(nothing);
    shmem_clear_lock((long*)shmem_calloc(1, sizeof(long)));
    CHECK(strstr(shmemx_error_text(), "nobody holds the lock") != NULL);
  }
  if (is(what, "inside")) be_inside();
  const int leaves = is(what, "late") || is(what, "inside") || is(what, "first") || is(what, "failing");
  if (leaves) return failures == 0 ? 0 : 1; /* without shmem_finalize */
  if (is(what, "children")) fork_children();
  return done();
}
