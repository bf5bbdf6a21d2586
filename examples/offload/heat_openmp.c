/* OpenMP offloading with messages between devices: the array's address there, by use_device_ptr, is given to Isthmus. */
#include <omp.h>

#include "heat.h"

static void step(const double* from, double* to, long rows, long columns) {
#pragma omp target teams distribute parallel for collapse(2)
  for (long i = 1; i <= rows; ++i)
    for (long j = 0; j < columns; ++j) {
      const double here = from[i * columns + j];
      const double beside = from[i * columns + (j + columns - 1) % columns] + from[i * columns + (j + 1) % columns];
      to[i * columns + j] =
          here + HEAT_FLOW * (from[(i - 1) * columns + j] + from[(i + 1) * columns + j] + beside - 4 * here);
    }
}

const char* heat_run(const heat* part, double* cells, double* other, int* failed) {
  const long all = heat_cells(part);
  int on_host = 1;
  if (omp_get_num_devices() > 0) omp_set_default_device(part->local_rank % omp_get_num_devices());
#pragma omp target map(from : on_host)
  on_host = omp_is_initial_device();
#pragma omp target data map(tofrom : cells [0:all]) map(alloc : other [0:all])
  for (int n = 0; n < part->steps && !*failed; ++n) {
    double* const from = n % 2 == 0 ? cells : other;
    double* const to = n % 2 == 0 ? other : cells;
#pragma omp target data use_device_ptr(from)
    *failed = heat_exchange(part, from);
    if (!*failed) step(from, to, part->rows, part->columns);
  }
  return on_host ? "the host" : "a device";
}
