/* Every group of calls with source and destination in the heap of CUDA memory; the host puts the data there and takes it out again. A few
 * elements of a few types: by the other programs here every type is known to go the same way. device_calls [opencl] */
#include "device_check.h"

#define COPIES(what, T, t, size, X)                                                                \
  DO(what " put", left, size, 1, 1, 1, X(T, put, , (t*)there, (const t*)here, N, right));          \
  DO(what " put_nbi", left, size, 1, 1, 1, X(T, put, _nbi, (t*)there, (const t*)here, N, right));  \
  DO(what " get", right, size, 1, 1, 1, X(T, get, , (t*)there, (const t*)here, N, right));         \
  DO(what " get_nbi", right, size, 1, 1, 1, X(T, get, _nbi, (t*)there, (const t*)here, N, right)); \
  DO(what " put_signal", left, size, 1, 1, 1,                                                      \
     (X(T, put, _signal, (t*)there, (const t*)here, N, word, 7, SHMEM_SIGNAL_SET, right),          \
      CHECK_OF(shmem_signal_wait_until(word, SHMEM_CMP_GT, 6) == 7, what)));                       \
  DO(what " put_signal_nbi", left, size, 1, 1, 1,                                                  \
     (X(T, put, _signal_nbi, (t*)there, (const t*)here, N, word, 9, SHMEM_SIGNAL_ADD, right),      \
      CHECK_OF(shmem_signal_wait_until(word, SHMEM_CMP_NE, 0) == 9 && shmem_signal_fetch(word) == 9, what)));
#define STRIDED(what, T, t, size, X)                                                                   \
  DO(what " iput", left, size, 1, 3, 2, X(T, iput, , (t*)there, (const t*)here, 3, 2, N, right));      \
  DO(what " iget", right, size, 1, 2, 3, X(T, iget, , (t*)there, (const t*)here, 2, 3, N, right));     \
  DO(what " ibput", left, size, 2, 3, 4, X(T, ibput, , (t*)there, (const t*)here, 3, 4, 2, N, right)); \
  DO(what " ibget", right, size, 2, 4, 3, X(T, ibget, , (t*)there, (const t*)here, 4, 3, 2, N, right));
