/* A program that uses MPI and Isthmus at once, compiled by each MPI of the machine:
 *
 *   mpi_program          worlds of communicators, beside MPI's own messages
 *   mpi_program started  a world of the launcher's own, in a process that uses MPI
 *   mpi_program early    a world before MPI_Init
 */
#include <isthmus/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  ++failures;
  printf("failed: %s (%s)\n", what, ist_error_text());
  fflush(stdout);
}

static void fill(unsigned char* bytes, int size, int rank, int salt) {
  for (int i = 0; i < size; ++i) bytes[i] = (unsigned char)(i * 7 + rank * 31 + salt);
}

/* A ring in both at once: what went through one must not come out of the other. */
static void exchange(MPI_Comm mpi, ist_world world, int salt) {
  static const int sizes[] = {0, 1, 63, 8191, 65537, 300001};
  ist_comm comm = IST_COMM_NULL;
  int rank = -1, size = -1, mpi_rank = -1, mpi_size = -1;
  expect(ist_world_comm(world, &comm) == IST_OK, "ist_world_comm");
  expect(ist_comm_rank(comm, &rank) == IST_OK && ist_comm_size(comm, &size) == IST_OK, "rank and size");
  MPI_Comm_rank(mpi, &mpi_rank);
  MPI_Comm_size(mpi, &mpi_size);
  expect(rank == mpi_rank && size == mpi_size, "the rank numbers are MPI's");
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const int n = sizes[i];
    unsigned char* mine = malloc((size_t)n + 1);
    unsigned char* expected = malloc((size_t)n + 1);
    unsigned char* by_isthmus = malloc((size_t)n + 1);
    unsigned char* by_mpi = malloc((size_t)n + 1);
    memset(by_isthmus, 0xee, (size_t)n + 1);
    memset(by_mpi, 0xee, (size_t)n + 1);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    unsigned char* other = malloc((size_t)n + 1);
    fill(other, n, rank, salt + 1);
    fill(mine, n, rank, salt);
    MPI_Irecv(by_mpi, n, MPI_BYTE, left, 3, mpi, &requests[0]);
    MPI_Isend(other, n, MPI_BYTE, right, 3, mpi, &requests[1]);
    expect(ist_sendrecv(ist_host(mine), n, IST_BYTE, right, 3, ist_host(by_isthmus), n, IST_BYTE, left, 3, comm,
                        IST_STATUS_IGNORE) == IST_OK,
           "ist_sendrecv");
    MPI_Waitall(2, requests, statuses);
    fill(expected, n, left, salt);
    expect(memcmp(by_isthmus, expected, (size_t)n) == 0 && by_isthmus[n] == 0xee, "bytes by Isthmus");
    fill(expected, n, left, salt + 1);
    expect(memcmp(by_mpi, expected, (size_t)n) == 0 && by_mpi[n] == 0xee, "bytes by MPI");
    free(mine), free(other), free(expected), free(by_isthmus), free(by_mpi);
  }
}

static void worlds_of_communicators(int rank, int size) {
  ist_world world = IST_WORLD_NULL;
  MPI_Comm part = MPI_COMM_NULL;
  expect(ist_world_from_mpi(MPI_COMM_WORLD, &world) == IST_OK, "the world of MPI_COMM_WORLD");
  exchange(MPI_COMM_WORLD, world, 1);
  /* In the other order, and then in two halves at once, while the first world goes on. */
  for (int halves = 0; halves < 2; ++halves) {
    ist_world other = IST_WORLD_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, halves ? rank % 2 : 0, size - rank, &part);
    expect(ist_world_from_mpi(part, &other) == IST_OK, "the world of a part");
    exchange(part, other, 10 + rank % 2 * halves);
    exchange(MPI_COMM_WORLD, world, 20);
    MPI_Comm_free(&part);
    expect(ist_world_destroy(&other) == IST_OK, "ist_world_destroy");
  }
  /* With settings of its own; and with such as nobody can read, on every rank alike. */
  ist_world own = IST_WORLD_NULL;
  expect(ist_world_from_mpi_configured(MPI_COMM_WORLD, "cells=8", &own) == IST_OK, "a world with settings of its own");
  exchange(MPI_COMM_WORLD, own, 40);
  expect(ist_world_destroy(&own) == IST_OK, "ist_world_destroy");
  expect(ist_world_from_mpi_configured(MPI_COMM_WORLD, "cells=many", &own) == IST_ERR_SETTING && own == IST_WORLD_NULL &&
             strstr(ist_error_text(), "many"),
         "settings that cannot be read");
  /* A rank that cannot: all are told, nobody waits, and the next world works. */
  ist_world none = IST_WORLD_NULL;
  if (rank == size - 1) setenv("ISTHMUS_CELLS", "many", 1);
  const int code = ist_world_from_mpi(MPI_COMM_WORLD, &none);
  char text[64];
  snprintf(text, sizeof text, "rank %d could not create the world", size - 1);
  expect(code == (rank == size - 1 ? IST_ERR_SETTING : IST_ERR_BOOT) && none == IST_WORLD_NULL,
         "one rank's failure is all ranks'");
  expect(strstr(ist_error_text(), rank == size - 1 ? "ISTHMUS_CELLS=\"many\"" : text) != NULL, "the text names the rank");
  unsetenv("ISTHMUS_CELLS");
  expect(ist_world_from_mpi(MPI_COMM_WORLD, &none) == IST_OK, "the world after the failed one");
  expect(ist_world_destroy(&none) == IST_OK, "ist_world_destroy");
  expect(ist_world_from_mpi(MPI_COMM_NULL, &none) == IST_ERR_BOOT && strstr(ist_error_text(), "MPI_COMM_NULL"),
         "no communicator");
  exchange(MPI_COMM_WORLD, world, 30);
  expect(ist_world_destroy(&world) == IST_OK, "ist_world_destroy");
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  ist_world world = IST_WORLD_NULL;
  int rank = 0, size = 0;
  if (strcmp(what, "early") == 0) {
    expect(ist_world_from_mpi(MPI_COMM_WORLD, &world) == IST_ERR_BOOT && strstr(ist_error_text(), "MPI_Init"),
           "before MPI_Init");
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "started") == 0) {
    if (ist_world_create(&world) != IST_OK) {
      printf("refused: %s\n", ist_error_text());
    } else {
      exchange(MPI_COMM_WORLD, world, 40);
      expect(ist_world_destroy(&world) == IST_OK, "ist_world_destroy");
    }
  } else {
    worlds_of_communicators(rank, size);
  }
  expect(ist_world_from_mpi(MPI_COMM_WORLD, &world) == IST_OK, "a world that outlives MPI");
  MPI_Finalize();
  expect(ist_world_destroy(&world) == IST_OK, "ist_world_destroy after MPI_Finalize");
  expect(ist_world_from_mpi(MPI_COMM_WORLD, &world) == IST_ERR_BOOT && strstr(ist_error_text(), "finalised"),
         "after MPI_Finalize");
  if (failures == 0) printf("rank %d of %d is through\n", rank, size);
  return failures == 0 ? 0 : 1;
}
