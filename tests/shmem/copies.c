/* Every put and get of every type and size: each byte where it belongs, and none beside it. copies [cuda | opencl] */
#include "check.h"

enum { LONGEST = 1027, SPACE = 17408, ROOM = 65536 };
/* Symmetric: what is put into, what PEs get into where that is no memory of the program's own, and what is got from. */
static unsigned char *there, *landing, *here;
static uint64_t *own_word, *home_word; /* of that kind, and of the host */
static unsigned char image[3 * SPACE + sizeof(uint64_t)], local[ROOM], expected[ROOM];
static shmem_ctx_t context;
static uint64_t seed; /* of the case, the same on all PEs */
static const size_t counts[] = {0, 1, 2, 3, LONGEST, 7, 64, LONGEST};
static int left_out(size_t n) { return kind != SHMEMX_KIND_HOST && (n == 2 || n == 7); } /* each copy takes longer there */
/* The near side of a copy, and its signal, are in symmetric memory of that kind and in the program's own by turns. */
static const unsigned char* near_from;
static unsigned char* near_to;
static uint64_t* word;

static void take_turns(size_t turn) {
  near_from = turn % 2 != 0 ? here : image + 2 * SPACE;
  near_to = turn % 2 != 0 ? landing : local;
  word = turn / 2 % 2 != 0 ? home_word : own_word;
}
/* What will be written is wrong before. */
static void begin(void) {
  memset(image, 0xee, SPACE);
  memset(image + SPACE, 0xdd, SPACE);
  fill(image + 2 * SPACE, SPACE, ++seed * 100 + (uint64_t)me);
  memset(image + 3 * SPACE, 0, sizeof(uint64_t));
  memset(local, 0xdd, SPACE);
  give(there, image, sizeof image);
  *home_word = 0;
  shmem_barrier_all();
}
/* What PE `pe` has in `here`, strided, over what was there. */
static int has_come(const void* to, unsigned char was, int pe, size_t size, size_t count, size_t block, size_t to_stride,
                    size_t stride) {
  memset(expected, was, SPACE);
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < block * size; ++k)
      expected[i * to_stride * size + k] = byte_of(seed * 100 + (uint64_t)pe, i * stride * size + k);
  return memcmp(to == local ? local : seen(to, SPACE), expected, SPACE) == 0;
}
#define PUT_ARRIVES(name, size, count, block, to, from, put)                   \
  do {                                                                         \
    begin();                                                                   \
    put;                                                                       \
    shmem_barrier_all();                                                       \
    CHECK_OF(has_come(there, 0xee, left, size, count, block, to, from), name); \
    shmem_barrier_all();                                                       \
  } while (0)
#define GET_BRINGS(name, size, count, block, to, from, get)                       \
  do {                                                                            \
    begin();                                                                      \
    get;                                                                          \
    shmem_quiet();                                                                \
    CHECK_OF(has_come(near_to, 0xdd, right, size, count, block, to, from), name); \
    shmem_barrier_all();                                                          \
  } while (0)
/* Who has seen the signal sees the bytes. */
#define SIGNALLED(name, size, count, put)                                              \
  do {                                                                                 \
    begin();                                                                           \
    put;                                                                               \
    const uint64_t found = shmem_signal_wait_until(word, SHMEM_CMP_NE, 0);             \
    CHECK_OF(has_come(there, 0xee, left, size, count, 1, 1, 1), name);                 \
    CHECK_OF(found == 77 && shmem_signal_fetch(word) == 77, name);                     \
    CHECK_OF((word == home_word ? *home_word : SEEN(uint64_t, own_word)) == 77, name); \
    shmem_barrier_all();                                                               \
  } while (0)
/* With (ctx) and without a context. */
#define FORMS(name, T, t, size, PUT, GET, PUT_NBI, GET_NBI, PUT_SIGNAL, PUT_SIGNAL_NBI, CTX_PUT, CTX_GET, CTX_PUT_NBI, \
              CTX_GET_NBI, CTX_PUT_SIGNAL, CTX_PUT_SIGNAL_NBI)                                                         \
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {                                                      \
    const size_t n = counts[c];                                                                                        \
    if (left_out(n)) continue;                                                                                         \
    take_turns(c);                                                                                                     \
    PUT_ARRIVES(name " put", size, n, 1, 1, 1, PUT((t*)there, (const t*)near_from, n, right));                         \
    PUT_ARRIVES(name " ctx put", size, n, 1, 1, 1, CTX_PUT(context, (t*)there, (const t*)near_from, n, right));        \
    PUT_ARRIVES(name " put_nbi", size, n, 1, 1, 1, PUT_NBI((t*)there, (const t*)near_from, n, right));                 \
    PUT_ARRIVES(name " ctx put_nbi", size, n, 1, 1, 1,                                                                 \
                (CTX_PUT_NBI(context, (t*)there, (const t*)near_from, n, right), shmem_ctx_quiet(context)));           \
    GET_BRINGS(name " get", size, n, 1, 1, 1, GET((t*)near_to, (const t*)here, n, right));                             \
    GET_BRINGS(name " ctx get", size, n, 1, 1, 1, CTX_GET(context, (t*)near_to, (const t*)here, n, right));            \
    GET_BRINGS(name " get_nbi", size, n, 1, 1, 1, GET_NBI((t*)near_to, (const t*)here, n, right));                     \
    GET_BRINGS(name " ctx get_nbi", size, n, 1, 1, 1,                                                                  \
               (CTX_GET_NBI(context, (t*)near_to, (const t*)here, n, right), shmem_ctx_quiet(context)));               \
    SIGNALLED(name " put_signal", size, n,                                                                             \
              PUT_SIGNAL((t*)there, (const t*)near_from, n, word, 77, SHMEM_SIGNAL_SET, right));                       \
    SIGNALLED(name " put_signal, add", size, n,                                                                        \
              PUT_SIGNAL((t*)there, (const t*)near_from, n, word, 77, SHMEM_SIGNAL_ADD, right));                       \
    SIGNALLED(name " put_signal_nbi", size, n,                                                                         \
              PUT_SIGNAL_NBI((t*)there, (const t*)near_from, n, word, 77, SHMEM_SIGNAL_ADD, right));                   \
    SIGNALLED(name " put_signal_nbi, set", size, n,                                                                    \
              PUT_SIGNAL_NBI((t*)there, (const t*)near_from, n, word, 77, SHMEM_SIGNAL_SET, right));                   \
    SIGNALLED(name " ctx put_signal", size, n,                                                                         \
              CTX_PUT_SIGNAL(context, (t*)there, (const t*)near_from, n, word, 77, SHMEM_SIGNAL_ADD, right));          \
    SIGNALLED(name " ctx put_signal_nbi", size, n,                                                                     \
              CTX_PUT_SIGNAL_NBI(context, (t*)there, (const t*)near_from, n, word, 77, SHMEM_SIGNAL_SET, right));      \
  }
