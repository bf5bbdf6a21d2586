/* A program's own shmem_* comes before the library's, which it reaches as pshmem_*. */
#define SHMEMX_NO_GENERICS
#include "check.h"

static int puts_seen, barriers_seen, reductions_seen;

#ifdef __cplusplus
extern "C" {
#endif
void shmem_long_put(long* dest, const long* source, size_t nelems, int pe) {
  ++puts_seen;
  pshmem_long_put(dest, source, nelems, pe);
}
void shmem_barrier_all(void) {
  ++barriers_seen;
  pshmem_barrier_all();
}
int shmem_int_sum_reduce(shmem_team_t team, int* dest, const int* source, size_t nelems) {
  ++reductions_seen;
  return pshmem_int_sum_reduce(team, dest, source, nelems);
}
#ifdef __cplusplus
}
#endif

int main(void) {
  shmem_init();
  const int before = barriers_seen;
  CHECK(before == 0); /* the library's own are not the program's */
  long* const word = (long*)memory(sizeof(long));
  const long value = 40 + shmem_my_pe();
  shmem_long_put(word, &value, 1, (shmem_my_pe() + 1) % shmem_n_pes());
  shmem_barrier_all();
  CHECK(*word == 40 + (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes());
  CHECK(puts_seen == 1 && barriers_seen == 1 && reductions_seen == 0);
  const int failed = done();
  return failed != 0 || reductions_seen != 1;
}
