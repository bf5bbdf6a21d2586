/* Every put and get of every type and size: each byte where it belongs, and none beside it. */
#include "check.h"

enum { LONGEST = 1027, ROOM = 65536 };
static unsigned char *there, *here; /* symmetric: what is put into, and what is got from */
static uint64_t* word;
static unsigned char local[ROOM], expected[ROOM];
static shmem_ctx_t context;
static const size_t counts[] = {0, 1, 2, 3, 7, 64, LONGEST};

static void poison(void) {
  memset(there, 0xee, ROOM);
  memset(local, 0xdd, ROOM);
  *word = 0;
  shmem_barrier_all();
}
static void mine(uint64_t seed) { fill(here, ROOM, seed * 100 + (uint64_t)me); }
/* What PE `pe` has in `here` after mine(seed), strided into `expected` over what was there. */
static void expect(unsigned char was, uint64_t seed, int pe, size_t size, size_t count, size_t block, size_t to,
                   size_t from) {
  memset(expected, was, ROOM);
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < block * size; ++k)
      expected[i * to * size + k] = byte_of(seed * 100 + (uint64_t)pe, i * from * size + k);
}
#define PUT_ARRIVES(name, size, count, block, to, from, put) \
  do {                                                       \
    static uint64_t seed = 0;                                \
    mine(++seed);                                            \
    poison();                                                \
    put;                                                     \
    shmem_barrier_all();                                     \
    expect(0xee, seed, left, size, count, block, to, from);  \
    CHECK_OF(memcmp(there, expected, ROOM) == 0, name);      \
    shmem_barrier_all();                                     \
  } while (0)
#define GET_BRINGS(name, size, count, block, to, from, get)  \
  do {                                                       \
    static uint64_t seed = 1000;                             \
    mine(++seed);                                            \
    poison();                                                \
    get;                                                     \
    shmem_quiet();                                           \
    expect(0xdd, seed, right, size, count, block, to, from); \
    CHECK_OF(memcmp(local, expected, ROOM) == 0, name);      \
    shmem_barrier_all();                                     \
  } while (0)
#define SIGNALLED(operation, put)                                          \
  do {                                                                     \
    mine(5);                                                               \
    poison();                                                              \
    put;                                                                   \
    const uint64_t found = shmem_signal_wait_until(word, SHMEM_CMP_NE, 0); \
    CHECK(found == 77 && *word == 77 && shmem_signal_fetch(word) == 77);   \
    shmem_barrier_all();                                                   \
  } while (0)

/* With (ctx) and without a context; `m(...)` makes the name. */
#define FORMS(name, T, t, size, PUT, GET, PUT_NBI, GET_NBI, PUT_SIGNAL, PUT_SIGNAL_NBI, CTX_PUT, CTX_GET, CTX_PUT_NBI, \
              CTX_GET_NBI, CTX_PUT_SIGNAL, CTX_PUT_SIGNAL_NBI)                                                         \
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {                                                      \
    const size_t n = counts[c];                                                                                        \
    PUT_ARRIVES(name " put", size, n, 1, 1, 1, PUT((t*)there, (const t*)here, n, right));                              \
    PUT_ARRIVES(name " ctx put", size, n, 1, 1, 1, CTX_PUT(context, (t*)there, (const t*)here, n, right));             \
    PUT_ARRIVES(name " put_nbi", size, n, 1, 1, 1, PUT_NBI((t*)there, (const t*)here, n, right));                      \
    PUT_ARRIVES(name " ctx put_nbi", size, n, 1, 1, 1,                                                                 \
                (CTX_PUT_NBI(context, (t*)there, (const t*)here, n, right), shmem_ctx_quiet(context)));                \
    GET_BRINGS(name " get", size, n, 1, 1, 1, GET((t*)local, (const t*)here, n, right));                               \
    GET_BRINGS(name " ctx get", size, n, 1, 1, 1, CTX_GET(context, (t*)local, (const t*)here, n, right));              \
    GET_BRINGS(name " get_nbi", size, n, 1, 1, 1, GET_NBI((t*)local, (const t*)here, n, right));                       \
    GET_BRINGS(name " ctx get_nbi", size, n, 1, 1, 1,                                                                  \
               (CTX_GET_NBI(context, (t*)local, (const t*)here, n, right), shmem_ctx_quiet(context)));                 \
    PUT_ARRIVES(name " put_signal", size, n, 1, 1, 1,                                                                  \
                PUT_SIGNAL((t*)there, (const t*)here, n, word, 1, SHMEM_SIGNAL_SET, right));                           \
    PUT_ARRIVES(name " put_signal_nbi", size, n, 1, 1, 1,                                                              \
                PUT_SIGNAL_NBI((t*)there, (const t*)here, n, word, 1, SHMEM_SIGNAL_ADD, right));                       \
    PUT_ARRIVES(name " ctx put_signal", size, n, 1, 1, 1,                                                              \
                CTX_PUT_SIGNAL(context, (t*)there, (const t*)here, n, word, 1, SHMEM_SIGNAL_ADD, right));              \
    PUT_ARRIVES(name " ctx put_signal_nbi", size, n, 1, 1, 1,                                                          \
                CTX_PUT_SIGNAL_NBI(context, (t*)there, (const t*)here, n, word, 1, SHMEM_SIGNAL_SET, right));          \
    SIGNALLED(SET, PUT_SIGNAL((t*)there, (const t*)here, n, word, 77, SHMEM_SIGNAL_SET, right));                       \
    SIGNALLED(ADD, PUT_SIGNAL((t*)there, (const t*)here, n, word, 77, SHMEM_SIGNAL_ADD, right));                       \
  }