#define ONE(T, t, X)                                                          \
  do {                                                                        \
    begin(__LINE__);                                                          \
    X(T, p, , (t*)there + 1, (t)(50 + me), right);                            \
    shmem_barrier_all();                                                      \
    CHECK_OF(X(T, g, , (t*)there + 1, right) == (t)(50 + me), #T " p and g"); \
    look();                                                                   \
    const t own = (t)(50 + left);                                             \
    CHECK_OF(memcmp(seen + sizeof(t), &own, sizeof own) == 0, #T " p");       \
    shmem_barrier_all();                                                      \
  } while (0);
#define RMA(T, t)                           \
  COPIES(#T, T, t, sizeof(t), PLAIN)        \
  COPIES(#T " ctx", T, t, sizeof(t), WITH)  \
  STRIDED(#T, T, t, sizeof(t), PLAIN)       \
  STRIDED(#T " ctx", T, t, sizeof(t), WITH) \
  ONE(T, t, PLAIN)                          \
  ONE(T, t, WITH)
#define RMA_OF(S)                               \
  COPIES(#S, S, void, S / 8, SIZED)             \
  COPIES(#S " ctx", S, void, S / 8, SIZED_WITH) \
  STRIDED(#S, S, void, S / 8, SIZED)            \
  STRIDED(#S " ctx", S, void, S / 8, SIZED_WITH)
static void copies(void) {
  RMA(short, short)
  RMA(double, double)
  RMA_OF(8)
  RMA_OF(128)
  COPIES("mem", mem, void, 1, SIZED)
  COPIES("mem ctx", mem, void, 1, SIZED_WITH)
}

/* Each PE changes its right neighbour's word, and nobody else does. */
#define ATOMIC(T, t, X, what)                                                                                       \
  shmem_##T##_p(at, (t)5, me);                                                                                      \
  shmem_barrier_all();                                                                                              \
  CHECK_OF(X(T, atomic_compare_swap, , at, (t)9, (t)1, right) == (t)5, what);                                       \
  CHECK_OF(X(T, atomic_compare_swap, , at, (t)5, (t)6, right) == (t)5, what);                                       \
  CHECK_OF(X(T, atomic_fetch_inc, , at, right) == (t)6, what);                                                      \
  X(T, atomic_inc, , at, right);                                                                                    \
  CHECK_OF(X(T, atomic_fetch_add, , at, (t)10, right) == (t)8, what);                                               \
  X(T, atomic_add, , at, (t)-2, right);                                                                             \
  X(T, atomic_compare_swap, _nbi, &found, at, (t)16, (t)20, right);                                                 \
  X(T, atomic_fetch_inc, _nbi, &found2, at, right);                                                                 \
  X(T, atomic_fetch_add, _nbi, &found3, at, (t)3, right);                                                           \
  shmem_quiet();                                                                                                    \
  CHECK_OF(found == (t)16 && found2 == (t)20 && found3 == (t)21 && X(T, atomic_fetch, , at, right) == (t)24, what); \
  shmem_barrier_all();
#define EXTENDED(T, t, X, what)                                                           \
  shmem_##T##_p(at, (t)(10 + me), me);                                                    \
  shmem_barrier_all();                                                                    \
  CHECK_OF(X(T, atomic_fetch, , at, right) == (t)(10 + right), what);                     \
  X(T, atomic_set, , at, (t)(20 + me), right);                                            \
  CHECK_OF(X(T, atomic_swap, , at, (t)30, right) == (t)(20 + me), what);                  \
  X(T, atomic_swap, _nbi, &found, at, (t)40, right);                                      \
  X(T, atomic_fetch, _nbi, &found2, at, right);                                           \
  shmem_quiet();                                                                          \
  CHECK_OF(found == (t)30 && found2 == (t)40 && shmem_##T##_g(at, right) == (t)40, what); \
  shmem_barrier_all();
#define BITWISE(T, t, X, what)                                                                                       \
  shmem_##T##_p(at, (t)0x3c, me);                                                                                    \
  shmem_barrier_all();                                                                                               \
  CHECK_OF(X(T, atomic_fetch_and, , at, (t)0x0f, right) == (t)0x3c, what);                                           \
  CHECK_OF(X(T, atomic_fetch_or, , at, (t)0x30, right) == (t)0x0c, what);                                            \
  CHECK_OF(X(T, atomic_fetch_xor, , at, (t)0xff, right) == (t)0x3c, what);                                           \
  X(T, atomic_and, , at, (t)0xf0, right);                                                                            \
  X(T, atomic_or, , at, (t)0x05, right);                                                                             \
  X(T, atomic_xor, , at, (t)0x01, right);                                                                            \
  X(T, atomic_fetch_and, _nbi, &found, at, (t)0xfc, right);                                                          \
  X(T, atomic_fetch_or, _nbi, &found2, at, (t)1, right);                                                             \
  X(T, atomic_fetch_xor, _nbi, &found3, at, (t)2, right);                                                            \
  shmem_quiet();                                                                                                     \
  CHECK_OF(found == (t)0xc4 && found2 == (t)0xc4 && found3 == (t)0xc5 && shmem_##T##_g(at, right) == (t)0xc7, what); \
  shmem_barrier_all();
#define ATOMICS(T, t, MORE)              \
  {                                      \
    t* const at = (t*)there + 1;         \
    t found = 0, found2 = 0, found3 = 0; \
    EXTENDED(T, t, PLAIN, #T)            \
    EXTENDED(T, t, WITH, #T " ctx")      \
    MORE(T, t)                           \
    (void)found3;                        \
  }
#define NO_MORE(T, t)
#define INTEGERS(T, t)          \
  ATOMIC(T, t, PLAIN, #T)       \
  ATOMIC(T, t, WITH, #T " ctx") \
  BITWISE(T, t, PLAIN, #T)      \
  BITWISE(T, t, WITH, #T " ctx")
static void atomics(void) {
  begin(1);
  ATOMICS(int, int, INTEGERS)
  ATOMICS(ulong, unsigned long, INTEGERS)
  ATOMICS(float, float, NO_MORE)
  ATOMICS(double, double, NO_MORE)
  /* All at one word, and the names that the standard has given up. */
  shmem_long_p((long*)there, 0, me);
  shmem_barrier_all();
  for (int pe = 0; pe < pes; ++pe) {
    shmem_long_atomic_add((long*)there, 3, pe);
    shmem_long_fadd((long*)there, 2, pe);
    shmem_long_finc((long*)there, pe);
    shmem_long_add((long*)there, 1, pe);
    shmem_long_inc((long*)there, pe);
  }
  shmem_barrier_all();
  CHECK(shmem_long_fetch((long*)there, me) == 8L * pes);
  shmem_barrier_all();
  CHECK(shmem_long_swap((long*)there, 4, right) == 8L * pes && shmem_long_cswap((long*)there, 4, 6, right) == 4);
  shmem_long_p((long*)there + 1, 0, me);
  shmem_barrier_all();
  shmem_long_set((long*)there + 1, 5, right);
  shmem_long_wait((long*)there + 1, 0);
  CHECK(shmem_long_fetch((long*)there + 1, me) == 5);
  shmem_barrier_all();
  const uint64_t none = 0;
  shmem_putmem(word, &none, sizeof none, me);
  shmem_barrier_all();
  shmem_signal_set(word, 3, right);
  shmem_signal_add(word, 2, right);
  shmem_ctx_signal_add(context, word, 2, right);
  CHECK(shmem_signal_wait_until(word, SHMEM_CMP_GE, 7) == 7);
  shmem_barrier_all();
  shmem_ctx_signal_set(context, word, 1, right);
  CHECK(shmem_signal_wait_until(word, SHMEM_CMP_LT, 7) == 1);
  shmem_barrier_all();
}

#define WAITS(T, t)                                                                                               \
  {                                                                                                               \
    t* const words = (t*)there;                                                                                   \
    t values[WORDS], zeros[WORDS] = {0};                                                                          \
    const int status[WORDS] = {0, 1, 0, 0};                                                                       \
    size_t indices[WORDS];                                                                                        \
    for (int i = 0; i < WORDS; ++i) values[i] = (t)(20 + i);                                                      \
    shmem_##T##_put(words, zeros, WORDS, me);                                                                     \
    shmem_barrier_all();                                                                                          \
    CHECK_OF(shmem_##T##_test(words, SHMEM_CMP_EQ, 0) && !shmem_##T##_test(words, SHMEM_CMP_NE, 0), #T);          \
    CHECK_OF(shmem_##T##_test(words, SHMEM_CMP_LE, 0) && !shmem_##T##_test(words, SHMEM_CMP_GT, 0), #T);          \
    CHECK_OF(shmem_##T##_test_all(words, WORDS, NULL, SHMEM_CMP_EQ, 0) == 1, #T);                                 \
    CHECK_OF(shmem_##T##_test_any(words, WORDS, NULL, SHMEM_CMP_NE, 0) == SIZE_MAX, #T);                          \
    CHECK_OF(shmem_##T##_test_some(words, WORDS, indices, NULL, SHMEM_CMP_GE, 0) == WORDS, #T);                   \
    CHECK_OF(shmem_##T##_test_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values) == 0, #T);                     \
    CHECK_OF(shmem_##T##_test_any_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values) == SIZE_MAX, #T);              \
    CHECK_OF(shmem_##T##_test_some_vector(words, WORDS, indices, status, SHMEM_CMP_LT, values) == WORDS - 1, #T); \
    shmem_barrier_all();                                                                                          \
    for (int i = 0; i < WORDS; ++i) shmem_##T##_p(words + i, (t)(10 + i), right);                                 \
    shmem_##T##_wait_until(words, SHMEM_CMP_EQ, (t)10);                                                           \
    shmem_##T##_wait_until_all(words, WORDS, NULL, SHMEM_CMP_GE, (t)10);                                          \
    CHECK_OF(shmem_##T##_wait_until_any(words, WORDS, NULL, SHMEM_CMP_EQ, (t)12) == 2, #T);                       \
    CHECK_OF(shmem_##T##_wait_until_some(words, WORDS, indices, status, SHMEM_CMP_LE, (t)12) == 2, #T);           \
    CHECK_OF(indices[0] == 0 && indices[1] == 2, #T);                                                             \
    shmem_barrier_all();                                                                                          \
    for (int i = 0; i < WORDS; ++i) shmem_##T##_p(words + i, values[i], right);                                   \
    shmem_##T##_wait_until_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, values);                                  \
    values[0] = values[2] = 0;                                                                                    \
    CHECK_OF(shmem_##T##_wait_until_any_vector(words, WORDS, status, SHMEM_CMP_EQ, values) == 3, #T);             \
    CHECK_OF(shmem_##T##_wait_until_some_vector(words, WORDS, indices, NULL, SHMEM_CMP_EQ, values) == 2, #T);     \
    CHECK_OF(indices[0] == 1 && indices[1] == 3, #T);                                                             \
    shmem_barrier_all();                                                                                          \
  }
static void waits(void) {
  begin(2);
  WAITS(short, short)
  WAITS(int, int)
  WAITS(ulong, unsigned long)
}

/* PEs of a context are those of its team, and order is kept: what was put before the word is there with it. */
static void order(shmem_team_t part) {
  begin(3);
  const int index = shmem_team_my_pe(part), n = shmem_team_n_pes(part);
  if (index >= 0) {
    shmem_ctx_t own;
    CHECK(shmem_team_create_ctx(part, SHMEM_CTX_PRIVATE, &own) == 0);
    const int next = (index + 1) % n;
    shmem_ctx_putmem(own, there + 64, here, 100, next);
    shmem_ctx_fence(own);
    shmem_ctx_uint64_p(own, word, 1, next);
    shmem_ctx_pe_quiet(own, &next, 1);
    shmem_uint64_wait_until(word, SHMEM_CMP_EQ, 1);
    expect(64, 3, shmem_team_translate_pe(part, (index + n - 1) % n, SHMEM_TEAM_WORLD), 0, 100);
    CHECK(shmem_team_ptr(part, there, next) == NULL); /* no address for the processor */
    CHECK(shmem_team_sync(part) == 0);
    shmem_ctx_destroy(own);
  }
  end("order");
}

static void moved(shmem_team_t team, int n) {
  const int index = shmem_team_my_pe(team);
  const size_t size = sizeof(double), bytes = N * size;
#define PE(i) shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD)
#define TOGETHER(what, seed, call, ...) \
  begin(seed);                          \
  if (index >= 0) {                     \
    CHECK_OF((call) == 0, what);        \
    for (int i = 0; i < n; ++i) {       \
      __VA_ARGS__                       \
    }                                   \
  }                                     \
  end(what);
  double *const to = (double*)there, *const of = (double*)here;
  const size_t given = N + (size_t)index;
  size_t at = 0;
  TOGETHER("broadcast", 10, shmem_double_broadcast(team, to, of, N, n - 1), expect(0, 10, PE(n - 1), 0, bytes);)
  TOGETHER("broadcastmem", 11, shmem_broadcastmem(team, to, of, bytes, 0), expect(0, 11, PE(0), 0, bytes);)
  TOGETHER("fcollect", 12, shmem_double_fcollect(team, to, of, N), expect((size_t)i * bytes, 12, PE(i), 0, bytes);)
  TOGETHER("fcollectmem", 13, shmem_fcollectmem(team, to, of, N), expect((size_t)i * N, 13, PE(i), 0, N);)
  TOGETHER("collect", 14, shmem_double_collect(team, to, of, given), expect(at, 14, PE(i), 0, bytes + (size_t)i * size);
           at += bytes + (size_t)i * size;)
  at = 0;
  TOGETHER("collectmem", 15, shmem_collectmem(team, to, of, given), expect(at, 15, PE(i), 0, N + (size_t)i);
           at += N + (size_t)i;)
  TOGETHER("alltoall", 16, shmem_double_alltoall(team, to, of, N),
           expect((size_t)i * bytes, 16, PE(i), (size_t)index * bytes, bytes);)
  TOGETHER("alltoallmem", 17, shmem_alltoallmem(team, to, of, N), expect((size_t)i * N, 17, PE(i), (size_t)index * N, N);)
  TOGETHER("alltoalls", 18, shmem_double_alltoalls(team, to, of, 2, 3, N),
           for (size_t k = 0; k < N; ++k)
               expect(((size_t)i * N + k) * 2 * size, 18, PE(i), ((size_t)index * N + k) * 3 * size, size);)
  TOGETHER("alltoallsmem", 19, shmem_alltoallsmem(team, to, of, 2, 3, N),
           for (size_t k = 0; k < N; ++k) expect(((size_t)i * N + k) * 2, 19, PE(i), ((size_t)index * N + k) * 3, 1);)
}

/* Small numbers, of which no result is rounded. */
#define REDUCED(T, t, first, count, step, op, call)                    \
  {                                                                    \
    t values[N], result[N];                                            \
    for (int i = 0; i < N; ++i) values[i] = (t)((me * 7 + i) % 5 + 1); \
    shmem_putmem(here, values, sizeof values, me);                     \
    shmem_barrier_all();                                               \
    call;                                                              \
    shmem_getmem(result, there, sizeof result, me);                    \
    for (int i = 0; i < N; ++i) {                                      \
      t sum = (t)(((first)*7 + i) % 5 + 1);                            \
      for (int k = 1; k < (count); ++k) {                              \
        const t next = (t)((((first) + k * (step)) * 7 + i) % 5 + 1);  \
        sum = (t)(op);                                                 \
      }                                                                \
      if ((count) == 0) sum = (t)0;                                    \
      CHECK_OF(result[i] == sum, #T " " #call);                        \
    }                                                                  \
    shmem_barrier_all();                                               \
  }
#define IN_TEAM(T, t, verb, op) \
  REDUCED(T, t, 0, pes, 1, op, shmem_##T##_##verb##_reduce(SHMEM_TEAM_WORLD, (t*)there, (t*)here, N))
#define BITS(T, t)              \
  IN_TEAM(T, t, and, sum& next) \
  IN_TEAM(T, t, or, sum | next) \
  IN_TEAM(T, t, xor, sum ^ next)
#define ORDERED(T, t)                         \
  IN_TEAM(T, t, max, next > sum ? next : sum) \
  IN_TEAM(T, t, min, next < sum ? next : sum)
#define SUMMED(T, t)                                                                                        \
  IN_TEAM(T, t, sum, sum + next)                                                                            \
  IN_TEAM(T, t, prod, sum* next)                                                                            \
  REDUCED(T, t, 0, me + 1, 1, sum + next, shmem_##T##_sum_inscan(SHMEM_TEAM_WORLD, (t*)there, (t*)here, N)) \
  REDUCED(T, t, 0, me, 1, sum + next, shmem_##T##_sum_exscan(SHMEM_TEAM_WORLD, (t*)there, (t*)here, N))
static void reductions(void) {
  begin(20);
  BITS(uchar, unsigned char)
  BITS(long, long)
  ORDERED(short, short)
  ORDERED(longdouble, long double)
  SUMMED(int, int)
  SUMMED(float, float)
  SUMMED(complexd, shmemx_complexd_)
}

/* All PEs, and every second one. The words that they meet at may be in memory of a device, too. */
static void active_sets(long* words, int log) {
  const int step = 1 << log, n = (pes - 1) / step + 1, index = me / step;
  const int member = me % step == 0;
  const size_t bytes = N * 4;
#define SET 0, log, n, words
#define IN_SET(what, seed, call, ...) \
  begin(seed);                        \
  if (member) {                       \
    call;                             \
    for (int i = 0; i < n; ++i) {     \
      __VA_ARGS__                     \
    }                                 \
  }                                   \
  end(what);
  IN_SET("broadcast32", 30, shmem_broadcast32(there, here, N, 0, SET), if (index != 0) expect(0, 30, 0, 0, bytes);)
  IN_SET("broadcast64", 31, shmem_broadcast64(there, here, N, 0, SET), if (index != 0) expect(0, 31, 0, 0, 2 * bytes);)
  IN_SET("fcollect32", 32, shmem_fcollect32(there, here, N, SET), expect((size_t)i * bytes, 32, i * step, 0, bytes);)
  IN_SET("collect64", 33, shmem_collect64(there, here, N, SET), expect((size_t)i * 2 * bytes, 33, i * step, 0, 2 * bytes);)
  IN_SET("alltoall32", 34, shmem_alltoall32(there, here, N, SET),
         expect((size_t)i * bytes, 34, i * step, (size_t)index * bytes, bytes);)
  IN_SET("alltoalls64", 35, shmem_alltoalls64(there, here, 2, 1, N, SET),
         for (size_t k = 0; k < N; ++k) expect(((size_t)i * N + k) * 16, 35, i * step, ((size_t)index * N + k) * 8, 8);)
  if (member) {
    shmem_barrier(SET);
    shmem_sync(SET);
  }
  shmem_barrier_all();
#define TO_ALL(T, t, verb, op) \
  REDUCED(T, t, 0, pes, 1, op, shmem_##T##_##verb##_to_all((t*)there, (t*)here, N, 0, 0, pes, (t*)(there + ROOM / 2), words))
  if (log != 0) return;
  TO_ALL(int, int, and, sum& next)
  TO_ALL(int, int, or, sum | next)
  TO_ALL(int, int, xor, sum ^ next)
  TO_ALL(float, float, max, next > sum ? next : sum)
  TO_ALL(float, float, min, next < sum ? next : sum)
  TO_ALL(long, long, sum, sum + next)
  TO_ALL(double, double, prod, sum* next)
}

/* What is not done there says so, and what to take instead. */
static void refused(void) {
  handled = 0;
  shmemx_set_error_handler(handler);
  CHECK(shmem_realloc(there, 10) == NULL);
  shmem_set_lock((long*)there);
  CHECK(shmem_test_lock((long*)there) == 1);
  shmem_clear_lock((long*)there);
  shmemx_set_error_handler(NULL);
  CHECK(handled == 4);
  shmem_barrier_all();
}

static void memory_on(int kind) {
  unsigned char *const zero = (unsigned char*)shmemx_calloc_on(kind, N, 100), *const page = (unsigned char*)shmemx_align_on(
                                                                                  kind, 65536, 1);
  CHECK(zero != NULL && page != NULL && (uintptr_t)page % 65536 == 0);
  if (zero != NULL) shmem_getmem(seen, zero, N * 100, right);
  CHECK(all_are(seen, N * 100, 0));
  CHECK(shmemx_align_on(kind, 48, 1) == NULL && strstr(shmemx_error_text(), "power of two") != NULL);
  CHECK(shmemx_align_on(kind, (size_t)1 << 40, 1) == NULL && strstr(shmemx_error_text(), "at most") != NULL);
  CHECK(shmemx_calloc_on(kind, SIZE_MAX, 2) == NULL && strstr(shmemx_error_text(), "more than there are") != NULL);
  CHECK(shmemx_calloc_on(kind, 0, 2) == NULL);
  shmem_barrier_all();
  shmem_free(page);
  shmem_free(zero);
}

int main(int count, char** arguments) {
  const int kind = count > 1 && strcmp(arguments[1], "opencl") == 0 ? SHMEMX_KIND_OPENCL : SHMEMX_KIND_CUDA;
  shmem_init();
  find_pes();
  there = (unsigned char*)shmemx_malloc_on(kind, ROOM);
  if (there == NULL) {
    if (me == 0) printf("left out, no memory of a device: %s\n", shmemx_error_text());
    CHECK(getenv("SHMEM_TEST_DEVICES") == NULL);
    return done();
  }
  here = (unsigned char*)shmemx_malloc_on(kind, ROOM);
  word = (uint64_t*)shmemx_calloc_on(kind, 1, sizeof(uint64_t));
  long* const at_home = (long*)shmem_calloc(SHMEM_SYNC_SIZE, sizeof(long));
  CHECK(shmem_ctx_create(0, &context) == 0);
  shmem_team_t part = SHMEM_TEAM_INVALID;
  const int members = pes > 2 ? pes - 1 : pes;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, members, NULL, 0, &part) == 0);
  memory_on(kind);
  memory_on(SHMEMX_KIND_HOST);
  copies();
  atomics();
  waits();
  order(part);
  moved(SHMEM_TEAM_WORLD, pes);
  moved(part, members);
  reductions();
  active_sets(at_home, 0);
  active_sets(at_home, 1);
  active_sets((long*)word, 0);
  refused();
  shmem_team_destroy(part);
  shmem_ctx_destroy(context);
  shmem_free(at_home);
  shmem_free(word);
  shmem_free(here);
  shmem_free(there);
  return done();
}
