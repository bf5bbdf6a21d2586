/* Setup, memory and locks. */
#include <math.h>
#include <unistd.h>

#include "check.h"

static void who_is_where(void) {
  int major = 0, minor = 0;
  char name[SHMEM_MAX_NAME_LEN];
  memset(name, 'x', sizeof name);
  shmem_info_get_version(&major, &minor);
  shmem_info_get_name(name);
  CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION && major == 1 && minor >= 5);
  CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0 && strncmp(name, "Isthmus ", 8) == 0);
  CHECK(_my_pe() == me && _num_pes() == pes);
  long* const heap = (long*)memory(16 * sizeof(long));
  long stack = 0;
  for (int pe = -1; pe <= pes; ++pe) {
    const int is = pe >= 0 && pe < pes;
    CHECK(shmem_pe_accessible(pe) == is);
    CHECK(shmem_addr_accessible(heap + 3, pe) == is && shmem_addr_accessible(&stack, pe) == 0);
    CHECK((shmem_ptr(heap, pe) != NULL) == is && shmem_ptr(&stack, pe) == NULL &&
          shmemx_ptr(heap, pe) == shmem_ptr(heap, pe));
  }
  CHECK(shmem_ptr(heap, me) == heap);
  heap[5] = me;
  shmem_barrier_all();
  for (int pe = 0; pe < pes; ++pe) CHECK(((long*)shmem_ptr(heap + 5, pe))[0] == pe);
  shmem_barrier_all();
  shmem_clear_cache_inv(), shmem_set_cache_inv(), shmem_udcflush();
  shmem_clear_cache_line_inv(heap), shmem_set_cache_line_inv(heap), shmem_udcflush_line(heap);
  shmem_pcontrol(1);
  shmem_free(heap);
}

static void sizes(void) {
  CHECK(shmem_malloc(0) == NULL && shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL && shmem_align(64, 0) == NULL);
  CHECK(shmem_malloc_with_hints(0, 0) == NULL && shmemx_malloc_on(SHMEMX_KIND_HOST, 0) == NULL);
  if (me == 0) CHECK(shmem_malloc(0) == NULL); /* no barrier */
  if (me == pes - 1) shmem_free(NULL);
  static const size_t all[] = {1, 7, 8, 63, 64, 65, 4095, 4096, 4097, 1 << 20};
  void* blocks[10];
  for (int i = 0; i < 10; ++i) {
    blocks[i] = shmem_malloc(all[i]);
    CHECK(blocks[i] != NULL && (uintptr_t)blocks[i] % 16 == 0);
    fill(blocks[i], all[i], (uint64_t)(i + 100 * me));
  }
  for (int i = 0; i < 10; ++i) CHECK(filled(blocks[i], all[i], (uint64_t)(i + 100 * me)));
  for (int i = 9; i >= 0; --i) shmem_free(blocks[i]);
  for (size_t alignment = 1; alignment <= (size_t)1 << 22; alignment *= 2) {
    unsigned char* const block = (unsigned char*)shmem_align(alignment, 100);
    CHECK(block != NULL && (uintptr_t)block % alignment == 0);
    for (int pe = 0; pe < pes; ++pe) CHECK((uintptr_t)shmem_ptr(block, pe) % alignment == 0);
    shmem_free(block);
  }
  CHECK(shmem_align(48, 10) == NULL && strstr(shmemx_error_text(), "power of two") != NULL);
  CHECK(shmem_align((size_t)1 << 31, 10) == NULL && strstr(shmemx_error_text(), "at most 1073741824") != NULL);
  unsigned char* const zeros = (unsigned char*)shmem_calloc(1000, 3);
  CHECK(zeros != NULL && all_are(zeros, 3000, 0));
  memset(zeros, 0xff, 3000);
  shmem_free(zeros);
  unsigned char* const again = (unsigned char*)shmem_calloc(3000, 1);
  CHECK(again != NULL && all_are(again, 3000, 0));
  shmem_free(again);
  void* const hinted = shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
  CHECK(hinted != NULL);
  shmem_free(hinted);
  void* const old = shmalloc(10);
  CHECK(old != NULL);
  shfree(shrealloc(old, 20));
  void* const old_aligned = shmemalign(128, 10);
  CHECK((uintptr_t)old_aligned % 128 == 0);
  shfree(old_aligned);
  CHECK(shmem_calloc((size_t)1 << 40, (size_t)1 << 40) == NULL);
}

