// What `isthmus bench` measures between host buffers, through whatever MPI compiled this: the same loops (of messages, those of
// message_loops.h), the same sizes, the same numbers of repetitions. Rank 0 prints one JSON object; tools/peers/compare.py reads it.
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

#include "device_memory.h"
#include "message_loops.h"

enum { DEVICE_SIZES = 5 };
static const int device_sizes[DEVICE_SIZES] = {8, 8192, 65536, 1 << 20, 4 << 20};
static MPI_Request requests[2 * WINDOW];

static double now(void) { return MPI_Wtime(); }

static void send_one(const void* from, int bytes, int tag) {
  MPI_Send(from, bytes, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD);
}

static void receive_one(void* into, int bytes, int tag) {
  MPI_Recv(into, bytes, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void begin_send(const void* from, int bytes, int number) {
  MPI_Isend(from, bytes, MPI_BYTE, 1 - rank, MESSAGE_TAG, MPI_COMM_WORLD, &requests[number]);
}

static void begin_receive(void* into, int bytes, int number) {
  MPI_Irecv(into, bytes, MPI_BYTE, 1 - rank, MESSAGE_TAG, MPI_COMM_WORLD, &requests[number]);
}

static void finish_all(int count) { MPI_Waitall(count, requests, MPI_STATUSES_IGNORE); }

static void as_rank_0_says(int* value) { MPI_Bcast(value, 1, MPI_INT, 0, MPI_COMM_WORLD); }

static void add_to_rank_0(const double* times, double* sums, int count) {
  MPI_Reduce(times, sums, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void give_up(const char* why) {
  fprintf(stderr, "mpi_bench: rank %d of %d: %s\n", rank, ranks, why);
  MPI_Abort(MPI_COMM_WORLD, 2);
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
  const double begin = now();
  double times[BATCHES];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int batch = -10; batch < BATCHES; ++batch) {
    double took = 0;
    for (int n = 0; n < each; ++n) {
      const double start = now();
      call(bytes);
      took += now() - start;
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (batch >= 0) times[batch] = took / each;
    batch = once_warm(batch, -10, begin);
  }
  print_row(name, bytes, times, BATCHES);
}

// Launchers tell the rank by a variable of their own.
static void bind_rank(void) {
  const char* number = getenv("OMPI_COMM_WORLD_RANK");
  if (!number) number = getenv("PMI_RANK");
  if (number) bind_to(atoi(number));
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
  if (ranks != 2 || !input || !output) give_up("takes 2 ranks, or there is no memory");
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
  prove_and_take_windows(windows_only);
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
