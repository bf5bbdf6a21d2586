// What `isthmus bench` measures between host buffers, through whatever MPI compiled this: the same loops, the same sizes, the same
// numbers of repetitions. Rank 0 prints one JSON object; tools/peers/compare.py reads it.
//
//   mpicc -O2 mpi_bench.c -o mpi_bench -ldl && mpirun -n 2 ./mpi_bench [FROM TO [MOST]]
//   mpirun -n 2 ./mpi_bench windows
//   mpirun -n N ./mpi_bench collectives
//
// The latter is collective calls alone, of any number of ranks, which are not bound to any two.
//
// With two kinds of memory (host, pinned or cuda; of rank 0 and of rank 1, each with a GPU of its own where there are two) it is
// messages between those, up to MOST bytes, both ways at once, too; an MPI that cannot do that ends or crashes by itself.
//
// PEER_PROCESSORS=A,B binds rank 0 to processor A and rank 1 to B, whatever the launcher thinks of it, so that every MPI is measured
// on the same two. Where the ranks really ran is part of what is printed.
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_memory.h"

enum {
  WINDOW = 64,
  MOST_FRESH = 1 << 20,
  LINE = 64,
  BATCHES = 100,
  WINDOWS = 1000,
  SMALL = 8192,
  MOST = 4 << 20,
  PAGE = 4096,
  SIZES = 4,
  DEVICE_SIZES = 5
};
// A row of a slow pair is cut short here, as that of `isthmus bench` is, but never to fewer than FEWEST repetitions.
static const double longest = 3;
enum { FEWEST = 10 };
static const int sizes[SIZES] = {8, 1024, 65536, 1 << 20};
static const int device_sizes[DEVICE_SIZES] = {8, 8192, 65536, 1 << 20, 4 << 20};
static int rank, ranks;
static char *input, *output;
static MPI_Request requests[2 * WINDOW];
static int rows;

static int ascending(const void* a, const void* b) {
  const double one = *(const double*)a, other = *(const double*)b;
  return (one > other) - (one < other);
}