static void moved_to_another_size(void) {
  unsigned char* block = (unsigned char*)shmem_realloc(NULL, 100);
  CHECK(block != NULL);
  fill(block, 100, 5 + (uint64_t)me);
  block = (unsigned char*)shmem_realloc(block, 100000);
  CHECK(filled(block, 100, 5 + (uint64_t)me));
  fill(block, 100000, 6 + (uint64_t)me);
  block = (unsigned char*)shmem_realloc(block, 50);
  CHECK(filled(block, 50, 6 + (uint64_t)me));
  block = (unsigned char*)shmem_realloc(block, 60);
  CHECK(filled(block, 50, 6 + (uint64_t)me));
  CHECK(shmem_realloc(block, 0) == NULL);
}

/* Room for more than the heap begins with; and what nobody has. */
static void growth(void) {
  if (getenv("SHMEM_SYMMETRIC_SIZE") == NULL && getenv("SMA_SYMMETRIC_SIZE") == NULL) {
    const size_t large = (size_t)400 << 20;
    unsigned char* const small = (unsigned char*)memory(8);
    *small = (unsigned char)(me + 1);
    unsigned char* const block = (unsigned char*)shmem_malloc(large);
    CHECK(block != NULL && *small == me + 1);
    CHECK(strstr(shmemx_error_text(), "bytes") == NULL); /* before it grew there was no room */
    if (block != NULL) {
      const unsigned char value = (unsigned char)(me + 3);
      shmem_putmem(block + large - 1, &value, 1, (me + 1) % pes);
      shmem_barrier_all();
      CHECK(block[large - 1] == (me + pes - 1) % pes + 3);
      shmem_free(block);
    }
    shmem_free(small);
    CHECK(shmem_malloc((size_t)1 << 45) == NULL);
  } else { /* the test sets 4 MiB */
    void* const most = shmem_malloc((size_t)4 << 20);
    CHECK(most != NULL);
    CHECK(shmem_malloc((size_t)4 << 20) == NULL && shmem_malloc(1 << 20) == NULL);
    CHECK(strstr(shmemx_error_text(), "1048576 bytes were asked for; of each PE's symmetric heap ") != NULL);
    CHECK(strstr(shmemx_error_text(), "set SHMEM_SYMMETRIC_SIZE to what the program needs") != NULL);
    CHECK(shmem_realloc(most, (size_t)8 << 20) == NULL);
    shmem_free(most);
    void* const again = shmem_malloc((size_t)3 << 20);
    CHECK(again != NULL);
    shmem_free(again);
  }
}

/* What is refused because it is too much leaves the heap as long as it was. */
static char heap_length[500];
static void keep_text(const char* call, int pe, const char* cause) {
  (void)call, (void)pe;
  snprintf(heap_length, sizeof heap_length, "%s", cause);
}
static void too_much(void) {
  char before[sizeof heap_length];
  long stack = 0;
  const shmemx_error_handler_t usual = shmemx_set_error_handler(keep_text);
  shmem_long_p(&stack, 1, me);
  memcpy(before, heap_length, sizeof before);
  CHECK(strstr(before, "the symmetric heap of this PE goes from") != NULL);
  CHECK(shmem_malloc(SIZE_MAX) == NULL && shmem_malloc(SIZE_MAX - 4096) == NULL);
  for (size_t alignment = 64; alignment <= (size_t)1 << 30; alignment *= 4)
    CHECK(shmem_align(alignment, SIZE_MAX - alignment + 9) == NULL);
  shmem_long_p(&stack, 1, me);
  CHECK(strcmp(before, heap_length) == 0);
  shmemx_set_error_handler(usual);
}

/* What was allocated before the end is nothing afterwards. */
static void old_addresses(void) {
  void* const old = memory(100);
  shmem_finalize();
  shmem_init();
  const shmemx_error_handler_t usual = shmemx_set_error_handler(keep_text);
  heap_length[0] = 0;
  CHECK(shmem_realloc(old, 50) == NULL && strstr(heap_length, "nothing was allocated") != NULL);
  shmemx_set_error_handler(usual);
}

/* Nobody goes on before all have come, and what each stored into its own memory before is there; with a straggler each time. */
static void all_meet(void) {
  long* const round = (long*)shmem_calloc(1, sizeof(long));
  for (long n = 1; n <= 100; ++n) {
    if (n % 10 == 0 && me == n / 10 % pes) usleep(2000);
    *round = n;
    if (n % 2 == 0)
      shmem_sync_all();
    else
      shmem_barrier_all();
    for (int pe = 0; pe < pes; ++pe) {
      const long found = shmem_long_g(round, pe);
      CHECK(found == n || found == n + 1); /* who has met all may be one ahead, and no more */
    }
  }
  shmem_sync_all();
  shmem_free(round);
}

