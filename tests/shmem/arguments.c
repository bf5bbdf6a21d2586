/* Prints what it was started with: "PE of PES: arguments". */
#include <shmem.h>
#include <stdio.h>

int main(int argc, char** argv) {
  shmem_init();
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    if (pe == shmem_my_pe()) {
      printf("%d of %d:", pe, shmem_n_pes());
      for (int i = 1; i < argc; ++i) printf(" [%s]", argv[i]);
      printf("\n");
      fflush(stdout);
    }
    shmem_barrier_all();
  }
  shmem_finalize();
  return 0;
}