// Each rank's batches, averaged over the ranks, sorted.
static void print_row(const char* benchmark, int bytes, double* times, int batches) {
  double sums[WINDOWS];
  MPI_Reduce(times, sums, batches, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  for (int n = 0; n < batches; ++n) sums[n] *= 1e6 / ranks;
  qsort(sums, batches, sizeof sums[0], ascending);
  printf("%s\n {\"benchmark\": \"%s\", \"bytes\": %d, \"median_us\": %.4f, \"p10_us\": %.4f, \"p90_us\": %.4f}",
         rows++ ? "," : "", benchmark, bytes, sums[batches / 2], sums[batches / 10], sums[batches * 9 / 10]);
}

// How many of `batches` can be afforded, of which the one before took that many seconds: as rank 0 says.
static int affordable(int batches, double took) {
  int some = took * batches <= longest ? batches : (int)(longest / took);
  if (some < FEWEST) some = FEWEST;
  MPI_Bcast(&some, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return some;
}

// Of the batches before those that count, the number of the next one: it stays at the first until 10 ms are over, as rank 0 says. That is
// the warm-up of `isthmus bench`, too.
static int once_warm(int batch, int first, double begin) {
  int warm = 1;
  if (batch != first) return batch;
  warm = MPI_Wtime() - begin > 0.01;
  MPI_Bcast(&warm, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return warm ? batch : batch - 1;
}

static void ping_pong(int bytes) {
  const int each = bytes <= SMALL ? 100 : 10;
  const double begin = MPI_Wtime();
  double times[BATCHES];
  int batches = BATCHES;
  for (int batch = -2; batch < batches; ++batch) {
    const double start = MPI_Wtime();
    for (int n = 0; n < each; ++n) {
      if (rank == 0) {
        MPI_Send(input, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(input, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else if (rank == 1) {
        MPI_Recv(input, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(input, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
      }
    }
    if (batch >= 0) times[batch] = (MPI_Wtime() - start) / (2.0 * each);
    batch = once_warm(batch, -2, begin);
    if (batch == -1) batches = affordable(BATCHES, MPI_Wtime() - start);
  }
  print_row("latency", bytes, times, batches);
}

// `both`: each rank sends a window and receives one. `stride`: from one message's bytes to the next one's, which are written before each window;
// 0: all have the same, which nobody writes.
static void windows(const char* benchmark, int bytes, int count, int both, size_t stride) {
  const int first = -count / 10 - 1;
  const double begin = MPI_Wtime();
  double times[WINDOWS];
  int answer = 0;
  for (int batch = first; batch < count; ++batch) {
    const double start = MPI_Wtime();
    int used = 0;
    for (size_t at = 0; rank == 0 && at < WINDOW * stride; at += LINE) ++input[at];
    for (int n = 0; n < WINDOW && (both || rank == 1); ++n)
      MPI_Irecv((both ? output : input) + (size_t)n * stride, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD,
                &requests[used++]);
    for (int n = 0; n < WINDOW && (both || rank == 0); ++n)
      MPI_Isend(input + (size_t)n * stride, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &requests[used++]);
    MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
      MPI_Recv(&answer, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(&answer, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    if (batch >= 0) times[batch] = (MPI_Wtime() - start) / WINDOW;
    batch = once_warm(batch, first, begin);
    if (batch == -1) count = affordable(count, MPI_Wtime() - start);
  }
  print_row(benchmark, bytes, times, count);
}

// So many elements in parts for each rank; the first ones take what cannot be divided.
static const int* part_counts(int elements) {
  static int counts[1024];
  for (int n = 0; n < ranks; ++n) counts[n] = elements / ranks + (n < elements % ranks);
  return counts;
}

static void allreduce(int bytes) { MPI_Allreduce(input, output, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void bcast(int bytes) { MPI_Bcast(output, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void allgather(int bytes) { MPI_Allgather(input, bytes, MPI_BYTE, output, bytes, MPI_BYTE, MPI_COMM_WORLD); }
static void reduce(int bytes) { MPI_Reduce(input, output, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); }
static void scan(int bytes) { MPI_Scan(input, output, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void gather(int bytes) { MPI_Gather(input, bytes, MPI_BYTE, output, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void scatter(int bytes) { MPI_Scatter(input, bytes, MPI_BYTE, output, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void reduce_scatter(int bytes) {
  MPI_Reduce_scatter(input, output, part_counts(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void barrier(int bytes) {
  (void)bytes;
  MPI_Barrier(MPI_COMM_WORLD);
}
static void alltoall(int bytes) { MPI_Alltoall(input, bytes, MPI_BYTE, output, bytes, MPI_BYTE, MPI_COMM_WORLD); }

// The time of each call, and an untimed barrier after it.
static void collective(const char* name, void (*call)(int), int bytes) {
  const int each = bytes <= SMALL ? 10 : 1;
  const double begin = MPI_Wtime();
  double times[BATCHES];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int batch = -10; batch < BATCHES; ++batch) {
    double took = 0;
    for (int n = 0; n < each; ++n) {
      const double start = MPI_Wtime();
      call(bytes);
      took += MPI_Wtime() - start;
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (batch >= 0) times[batch] = took / each;
    batch = once_warm(batch, -10, begin);
  }
  print_row(name, bytes, times, BATCHES);
}

// Before MPI looks at the machine; launchers tell the rank by a variable of their own.
static void bind_rank(void) {
  const char *wanted = getenv("PEER_PROCESSORS"), *number = getenv("OMPI_COMM_WORLD_RANK");
  int processors[2];
  if (!number) number = getenv("PMI_RANK");
  if (!wanted || !number || sscanf(wanted, "%d,%d", &processors[0], &processors[1]) != 2) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(processors[atoi(number) != 0], &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) perror("mpi_bench: cannot run on a processor of PEER_PROCESSORS");
}

// The same bytes again and again, as in the messages of the other side; page-aligned.
static void take_buffers(size_t size) {
  input = aligned_alloc(PAGE, size);
  output = aligned_alloc(PAGE, size);
  if (!input || !output) {
    fprintf(stderr, "mpi_bench: there is no memory\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (size_t n = 0; n < size / 4; ++n) ((float*)input)[n] = (float)(n % 65536);
  memset(output, 1, size);
}

static int local_rank(void) {
  const char* number = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  if (!number) number = getenv("MPI_LOCALRANKID");
  return number ? atoi(number) : 0;
}

// Messages between two kinds of memory: first that they arrive, then how long they take.
static void between(const char* from, const char* to, int most) {
  const char* kind = rank == 0 ? from : to;
  input = take_memory(kind, (size_t)most, 1 + rank);
  output = take_memory(kind, (size_t)most, 3);
  if (ranks != 2 || !input || !output) {
    fprintf(stderr, "mpi_bench: takes 2 ranks and found %d, or there is no memory\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Sendrecv(input, most, MPI_BYTE, 1 - rank, 3, output, most, MPI_BYTE, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (wrong_bytes(kind, output, (size_t)most, 2 - rank) != 0) {
    fprintf(stderr, "mpi_bench: %s to %s: wrong bytes arrived on rank %d\n", from, to, rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int n = 0; n < DEVICE_SIZES; ++n)
    if (device_sizes[n] <= most) ping_pong(device_sizes[n]);
  for (int bytes = 65536; bytes <= most; bytes *= 4) {
    windows("bandwidth", bytes, 20, 0, 0);
    windows("bidirectional", bytes, 20, 1, 0);
  }
}

static void host_only(int windows_only) {
  if (ranks != 2) {
    fprintf(stderr, "mpi_bench: takes 2 ranks and found %d\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  take_buffers((size_t)WINDOW * MOST_FRESH);
  for (int n = 0; n < SIZES && !windows_only; ++n) ping_pong(sizes[n]);
  windows("rate", 8, WINDOWS, 0, 0);
  for (int bytes = PAGE; bytes <= MOST; bytes *= 2) windows("bandwidth", bytes, bytes <= SMALL ? 100 : 20, 0, 0);
  for (int bytes = PAGE; bytes <= MOST_FRESH; bytes *= 2)
    windows("bandwidth fresh", bytes, bytes <= SMALL ? 100 : 20, 0, (size_t)bytes);
  for (int n = 0; n < SIZES && !windows_only; ++n) {
    collective("allreduce", allreduce, sizes[n]);
    collective("bcast", bcast, sizes[n]);
    collective("allgather", allgather, sizes[n]);
    collective("alltoall", alltoall, sizes[n]);
  }
  free(input);
  free(output);
}

static void collectives_only(void) {
  static const int several[] = {8, 1024, 16384, 65536, 1 << 20};
  take_buffers((size_t)(1 << 20) * (size_t)ranks);
  collective("barrier", barrier, 8);
  for (size_t n = 0; n < sizeof several / sizeof several[0]; ++n) {
    collective("allreduce", allreduce, several[n]);
    collective("reduce", reduce, several[n]);
    collective("bcast", bcast, several[n]);
    collective("allgather", allgather, several[n]);
    collective("alltoall", alltoall, several[n]);
    collective("reduce_scatter", reduce_scatter, several[n]);
    collective("gather", gather, several[n]);
    collective("scatter", scatter, several[n]);
    collective("scan", scan, several[n]);
  }
  free(input);
  free(output);
}

int main(int argc, char** argv) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, processors[1024], mine;
  const int alone = argc == 2 && strcmp(argv[1], "collectives") == 0;
  bind_rank();
  if (argc > 2) use_gpu(local_rank());
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2 || ranks > 1024) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n\"\\")] = '\0';
  mine = sched_getcpu();
  MPI_Gather(&mine, 1, MPI_INT, processors, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("{\"peer_name\": \"%s\", \"processors\": [%d, %d], \"rows\": [", version, processors[0], processors[1]);
  }
  if (alone)
    collectives_only();
  else if (argc > 2)
    between(argv[1], argv[2], argc > 3 ? atoi(argv[3]) : MOST);
  else
    host_only(argc == 2 && strcmp(argv[1], "windows") == 0);
  if (rank == 0) printf("\n]}\n");
  MPI_Finalize();
  return 0;
}