/* Tickets begin again behind the last one. */
static void tickets_without_end(void) {
  long* const lock = (long*)memory(sizeof(long));
  long* const count = (long*)shmem_calloc(1, sizeof(long));
  *lock = -1; /* the next ticket and the one that is served are the last ones: nobody has it */
  shmem_barrier_all();
  for (int i = 0; i < 50; ++i) {
    while (shmem_test_lock(lock) != 0) continue;
    const long value = shmem_long_g(count, 0);
    shmem_long_p(count, value + 1, 0);
    shmem_clear_lock(lock);
  }
  shmem_barrier_all();
  if (me == 0) CHECK(*count == 50L * pes);
  int kept = 0; /* by one PE, whose word is as in the beginning again */
  for (int pe = 0; pe < pes; ++pe) kept += shmem_long_g(lock, pe) == 0;
  CHECK(kept == 1);
  shmem_barrier_all();
  *lock = -1;
  shmem_barrier_all();
  if (me == 0) shmem_set_lock(lock);
  shmem_barrier_all();
  CHECK(shmem_test_lock(lock) == 1);
  shmem_barrier_all();
  if (me == 0) shmem_clear_lock(lock);
  shmem_barrier_all();
  shmem_free(count);
  shmem_free(lock);
}

static void locks(void) {
  long* const lock = (long*)shmem_calloc(3, sizeof(long));
  long* const counts = (long*)shmem_calloc(3, sizeof(long));
  for (int i = 0; i < 300; ++i) {
    long* const one = lock + i % 3;
    if (i % 2 == 0)
      shmem_set_lock(one);
    else
      while (shmem_test_lock(one) != 0) continue;
    const long value = shmem_long_g(counts + i % 3, 0);
    shmem_long_p(counts + i % 3, value + 1, 0);
    shmem_clear_lock(one);
  }
  shmem_barrier_all();
  if (me == 0)
    for (int i = 0; i < 3; ++i) CHECK(counts[i] == 100L * pes);
  for (int i = 0; i < 3; ++i) CHECK(lock[i] == 0);
  shmem_barrier_all();
  if (me == 0) shmem_set_lock(lock);
  shmem_barrier_all();
  if (me != 0) CHECK(shmem_test_lock(lock) == 1);
  shmem_barrier_all();
  if (me == 0) shmem_clear_lock(lock);
  shmem_barrier_all();
  if (me == pes - 1) {
    CHECK(shmem_test_lock(lock) == 0);
    shmem_clear_lock(lock);
  }
  shmem_barrier_all();
  shmem_free(lock);
  shmem_free(counts);
}

int main(void) {
  int provided = -1, begun = -1;
  shmem_query_initialized(&begun);
  CHECK(begun == 0);
  CHECK(shmem_initialized() == 0 && shmem_finalized() == 0);
  for (int level = SHMEM_THREAD_SINGLE; level <= SHMEM_THREAD_MULTIPLE; ++level) { /* begun and ended again and again */
    CHECK(shmem_init_thread(level, &provided) == 0 && provided == level);
    provided = -1;
    shmem_query_thread(&provided);
    CHECK(provided == level);
    long* const word = (long*)memory(sizeof(long));
    *word = -1;
    shmem_barrier_all();
    shmem_long_p(word, level, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    CHECK(*word == level);
    CHECK(shmem_initialized() == 1 && shmem_finalized() == 0 && shmem_query_interoperability(SHMEM_PROGRESS_MPI) == 0);
    shmem_query_initialized(&begun);
    CHECK(begun == 1);
    shmem_finalize();
    shmem_query_initialized(&begun);
    CHECK(shmem_initialized() == 0 && shmem_finalized() == 1 && begun == 0);
  }
  CHECK(shmem_init_thread(17, &provided) != 0);
  shmem_init();
  CHECK(shmem_init_thread(SHMEM_THREAD_SERIALIZED, &provided) == 0 &&
        provided == SHMEM_THREAD_SERIALIZED); /* ends with the second finalize */
  CHECK(shmem_init_thread(SHMEM_THREAD_SINGLE, &provided) == 0 && provided == SHMEM_THREAD_SERIALIZED);
  shmem_finalize();
  find_pes();
  shmem_finalize();
  CHECK(shmem_my_pe() == me && shmem_n_pes() == pes);
  who_is_where();
  sizes();
  moved_to_another_size();
  growth();
  too_much();
  old_addresses();
  all_meet();
  locks();
  tickets_without_end();
  return done();
}
