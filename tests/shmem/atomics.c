/* Every atomic operation of every type: what it finds, what it leaves, and that none is lost where all PEs do it at once.
 * atomics [cuda | opencl] */
#include "check.h"

static unsigned char* there;
static shmem_ctx_t context;
enum { ROOM = 128 };
static int times = 200; /* fewer where each is a device's */

#define SET_ALL(t, value)  \
  do {                     \
    shmem_barrier_all();   \
    GIVE(t, there, value); \
    shmem_barrier_all();   \
  } while (0)

#define EXTENDED(N, t)                                                                             \
  static void extended_##N(void) {                                                                 \
    t* const word = (t*)there;                                                                     \
    t found = 0;                                                                                   \
    SET_ALL(t, 10 + me);                                                                           \
    CHECK_OF(shmem_##N##_atomic_fetch(word, right) == (t)(10 + right), #N);                        \
    CHECK_OF(shmem_ctx_##N##_atomic_fetch(context, word, right) == (t)(10 + right), #N);           \
    shmem_##N##_atomic_fetch_nbi(&found, word, right);                                             \
    shmem_quiet();                                                                                 \
    CHECK_OF(found == (t)(10 + right), #N);                                                        \
    found = 0;                                                                                     \
    shmem_ctx_##N##_atomic_fetch_nbi(context, &found, word, right);                                \
    shmem_ctx_quiet(context);                                                                      \
    CHECK_OF(found == (t)(10 + right), #N);                                                        \
    shmem_barrier_all();                                                                           \
    shmem_##N##_atomic_set(word, (t)(20 + me), right);                                             \
    shmem_barrier_all();                                                                           \
    CHECK_OF(SEEN(t, word) == (t)(20 + left), #N);                                                 \
    shmem_barrier_all();                                                                           \
    shmem_ctx_##N##_atomic_set(context, word, (t)(30 + me), right);                                \
    shmem_barrier_all();                                                                           \
    CHECK_OF(SEEN(t, word) == (t)(30 + left), #N);                                                 \
    shmem_barrier_all();                                                                           \
    CHECK_OF(shmem_##N##_atomic_swap(word, (t)(40 + me), right) == (t)(30 + me), #N);              \
    shmem_barrier_all();                                                                           \
    CHECK_OF(SEEN(t, word) == (t)(40 + left), #N);                                                 \
    shmem_barrier_all();                                                                           \
    CHECK_OF(shmem_ctx_##N##_atomic_swap(context, word, (t)(50 + me), right) == (t)(40 + me), #N); \
    shmem_##N##_atomic_swap_nbi(&found, word, (t)(60 + me), right);                                \
    shmem_quiet();                                                                                 \
    CHECK_OF(found == (t)(50 + me), #N);                                                           \
    shmem_ctx_##N##_atomic_swap_nbi(context, &found, word, (t)(70 + me), right);                   \
    shmem_ctx_quiet(context);                                                                      \
    CHECK_OF(found == (t)(60 + me), #N);                                                           \
    shmem_barrier_all();                                                                           \
    CHECK_OF(SEEN(t, word) == (t)(70 + left), #N);                                                 \
    CHECK_OF(all_are(seen(there + sizeof(t), 64), 64, 0xee), #N);                                  \
  }
FOR_EXTENDED(EXTENDED);

#define STANDARD(N, t)                                                                                          \
  static void standard_##N(void) {                                                                              \
    t* const word = (t*)there;                                                                                  \
    t found = 0;                                                                                                \
    SET_ALL(t, 10 + me);                                                                                        \
    CHECK_OF(shmem_##N##_atomic_compare_swap(word, (t)99, (t)1, right) == (t)(10 + right), #N);                 \
    CHECK_OF(shmem_##N##_atomic_compare_swap(word, (t)(10 + right), (t)2, right) == (t)(10 + right), #N);       \
    CHECK_OF(shmem_ctx_##N##_atomic_compare_swap(context, word, (t)2, (t)3, right) == (t)2, #N);                \
    shmem_##N##_atomic_compare_swap_nbi(&found, word, (t)3, (t)4, right);                                       \
    shmem_quiet();                                                                                              \
    CHECK_OF(found == (t)3, #N);                                                                                \
    shmem_ctx_##N##_atomic_compare_swap_nbi(context, &found, word, (t)3, (t)5, right);                          \
    shmem_ctx_quiet(context);                                                                                   \
    CHECK_OF(found == (t)4, #N);                                                                                \
    shmem_barrier_all();                                                                                        \
    CHECK_OF(SEEN(t, word) == (t)4, #N);                                                                        \
    SET_ALL(t, 0);                                                                                              \
    for (int i = 0; i < times; ++i) {                                                                           \
      shmem_##N##_atomic_inc(word, 0);                                                                          \
      shmem_ctx_##N##_atomic_inc(context, word, 0);                                                             \
      shmem_##N##_atomic_add(word, (t)2, 0);                                                                    \
      shmem_ctx_##N##_atomic_add(context, word, (t)3, 0);                                                       \
      const t a = shmem_##N##_atomic_fetch_inc(word, 0);                                                        \
      const t b = shmem_ctx_##N##_atomic_fetch_inc(context, word, 0);                                           \
      const t c = shmem_##N##_atomic_fetch_add(word, (t)4, 0);                                                  \
      const t d = shmem_ctx_##N##_atomic_fetch_add(context, word, (t)5, 0);                                     \
      CHECK_OF(b > a && c > b && d >= (t)(c + 4), #N);                                                          \
      shmem_##N##_atomic_fetch_inc_nbi(&found, word, 0);                                                        \
      shmem_ctx_##N##_atomic_fetch_inc_nbi(context, &found, word, 0);                                           \
      shmem_##N##_atomic_fetch_add_nbi(&found, word, (t)6, 0);                                                  \
      shmem_ctx_##N##_atomic_fetch_add_nbi(context, &found, word, (t)7, 0);                                     \
    }                                                                                                           \
    shmem_barrier_all();                                                                                        \
    if (me == 0) CHECK_OF(SEEN(t, word) == (t)(pes * times * 33), #N);                                          \
    CHECK_OF(all_are(seen(there + sizeof(t), 64), 64, 0xee), #N);                                               \
    SET_ALL(t, 0);                                                                                              \
    for (int i = 0; i < times / 4; ++i) { /* a sum by compare and swap */                                       \
      t was = shmem_##N##_atomic_fetch(word, pes - 1);                                                          \
      for (t saw; (saw = shmem_##N##_atomic_compare_swap(word, was, (t)(was + 1), pes - 1)) != was;) was = saw; \
    }                                                                                                           \
    shmem_barrier_all();                                                                                        \
    CHECK_OF(shmem_##N##_g(word, pes - 1) == (t)(times / 4 * pes), #N);                                         \
  }
FOR_ATOMIC(STANDARD);

#define BIT_FORMS(N, t, verb, start, mine, after_mine, after_all)                              \
  SET_ALL(t, start);                                                                           \
  CHECK_OF((shmem_##N##_atomic_fetch_##verb(word, (t)mine, 0), 1), #N);                        \
  shmem_barrier_all();                                                                         \
  CHECK_OF(shmem_##N##_atomic_fetch(word, 0) == (t)(after_all), #N " " #verb);                 \
  SET_ALL(t, start);                                                                           \
  CHECK_OF(shmem_##N##_atomic_fetch_##verb(word, (t)mine, me) == (t)(start), #N);              \
  CHECK_OF(SEEN(t, word) == (t)(after_mine), #N);                                              \
  SET_ALL(t, start);                                                                           \
  CHECK_OF(shmem_ctx_##N##_atomic_fetch_##verb(context, word, (t)mine, me) == (t)(start), #N); \
  CHECK_OF(SEEN(t, word) == (t)(after_mine), #N);                                              \
  SET_ALL(t, start);                                                                           \
  shmem_##N##_atomic_fetch_##verb##_nbi(&found, word, (t)mine, me);                            \
  shmem_quiet();                                                                               \
  CHECK_OF(found == (t)(start) && SEEN(t, word) == (t)(after_mine), #N);                       \
  SET_ALL(t, start);                                                                           \
  shmem_ctx_##N##_atomic_fetch_##verb##_nbi(context, &found, word, (t)mine, me);               \
  shmem_ctx_quiet(context);                                                                    \
  CHECK_OF(found == (t)(start) && SEEN(t, word) == (t)(after_mine), #N);                       \
  SET_ALL(t, start);                                                                           \
  shmem_##N##_atomic_##verb(word, (t)mine, 0);                                                 \
  shmem_barrier_all();                                                                         \
  CHECK_OF(shmem_##N##_atomic_fetch(word, 0) == (t)(after_all), #N " " #verb);                 \
  SET_ALL(t, start);                                                                           \
  shmem_ctx_##N##_atomic_##verb(context, word, (t)mine, 0);                                    \
  shmem_barrier_all();                                                                         \
  CHECK_OF(shmem_##N##_atomic_fetch(word, 0) == (t)(after_all), #N " " #verb);
#define BITWISE(N, t)                                             \
  static void bitwise_##N(void) {                                 \
    t* const word = (t*)there;                                    \
    t found = 0;                                                  \
    const t bit = (t)((t)1 << me);                                \
    const t all = (t)(((t)1 << pes) - 1);                         \
    BIT_FORMS(N, t, or, 0, bit, bit, all)                         \
    BIT_FORMS(N, t, xor, 0xff, bit, 0xff ^ bit, 0xff ^ all)       \
    BIT_FORMS(N, t, and, 0xff, (t)~bit, 0xff & ~bit, 0xff & ~all) \
  }
FOR_BITWISE(BITWISE);

#define OLD_FORMS(N, t)                                                                     \
  static void old_##N(void) {                                                               \
    t* const word = (t*)there;                                                              \
    SET_ALL(t, 1);                                                                          \
    CHECK_OF(shmem_##N##_cswap(word, (t)1, (t)5, me) == (t)1 && SEEN(t, word) == (t)5, #N); \
    CHECK_OF(shmem_##N##_finc(word, me) == (t)5 && SEEN(t, word) == (t)6, #N);              \
    CHECK_OF(shmem_##N##_fadd(word, (t)4, me) == (t)6 && SEEN(t, word) == (t)10, #N);       \
    shmem_##N##_inc(word, me);                                                              \
    shmem_##N##_add(word, (t)2, me);                                                        \
    CHECK_OF(SEEN(t, word) == (t)13, #N);                                                   \
  }
FOR_OLD(OLD_FORMS);
#define OLD_SET_FORMS(N, t)                                                                        \
  static void old_set_##N(void) {                                                                  \
    t* const word = (t*)there;                                                                     \
    SET_ALL(t, 1);                                                                                 \
    CHECK_OF(shmem_##N##_swap(word, (t)(3 + me), right) == (t)1, #N);                              \
    shmem_barrier_all();                                                                           \
    CHECK_OF(SEEN(t, word) == (t)(3 + left) && shmem_##N##_fetch(word, right) == (t)(3 + me), #N); \
    shmem_barrier_all();                                                                           \
    shmem_##N##_set(word, (t)9, right);                                                            \
    shmem_barrier_all();                                                                           \
    CHECK_OF(SEEN(t, word) == (t)9, #N);                                                           \
  }
FOR_OLD_SET(OLD_SET_FORMS);

int main(int count, char** arguments) {
  if (!started(count, arguments)) return done();
  there = (unsigned char*)symmetric(ROOM);
  if (kind != SHMEMX_KIND_HOST) times = 20;
  CHECK(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &context) == 0);
#define CALL(N, t) shmem_barrier_all(), give_all(there, 0xee, ROOM), extended_##N();
  FOR_EXTENDED(CALL)
#undef CALL
#define CALL(N, t) shmem_barrier_all(), give_all(there, 0xee, ROOM), standard_##N();
  FOR_ATOMIC(CALL)
#undef CALL
#define CALL(N, t) bitwise_##N();
  FOR_BITWISE(CALL)
#undef CALL
#define CALL(N, t) old_##N();
  FOR_OLD(CALL)
#undef CALL
#define CALL(N, t) old_set_##N();
  FOR_OLD_SET(CALL)
  shmem_ctx_destroy(context);
  shmem_free(there);
  return done();
}
