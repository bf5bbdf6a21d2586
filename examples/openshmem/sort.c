/* Random keys are sorted over all PEs: each gets those of its own range, in places that it has others reserve: sort [KEYS_OF_EACH] */
#include <stdint.h>
#include <string.h>

#include "verdict.h"

enum { KEY_BITS = 27 };

/* How many keys a PE has been sent; and of all PEs together what was there before and after. */
static uint64_t received;
static uint64_t keys_before, sum_before, keys_after, sum_after;

static uint64_t state;
static uint32_t next_key(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 20) & ((1u << KEY_BITS) - 1);
}

static int owner(uint32_t key, int pes) { return (int)(((uint64_t)key * (uint64_t)pes) >> KEY_BITS); }

static int compare(const void* a, const void* b) {
  const uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
  return (x > y) - (x < y);
}

/* Sorts by owner, then sends every PE its share at once. */
static void exchange(const uint32_t* keys, uint32_t* sorted, long count, uint32_t* inbox, uint64_t room, int pes) {
  const int me = shmem_my_pe();
  long* begin = calloc((size_t)pes + 1, sizeof *begin);
  long* place = calloc((size_t)pes, sizeof *place);
  for (long i = 0; i < count; ++i) ++begin[owner(keys[i], pes) + 1];
  for (int pe = 0; pe < pes; ++pe) begin[pe + 1] += begin[pe];
  memcpy(place, begin, (size_t)pes * sizeof *place);
  for (long i = 0; i < count; ++i) sorted[place[owner(keys[i], pes)]++] = keys[i];
  for (int step = 0; step < pes; ++step) {
    const int pe = (me + step) % pes;
    const uint64_t length = (uint64_t)(begin[pe + 1] - begin[pe]);
    const uint64_t at = shmem_uint64_atomic_fetch_add(&received, length, pe);
    if (at + length > room) {
      fprintf(stderr, "sort: PE %d has no room for %llu keys\n", pe, (unsigned long long)(at + length));
      shmem_global_exit(1);
    }
    shmem_uint32_put_nbi(inbox + at, sorted + begin[pe], (size_t)length, pe);
  }
  shmem_barrier_all();
  free(place);
  free(begin);
}

int main(int argc, char** argv) {
  const long count = argument(argc, argv, 1, 100000);
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const uint64_t room = 2 * (uint64_t)count + 1000;
  uint32_t* inbox = shmem_malloc(room * sizeof *inbox);
  uint32_t* keys = malloc((size_t)count * sizeof *keys);
  uint32_t* sorted = malloc((size_t)count * sizeof *sorted);
  if (inbox == NULL || keys == NULL || sorted == NULL) {
    fprintf(stderr, "sort: no memory for %ld keys\n", count);
    shmem_global_exit(1);
  }
  state = 88172645463325252u + 7919u * (uint64_t)me;
  uint64_t sum = 0;
  for (long i = 0; i < count; ++i) sum += keys[i] = next_key();
  shmem_uint64_atomic_add(&keys_before, (uint64_t)count, 0);
  shmem_uint64_atomic_add(&sum_before, sum, 0);
  shmem_barrier_all();

  const double start = seconds();
  exchange(keys, sorted, count, inbox, room, pes);
  qsort(inbox, (size_t)received, sizeof *inbox, compare);
  shmem_barrier_all();
  const double time = seconds() - start;

  int wrong = 0;
  sum = 0;
  for (uint64_t i = 0; i < received; ++i) {
    sum += inbox[i];
    wrong += owner(inbox[i], pes) != me || (i > 0 && inbox[i - 1] > inbox[i]);
  }
  shmem_uint64_atomic_add(&keys_after, received, 0);
  shmem_uint64_atomic_add(&sum_after, sum, 0);
  shmem_barrier_all();
  if (me == 0) {
    wrong += keys_before != keys_after || sum_before != sum_after;
    printf("sort: %llu keys in %.3f ms\n", (unsigned long long)keys_after, 1e3 * time);
  }
  const int status = verdict("sort", wrong);
  free(sorted);
  free(keys);
  shmem_free(inbox);
  shmem_finalize();
  return status;
}
