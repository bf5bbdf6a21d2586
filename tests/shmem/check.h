/* What the programs that test OpenSHMEM have in common: checks that count, bytes that nobody guesses, values of every type. C and C++. */
#ifndef SHMEM_CHECK_H
#define SHMEM_CHECK_H
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shmem_types.h"

static int failures = 0;
#define CHECK(condition)                                                                                                 \
  do {                                                                                                                   \
    if (!(condition) && ++failures <= 20)                                                                                \
      fprintf(stderr, "%s:%d: PE %d of %d: not so: %s\n", __FILE__, __LINE__, shmem_my_pe(), shmem_n_pes(), #condition); \
  } while (0)
#define CHECK_OF(condition, what)                                                                                     \
  do {                                                                                                                \
    if (!(condition) && ++failures <= 20)                                                                             \
      fprintf(stderr, "%s:%d: PE %d of %d: %s: not so: %s\n", __FILE__, __LINE__, shmem_my_pe(), shmem_n_pes(), what, \
              #condition);                                                                                            \
  } while (0)

/* The caller, how many there are, and who is beside it in the ring. */
static int me, pes, right, left;
static inline void find_pes(void) {
  me = shmem_my_pe();
  pes = shmem_n_pes();
  right = (me + 1) % pes;
  left = (me + pes - 1) % pes;
}

/* The same on every PE for the same seed. */
static inline uint64_t mixed(uint64_t seed) {
  seed += 0x9e3779b97f4a7c15u;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
  return seed ^ (seed >> 31);
}
static inline unsigned char byte_of(uint64_t seed, size_t i) { return (unsigned char)mixed(seed * 1000003u + i); }
static inline void fill(void* to, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; ++i) ((unsigned char*)to)[i] = byte_of(seed, i);
}
static inline int filled(const void* at, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; ++i)
    if (((const unsigned char*)at)[i] != byte_of(seed, i)) return 0;
  return 1;
}
static inline int all_are(const void* at, size_t bytes, unsigned char value) {
  for (size_t i = 0; i < bytes; ++i)
    if (((const unsigned char*)at)[i] != value) return 0;
  return 1;
}
/* What a program's symmetric memory is of. */
static int kind = SHMEMX_KIND_HOST;
static inline void* memory_on(int of, size_t bytes) {
  void* const made = of == SHMEMX_KIND_HOST ? shmem_malloc(bytes) : shmemx_malloc_on(of, bytes);
  if (made == NULL) {
    fprintf(stderr, "no %zu bytes: %s\n", bytes, shmemx_error_text());
    shmem_global_exit(99);
  }
  return made;
}
static inline void* memory(size_t bytes) { return memory_on(SHMEMX_KIND_HOST, bytes); }
static inline void* symmetric(size_t bytes) { return memory_on(kind, bytes); }
/* To be the first call. The argument names the kind: cuda, opencl, or none for the host's. 0: there is no such device, which is said. */
static inline int started(int count, char** arguments) {
  if (count > 1) kind = strcmp(arguments[1], "opencl") == 0 ? SHMEMX_KIND_OPENCL : SHMEMX_KIND_CUDA;
  shmem_init();
  find_pes();
  if (kind == SHMEMX_KIND_HOST) return 1;
  void* const any = shmemx_malloc_on(kind, 64);
  if (any == NULL) {
    if (me == 0) printf("left out, no memory of a device: %s\n", shmemx_error_text());
    CHECK(strlen(shmemx_error_text()) > 10 && getenv("SHMEM_TEST_DEVICES") == NULL);
    return 0;
  }
  CHECK(shmem_ptr(any, me) == NULL); /* no address for the processor */
  shmem_free(any);
  return 1;
}
/* This PE's own symmetric memory of any kind, which the processor may not reach: to there, and from there to where it reads. What seen() gave
 * of a device is gone at its next call. */
static inline void give(void* own, const void* from, size_t bytes) {
  if (kind == SHMEMX_KIND_HOST) {
    memcpy(own, from, bytes);
  } else {
    shmem_putmem(own, from, bytes, me);
    shmem_quiet();
  }
}
static inline const unsigned char* seen(const void* own, size_t bytes) {
  static unsigned char* copy = NULL;
  static size_t room = 0;
  if (kind == SHMEMX_KIND_HOST) return (const unsigned char*)own;
  if (bytes > room) {
    free(copy);
    copy = (unsigned char*)malloc(bytes);
    room = copy != NULL ? bytes : 0;
    if (copy == NULL) shmem_global_exit(98);
  }
  shmem_getmem(copy, own, bytes, me);
  return copy;
}
#define SEEN(t, own) (*(const t*)seen(own, sizeof(t)))
#define GIVE(t, own, value)            \
  do {                                 \
    const t given_ = (t)(value);       \
    give(own, &given_, sizeof given_); \
  } while (0)
static inline void give_all(void* own, unsigned char value, size_t bytes) {
  void* const from = malloc(bytes);
  if (from == NULL) shmem_global_exit(98);
  memset(from, value, bytes);
  give(own, from, bytes);
  free(from);
}
/* To be the last call: all PEs hear whether all went well. */
static inline int done(void) {
  int* const all = (int*)memory(2 * sizeof(int));
  all[0] = failures;
  shmem_int_sum_reduce(SHMEM_TEAM_WORLD, all + 1, all, 1);
  const int sum = all[1];
  shmem_free(all);
  shmem_finalize();
  return sum == 0 ? 0 : 1;
}
#endif
