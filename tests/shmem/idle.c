/* The last PE computes, and makes no call at all, until the others have seen in its memory what they did there: puts, gets, strided ones too,
 * atomic operations that find something and those that do not, and signals. idle [cuda | opencl] */
#include <time.h>

#include "check.h"

enum { PART = 4096, BYTES = 1500, WORDS = 8 };
static unsigned char local[PART], expected[PART];

/* What PE `me` does to the owner's words `own`, which are 0, and to the bytes at `part`. */
static void reach(uint64_t* all, uint64_t* own, unsigned char* part, int owner) {
  fill(expected, BYTES, 70 + (uint64_t)me);
  shmem_putmem(part, expected, BYTES, owner);
  memset(local, 0, BYTES);
  shmem_getmem(local, part, BYTES, owner);
  CHECK(memcmp(local, expected, BYTES) == 0);
  shmem_putmem_signal(part + BYTES, expected, BYTES, own, 4, SHMEM_SIGNAL_SET, owner);
  shmem_putmem_signal_nbi(part + BYTES, expected, BYTES, own, 3, SHMEM_SIGNAL_ADD, owner);
  shmem_quiet();
  CHECK(shmem_uint64_g(own, owner) == 7);
  memset(local, 0, BYTES);
  shmem_getmem_nbi(local, part + BYTES, BYTES, owner);
  shmem_quiet();
  CHECK(memcmp(local, expected, BYTES) == 0);
  uint32_t pairs[4] = {1, 2, 3, 4}, back[4] = {0};
  shmem_uint32_iput((uint32_t*)(own + 3), pairs, 2, 1, 4, owner);
  shmem_quiet();
  shmem_uint32_iget(back, (uint32_t*)(own + 3), 1, 2, 4, owner);
  CHECK(memcmp(back, pairs, sizeof back) == 0);
  shmem_uint64_atomic_add(all, 2, owner);
  CHECK(shmem_uint64_atomic_fetch_add(all, 3, owner) >= 2);
  uint64_t found = 0;
  shmem_uint64_atomic_set(own + 1, 0x30, owner);
  CHECK(shmem_uint64_atomic_fetch(own + 1, owner) == 0x30 && shmem_uint64_atomic_swap(own + 1, 0x3c, owner) == 0x30);
  CHECK(shmem_uint64_atomic_compare_swap(own + 1, 1, 2, owner) == 0x3c);
  CHECK(shmem_uint64_atomic_compare_swap(own + 1, 0x3c, 0x0f, owner) == 0x3c);
  CHECK(shmem_uint64_atomic_fetch_inc(own + 1, owner) == 0x0f && shmem_uint64_atomic_fetch_or(own + 1, 3, owner) == 0x10);
  CHECK(shmem_uint64_atomic_fetch_and(own + 1, 0x11, owner) == 0x13);
  shmem_uint64_atomic_fetch_xor_nbi(&found, own + 1, 0x100, owner);
  shmem_quiet();
  CHECK(found == 0x11);
  shmem_float_atomic_set((float*)(own + 2), 1.5f, owner);
  CHECK(shmem_float_atomic_swap((float*)(own + 2), -2.25f, owner) == 1.5f);
  CHECK(shmem_int_atomic_fetch_add((int*)(own + 2) + 1, -7, owner) == 0);
}
/* What the owner then has. */
static void look(const uint64_t* own, const unsigned char* part, int pe) {
  const uint64_t* const words = (const uint64_t*)seen(own, WORDS * sizeof *own);
  const float* const real = (const float*)(words + 2);
  CHECK(words[0] == 7 && words[1] == 0x111 && *real == -2.25f && ((const int*)real)[1] == -7);
  for (uint64_t i = 0; i < 4; ++i) CHECK((words[3 + i] & 0xffffffffu) == i + 1 && words[3 + i] >> 32 == 0);
  const unsigned char* const bytes = seen(part, 2 * BYTES);
  CHECK(filled(bytes, BYTES, 70 + (uint64_t)pe) && filled(bytes + BYTES, BYTES, 70 + (uint64_t)pe));
}

int main(int count, char** arguments) {
  if (!started(count, arguments)) return done();
  const int owner = pes - 1;
  uint64_t* const told = (uint64_t*)memory(sizeof *told);
  uint64_t* const words = (uint64_t*)symmetric((size_t)(pes + 1) * WORDS * sizeof *words);
  unsigned char* const parts = (unsigned char*)symmetric((size_t)pes * PART);
  *told = 0;
  give_all(words, 0, (size_t)(pes + 1) * WORDS * sizeof *words);
  shmem_barrier_all();
  if (me == owner) {
    uint64_t work = 1;
    const time_t end = time(NULL) + 60;
    while (__atomic_load_n(told, __ATOMIC_ACQUIRE) < (uint64_t)(pes - 1) && time(NULL) < end) work = mixed(work);
    CHECK(*told == (uint64_t)(pes - 1) && work != 0);
    CHECK(SEEN(uint64_t, words) == 5 * (uint64_t)(pes - 1));
    for (int pe = 0; pe < owner; ++pe) look(words + (pe + 1) * WORDS, parts + (size_t)pe * PART, pe);
  } else {
    reach(words, words + (me + 1) * WORDS, parts + (size_t)me * PART, owner);
    __atomic_fetch_add((uint64_t*)shmem_ptr(told, owner), 1, __ATOMIC_ACQ_REL);
  }
  shmem_barrier_all();
  shmem_free(parts);
  shmem_free(words);
  shmem_free(told);
  return done();
}
