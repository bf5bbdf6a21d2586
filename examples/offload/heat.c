/* A wave is an eigenvector of the stencil, so that every cell is known at every time, and compared at the end.
 * Run: isthmus run -n 4 heat_openmp [rows] [columns] [steps], or heat_openacc */
#include "heat.h"

#include <isthmus/collective.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int check(int code) {
  if (code != IST_OK) fprintf(stderr, "%s: %s\n", ist_code_name(code), ist_error_text());
  return code != IST_OK;
}

int heat_exchange(const heat* part, double* cells) {
  const int up = (part->rank + part->ranks - 1) % part->ranks, down = (part->rank + 1) % part->ranks;
  const long row = part->columns;
  double* const first = cells + row;
  double* const last = cells + part->rows * row;
  return check(ist_sendrecv(ist_auto(first), row, IST_DOUBLE, up, 0, ist_auto(last + row), row, IST_DOUBLE, down, 0,
                            part->comm, IST_STATUS_IGNORE)) ||
         check(ist_sendrecv(ist_auto(last), row, IST_DOUBLE, down, 1, ist_auto(cells), row, IST_DOUBLE, up, 1, part->comm,
                            IST_STATUS_IGNORE));
}

static double wave(long at, long all) { return cos(2 * 3.14159265358979323846 * (double)at / (double)all); }

/* Fills the part's own cells with the wave, or says how far from `scale` times the wave they are. */
static double each_cell(const heat* part, double* cells, double scale, int fill) {
  double worst = 0;
  for (long i = 0; i < part->rows; ++i)
    for (long j = 0; j < part->columns; ++j) {
      double* const cell = &cells[(i + 1) * part->columns + j];
      const double known = scale * wave(part->first + i, part->all_rows) * wave(j, part->columns);
      if (fill) *cell = known;
      worst = fmax(worst, fabs(*cell - known));
    }
  return worst;
}

/* 0 where it is no such number. */
static long number(int argc, char** argv, int place, long usual, long least) {
  char* end = NULL;
  const long value = argc > place ? strtol(argv[place], &end, 10) : usual;
  if (argc <= place || (*argv[place] != '\0' && *end == '\0' && value >= least && value <= 1000000)) return value;
  fprintf(stderr, "'%s' is no number from %ld to 1000000; usage: %s [rows] [columns] [steps, rounded up to even]\n",
          argv[place], least, argv[0]);
  return 0;
}

static int simulate(heat* part) {
  const size_t bytes = (size_t)heat_cells(part) * sizeof(double);
  double* const cells = malloc(bytes);
  double* const other = malloc(bytes);
  int failed = cells == NULL || other == NULL;
  if (failed) {
    fprintf(stderr, "there are no %zu bytes of memory, twice\n", bytes);
  } else {
    each_cell(part, cells, 1, 1);
    const char* const device = heat_run(part, cells, other, &failed);
    const double shrunk = pow(1 - 2 * HEAT_FLOW * (2 - wave(1, part->all_rows) - wave(1, part->columns)), part->steps);
    const double off = each_cell(part, cells, shrunk, 0);
    double worst = 0;
    failed = failed || check(ist_allreduce(ist_host(&off), ist_host(&worst), 1, IST_DOUBLE, IST_MAX, part->comm));
    if (!failed) failed = !(worst < 1e-13 * part->steps);
    if (part->rank == 0)
      printf("%s: %ld x %ld cells on %s, %d steps, %d ranks, off by at most %.1e\n", failed ? "wrong" : "verified",
             part->all_rows, part->columns, device, part->steps, part->ranks, worst);
  }
  free(cells);
  free(other);
  return failed;
}

int main(int argc, char** argv) {
  heat part = {.all_rows = number(argc, argv, 1, 256, 1), .columns = number(argc, argv, 2, 256, 1)};
  part.steps = (int)number(argc, argv, 3, 100, 2);
  if (part.all_rows == 0 || part.columns == 0 || part.steps == 0) return 2;
  part.steps += part.steps % 2;
  ist_world world;
  if (check(ist_world_create(&world)) || check(ist_world_comm(world, &part.comm))) return 1;
  if (check(ist_comm_rank(part.comm, &part.rank)) || check(ist_comm_size(part.comm, &part.ranks))) return 1;
  part.first = part.all_rows * part.rank / part.ranks;
  part.rows = part.all_rows * (part.rank + 1) / part.ranks - part.first;
  int failed = part.all_rows < part.ranks;
  if (!failed)
    failed = simulate(&part);
  else if (part.rank == 0)
    fprintf(stderr, "%ld rows are too few for %d ranks: give each at least one\n", part.all_rows, part.ranks);
  return check(ist_world_destroy(&world)) || failed;
}
