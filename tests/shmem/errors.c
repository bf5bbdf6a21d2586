/* errors NAME: does one thing that is wrong; errors.sh looks at what comes of it. With "handled" before the name the program's own
 * handler is called instead, and goes on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char* a, const char* b) { return strcmp(a, b) == 0; }

static int calls;
static int calls_again;
static void handler(const char* call, int pe, const char* cause) {
  long own = 0;
  if (++calls == 1) printf("handled: %s on PE %d: %s\n", call, pe, cause);
  if (calls_again == 0) return;
  if (calls > 1) exit(9);
  shmem_barrier(pe, 0, 1, &own);
  printf("said: %s\n", shmemx_error_text());
}

/* No more threads for PE 2, once it has that number. */
static int is_threadless;
typedef int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  if (is_threadless && shmem_my_pe() == 2) return EAGAIN;
  return ((create)dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, start, argument);
}

/* On words that are shared: one thread waits for PE 1, which never comes, and another one calls again and again. */
static long* words;
static shmem_team_t with_another, alone;
static void* barrier_with_another(void* none) {
  for (int i = 0; i < 300; ++i) shmem_barrier(1, 0, 2, words + i);
  return none;
}
static void* barrier_alone(void* none) {
  for (int i = 0; i < 300; ++i) shmem_barrier(2, 0, 1, words + i);
  return none;
}
static void* barrier_on_stack_with_another(void* none) {
  long own = 0;
  shmem_barrier(1, 0, 2, &own);
  return none;
}
static void* barrier_on_stack_alone(void* none) {
  long own = 0;
  shmem_barrier(2, 0, 1, &own);
  return none;
}
static void* sync_with_another(void* none) {
  shmem_team_sync(with_another);
  return none;
}
static void* sync_alone(void* none) {
  shmem_team_sync(alone);
  return none;
}
static void two_at_once(void* (*first)(void*), void* (*second)(void*)) {
  pthread_t thread;
  pthread_create(&thread, NULL, first, NULL);
  for (;;) second(NULL);
}
/* Before that: all the words that are one's own. */
static void take_all(const char* what) {
  if (is(what, "shared_set"))
    for (int i = 0; i < 300; ++i) shmem_barrier(shmem_my_pe(), 0, 1, words + 300 + i);
  if (!is(what, "shared_team")) return;
  for (int i = 0; i < 63; ++i) shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 3, NULL, 0, &alone);
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 2, 1, 1, NULL, 0, &alone);
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, 2, NULL, 0, &with_another);
}
static void wrong(const char* what, long* heap, int last) {
  long stack = 0;
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  shmem_team_t team = SHMEM_TEAM_INVALID;
  if (is(what, "pe")) shmem_long_put(heap, &stack, 1, last + 1);
  if (is(what, "negative_pe")) shmem_int_atomic_inc((int*)heap, -1);
  if (is(what, "stack")) shmem_getmem(&stack, &stack, 8, 0);
  if (is(what, "beyond")) shmem_putmem(heap, heap, (size_t)1 << 50, 0);
  /* A product of 64 bits would be 8 bytes. */
  if (is(what, "too_many")) shmem_long_put(heap, heap, ((size_t)1 << 61) + 1, 0);
  if (is(what, "too_many_reduced")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, heap, ((size_t)1 << 61) + 1);
  if (is(what, "others")) shmem_long_p((long*)shmem_ptr(heap, 0), 1, 0);
  if (is(what, "wait")) shmem_long_wait_until(&stack, SHMEM_CMP_EQ, 1);
  if (is(what, "compare")) shmem_long_test(heap, 17, 1);
  if (is(what, "context")) shmem_ctx_long_p(context, heap, 1, 0);
  if (is(what, "destroyed_context") && shmem_ctx_create(0, &context) == 0) {
    shmem_ctx_destroy(context);
    shmem_ctx_long_p(context, heap, 1, 0);
  }
  if (strncmp(what, "gone_in_", 8) == 0 && shmem_ctx_create(0, &context) == 0) { /* calls that name no PE */
    shmem_ctx_destroy(context);
    if (is(what, "gone_in_fence")) shmem_ctx_fence(context);
    if (is(what, "gone_in_quiet")) shmem_ctx_quiet(context);
    if (is(what, "gone_in_pe_quiet")) shmem_ctx_pe_quiet(context, NULL, 0);
    if (is(what, "gone_in_session_start")) shmem_ctx_session_start(context, 0, NULL, 0);
    if (is(what, "gone_in_session_stop")) shmem_ctx_session_stop(context);
  }
  if (is(what, "team_context") && shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &context) == 0)
    shmem_ctx_long_g(context, heap, last + 1);
  if (is(what, "signal")) shmem_putmem_signal(heap, &stack, 8, (uint64_t*)heap, 1, 9, 0);
  if (is(what, "free")) shmem_free(&stack);
  if (is(what, "realloc") && shmem_realloc(heap + 1, 10) != NULL) exit(5);
  if (is(what, "active_set")) shmem_barrier(0, 0, last + 2, heap);
  if (is(what, "many_sets")) { /* more than have words of their own, and then all of them again, by one thread */
    for (int i = 0; i < 600; ++i) shmem_barrier(last, 0, 1, heap + i % 300);
    shmem_global_exit(0);
  }
  if (is(what, "shared_set")) two_at_once(barrier_with_another, barrier_alone);
  if (is(what, "shared_stack")) two_at_once(barrier_on_stack_with_another, barrier_on_stack_alone);
  if (is(what, "shared_team")) two_at_once(sync_with_another, sync_alone);
  if (is(what, "not_a_member")) shmem_barrier(0, 0, last, heap);
  if (is(what, "root")) shmem_broadcast64(heap, heap, 1, 77, 0, 0, last + 1, heap);
  if (is(what, "calls_again")) shmem_broadcast64(heap, heap, 1, 77, last, 0, 1, &stack);
  if (is(what, "reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, &stack, 1);
  if (is(what, "unlock")) shmem_clear_lock(heap);
  if (is(what, "team")) shmem_team_destroy(SHMEM_TEAM_WORLD);
  if (is(what, "kind")) shmemx_malloc_on(9, 8);
  if (is(what, "exit_0")) shmem_global_exit(0);
  if (is(what, "exit_7")) shmem_global_exit(7);
  if (is(what, "abort") || is(what, "holder")) raise(SIGKILL);
  if (is(what, "leave")) exit(3);
  if (is(what, "leave_0")) exit(0);
  (void)team;
}

/* Others leave, and nobody lets go of the lock or writes the word; or another thread does. */
static void* write_later(void* word) {
  usleep(500000);
  shmem_long_p((long*)word, 99, 0);
  return NULL;
}
static void test_for_ever(const char* what, long* heap) {
  pthread_t thread;
  if (is(what, "others_leave_a_thread")) pthread_create(&thread, NULL, write_later, heap + 5);
  shmem_set_lock(heap);
  if (is(what, "others_leave_a_lock"))
    while (shmem_test_lock(heap) != 0) continue;
  while (shmem_long_test(heap + 5, SHMEM_CMP_EQ, 99) == 0) continue;
}

/* All call shmem_finalize, but PE 0 or the last one was in another call before, which does not come to its end. */
static void finalize_after(const char* what, long* heap, int last) {
  const int me = shmem_my_pe();
  if (is(what, "finalize_after_wait") && me == 0) shmem_long_wait_until(heap + 5, SHMEM_CMP_EQ, 99);
  if (is(what, "finalize_after_barrier") && me == 0) shmem_barrier_all();
  if (is(what, "finalize_after_mixture") && me != last) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, heap + 1, 1);
  if (is(what, "finalize_after_mixture") && me == last) shmem_barrier_all();
  shmem_finalize();
  exit(0);
}

