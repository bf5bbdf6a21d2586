/* A program of which two PEs have one build and the rest another: the heap does, globals do not, and who names one is told why.
 * different go | name */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

long variable;
#ifdef MORE
char more[100000] = {1};
#endif

int main(int argc, char** argv) {
  shmem_init();
  const int pes = shmem_n_pes();
  const int right = (shmem_my_pe() + 1) % pes;
  int wrong = shmem_addr_accessible(&variable, right) != 0 || shmem_ptr(&variable, right) != NULL;
  long* const heap = shmem_calloc(1, sizeof *heap);
  shmem_long_atomic_add(heap, 3, right);
  shmem_barrier_all();
  wrong += *heap != 3 || shmem_addr_accessible(heap, right) != 1;
  if (argc > 1 && strcmp(argv[1], "name") == 0 && shmem_my_pe() == 0) shmem_long_p(&variable, 1, right);
  shmem_barrier_all();
  shmem_free(heap);
  shmem_finalize();
  variable = wrong;
  return variable == 0 ? 0 : 1;
}
