/* Collective calls of every type, on the world, on parts of it, and on active sets; also long ones, in place, and many one after another.
 * collectives [cuda | opencl] */
#include "check.h"

static unsigned char *there, *here;
static long *sync_words, *home_words; /* of that kind, and of the host */
enum { AREA = 1 << 17, ROOM = 1 << 18 };
static const size_t counts[] = {0, 1, 3, 17, 1001};
static int left_out(size_t n) { return kind != SHMEMX_KIND_HOST && (n == 1 || n == 17); } /* each copy takes longer there */
static unsigned char mine[ROOM];                                                          /* what is to be in `here` */

/* What will be written is wrong before. */
static void poison(size_t bytes) {
  give_all(there, 0xee, AREA);
  give(here, mine, bytes);
  shmem_barrier_all();
}
static void begin(uint64_t seed) {
  fill(mine, AREA, seed * 100 + (uint64_t)me);
  poison(AREA);
}
static int from(const unsigned char* there_at, size_t bytes, uint64_t seed, int pe, size_t offset) {
  const unsigned char* const at = seen(there_at, bytes);
  for (size_t i = 0; i < bytes; ++i)
    if (at[i] != byte_of(seed * 100 + (uint64_t)pe, offset + i)) return 0;
  return 1;
}
static int rest(size_t bytes) { return all_are(seen(there + bytes, 256), 256, 0xee); }

/* The calls that move bytes, on a team; PEs outside of it take part in the barriers alone. */
static void moved(const char* what, shmem_team_t team, int n_pes, int (*broadcast)(shmem_team_t, size_t, int),
                  int (*fcollect)(shmem_team_t, size_t), int (*collect)(shmem_team_t, size_t),
                  int (*alltoall)(shmem_team_t, size_t), int (*alltoalls)(shmem_team_t, ptrdiff_t, ptrdiff_t, size_t),
                  size_t size) {
  const int index = shmem_team_my_pe(team);
  if (index >= 0) CHECK_OF(shmem_team_n_pes(team) == n_pes, what);
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {
    const size_t n = counts[c], bytes = n * size;
    if (left_out(n)) continue;
    for (int root = 0; root < n_pes; ++root) {
      begin(c + 1);
      if (index >= 0) {
        CHECK_OF(broadcast(team, n, root) == 0, what);
        CHECK_OF(from(there, bytes, c + 1, shmem_team_translate_pe(team, root, SHMEM_TEAM_WORLD), 0) && rest(bytes), what);
      }
      shmem_barrier_all();
    }
    begin(c + 20);
    if (index >= 0) {
      CHECK_OF(fcollect(team, n) == 0, what);
      for (int i = 0; i < n_pes; ++i)
        CHECK_OF(from(there + (size_t)i * bytes, bytes, c + 20, shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD), 0),
                 what);
      CHECK_OF(rest((size_t)n_pes * bytes), what);
    }
    begin(c + 40);
    if (index >= 0) { /* PE i gives n + i of them, but the last none */
      const size_t mine = index == n_pes - 1 && n_pes > 1 ? 0 : n + (size_t)index;
      CHECK_OF(collect(team, mine) == 0, what);
      size_t at = 0;
      for (int i = 0; i < n_pes; ++i) {
        const size_t theirs = (i == n_pes - 1 && n_pes > 1 ? 0 : n + (size_t)i) * size;
        CHECK_OF(from(there + at, theirs, c + 40, shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD), 0), what);
        at += theirs;
      }
      CHECK_OF(rest(at), what);
    }
    begin(c + 60);
    if (index >= 0) {
      CHECK_OF(alltoall(team, n) == 0, what);
      for (int i = 0; i < n_pes; ++i)
        CHECK_OF(from(there + (size_t)i * bytes, bytes, c + 60, shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD),
                      (size_t)index * bytes),
                 what);
      CHECK_OF(rest((size_t)n_pes * bytes), what);
    }
    begin(c + 80);
    if (index >= 0 && n < 500) {
      CHECK_OF(alltoalls(team, 2, 3, n) == 0, what);
      for (int i = 0; i < n_pes; ++i)
        for (size_t k = 0; k < n; ++k) {
          const size_t to = ((size_t)i * n * 2 + k * 2) * size, of = ((size_t)index * n * 3 + k * 3) * size;
          CHECK_OF(from(there + to, size, c + 80, shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD), of), what);
          CHECK_OF(all_are(seen(there + to + size, size), size, 0xee), what);
        }
    }
    shmem_barrier_all();
  }
}
#define MOVED(N, t)                                                                                                   \
  static int broadcast_##N(shmem_team_t team, size_t n, int root) {                                                   \
    return shmem_##N##_broadcast(team, (t*)there, (t*)here, n, root);                                                 \
  }                                                                                                                   \
  static int fcollect_##N(shmem_team_t team, size_t n) { return shmem_##N##_fcollect(team, (t*)there, (t*)here, n); } \
  static int collect_##N(shmem_team_t team, size_t n) { return shmem_##N##_collect(team, (t*)there, (t*)here, n); }   \
  static int alltoall_##N(shmem_team_t team, size_t n) { return shmem_##N##_alltoall(team, (t*)there, (t*)here, n); } \
  static int alltoalls_##N(shmem_team_t team, ptrdiff_t dst, ptrdiff_t sst, size_t n) {                               \
    return shmem_##N##_alltoalls(team, (t*)there, (t*)here, dst, sst, n);                                             \
  }
