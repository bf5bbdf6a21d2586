/* Heat spreads over a plate, of which every PE has a rectangle: heat [CELLS_OF_EACH_SIDE] [STEPS]
 *
 * PEs are a grid, with a team for each row and each column of it. What is at the edges goes to the neighbours by puts with a signal.
 * The heat at the beginning is a wave whose shape stays, so that every cell's heat at the end is known. */
#include <math.h>
#include <stdint.h>

#include "verdict.h"

enum { LEFT, RIGHT, UP, DOWN, SIDES };
static const double kSpread = 0.2;
static const double kPi = 3.14159265358979323846;

/* The step up to which each neighbour has sent its edge. */
static uint64_t arrived[SIDES];
static double error, worst;
static int wrong_neighbours;

typedef struct {
  int columns, rows, column, row; /* of the grid of PEs */
  int neighbour[SIDES];           /* -1: none */
  long side, width;               /* cells of a PE in each direction, and doubles from one of its rows to the next one */
} Plate;

static double wave(const Plate* plate, long i, long j) {
  const double x = (double)(plate->column * plate->side + j) / (double)(plate->columns * plate->side + 1);
  const double y = (double)(plate->row * plate->side + i) / (double)(plate->rows * plate->side + 1);
  return sin(kPi * x) * sin(kPi * y);
}

static double decay(const Plate* plate) {
  return 1 + 2 * kSpread * (cos(kPi / (double)(plate->columns * plate->side + 1)) - 1) +
         2 * kSpread * (cos(kPi / (double)(plate->rows * plate->side + 1)) - 1);
}

static int beside(shmem_team_t team, int step) {
  const int pe = shmem_team_my_pe(team) + step;
  return pe >= 0 && pe < shmem_team_n_pes(team) ? shmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD) : -1;
}

/* Who is beside this PE, as the teams of its row and column say, which has to be what the grid says. */
static void find_neighbours(Plate* plate) {
  const int pes = shmem_n_pes();
  plate->columns = (int)sqrt((double)pes);
  while (pes % plate->columns != 0) --plate->columns;
  plate->rows = pes / plate->columns;
  shmem_team_t row, column;
  if (shmem_team_split_2d(SHMEM_TEAM_WORLD, plate->columns, NULL, 0, &row, NULL, 0, &column) != 0) {
    fprintf(stderr, "heat: no teams for %d x %d PEs\n", plate->columns, plate->rows);
    shmem_global_exit(1);
  }
  plate->column = shmem_team_my_pe(row);
  plate->row = shmem_team_my_pe(column);
  plate->neighbour[LEFT] = beside(row, -1);
  plate->neighbour[RIGHT] = beside(row, 1);
  plate->neighbour[UP] = beside(column, -1);
  plate->neighbour[DOWN] = beside(column, 1);
  const int me = shmem_my_pe();
  wrong_neighbours += plate->neighbour[LEFT] != (plate->column > 0 ? me - 1 : -1);
  wrong_neighbours += plate->neighbour[RIGHT] != (plate->column + 1 < plate->columns ? me + 1 : -1);
  wrong_neighbours += plate->neighbour[UP] != (plate->row > 0 ? me - plate->columns : -1);
  wrong_neighbours += plate->neighbour[DOWN] != (plate->row + 1 < plate->rows ? me + plate->columns : -1);
  shmem_team_destroy(row);
  shmem_team_destroy(column);
}

/* Rows go by one put with its signal; columns, strided, by puts with a fence before the signal. */
static void send_edges(const Plate* plate, double* cells, uint64_t step) {
  const long side = plate->side, width = plate->width;
  const size_t bytes = (size_t)side * sizeof *cells;
  const int* to = plate->neighbour;
  if (to[UP] >= 0)
    shmem_putmem_signal(cells + (side + 1) * width + 1, cells + width + 1, bytes, &arrived[DOWN], step, SHMEM_SIGNAL_SET,
                        to[UP]);
  if (to[DOWN] >= 0)
    shmem_putmem_signal_nbi(cells + 1, cells + side * width + 1, bytes, &arrived[UP], step, SHMEM_SIGNAL_SET, to[DOWN]);
  if (to[LEFT] >= 0) shmem_double_iput(cells + width + side + 1, cells + width + 1, width, width, (size_t)side, to[LEFT]);
  if (to[RIGHT] >= 0) shmem_double_iput(cells + width, cells + width + side, width, width, (size_t)side, to[RIGHT]);
  shmem_fence();
  if (to[LEFT] >= 0) shmem_uint64_atomic_set(&arrived[RIGHT], step, to[LEFT]);
  if (to[RIGHT] >= 0) shmem_uint64_atomic_set(&arrived[LEFT], step, to[RIGHT]);
}

static void one_step(const Plate* plate, double* from, double* to, uint64_t step) {
  const long side = plate->side, width = plate->width;
  send_edges(plate, from, step);
  for (int each = 0; each < SIDES; ++each)
    if (plate->neighbour[each] >= 0) shmem_signal_wait_until(&arrived[each], SHMEM_CMP_GE, step);
  for (long i = 1; i <= side; ++i)
    for (long j = 1; j <= side; ++j) {
      const double* cell = from + i * width + j;
      to[i * width + j] = *cell + kSpread * (cell[-1] + cell[1] + cell[-width] + cell[width] - 4 * *cell);
    }
  shmem_quiet();
}

int main(int argc, char** argv) {
  const long steps = argument(argc, argv, 2, 200);
  shmem_init();
  Plate plate = {.side = argument(argc, argv, 1, 64)};
  plate.width = plate.side + 2;
  find_neighbours(&plate);
  double* cells[2];
  for (int i = 0; i < 2; ++i) cells[i] = shmem_calloc((size_t)(plate.width * plate.width), sizeof(double));
  if (cells[0] == NULL || cells[1] == NULL) {
    fprintf(stderr, "heat: no memory for %ld x %ld cells\n", plate.side, plate.side);
    shmem_global_exit(1);
  }
  for (long i = 1; i <= plate.side; ++i)
    for (long j = 1; j <= plate.side; ++j) cells[0][i * plate.width + j] = wave(&plate, i, j);
  shmem_barrier_all();

  const double start = seconds();
  for (long step = 0; step < steps; ++step) one_step(&plate, cells[step % 2], cells[(step + 1) % 2], (uint64_t)step + 1);
  shmem_barrier_all();
  const double time = seconds() - start;

  const double left = pow(decay(&plate), (double)steps);
  for (long i = 1; i <= plate.side; ++i)
    for (long j = 1; j <= plate.side; ++j)
      error = fmax(error, fabs(cells[steps % 2][i * plate.width + j] - left * wave(&plate, i, j)));
  shmem_double_max_reduce(SHMEM_TEAM_WORLD, &worst, &error, 1);
  if (shmem_my_pe() == 0) printf("heat: %ld steps in %.3f ms, wrong by %.1e at most\n", steps, 1e3 * time, worst);
  const int status = verdict("heat", wrong_neighbours + !(worst < 1e-11));
  for (int i = 1; i >= 0; --i) shmem_free(cells[i]);
  shmem_finalize();
  return status;
}
