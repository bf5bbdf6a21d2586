/* Updates at random places of a table that is spread over all PEs (GUPS): random_access [LOG2_OF_WORDS_OF_EACH]
 *
 * Each update is an atomic exclusive or, so that the same updates once more leave the table as it was: that is what is checked. */
#include <stdint.h>

#include "verdict.h"

static uint64_t next_random(uint64_t value) { return (value << 1) ^ ((int64_t)value < 0 ? 7u : 0u); }

static uint64_t first_random(int me) {
  uint64_t value = 0x2545f4914f6cdd1du + (uint64_t)me * 0x9e3779b97f4a7c15u;
  for (int i = 0; i < 64; ++i) value = next_random(value) + (uint64_t)i;
  return value | 1;
}

/* The high bits say where, of the table of all PEs; what is written is the number itself. */
static void update(shmem_ctx_t context, uint64_t* table, int log2, uint64_t updates) {
  const uint64_t pes = (uint64_t)shmem_n_pes();
  uint64_t value = first_random(shmem_my_pe());
  for (uint64_t i = 0; i < updates; ++i) {
    value = next_random(value);
    const uint64_t place = (value >> 20) % (pes << log2);
    shmem_ctx_uint64_atomic_xor(context, &table[place & ((1u << log2) - 1)], value, (int)(place >> log2));
  }
  shmem_ctx_quiet(context);
  shmem_barrier_all();
}

int main(int argc, char** argv) {
  const int log2 = (int)argument(argc, argv, 1, 14);
  shmem_init();
  const int me = shmem_my_pe();
  const uint64_t words = (uint64_t)1 << log2;
  const uint64_t updates = 4 * words;
  uint64_t* table = shmem_malloc(words * sizeof *table);
  if (table == NULL) {
    fprintf(stderr, "random_access: no memory for %llu words\n", (unsigned long long)words);
    shmem_global_exit(1);
  }
  shmem_ctx_t context = SHMEM_CTX_DEFAULT;
  const int created = shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) == 0;
  if (!created) context = SHMEM_CTX_DEFAULT;
  for (uint64_t i = 0; i < words; ++i) table[i] = (uint64_t)me * words + i;
  shmem_barrier_all();

  const double start = seconds();
  update(context, table, log2, updates);
  const double time = seconds() - start;
  uint64_t changed = 0;
  for (uint64_t i = 0; i < words; ++i) changed += table[i] != (uint64_t)me * words + i;
  shmem_barrier_all();
  update(context, table, log2, updates);

  int wrong = changed < words / 2;
  for (uint64_t i = 0; i < words; ++i) wrong += table[i] != (uint64_t)me * words + i;
  if (me == 0)
    printf("random_access: %.6f billion updates a second, of all PEs\n", 1e-9 * (double)updates * shmem_n_pes() / time);
  const int status = verdict("random_access", wrong);
  if (created) shmem_ctx_destroy(context);
  shmem_free(table);
  shmem_finalize();
  return status;
}