#define STRIDED(name, t, size, IPUT, IGET, IBPUT, IBGET, CTX_IPUT, CTX_IGET, CTX_IBPUT, CTX_IBGET)                       \
  for (size_t n = 0; n < 40; n = 3 * n + 1) {                                                                            \
    take_turns(n);                                                                                                       \
    PUT_ARRIVES(name " iput", size, n, 1, 3, 2, IPUT((t*)there, (const t*)near_from, 3, 2, n, right));                   \
    PUT_ARRIVES(name " ctx iput", size, n, 1, 1, 4, CTX_IPUT(context, (t*)there, (const t*)near_from, 1, 4, n, right));  \
    GET_BRINGS(name " iget", size, n, 1, 2, 3, IGET((t*)near_to, (const t*)here, 2, 3, n, right));                       \
    GET_BRINGS(name " ctx iget", size, n, 1, 4, 1, CTX_IGET(context, (t*)near_to, (const t*)here, 4, 1, n, right));      \
    PUT_ARRIVES(name " ibput", size, n, 3, 5, 4, IBPUT((t*)there, (const t*)near_from, 5, 4, 3, n, right));              \
    PUT_ARRIVES(name " ctx ibput", size, n, 2, 2, 7,                                                                     \
                CTX_IBPUT(context, (t*)there, (const t*)near_from, 2, 7, 2, n, right));                                  \
    GET_BRINGS(name " ibget", size, n, 3, 4, 5, IBGET((t*)near_to, (const t*)here, 4, 5, 3, n, right));                  \
    GET_BRINGS(name " ctx ibget", size, n, 2, 7, 2, CTX_IBGET(context, (t*)near_to, (const t*)here, 7, 2, 2, n, right)); \
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
    begin();                                                                                                            \
    shmem_##N##_p((t*)there, value, right);                                                                             \
    shmem_ctx_##N##_p(context, (t*)there + 2, value, right);                                                            \
    GIVE(t, here, value);                                                                                               \
    shmem_barrier_all();                                                                                                \
    CHECK_OF(SEEN(t, there) == theirs && SEEN(t, (t*)there + 2) == theirs, #N " p");                                    \
    CHECK_OF(all_are(seen((t*)there + 1, sizeof(t)), sizeof(t), 0xee) && all_are(seen((t*)there + 3, 100), 100, 0xee),  \
             #N " p");                                                                                                  \
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
  begin();
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
  unsigned char* const far = (unsigned char*)symmetric(bytes + 64);
  unsigned char* const own = (unsigned char*)malloc(bytes);
  fill(own, bytes, 4000 + (uint64_t)me);
  give_all(far, 0xee, bytes + 64);
  shmem_barrier_all();
  shmem_putmem(far, own, bytes, right);
  shmem_barrier_all();
  const unsigned char* const come = seen(far, bytes + 64);
  CHECK(filled(come, bytes, 4000 + (uint64_t)left) && all_are(come + bytes, 64, 0xee));
  memset(own, 0, bytes);
  shmem_getmem(own, far, bytes, right);
  CHECK(filled(own, bytes, 4000 + (uint64_t)me));
  shmem_barrier_all();
  shmem_free(far);
  free(own);
}
/* Within a PE as memmove does it, in memory of the host: of the heap and of variables, which the library maps twice. */
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

int main(int count, char** arguments) {
  if (!started(count, arguments)) return done();
  there = (unsigned char*)symmetric(sizeof image);
  landing = there + SPACE;
  here = landing + SPACE;
  own_word = (uint64_t*)(here + SPACE);
  home_word = (uint64_t*)memory(sizeof *home_word);
  CHECK(shmem_ctx_create(0, &context) == 0);
#define CALL_TYPED(N, t) typed_##N();
  FOR_RMA(CALL_TYPED)
  by_size();
  for (size_t turn = 0; turn < 4; turn += 2) {
    take_turns(turn);
    signals();
  }
  long_ones();
  if (kind == SHMEMX_KIND_HOST) {
    unsigned char* const large = (unsigned char*)memory(ROOM);
    overlapping(large);
    overlapping(local);
    shmem_free(large);
  }
  shmem_free(home_word);
  shmem_free(there);
  shmem_ctx_destroy(context);
  return done();
}