FOR_RMA(MOVED);
static int broadcast_mem(shmem_team_t team, size_t n, int root) { return shmem_broadcastmem(team, there, here, n, root); }
static int fcollect_mem(shmem_team_t team, size_t n) { return shmem_fcollectmem(team, there, here, n); }
static int collect_mem(shmem_team_t team, size_t n) { return shmem_collectmem(team, there, here, n); }
static int alltoall_mem(shmem_team_t team, size_t n) { return shmem_alltoallmem(team, there, here, n); }
static int alltoalls_mem(shmem_team_t team, ptrdiff_t dst, ptrdiff_t sst, size_t n) {
  return shmem_alltoallsmem(team, there, here, dst, sst, n);
}

/* Of integers all bits, so that what is done with too few of them, or without their sign, is seen; the programs are compiled so that sums
 * wrap, as the library's do. Of the others a few halves, of either sign, of which no sum or product is rounded, and none is 0. */
static double half_of(uint64_t bits) { return bits % 3 == 0 ? -1.5 : bits % 3 == 1 ? 1.5 : 2.5; }
static uint64_t bits_of(int pe, size_t i) { return mixed((uint64_t)pe * 7919 + i); }
#define VALUE(N, t) \
  static t value_##N(int pe, size_t i) { return (t)0.5 != (t)0 ? (t)half_of(bits_of(pe, i)) : (t)(bits_of(pe, i)); }
FOR_RMA(VALUE)
#define COMPLEX_VALUE(N, t)                              \
  static t value_##N(int pe, size_t i) {                 \
    t value;                                             \
    __real__ value = (float)half_of(bits_of(pe, i));     \
    __imag__ value = (float)half_of(bits_of(pe, i) / 3); \
    return value;                                        \
  }
COMPLEX_VALUE(complexf, shmemx_complexf_)
COMPLEX_VALUE(complexd, shmemx_complexd_)
#define BEGIN_VALUES(N, t, n)                                      \
  for (size_t i = 0; i < n; ++i) ((t*)mine)[i] = value_##N(me, i); \
  poison(n * sizeof(t));
#define EXPECTED(N, t, first, count, step, op)     \
  t expected = value_##N(first, i);                \
  for (int k = 1; k < count; ++k) {                \
    const t next = value_##N(first + k * step, i); \
    expected = (t)(op);                            \
  }
