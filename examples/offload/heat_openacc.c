/* OpenACC with messages between devices: the array's address there, by host_data use_device, is given to Isthmus. */
#include <openacc.h>

#include "heat.h"

static void step(const double* from, double* to, long rows, long columns) {
#pragma acc parallel loop collapse(2) present(from [0:(rows + 2) * columns], to [0:(rows + 2) * columns])
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
  const int devices = acc_get_num_devices(acc_device_not_host);
  int on_device = 0;
  if (devices > 0) acc_set_device_num(part->local_rank % devices, acc_device_not_host);
#pragma acc parallel copyout(on_device)
  on_device = acc_on_device(acc_device_not_host);
#pragma acc data copy(cells [0:all]) create(other [0:all])
  for (int n = 0; n < part->steps && !*failed; ++n) {
    double* const from = n % 2 == 0 ? cells : other;
    double* const to = n % 2 == 0 ? other : cells;
#pragma acc host_data use_device(from)
    *failed = heat_exchange(part, from);
    if (!*failed) step(from, to, part->rows, part->columns);
  }
  return on_device ? "a device" : "the host";
}
