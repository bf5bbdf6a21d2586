/* A matrix, of which every PE has some rows, is transposed, once by strided puts and once by strided gets: transpose [ROWS_OF_EACH] */
#include "verdict.h"

static double value(long row, long column) { return (double)(row * 100003 + column); }

/* Row r of the transposed matrix is column r of the other one. */
static int count_wrong(const double* result, long first, long rows, long n) {
  int wrong = 0;
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < n; ++j) wrong += result[i * n + j] != value(j, first + i);
  return wrong;
}

int main(int argc, char** argv) {
  const long rows = argument(argc, argv, 1, 60);
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const long n = rows * pes;
  const long first = me * rows;
  double* matrix = shmem_malloc((size_t)(rows * n) * sizeof *matrix);
  double* result = shmem_malloc((size_t)(rows * n) * sizeof *result);
  if (matrix == NULL || result == NULL) {
    fprintf(stderr, "transpose: no memory for %ld rows of %ld numbers\n", rows, n);
    shmem_global_exit(1);
  }
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < n; ++j) matrix[i * n + j] = value(first + i, j);
  for (long i = 0; i < rows * n; ++i) result[i] = -1;
  shmem_barrier_all();

  double start = seconds();
  for (int step = 0; step < pes; ++step) {
    const int pe = (me + step) % pes;
    for (long i = 0; i < rows; ++i)
      shmem_double_iput(result + first + i, matrix + i * n + pe * rows, n, 1, (size_t)rows, pe);
  }
  shmem_barrier_all();
  const double by_puts = seconds() - start;
  int wrong = count_wrong(result, first, rows, n);
  for (long i = 0; i < rows * n; ++i) result[i] = -1;

  start = seconds();
  for (int step = 0; step < pes; ++step) {
    const int pe = (me + step) % pes;
    for (long i = 0; i < rows; ++i)
      shmem_double_iget(result + i * n + pe * rows, matrix + first + i, 1, n, (size_t)rows, pe);
  }
  shmem_barrier_all();
  const double by_gets = seconds() - start;
  wrong += count_wrong(result, first, rows, n);
  if (me == 0) printf("transpose: %ld x %ld in %.3f ms by puts, %.3f ms by gets\n", n, n, 1e3 * by_puts, 1e3 * by_gets);

  const int status = verdict("transpose", wrong);
  shmem_free(result);
  shmem_free(matrix);
  shmem_finalize();
  return status;
}
