// Names that the standard has given up, and those from before it.
#define SHMEMX_OLD_NAMES
#include "face/shmem/also.hpp"

extern "C" {

// Caches follow by themselves.
void pshmem_clear_cache_inv() {}
SHMEM_ALSO(clear_cache_inv);
void pshmem_set_cache_inv() {}
SHMEM_ALSO(set_cache_inv);
void pshmem_clear_cache_line_inv(void*) {}
SHMEM_ALSO(clear_cache_line_inv);
void pshmem_set_cache_line_inv(void*) {}
SHMEM_ALSO(set_cache_line_inv);
void pshmem_udcflush() {}
SHMEM_ALSO(udcflush);
void pshmem_udcflush_line(void*) {}
SHMEM_ALSO(udcflush_line);

void start_pes(int) {
  if (shmem_n_pes() == 0) shmem_init();
}
int _my_pe() { return shmem_my_pe(); }
int _num_pes() { return shmem_n_pes(); }
int my_pe() { return shmem_my_pe(); }
int num_pes() { return shmem_n_pes(); }
void globalexit(int status) { shmem_global_exit(status); }
}