#define STRIDED(name, t, size, IPUT, IGET, IBPUT, IBGET, CTX_IPUT, CTX_IGET, CTX_IBPUT, CTX_IBGET)                      \
  for (size_t n = 0; n < 40; n = 3 * n + 1) {                                                                           \
    PUT_ARRIVES(name " iput", size, n, 1, 3, 2, IPUT((t*)there, (const t*)here, 3, 2, n, right));                       \
    PUT_ARRIVES(name " ctx iput", size, n, 1, 1, 4, CTX_IPUT(context, (t*)there, (const t*)here, 1, 4, n, right));      \
    GET_BRINGS(name " iget", size, n, 1, 2, 3, IGET((t*)local, (const t*)here, 2, 3, n, right));                        \
    GET_BRINGS(name " ctx iget", size, n, 1, 4, 1, CTX_IGET(context, (t*)local, (const t*)here, 4, 1, n, right));       \
    PUT_ARRIVES(name " ibput", size, n, 3, 5, 4, IBPUT((t*)there, (const t*)here, 5, 4, 3, n, right));                  \
    PUT_ARRIVES(name " ctx ibput", size, n, 2, 2, 7, CTX_IBPUT(context, (t*)there, (const t*)here, 2, 7, 2, n, right)); \
    GET_BRINGS(name " ibget", size, n, 3, 4, 5, IBGET((t*)local, (const t*)here, 4, 5, 3, n, right));                   \
    GET_BRINGS(name " ctx ibget", size, n, 2, 7, 2, CTX_IBGET(context, (t*)local, (const t*)here, 7, 2, 2, n, right));  \
  }