#define REDUCED(N, t, verb, op)                                                                    \
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c)                                    \
    for (int in_place = 0; in_place < 2; ++in_place) {                                             \
      const size_t n = counts[c];                                                                  \
      if (left_out(n)) continue;                                                                   \
      BEGIN_VALUES(N, t, n)                                                                        \
      t* const to = (t*)(in_place ? here : there);                                                 \
      CHECK_OF(shmem_##N##_##verb##_reduce(SHMEM_TEAM_WORLD, to, (t*)here, n) == 0, #N " " #verb); \
      const t* const result = (const t*)seen(to, n * sizeof(t));                                   \
      for (size_t i = 0; i < n; ++i) {                                                             \
        EXPECTED(N, t, 0, pes, 1, op)                                                              \
        CHECK_OF(result[i] == expected, #N " " #verb);                                             \
      }                                                                                            \
      if (!in_place) CHECK_OF(rest(n * sizeof(t)), #N " " #verb);                                  \
      shmem_barrier_all();                                                                         \
    }
#define BITS(N, t)                      \
  static void bits_##N(void) {          \
    REDUCED(N, t, and, expected& next)  \
    REDUCED(N, t, or, expected | next)  \
    REDUCED(N, t, xor, expected ^ next) \
  }
#define ORDERED(N, t)                                     \
  static void ordered_##N(void) {                         \
    REDUCED(N, t, min, next < expected ? next : expected) \
    REDUCED(N, t, max, next > expected ? next : expected) \
  }
#define SCANNED(N, t, verb, upto)                                                                  \
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {                                  \
    const size_t n = counts[c];                                                                    \
    if (left_out(n)) continue;                                                                     \
    BEGIN_VALUES(N, t, n)                                                                          \
    CHECK_OF(shmem_##N##_sum_##verb(SHMEM_TEAM_WORLD, (t*)there, (t*)here, n) == 0, #N " " #verb); \
    const t* const result = (const t*)seen(there, n * sizeof(t));                                  \
    for (size_t i = 0; i < n; ++i) {                                                               \
      t sum = (t)0;                                                                                \
      for (int pe = 0; pe < upto; ++pe) sum = (t)(sum + value_##N(pe, i));                         \
      CHECK_OF(result[i] == sum, #N " " #verb);                                                    \
    }                                                                                              \
    CHECK_OF(rest(n * sizeof(t)), #N " " #verb);                                                   \
    shmem_barrier_all();                                                                           \
  }
#define SUMMED(N, t)                    \
  static void summed_##N(void) {        \
    REDUCED(N, t, sum, expected + next) \
    REDUCED(N, t, prod, expected* next) \
    SCANNED(N, t, inscan, me + 1)       \
    SCANNED(N, t, exscan, me)           \
  }
FOR_BITS(BITS);
FOR_ORDERED(ORDERED);
FOR_SUMMED(SUMMED);

/* Active sets: all that there are here with a stride of a power of two. */
#define TO_ALL(N, t, verb, op)                                                                     \
  for (int log = 0; log < 2; ++log)                                                                \
    for (int start = 0; start < pes; ++start)                                                      \
      for (int size = 1; start + ((size - 1) << log) < pes; ++size) {                              \
        const int n = 5;                                                                           \
        BEGIN_VALUES(N, t, (size_t)n)                                                              \
        const int distance = me - start;                                                           \
        if (distance >= 0 && distance % (1 << log) == 0 && distance >> log < size) {               \
          shmem_##N##_##verb##_to_all((t*)there, (t*)here, n, start, log, size, (t*)(here + AREA), \
                                      log == 0 ? home_words : sync_words);                         \
          const t* const result = (const t*)seen(there, (size_t)n * sizeof(t));                    \
          for (size_t i = 0; i < (size_t)n; ++i) {                                                 \
            EXPECTED(N, t, start, size, (1 << log), op)                                            \
            CHECK_OF(result[i] == expected, #N " " #verb);                                         \
          }                                                                                        \
        }                                                                                          \
        shmem_barrier_all();                                                                       \
      }
#define OLD_BITS(N, t)                 \
  static void old_bits_##N(void) {     \
    TO_ALL(N, t, and, expected& next)  \
    TO_ALL(N, t, or, expected | next)  \
    TO_ALL(N, t, xor, expected ^ next) \
  }
#define OLD_ORDERED(N, t)                                \
  static void old_ordered_##N(void) {                    \
    TO_ALL(N, t, min, next < expected ? next : expected) \
    TO_ALL(N, t, max, next > expected ? next : expected) \
  }
#define OLD_SUMMED(N, t)               \
  static void old_summed_##N(void) {   \
    TO_ALL(N, t, sum, expected + next) \
    TO_ALL(N, t, prod, expected* next) \
  }
FOR_OLD_BITS(OLD_BITS);
FOR_OLD_ORDERED(OLD_ORDERED);
FOR_OLD_SUMMED(OLD_SUMMED);

#define ACTIVE(S)                                                                                               \
  for (int log = 0; log < 2; ++log)                                                                             \
    for (int start = 0; start < pes; ++start)                                                                   \
      for (int size = 1; start + ((size - 1) << log) < pes; ++size) {                                           \
        const int distance = me - start, step = 1 << log, index = distance / step;                              \
        const int member = distance >= 0 && distance % step == 0 && index < size;                               \
        const size_t n = 7, bytes = n * (S / 8);                                                                \
        begin(1);                                                                                               \
        if (member) {                                                                                           \
          shmem_broadcast##S(there, here, n, size - 1, start, log, size, sync_words);                           \
          if (index == size - 1)                                                                                \
            CHECK(rest(0)); /* the root's own stays */                                                          \
          else                                                                                                  \
            CHECK(from(there, bytes, 1, start + (size - 1) * step, 0) && rest(bytes));                          \
        }                                                                                                       \
        begin(2);                                                                                               \
        if (member) {                                                                                           \
          shmem_fcollect##S(there, here, n, start, log, size, sync_words);                                      \
          for (int i = 0; i < size; ++i) CHECK(from(there + (size_t)i * bytes, bytes, 2, start + i * step, 0)); \
          CHECK(rest((size_t)size* bytes));                                                                     \
        }                                                                                                       \
        begin(3);                                                                                               \
        if (member) {                                                                                           \
          shmem_collect##S(there, here, n + (size_t)index, start, log, size, sync_words);                       \
          size_t at = 0;                                                                                        \
          for (int i = 0; i < size; ++i) {                                                                      \
            CHECK(from(there + at, bytes + (size_t)i * (S / 8), 3, start + i * step, 0));                       \
            at += bytes + (size_t)i * (S / 8);                                                                  \
          }                                                                                                     \
          CHECK(rest(at));                                                                                      \
        }                                                                                                       \
        begin(4);                                                                                               \
        if (member) {                                                                                           \
          shmem_alltoall##S(there, here, n, start, log, size, sync_words);                                      \
          for (int i = 0; i < size; ++i)                                                                        \
            CHECK(from(there + (size_t)i * bytes, bytes, 4, start + i * step, (size_t)index * bytes));          \
        }                                                                                                       \
        begin(5);                                                                                               \
        if (member) {                                                                                           \
          shmem_alltoalls##S(there, here, 1, 2, n, start, log, size, sync_words);                               \
          for (int i = 0; i < size; ++i)                                                                        \
            for (size_t k = 0; k < n; ++k)                                                                      \
              CHECK(from(there + (size_t)i * bytes + k * (S / 8), S / 8, 5, start + i * step,                   \
                         ((size_t)index * n * 2 + k * 2) * (S / 8)));                                           \
          shmem_barrier(start, log, size, sync_words);                                                          \
          shmem_sync(start, log, size, sync_words);                                                             \
          for (int i = 0; i < SHMEM_SYNC_SIZE; ++i) CHECK(SEEN(long, sync_words + i) == SHMEM_SYNC_VALUE);      \
        }                                                                                                       \
        shmem_barrier_all();                                                                                    \
      }

/* So long that each PE combines a part of its own, in place too. */
static void long_ones(void) {
  const size_t n = 30011;
  for (int in_place = 0; in_place < 2; ++in_place) {
    for (size_t i = 0; i < n; ++i) ((double*)mine)[i] = value_double(me, i);
    give_all(there, 0xee, ROOM);
    give(here, mine, n * sizeof(double));
    shmem_barrier_all();
    double* const to = (double*)(in_place ? here : there);
    CHECK(shmem_double_sum_reduce(SHMEM_TEAM_WORLD, to, (double*)here, n) == 0);
    const double* const result = (const double*)seen(to, n * sizeof(double));
    for (size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int pe = 0; pe < pes; ++pe) sum += value_double(pe, i);
      if (result[i] != sum) {
        CHECK(result[i] == sum);
        break;
      }
    }
    if (!in_place) CHECK(rest(n * sizeof(double)));
    shmem_barrier_all();
  }
}
/* Nobody overtakes: each call finds the values of its own round. */
static void many(long rounds) {
  long* const value = (long*)here;
  long* const sum = (long*)there;
  for (long round = 0; round < rounds; ++round) {
    GIVE(long, value, round + me);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, sum, value, 1);
    CHECK(SEEN(long, sum) == round * pes + (long)pes * (pes - 1) / 2);
    shmem_long_broadcast(SHMEM_TEAM_WORLD, sum, value, 1, (int)(round % pes));
    CHECK(SEEN(long, sum) == round + round % pes);
    GIVE(long, value, -1);
  }
}