int main(int argc, char** argv) {
  const char* const what = argv[argc - 1];
  if (is(what, "uninitialised")) {
    long word = 0;
    shmem_long_p(&word, 1, 0);
    return 6;
  }
  is_threadless = is(what, "threadless");
  if (is_threadless) shmemx_set_error_handler(handler);
  const int leaves_one_thread =
      is(what, "others_leave_a_lock") || is(what, "others_leave_a_word") || is(what, "finalize_after_wait");
  shmem_init_thread(leaves_one_thread ? SHMEM_THREAD_SINGLE : SHMEM_THREAD_MULTIPLE, NULL);
  long* const heap = (long*)shmem_calloc(1000, sizeof(long));
  const int last = shmem_n_pes() - 1;
  const int handled = argc > 2;
  calls_again = is(what, "calls_again");
  words = heap;
  take_all(what);
  if (handled) shmemx_set_error_handler(handler);
  if (is(what, "sizes")) shmem_malloc(8 + (size_t)shmem_my_pe());
  if (is(what, "freed_twice")) {
    shmem_free(heap);
    shmem_free(heap);
  }
  if (is(what, "holder")) {
    if (shmem_my_pe() == last) shmem_set_lock(heap);
    shmem_barrier_all();
  }
  if (strncmp(what, "others_leave", 12) == 0) {
    if (shmem_my_pe() == 0) test_for_ever(what, heap);
    exit(0);
  }
  if (strncmp(what, "finalize_after", 14) == 0) finalize_after(what, heap, last);
  if (shmem_my_pe() == last) wrong(what, heap, last);
  if (handled) {
    if (shmem_my_pe() == last && calls == 0) return 8;
    shmemx_set_error_handler(NULL);
    shmem_finalize();
    return 0;
  }
  if (is(what, "holder"))
    while (shmem_test_lock(heap) != 0) continue;
  /* The others compute, wait for a word, or for all, and end all the same. */
  if (shmem_my_pe() == 0) shmem_long_wait_until(heap + 5, SHMEM_CMP_EQ, 99);
  if (shmem_my_pe() == 1) shmem_barrier_all();
  for (;;) pause();
}