#define TYPED(N, t)                                                                                                     \
  static void typed_##N(void) {                                                                                         \
    FORMS(#N, N, t, sizeof(t), shmem_##N##_put, shmem_##N##_get, shmem_##N##_put_nbi, shmem_##N##_get_nbi,              \
          shmem_##N##_put_signal, shmem_##N##_put_signal_nbi, shmem_ctx_##N##_put, shmem_ctx_##N##_get,                 \
          shmem_ctx_##N##_put_nbi, shmem_ctx_##N##_get_nbi, shmem_ctx_##N##_put_signal, shmem_ctx_##N##_put_signal_nbi) \
    STRIDED(#N, t, sizeof(t), shmem_##N##_iput, shmem_##N##_iget, shmem_##N##_ibput, shmem_##N##_ibget,                 \
            shmem_ctx_##N##_iput, shmem_ctx_##N##_iget, shmem_ctx_##N##_ibput, shmem_ctx_##N##_ibget)                   \
    t value;                                                                                                            \
    memset(&value, 0, sizeof value);                                                                                    \
    value = (t)(mixed((uint64_t)me) % 100);                                                                             \
    const t theirs = (t)(mixed((uint64_t)left) % 100), on_the_right = (t)(mixed((uint64_t)right) % 100);                \
    poison();                                                                                                           \
    shmem_##N##_p((t*)there, value, right);                                                                             \
    shmem_ctx_##N##_p(context, (t*)there + 2, value, right);                                                            \
    ((t*)here)[0] = value;                                                                                              \
    shmem_barrier_all();                                                                                                \
    CHECK_OF(((t*)there)[0] == theirs && ((t*)there)[2] == theirs, #N " p");                                            \
    CHECK_OF(all_are((t*)there + 1, sizeof(t), 0xee) && all_are((t*)there + 3, 100, 0xee), #N " p");                    \
    CHECK_OF(shmem_##N##_g((const t*)here, right) == on_the_right, #N " g");                                            \
    CHECK_OF(shmem_ctx_##N##_g(context, (const t*)here, right) == on_the_right, #N " g");                               \
    shmem_barrier_all();                                                                                                \
  }
FOR_RMA(TYPED);
#define SIZED(S)                                                                                                      \
  FORMS(#S, S, unsigned char, S / 8, shmem_put##S, shmem_get##S, shmem_put##S##_nbi, shmem_get##S##_nbi,              \
        shmem_put##S##_signal, shmem_put##S##_signal_nbi, shmem_ctx_put##S, shmem_ctx_get##S, shmem_ctx_put##S##_nbi, \
        shmem_ctx_get##S##_nbi, shmem_ctx_put##S##_signal, shmem_ctx_put##S##_signal_nbi)                             \
  STRIDED(#S, unsigned char, S / 8, shmem_iput##S, shmem_iget##S, shmem_ibput##S, shmem_ibget##S, shmem_ctx_iput##S,  \
          shmem_ctx_iget##S, shmem_ctx_ibput##S, shmem_ctx_ibget##S)
static void by_size(void) {
  SIZED(8)
  SIZED(16)
  SIZED(32)
  SIZED(64)
  SIZED(128)
  FORMS("mem", mem, unsigned char, 1, shmem_putmem, shmem_getmem, shmem_putmem_nbi, shmem_getmem_nbi, shmem_putmem_signal,
        shmem_putmem_signal_nbi, shmem_ctx_putmem, shmem_ctx_getmem, shmem_ctx_putmem_nbi, shmem_ctx_getmem_nbi,
        shmem_ctx_putmem_signal, shmem_ctx_putmem_signal_nbi)
}
static void signals(void) {
  poison();
  for (int pe = 0; pe < pes; ++pe) {
    shmem_signal_add(word, 2, pe);
    shmem_ctx_signal_add(context, word, 3, pe);
  }
  shmem_barrier_all();
  CHECK(shmem_signal_fetch(word) == 5u * (uint64_t)pes);
  shmem_barrier_all();
  shmem_signal_set(word, 100 + (uint64_t)me, right);
  CHECK(shmem_signal_wait_until(word, SHMEM_CMP_EQ, 100 + (uint64_t)left) == 100 + (uint64_t)left);
  shmem_barrier_all();
  shmem_ctx_signal_set(context, word, 200 + (uint64_t)me, right);
  CHECK(shmem_signal_wait_until(word, SHMEM_CMP_GE, 200) == 200 + (uint64_t)left);
  shmem_barrier_all();
}
/* Longer than any cache, to itself and to others, from memory on the stack and on the heap. */
static void long_ones(void) {
  const size_t bytes = ((size_t)9 << 20) + 13;
  unsigned char* const far = (unsigned char*)memory(bytes + 64);
  unsigned char* const own = (unsigned char*)malloc(bytes);
  fill(own, bytes, 4000 + (uint64_t)me);
  memset(far, 0xee, bytes + 64);
  shmem_barrier_all();
  shmem_putmem(far, own, bytes, right);
  shmem_barrier_all();
  CHECK(filled(far, bytes, 4000 + (uint64_t)left) && all_are(far + bytes, 64, 0xee));
  memset(own, 0, bytes);
  shmem_getmem(own, far, bytes, right);
  CHECK(filled(own, bytes, 4000 + (uint64_t)me));
  shmem_barrier_all();
  shmem_free(far);
  free(own);
}
/* Within a PE as memmove does it, of the heap and of variables, which the library maps twice. */
static void overlapping(unsigned char* at) {
  for (size_t bytes = 5000; bytes <= ROOM - 100; bytes *= 3)
    for (int up = 0; up <= 1; ++up)
      for (int way = 0; way < 4; ++way) {
        unsigned char* const to = at + (up ? 100 : 0);
        unsigned char* const from = at + (up ? 0 : 100);
        fill(at, ROOM, bytes);
        memcpy(expected, at, ROOM);
        memmove(expected + (to - at), expected + (from - at), bytes);
        if (way == 0) shmem_putmem(to, from, bytes, me);
        if (way == 1) shmem_getmem(to, from, bytes, me);
        if (way == 2) shmem_putmem_nbi(to, from, bytes, me);
        if (way == 3) shmem_getmem_nbi(to, from, bytes, me);
        shmem_quiet();
        CHECK(memcmp(at, expected, ROOM) == 0);
      }
  shmem_barrier_all();
}

int main(void) {
  shmem_init();
  find_pes();
  there = (unsigned char*)memory(ROOM);
  here = (unsigned char*)memory(ROOM);
  word = (uint64_t*)memory(sizeof *word);
  CHECK(shmem_ctx_create(0, &context) == 0);
#define CALL_TYPED(N, t) typed_##N();
  FOR_RMA(CALL_TYPED)
  by_size();
  signals();
  long_ones();
  overlapping(there);
  overlapping(local);
  shmem_ctx_destroy(context);
  return done();
}
