/* What is put into the heap of a device and is expected there, for the program that calls every group of calls on it. */
#ifndef SHMEM_DEVICE_CHECK_H
#define SHMEM_DEVICE_CHECK_H
#include "check.h"

enum { N = 5, ROOM = 4096, WORDS = 4 };
static unsigned char *there, *here; /* of a device */
static uint64_t* word;              /* too */
static unsigned char seen[ROOM], expected[ROOM];
static shmem_ctx_t context;
static int handled;
static void handler(const char* call, int pe, const char* cause) {
  handled += pe == me && strncmp(call, "shmem_", 6) == 0 && strstr(cause, "device") != NULL;
}

/* Many are made here: a call of one function each. */
#undef CHECK_OF
#define CHECK_OF(condition, what) check_of(condition, __LINE__, what, #condition)
static int check_of(int holds, int line, const char* what, const char* condition) {
  if (!holds && ++failures <= 20)
    fprintf(stderr, "%s:%d: PE %d of %d: %s: not so: %s\n", __FILE__, line, me, pes, what, condition);
  return holds;
}

static void begin(uint64_t seed) {
  const uint64_t none = 0;
  fill(expected, ROOM, seed * 100 + (uint64_t)me);
  shmem_putmem(here, expected, ROOM, me);
  memset(expected, 0xee, ROOM);
  shmem_putmem(there, expected, ROOM, me);
  shmem_putmem(word, &none, sizeof none, me);
  shmem_barrier_all();
}
static void look(void) { shmem_getmem(seen, there, ROOM, me); }
/* What PE `pe` had in `here` at byte `from` is expected in `there` at byte `at`. */
static void expect(size_t at, uint64_t seed, int pe, size_t from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) expected[at + i] = byte_of(seed * 100 + (uint64_t)pe, from + i);
}
static void end(const char* what) {
  look();
  CHECK_OF(memcmp(seen, expected, ROOM) == 0, what);
  shmem_barrier_all();
}
static void arrived(const char* what, uint64_t seed, int pe, size_t size, size_t block, size_t to, size_t from) {
  shmem_barrier_all();
  for (size_t i = 0; i < N; ++i) expect(i * to * size, seed, pe, i * from * size, block * size);
  end(what);
}
#define DO(what, pe, size, block, to, from, call)              \
  do {                                                         \
    begin(__COUNTER__);                                        \
    call;                                                      \
    shmem_quiet();                                             \
    shmem_ctx_quiet(context);                                  \
    arrived(what, __COUNTER__ - 1, pe, size, block, to, from); \
  } while (0)

/* How a routine is called: of a type or of a size, without a context or with one. */
#define PLAIN(T, verb, tail, ...) shmem_##T##_##verb##tail(__VA_ARGS__)
#define WITH(T, verb, tail, ...) shmem_ctx_##T##_##verb##tail(context, __VA_ARGS__)
#define SIZED(S, verb, tail, ...) shmem_##verb##S##tail(__VA_ARGS__)
#define SIZED_WITH(S, verb, tail, ...) shmem_ctx_##verb##S##tail(context, __VA_ARGS__)
#endif
