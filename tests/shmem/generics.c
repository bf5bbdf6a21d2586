/* Names without a type, which C11 and C++ find the form for: all names, all types that are distinct. */
#include "check.h"

static unsigned char *there, *here;
static uint64_t* word;
static shmem_ctx_t context;

#define RESET memset(there, 0, 256), memset(here, 0, 256), shmem_barrier_all()
#define COPIES(N, t)                                                                                             \
  static void copies_##N(void) {                                                                                 \
    t* const to = (t*)there;                                                                                     \
    t* const from = (t*)here;                                                                                    \
    t local[8] = {0};                                                                                            \
    const t* const constant = from;                                                                              \
    RESET;                                                                                                       \
    for (int i = 0; i < 8; ++i) from[i] = (t)(me + i);                                                           \
    shmem_barrier_all();                                                                                         \
    shmem_put(to, constant, 1, right);                                                                           \
    shmem_put(context, to + 1, from + 1, 1, right);                                                              \
    shmem_put_nbi(to + 2, from + 2, 1, right);                                                                   \
    shmem_put_nbi(context, to + 3, from + 3, 1, right);                                                          \
    shmem_p(to + 4, (t)(me + 4), right);                                                                         \
    shmem_p(context, to + 5, (t)(me + 5), right);                                                                \
    shmem_iput(to + 6, from + 6, 1, 1, 1, right);                                                                \
    shmem_iput(context, to + 7, from + 7, 1, 1, 1, right);                                                       \
    shmem_barrier_all();                                                                                         \
    for (int i = 0; i < 8; ++i) CHECK_OF(to[i] == (t)(left + i), #N);                                            \
    shmem_get(local, constant, 1, right);                                                                        \
    shmem_get(context, local + 1, from + 1, 1, right);                                                           \
    shmem_get_nbi(local + 2, from + 2, 1, right);                                                                \
    shmem_get_nbi(context, local + 3, from + 3, 1, right);                                                       \
    local[4] = shmem_g(from + 4, right);                                                                         \
    local[5] = shmem_g(context, constant + 5, right);                                                            \
    shmem_iget(local + 6, from + 6, 1, 1, 1, right);                                                             \
    shmem_iget(context, local + 7, from + 7, 1, 1, 1, right);                                                    \
    shmem_quiet();                                                                                               \
    for (int i = 0; i < 8; ++i) CHECK_OF(local[i] == (t)(right + i), #N);                                        \
    shmem_ibput(to, from, 2, 2, 2, 1, me);                                                                       \
    shmem_ibput(context, to, from, 2, 2, 2, 1, me);                                                              \
    shmem_ibget(local, from, 2, 2, 2, 1, me);                                                                    \
    shmem_ibget(context, local, from, 2, 2, 2, 1, me);                                                           \
    *word = 0;                                                                                                   \
    shmem_barrier_all();                                                                                         \
    shmem_put_signal(to, from, 1, word, 1, SHMEM_SIGNAL_ADD, right);                                             \
    shmem_put_signal(context, to, from, 1, word, 1, SHMEM_SIGNAL_ADD, right);                                    \
    shmem_put_signal_nbi(to, from, 1, word, 1, SHMEM_SIGNAL_ADD, right);                                         \
    shmem_put_signal_nbi(context, to, from, 1, word, 1, SHMEM_SIGNAL_ADD, right);                                \
    shmem_signal_wait_until(word, SHMEM_CMP_EQ, 4);                                                              \
    CHECK_OF(to[0] == (t)left, #N);                                                                              \
    RESET;                                                                                                       \
    from[0] = (t)me;                                                                                             \
    from[1] = (t)(me + 1);                                                                                       \
    shmem_barrier_all();                                                                                         \
    CHECK_OF(shmem_broadcast(SHMEM_TEAM_WORLD, to, constant, 2, pes - 1) == 0 && to[1] == (t)pes, #N);           \
    CHECK_OF(shmem_fcollect(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[pes - 1] == (t)(pes - 1), #N);             \
    CHECK_OF(shmem_collect(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[0] == (t)0, #N);                            \
    for (int i = 0; i < pes; ++i) from[i] = (t)(me + i);                                                         \
    CHECK_OF(shmem_alltoall(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[pes - 1] == (t)(pes - 1 + me), #N);        \
    CHECK_OF(shmem_alltoalls(SHMEM_TEAM_WORLD, to, from, 1, 1, 1) == 0 && to[0] == (t)me, #N);                   \
    from[0] = (t)(me + 1);                                                                                       \
    shmem_barrier_all();                                                                                         \
    CHECK_OF(shmem_max_reduce(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[0] == (t)pes, #N);                       \
    CHECK_OF(shmem_min_reduce(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[0] == (t)1, #N);                         \
    CHECK_OF(shmem_sum_reduce(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[0] == (t)(pes * (pes + 1) / 2), #N);     \
    CHECK_OF(shmem_prod_reduce(SHMEM_TEAM_WORLD, to, from, 1) == 0, #N);                                         \
    CHECK_OF(shmem_sum_inscan(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[0] == (t)((me + 1) * (me + 2) / 2), #N); \
    CHECK_OF(shmem_sum_exscan(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[0] == (t)(me * (me + 1) / 2), #N);       \
    shmem_barrier_all();                                                                                         \
  }
FOR_DISTINCT_RMA(COPIES);

#define BITS(N, t)                                                                        \
  static void bits_##N(void) {                                                            \
    t* const to = (t*)there;                                                              \
    t* const from = (t*)here;                                                             \
    from[0] = (t)(me + 1);                                                                \
    shmem_barrier_all();                                                                  \
    CHECK_OF(shmem_or_reduce(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[0] >= (t)pes, #N); \
    CHECK_OF(shmem_and_reduce(SHMEM_TEAM_WORLD, to, from, 1) == 0 && to[0] <= (t)1, #N);  \
    CHECK_OF(shmem_xor_reduce(SHMEM_TEAM_WORLD, to, from, 1) == 0, #N);                   \
    shmem_barrier_all();                                                                  \
  }
FOR_DISTINCT_BITS(BITS);

#define EXTENDED(N, t)                                                                                         \
  static void extended_##N(void) {                                                                             \
    t* const to = (t*)there;                                                                                   \
    t found = 0;                                                                                               \
    to[0] = (t)3;                                                                                              \
    const t* const constant = to;                                                                              \
    CHECK_OF(shmem_atomic_fetch(constant, me) == (t)3 && shmem_atomic_fetch(context, to, me) == (t)3, #N);     \
    shmem_atomic_fetch_nbi(&found, to, me);                                                                    \
    shmem_atomic_fetch_nbi(context, &found, to, me);                                                           \
    shmem_atomic_set(to, (t)4, me);                                                                            \
    shmem_atomic_set(context, to, (t)5, me);                                                                   \
    CHECK_OF(shmem_atomic_swap(to, (t)6, me) == (t)5 && shmem_atomic_swap(context, to, (t)7, me) == (t)6, #N); \
    shmem_atomic_swap_nbi(&found, to, (t)8, me);                                                               \
    shmem_atomic_swap_nbi(context, &found, to, (t)9, me);                                                      \
    shmem_quiet();                                                                                             \
    CHECK_OF(found == (t)8 && to[0] == (t)9, #N);                                                              \
  }
FOR_DISTINCT_EXTENDED(EXTENDED);
#define ATOMIC(N, t)                                                                                                      \
  static void atomic_##N(void) {                                                                                          \
    t* const to = (t*)there;                                                                                              \
    t found = 0;                                                                                                          \
    to[0] = (t)1;                                                                                                         \
    CHECK_OF(shmem_atomic_compare_swap(to, (t)1, (t)2, me) == (t)1, #N);                                                  \
    CHECK_OF(shmem_atomic_compare_swap(context, to, (t)2, (t)3, me) == (t)2, #N);                                         \
    shmem_atomic_compare_swap_nbi(&found, to, (t)9, (t)9, me);                                                            \
    shmem_atomic_compare_swap_nbi(context, &found, to, (t)9, (t)9, me);                                                   \
    CHECK_OF(shmem_atomic_fetch_inc(to, me) == (t)3 && shmem_atomic_fetch_inc(context, to, me) == (t)4, #N);              \
    shmem_atomic_fetch_inc_nbi(&found, to, me);                                                                           \
    shmem_atomic_fetch_inc_nbi(context, &found, to, me);                                                                  \
    shmem_atomic_inc(to, me);                                                                                             \
    shmem_atomic_inc(context, to, me);                                                                                    \
    CHECK_OF(shmem_atomic_fetch_add(to, (t)1, me) == (t)9 && shmem_atomic_fetch_add(context, to, (t)1, me) == (t)10, #N); \
    shmem_atomic_fetch_add_nbi(&found, to, (t)1, me);                                                                     \
    shmem_atomic_fetch_add_nbi(context, &found, to, (t)1, me);                                                            \
    shmem_atomic_add(to, (t)1, me);                                                                                       \
    shmem_atomic_add(context, to, (t)1, me);                                                                              \
    CHECK_OF(to[0] == (t)15, #N);                                                                                         \
  }
FOR_DISTINCT_ATOMIC(ATOMIC);
#define BITWISE(N, t)                                                                                                      \
  static void bitwise_##N(void) {                                                                                          \
    t* const to = (t*)there;                                                                                               \
    t found = 0;                                                                                                           \
    to[0] = (t)0;                                                                                                          \
    CHECK_OF(shmem_atomic_fetch_or(to, (t)1, me) == (t)0 && shmem_atomic_fetch_or(context, to, (t)2, me) == (t)1, #N);     \
    shmem_atomic_or(to, (t)4, me);                                                                                         \
    shmem_atomic_or(context, to, (t)8, me);                                                                                \
    shmem_atomic_fetch_or_nbi(&found, to, (t)16, me);                                                                      \
    shmem_atomic_fetch_or_nbi(context, &found, to, (t)32, me);                                                             \
    CHECK_OF(shmem_atomic_fetch_xor(to, (t)1, me) == (t)63 && shmem_atomic_fetch_xor(context, to, (t)2, me) == (t)62, #N); \
    shmem_atomic_xor(to, (t)1, me);                                                                                        \
    shmem_atomic_xor(context, to, (t)2, me);                                                                               \
    shmem_atomic_fetch_xor_nbi(&found, to, (t)1, me);                                                                      \
    shmem_atomic_fetch_xor_nbi(context, &found, to, (t)2, me);                                                             \
    CHECK_OF(shmem_atomic_fetch_and(to, (t)31, me) == (t)60 && shmem_atomic_fetch_and(context, to, (t)15, me) == (t)28,    \
             #N);                                                                                                          \
    shmem_atomic_and(to, (t)7, me);                                                                                        \
    shmem_atomic_and(context, to, (t)7, me);                                                                               \
    shmem_atomic_fetch_and_nbi(&found, to, (t)6, me);                                                                      \
    shmem_atomic_fetch_and_nbi(context, &found, to, (t)4, me);                                                             \
    CHECK_OF(to[0] == (t)4, #N);                                                                                           \
  }
FOR_DISTINCT_BITWISE(BITWISE);

#define WAITED(N, t)                                                                                     \
  static void waited_##N(void) {                                                                         \
    t* const to = (t*)there;                                                                             \
    t values[2];                                                                                         \
    size_t indices[2];                                                                                   \
    to[0] = values[0] = (t)7;                                                                            \
    to[1] = values[1] = (t)8;                                                                            \
    shmem_wait_until(to, SHMEM_CMP_EQ, (t)7);                                                            \
    shmem_wait_until_all(to, 2, NULL, SHMEM_CMP_GE, (t)7);                                               \
    shmem_wait_until_all_vector(to, 2, NULL, SHMEM_CMP_EQ, values);                                      \
    CHECK_OF(shmem_wait_until_any(to, 2, NULL, SHMEM_CMP_EQ, (t)8) == 1, #N);                            \
    CHECK_OF(shmem_wait_until_any_vector(to, 2, NULL, SHMEM_CMP_EQ, values) < 2, #N);                    \
    CHECK_OF(shmem_wait_until_some(to, 2, indices, NULL, SHMEM_CMP_GE, (t)7) == 2, #N);                  \
    CHECK_OF(shmem_wait_until_some_vector(to, 2, indices, NULL, SHMEM_CMP_EQ, values) == 2, #N);         \
    CHECK_OF(shmem_test(to, SHMEM_CMP_EQ, (t)7) && shmem_test_all(to, 2, NULL, SHMEM_CMP_GE, (t)7), #N); \
    CHECK_OF(shmem_test_all_vector(to, 2, NULL, SHMEM_CMP_EQ, values), #N);                              \
    CHECK_OF(shmem_test_any(to, 2, NULL, SHMEM_CMP_EQ, (t)8) == 1 &&                                     \
                 shmem_test_any_vector(to, 2, NULL, SHMEM_CMP_EQ, values) < 2,                           \
             #N);                                                                                        \
    CHECK_OF(shmem_test_some(to, 2, indices, NULL, SHMEM_CMP_EQ, (t)8) == 1 && indices[0] == 1, #N);     \
    CHECK_OF(shmem_test_some_vector(to, 2, indices, NULL, SHMEM_CMP_EQ, values) == 2, #N);               \
  }
FOR_DISTINCT_WAITED(WAITED);

#define OLD(N, t)                                                                                                       \
  static void old_##N(void) {                                                                                           \
    t* const to = (t*)there;                                                                                            \
    to[0] = (t)1;                                                                                                       \
    CHECK_OF(shmem_cswap(to, (t)1, (t)2, me) == (t)1 && shmem_swap(to, (t)3, me) == (t)2 && shmem_finc(to, me) == (t)3, \
             #N);                                                                                                       \
    CHECK_OF(shmem_fadd(to, (t)2, me) == (t)4 && shmem_fetch(to, me) == (t)6, #N);                                      \
    shmem_inc(to, me);                                                                                                  \
    shmem_add(to, (t)2, me);                                                                                            \
    CHECK_OF(to[0] == (t)9, #N);                                                                                        \
    shmem_set(to, (t)4, me);                                                                                            \
    shmem_wait(to, (t)0);                                                                                               \
    CHECK_OF(to[0] == (t)4, #N);                                                                                        \
  }
FOR_DISTINCT_OLD(OLD);

int main(void) {
  shmem_init();
  find_pes();
  there = (unsigned char*)memory(256);
  here = (unsigned char*)memory(256);
  word = (uint64_t*)memory(sizeof *word);
  CHECK(shmem_ctx_create(0, &context) == 0);
#define COPIES_OF(N, t) copies_##N();
  FOR_DISTINCT_RMA(COPIES_OF)
#define BITS_OF(N, t) bits_##N();
  FOR_DISTINCT_BITS(BITS_OF)
#define EXTENDED_OF(N, t) extended_##N();
  FOR_DISTINCT_EXTENDED(EXTENDED_OF)
#define ATOMIC_OF(N, t) atomic_##N();
  FOR_DISTINCT_ATOMIC(ATOMIC_OF)
#define BITWISE_OF(N, t) bitwise_##N();
  FOR_DISTINCT_BITWISE(BITWISE_OF)
#define WAITED_OF(N, t) waited_##N();
  FOR_DISTINCT_WAITED(WAITED_OF)
#define OLD_OF(N, t) old_##N();
  FOR_DISTINCT_OLD(OLD_OF)
  CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0);
  long* const words = (long*)shmem_calloc(SHMEM_SYNC_SIZE, sizeof(long));
  shmem_sync(0, 0, pes, words);
  shmem_barrier(0, 0, pes, words);
  return done();
}
