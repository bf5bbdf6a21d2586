/* A wave is an eigenvector of the stencil, so that every cell is known at every time, and compared at the end.
 * Run: isthmus run -n 4 heat_openmp [rows] [columns] [steps], or heat_openacc */
#include "heat.h"

#include <isthmus/collective.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check(int code) {
  if (code != IST_OK) fprintf(stderr, "%s: %s\n", ist_code_name(code), ist_error_text());
  return code != IST_OK;
}

/* As ist_explain says: "256 x IST_DOUBLE (2048 bytes) from device memory of cuda device 0 to ..." */
static int find_memory(const heat* part, const double* cells) {
  char text[1024];
  if (check(ist_explain(ist_auto(cells), part->columns, IST_DOUBLE, part->rank, part->comm, text, sizeof text, NULL)))
    return 1;
  const char* const from = strstr(text, ") from ");
  const char* const end = from == NULL ? NULL : strstr(from, " to ");
  if (end == NULL) {
    fprintf(stderr, "ist_explain does not say whose memory the cells are in: %s\n", text);
    return 1;
  }
  const char* const words = from + strlen(") from ");
  snprintf(part->memory, HEAT_WORDS, "%.*s", (int)(end - words), words);
  return 0;
}

int heat_exchange(const heat* part, double* cells) {
  if (part->memory[0] == '\0' && find_memory(part, cells)) return 1;
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

/* 0 where it is no such number, and `wrong` is the place of its argument. */
static long number(int argc, char** argv, int place, long usual, long least, int* wrong) {
  char* end = NULL;
  const long value = argc > place ? strtol(argv[place], &end, 10) : usual;
  if (argc <= place || (*argv[place] != '\0' && *end == '\0' && value >= least && value <= 1000000)) return value;
  *wrong = place;
  return 0;
}

/* Whether all ranks have the same numbers, of which none is wrong; one rank says what is. Ranks that differ would wait for each other. */
static int agreed(const heat* part, char** argv, int wrong) {
  const long mine[] = {part->all_rows,
                       -part->all_rows,
                       part->columns,
                       -part->columns,
                       part->steps,
                       -part->steps,
                       wrong == 0 ? 0 : part->ranks - part->rank};
  long most[7] = {0};
  if (check(ist_allreduce(ist_host(mine), ist_host(most), 7, IST_INT64, IST_MAX, part->comm))) return 0;
  const int unlike = most[0] != -most[1] || most[2] != -most[3] || most[4] != -most[5];
  if (most[6] != 0 && most[6] == mine[6])
    fprintf(stderr, "'%s' is no number from %d to 1000000; usage: %s [rows] [columns] [steps, rounded up to even]\n",
            argv[wrong], wrong == 3 ? 2 : 1, argv[0]);
  else if (most[6] == 0 && part->rank == 0 && unlike)
    fprintf(stderr, "ranks were given different numbers: rows, columns and steps have to be the same on all of them\n");
  else if (most[6] == 0 && part->rank == 0 && part->all_rows < part->ranks)
    fprintf(stderr, "%ld rows are too few for %d ranks: give each at least one\n", part->all_rows, part->ranks);
  return most[6] == 0 && !unlike && part->all_rows >= part->ranks;
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
    /* What a device computes lies in its memory, and Isthmus was given that. */
    if (!failed && strcmp(device, "a device") == 0 && strstr(part->memory, "host memory") != NULL) {
      fprintf(stderr, "rank %d computed on a device, but what it gave to Isthmus was %s\n", part->rank, part->memory);
      failed = 1;
    }
    const int known = !failed;
    if (known) failed = !(worst < 1e-13 * part->steps);
    if (known && part->rank == 0)
      printf("%s: %ld x %ld cells on %s, sent from %s, %d steps, %d ranks, off by at most %.1e\n",
             failed ? "wrong" : "verified", part->all_rows, part->columns, device, part->memory, part->steps, part->ranks,
             worst);
  }
  free(cells);
  free(other);
  return failed;
}

int main(int argc, char** argv) {
  int wrong = 0;
  heat part = {.all_rows = number(argc, argv, 1, 256, 1, &wrong), .columns = number(argc, argv, 2, 256, 1, &wrong)};
  part.steps = (int)number(argc, argv, 3, 100, 2, &wrong);
  part.steps += part.steps % 2;
  char memory[HEAT_WORDS] = "";
  part.memory = memory;
  ist_world world;
  if (check(ist_world_create(&world)) || check(ist_world_comm(world, &part.comm))) return 1;
  if (check(ist_comm_rank(part.comm, &part.rank)) || check(ist_comm_size(part.comm, &part.ranks)) ||
      check(ist_comm_local_rank(part.comm, &part.local_rank)))
    return 1;
  part.first = part.all_rows * part.rank / part.ranks;
  part.rows = part.all_rows * (part.rank + 1) / part.ranks - part.first;
  const int status = agreed(&part, argv, wrong) ? simulate(&part) : 2;
  return check(ist_world_destroy(&world)) ? 1 : status;
}