/* Many pSync arrays, of the host more than have words of their own, each after the other. */
static void many_sets(long sets) {
  const size_t bytes = (size_t)sets * SHMEM_SYNC_SIZE * sizeof(long);
  long* const words = (long*)symmetric(bytes);
  give_all(words, SHMEM_SYNC_VALUE, bytes);
  for (long round = 0; round < sets; ++round) {
    GIVE(long, here, round + me);
    shmem_long_sum_to_all((long*)there, (long*)here, 1, 0, 0, pes, (long*)(here + AREA), words + round * SHMEM_SYNC_SIZE);
    CHECK(SEEN(long, there) == round * pes + (long)pes * (pes - 1) / 2);
  }
  shmem_free(words);
}

int main(int count, char** arguments) {
  if (!started(count, arguments)) return done();
  there = (unsigned char*)symmetric(ROOM);
  here = (unsigned char*)symmetric(ROOM);
  sync_words = (long*)symmetric(SHMEM_SYNC_SIZE * sizeof(long));
  home_words = (long*)memory(SHMEM_SYNC_SIZE * sizeof(long));
  give_all(sync_words, SHMEM_SYNC_VALUE, SHMEM_SYNC_SIZE * sizeof(long));
  memset(home_words, SHMEM_SYNC_VALUE, SHMEM_SYNC_SIZE * sizeof(long));
  shmem_team_t part = SHMEM_TEAM_INVALID;
  const int members = pes > 2 ? pes - 1 : pes;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - members, 1, members, NULL, 0, &part) == 0);
  if (part == SHMEM_TEAM_INVALID) {
    CHECK(shmem_long_broadcast(part, (long*)there, (long*)here, 1, 0) != 0);
    CHECK(strstr(shmemx_error_text(), "the team is SHMEM_TEAM_INVALID") != NULL);
  }
