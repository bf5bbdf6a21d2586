/* Every rank has a matrix of its own, row after row, and gives the last of its inner columns to the rank on the right, whose first column it
 * becomes: half of a halo exchange, without a loop that packs. With a device in a kind's place the matrix may lie there:
 *
 *   isthmus run -n 2 columns          host memory
 *   isthmus run -n 2 columns cuda     CUDA memory, packed by a kernel
 *   isthmus run -n 2 columns opencl
 */
#include <isthmus/layout.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1000, COLUMNS = 700 };
static double matrix[ROWS][COLUMNS], found[ROWS][COLUMNS];

static void must(int code) {
  if (code == IST_OK) return;
  fprintf(stderr, "columns: %s\n", ist_error_text());
  exit(1);
}

static double value(int rank, int row, int column) { return rank * 1e6 + row * 1e3 + column; }

int main(int count, char** words) {
  ist_world world = IST_WORLD_NULL;
  ist_comm comm = IST_COMM_NULL;
  int rank = 0, size = 0;
  must(ist_world_create(&world));
  must(ist_world_comm(world, &comm));
  must(ist_comm_rank(comm, &rank));
  must(ist_comm_size(comm, &size));
  const ist_kind kind = count < 2                         ? IST_KIND_HOST
                        : strcmp(words[1], "cuda") == 0   ? IST_KIND_CUDA
                        : strcmp(words[1], "opencl") == 0 ? IST_KIND_OPENCL
                                                          : IST_KIND_HOST;

  for (int row = 0; row < ROWS; ++row)
    for (int column = 0; column < COLUMNS; ++column) matrix[row][column] = value(rank, row, column);
  ist_buffer buffer;
  must(ist_memory_alloc(world, kind, IST_OWN_DEVICE, sizeof matrix, &buffer));
  must(ist_memory_copy(world, buffer, ist_host(matrix), sizeof matrix));

  /* ROWS doubles, each a row further on. */
  ist_layout column;
  must(ist_layout_vector(ROWS, 1, COLUMNS, ist_layout_of(IST_DOUBLE), &column));
  must(ist_layout_commit(column));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  must(ist_sendrecv_layout(ist_buffer_at(buffer, (COLUMNS - 2) * sizeof(double)), 1, column, right, 0, buffer, 1, column,
                           left, 0, comm, IST_STATUS_IGNORE));

  must(ist_memory_copy(world, ist_host(found), buffer, sizeof found));
  int right_ones = 0;
  for (int row = 0; row < ROWS; ++row)
    for (int at = 0; at < COLUMNS; ++at)
      right_ones += found[row][at] == (at == 0 ? value(left, row, COLUMNS - 2) : value(rank, row, at));
  printf("rank %d: %d of %d numbers are right, %d of them from rank %d\n", rank, right_ones, ROWS * COLUMNS, ROWS, left);
  must(ist_layout_free(&column));
  must(ist_memory_free(world, buffer));
  must(ist_world_destroy(&world));
  return right_ones == ROWS * COLUMNS ? 0 : 1;
}
