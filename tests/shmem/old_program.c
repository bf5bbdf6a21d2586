/* A program as they were written before there was a finalize. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  start_pes(0);
  const int me = _my_pe(), pes = _num_pes();
  long* const words = (long*)shmalloc(sizeof(long) * (_SHMEM_REDUCE_SYNC_SIZE + _SHMEM_REDUCE_MIN_WRKDATA_SIZE + 2));
  for (int i = 0; i < _SHMEM_REDUCE_SYNC_SIZE; ++i) words[i] = _SHMEM_SYNC_VALUE;
  long* const work = words + _SHMEM_REDUCE_SYNC_SIZE;
  long* const sum = work + _SHMEM_REDUCE_MIN_WRKDATA_SIZE;
  sum[1] = me + 1;
  shmem_barrier_all();
  shmem_long_sum_to_all(sum, sum + 1, 1, 0, 0, pes, work, words);
  if (sum[0] != (long)pes * (pes + 1) / 2) {
    printf("PE %d: the sum is %ld\n", me, sum[0]);
    return 1;
  }
  /* PEs end when they like. */
  if (me != 0 && shmem_long_g(sum + 1, 0) != 1) return 2;
  if (me == 0) printf("all is well\n");
  return 0;
}