#define CALL(N, t) \
  moved(#N, SHMEM_TEAM_WORLD, pes, broadcast_##N, fcollect_##N, collect_##N, alltoall_##N, alltoalls_##N, sizeof(t));
  FOR_RMA(CALL)
#undef CALL
  moved("mem", SHMEM_TEAM_WORLD, pes, broadcast_mem, fcollect_mem, collect_mem, alltoall_mem, alltoalls_mem, 1);
  moved("mem of some", part, members, broadcast_mem, fcollect_mem, collect_mem, alltoall_mem, alltoalls_mem, 1);
  moved("double of some", part, members, broadcast_double, fcollect_double, collect_double, alltoall_double,
        alltoalls_double, sizeof(double));
#define CALL(N, t) bits_##N();
  FOR_BITS(CALL)
#undef CALL
#define CALL(N, t) ordered_##N();
  FOR_ORDERED(CALL)
#undef CALL
#define CALL(N, t) summed_##N();
  FOR_SUMMED(CALL)
#undef CALL
#define CALL(N, t) old_bits_##N();
  FOR_OLD_BITS(CALL)
#undef CALL
#define CALL(N, t) old_ordered_##N();
  FOR_OLD_ORDERED(CALL)
#undef CALL
#define CALL(N, t) old_summed_##N();
  FOR_OLD_SUMMED(CALL)
  ACTIVE(32)
  ACTIVE(64)
  long_ones();
  many(kind == SHMEMX_KIND_HOST ? 500 : 100);
  many_sets(kind == SHMEMX_KIND_HOST ? 400 : 20);
  shmem_team_destroy(part);
  shmem_free(home_words);
  shmem_free(sync_words);
  shmem_free(here);
  shmem_free(there);
  return done();
}
