/* A user's OpenSHMEM program: each PE puts its number to the next one. C and C++. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
  shmem_init();
  const int me = shmem_my_pe(), pes = shmem_n_pes();
  long* const word = (long*)shmem_malloc(sizeof(long));
  *word = -1;
  shmem_barrier_all();
  shmem_long_p(word, me, (me + 1) % pes);
  shmem_barrier_all();
  const int right = *word == (me + pes - 1) % pes;
  if (!right) printf("PE %d of %d found %ld\n", me, pes, *word);
  shmem_free(word);
  shmem_finalize();
  return right ? 0 : 1;
}
