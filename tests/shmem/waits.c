/* Every wait and test of every type, of one word and of several, with words left out, and with a value for each. waits [cuda | opencl] */
#include "check.h"

static unsigned char* there;
enum { MOST = 8, ROOM = 1024 };

/* All six comparisons, true and false. */
#define COMPARISONS(N, t)                                                                                  \
  GIVE(t, word, 5);                                                                                        \
  CHECK_OF(shmem_##N##_test(word, SHMEM_CMP_EQ, (t)5) && !shmem_##N##_test(word, SHMEM_CMP_EQ, (t)6), #N); \
  CHECK_OF(shmem_##N##_test(word, SHMEM_CMP_NE, (t)6) && !shmem_##N##_test(word, SHMEM_CMP_NE, (t)5), #N); \
  CHECK_OF(shmem_##N##_test(word, SHMEM_CMP_GT, (t)4) && !shmem_##N##_test(word, SHMEM_CMP_GT, (t)5), #N); \
  CHECK_OF(shmem_##N##_test(word, SHMEM_CMP_GE, (t)5) && !shmem_##N##_test(word, SHMEM_CMP_GE, (t)6), #N); \
  CHECK_OF(shmem_##N##_test(word, SHMEM_CMP_LT, (t)6) && !shmem_##N##_test(word, SHMEM_CMP_LT, (t)5), #N); \
  CHECK_OF(shmem_##N##_test(word, SHMEM_CMP_LE, (t)5) && !shmem_##N##_test(word, SHMEM_CMP_LE, (t)4), #N);

/* Signedness decides: what a half-range value is compared as. */
#define SIGNS(N, t)  \
  GIVE(t, word, -1); \
  CHECK_OF(shmem_##N##_test(word, SHMEM_CMP_LT, (t)1) == ((t)-1 < (t)1), #N);

#define WAITED(N, t)                                                                                                \
  static void one_##N(void) {                                                                                       \
    t* const word = (t*)there;                                                                                      \
    t* const data = (t*)(there + 512);                                                                              \
    COMPARISONS(N, t)                                                                                               \
    SIGNS(N, t)                                                                                                     \
    GIVE(t, word, 0);                                                                                               \
    shmem_barrier_all();                                                                                            \
    for (int round = 1; round <= 30; ++round) { /* what was put before the word is there */                         \
      shmem_##N##_p(data, (t)(round + me), right);                                                                  \
      shmem_fence();                                                                                                \
      shmem_##N##_p(word, (t)round, right);                                                                         \
      if (round % 2 == 0)                                                                                           \
        shmem_##N##_wait_until(word, SHMEM_CMP_GE, (t)round);                                                       \
      else                                                                                                          \
        while (!shmem_##N##_test(word, SHMEM_CMP_GE, (t)round)) continue;                                           \
      CHECK_OF(SEEN(t, data) == (t)(round + left), #N);                                                             \
      shmem_barrier_all();                                                                                          \
    }                                                                                                               \
  }                                                                                                                 \
  /* PE `left` writes words 0 to MOST - 1 one after the other. */                                                   \
  static void write_##N(t base) {                                                                                   \
    for (int i = 0; i < MOST; ++i) shmem_##N##_p((t*)there + i, (t)(base + i), right);                              \
  }                                                                                                                 \
  static void several_##N(void) {                                                                                   \
    t* const words = (t*)there;                                                                                     \
    t values[MOST];                                                                                                 \
    int status[MOST], none[MOST];                                                                                   \
    size_t indices[MOST];                                                                                           \
    for (int i = 0; i < MOST; ++i) {                                                                                \
      values[i] = (t)(20 + i);                                                                                      \
      status[i] = i % 3 == 1;                                                                                       \
      none[i] = 1;                                                                                                  \
    }                                                                                                               \
    give_all(there, 0, ROOM);                                                                                       \
    shmem_barrier_all();                                                                                            \
    CHECK_OF(shmem_##N##_test_all(words, MOST, NULL, SHMEM_CMP_EQ, 0) == 1, #N);                                    \
    CHECK_OF(shmem_##N##_test_all(words, MOST, NULL, SHMEM_CMP_NE, 0) == 0, #N);                                    \
    CHECK_OF(shmem_##N##_test_all(words, MOST, none, SHMEM_CMP_NE, 0) == 1, #N);                                    \
    CHECK_OF(shmem_##N##_test_all(words, 0, NULL, SHMEM_CMP_NE, 0) == 1, #N);                                       \
    CHECK_OF(shmem_##N##_test_any(words, MOST, NULL, SHMEM_CMP_NE, 0) == SIZE_MAX, #N);                             \
    CHECK_OF(shmem_##N##_test_any(words, MOST, none, SHMEM_CMP_EQ, 0) == SIZE_MAX, #N);                             \
    CHECK_OF(shmem_##N##_test_any(words, 0, NULL, SHMEM_CMP_EQ, 0) == SIZE_MAX, #N);                                \
    CHECK_OF(shmem_##N##_test_some(words, MOST, indices, NULL, SHMEM_CMP_NE, 0) == 0, #N);                          \
    CHECK_OF(shmem_##N##_test_some(words, MOST, indices, none, SHMEM_CMP_EQ, 0) == 0, #N);                          \
    CHECK_OF(shmem_##N##_wait_until_any(words, MOST, none, SHMEM_CMP_NE, 0) == SIZE_MAX, #N);                       \
    CHECK_OF(shmem_##N##_wait_until_some(words, 0, indices, NULL, SHMEM_CMP_NE, 0) == 0, #N);                       \
    shmem_##N##_wait_until_all(words, MOST, none, SHMEM_CMP_NE, 0);                                                 \
    shmem_##N##_wait_until_all(words, 0, NULL, SHMEM_CMP_NE, 0);                                                    \
    CHECK_OF(shmem_##N##_test_all_vector(words, MOST, NULL, SHMEM_CMP_EQ, values) == 0, #N);                        \
    CHECK_OF(shmem_##N##_test_any_vector(words, MOST, NULL, SHMEM_CMP_EQ, values) == SIZE_MAX, #N);                 \
    CHECK_OF(shmem_##N##_test_some_vector(words, MOST, indices, NULL, SHMEM_CMP_EQ, values) == 0, #N);              \
    shmem_barrier_all();                                                                                            \
    write_##N((t)10);                                                                                               \
    shmem_##N##_wait_until_all(words, MOST, NULL, SHMEM_CMP_GE, (t)10);                                             \
    for (int i = 0; i < MOST; ++i) CHECK_OF(SEEN(t, words + i) == (t)(10 + i), #N);                                 \
    CHECK_OF(shmem_##N##_test_any(words, MOST, NULL, SHMEM_CMP_EQ, (t)13) == 3, #N);                                \
    CHECK_OF(shmem_##N##_wait_until_any(words, MOST, status, SHMEM_CMP_EQ, (t)15) == 5, #N);                        \
    CHECK_OF(shmem_##N##_test_any(words, MOST, status, SHMEM_CMP_EQ, (t)14) == SIZE_MAX, #N); /* 4 is left out */   \
    size_t found = shmem_##N##_test_some(words, MOST, indices, status, SHMEM_CMP_GE, (t)13);                        \
    CHECK_OF(found == 3 && indices[0] == 3 && indices[1] == 5 && indices[2] == 6, #N);                              \
    found = shmem_##N##_wait_until_some(words, MOST, indices, NULL, SHMEM_CMP_LT, (t)12);                           \
    CHECK_OF(found == 2 && indices[0] == 0 && indices[1] == 1, #N);                                                 \
    shmem_barrier_all();                                                                                            \
    int seen[MOST] = {0}, left_out[MOST] = {0}; /* each once, in any order */                                       \
    write_##N((t)20);                                                                                               \
    for (int i = 0; i < MOST / 2; ++i) {                                                                            \
      const size_t at = shmem_##N##_wait_until_any_vector(words, MOST, left_out, SHMEM_CMP_EQ, values);             \
      CHECK_OF(at < MOST && !left_out[at], #N);                                                                     \
      if (at < MOST) ++seen[at], left_out[at] = 1;                                                                  \
    }                                                                                                               \
    for (int got = MOST / 2; got < MOST;) {                                                                         \
      const size_t some = shmem_##N##_wait_until_some_vector(words, MOST, indices, left_out, SHMEM_CMP_EQ, values); \
      CHECK_OF(some >= 1, #N);                                                                                      \
      if (some == 0) break;                                                                                         \
      for (size_t k = 0; k < some; ++k) ++seen[indices[k]], left_out[indices[k]] = 1;                               \
      got += (int)some;                                                                                             \
    }                                                                                                               \
    for (int i = 0; i < MOST; ++i) CHECK_OF(seen[i] == 1, #N);                                                      \
    shmem_##N##_wait_until_all_vector(words, MOST, NULL, SHMEM_CMP_EQ, values);                                     \
    CHECK_OF(shmem_##N##_test_all_vector(words, MOST, NULL, SHMEM_CMP_EQ, values) == 1, #N);                        \
    CHECK_OF(shmem_##N##_test_any_vector(words, MOST, NULL, SHMEM_CMP_EQ, values) < MOST, #N);                      \
    CHECK_OF(shmem_##N##_test_some_vector(words, MOST, indices, NULL, SHMEM_CMP_EQ, values) == MOST, #N);           \
    CHECK_OF(shmem_##N##_wait_until_some_vector(words, MOST, indices, status, SHMEM_CMP_EQ, values) == 5, #N);      \
    shmem_barrier_all();                                                                                            \
  }
FOR_WAITED(WAITED);

#define OLD_WAIT(N, t)                   \
  static void old_##N(void) {            \
    t* const word = (t*)there;           \
    GIVE(t, word, 0);                    \
    shmem_barrier_all();                 \
    shmem_##N##_p(word, (t)3, right);    \
    shmem_##N##_wait(word, 0);           \
    CHECK_OF(SEEN(t, word) == (t)3, #N); \
    shmem_barrier_all();                 \
  }
FOR_OLD_WAITED(OLD_WAIT);

int main(int count, char** arguments) {
  if (!started(count, arguments)) return done();
  there = (unsigned char*)symmetric(ROOM);
  give_all(there, 0, ROOM);
#define CALL(N, t) one_##N(), shmem_barrier_all(), several_##N();
  FOR_WAITED(CALL)
#undef CALL
#define CALL(N, t) old_##N();
  FOR_OLD_WAITED(CALL)
  GIVE(long, there, 0);
  shmem_barrier_all();
  shmem_long_p((long*)there, 8, right);
  shmem_wait((long*)there, 0);
  shmem_wait_until((long*)there, SHMEM_CMP_EQ, 8);
  shmem_barrier_all();
  shmem_free(there);
  return done();
}
