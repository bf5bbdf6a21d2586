// What `isthmus bench pack` and `bench layout` measure, by the derived types of whatever MPI compiled this: the same shapes, of the same
// blocks, in loops of the same form. Rank 0 prints one JSON object; tools/peers/compare_layouts.py reads it.
//
//   mpicc -O2 mpi_layouts.c -o mpi_layouts -ldl && mpirun -n 2 ./mpi_layouts KIND SHAPES SIZES BLOCKS [quick]
//
// KIND is host or cuda, each rank then having a GPU of its own where there are two; SHAPES some of vector, hvector, subarray, indexed and
// struct, SIZES and BLOCKS bytes, all with commas between them. Every row is flushed, so that what an MPI did before it crashed is known.
//
// PEER_PROCESSORS=A,B binds rank 0 to processor A and rank 1 to B.
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdint.h>

#include "device_memory.h"

enum { MOST_SAMPLES = 300 };
static int rank, ranks, quick, rows;
static const char* kind;

// ---- the shapes, as src/cli/bench_shapes.cpp has them ----

typedef struct {
  MPI_Datatype type;
  long count, bytes, span;  // blocks, bytes in them, and from the first to behind the last
  long *offsets, *lengths;
} Shape;

// The generator of std::mt19937_64, for the same gaps between the blocks of a list.
static uint64_t twister[312];
static int twister_at;
static void seed(uint64_t value) {
  twister[0] = value;
  for (int i = 1; i < 312; ++i)
    twister[i] = 6364136223846793005ULL * (twister[i - 1] ^ (twister[i - 1] >> 62)) + (uint64_t)i;
  twister_at = 312;
}
static uint64_t next_number(void) {
  if (twister_at == 312) {
    for (int i = 0; i < 312; ++i) {
      const uint64_t x = (twister[i] & 0xffffffff80000000ULL) | (twister[(i + 1) % 312] & 0x7fffffffULL);
      twister[i] = twister[(i + 156) % 312] ^ (x >> 1) ^ ((x & 1) ? 0xb5026f5aa96619e9ULL : 0);
    }
    twister_at = 0;
  }
  uint64_t x = twister[twister_at++];
  x ^= (x >> 29) & 0x5555555555555555ULL;
  x ^= (x << 17) & 0x71d67fffeda60000ULL;
  x ^= (x << 37) & 0xfff7eee000000000ULL;
  return x ^ (x >> 43);
}

static void add(Shape* shape, long offset, long bytes) {
  shape->offsets[shape->count] = offset, shape->lengths[shape->count++] = bytes;
  shape->bytes += bytes, shape->span = offset + bytes;
}

static void structs(Shape* shape, MPI_Datatype type, long block, long length, long count) {
  const long behind = (block + 7) / 8 * 8 + 8, extent = 2 * behind;
  const int lengths[2] = {(int)length, 1};
  const MPI_Aint places[2] = {0, behind};
  const MPI_Datatype types[2] = {type, MPI_DOUBLE};
  MPI_Datatype one, spaced;
  MPI_Type_create_struct(2, lengths, places, types, &one);
  MPI_Type_create_resized(one, 0, extent, &spaced);
  MPI_Type_contiguous((int)count, spaced, &shape->type);
  MPI_Type_free(&one), MPI_Type_free(&spaced);
  for (long i = 0; i < count; ++i) add(shape, i * extent, block), add(shape, i * extent + behind, 8);
}

static Shape make_shape(const char* name, long block, long total) {
  const MPI_Datatype type = block % 8 == 0 ? MPI_DOUBLE : MPI_FLOAT;
  const long element = block % 8 == 0 ? 8 : 4, length = block / element;
  const int of_structs = strcmp(name, "struct") == 0;
  long count = total / (of_structs ? block + 8 : block);
  if (count < 1) count = 1;
  Shape shape = {
      MPI_DATATYPE_NULL, 0, 0, 0, malloc(sizeof(long) * 2 * (size_t)count), malloc(sizeof(long) * 2 * (size_t)count)};
  long first = 0, stride = 2 * block;
  if (of_structs) {
    structs(&shape, type, block, length, count);
  } else if (strcmp(name, "indexed") == 0) {
    int* places = malloc(sizeof(int) * (size_t)count);
    seed((uint64_t)block);
    for (long i = 0; i < count; ++i) {
      places[i] = (int)((4 * i + (long)(next_number() % 3)) * length);
      add(&shape, places[i] * element, block);
    }
    MPI_Type_create_indexed_block((int)count, (int)length, places, type, &shape.type);
    free(places);
  } else {
    if (strcmp(name, "hvector") == 0) {
      stride = 2 * block + element;
      MPI_Type_create_hvector((int)count, (int)length, stride, type, &shape.type);
    } else if (strcmp(name, "subarray") == 0) {
      const int sizes[2] = {(int)count, (int)(2 * length)}, parts[2] = {(int)count, (int)length},
                begins[2] = {0, (int)(length / 2)};
      first = length / 2 * element;
      MPI_Type_create_subarray(2, sizes, parts, begins, MPI_ORDER_C, type, &shape.type);
    } else {
      MPI_Type_vector((int)count, (int)length, (int)(2 * length), type, &shape.type);
    }
    for (long i = 0; i < count; ++i) add(&shape, first + i * stride, block);
  }
  MPI_Type_commit(&shape.type);
  return shape;
}

// ---- memory ----

static char *spread, *packed;

static void move_bytes(char* to, const char* from, long bytes) {
  if (strcmp(kind, "cuda") == 0)
    must_work(driver.copy((device_pointer)(size_t)to, (device_pointer)(size_t)from, (size_t)bytes), "cuMemcpy");
  else
    memcpy(to, from, (size_t)bytes);
}
static char byte_of(long at, int sender) { return (char)(at * 131 + (at >> 8) * 17 + sender * 59 + 7); }

// `memory` becomes what `sender` sends, or bytes that nobody sends.
static void fill(char* memory, long bytes, int sender) {
  char* all = malloc((size_t)bytes);
  for (long i = 0; i < bytes; ++i) all[i] = sender < 0 ? (char)0xa5 : byte_of(i, sender);
  move_bytes(memory, all, bytes);
  free(all);
}
// Every byte: what came is in its place, and what lies between is as it was.
static long wrong_at(const Shape* shape, const char* memory, int from_apart, int into_apart, int sender) {
  const long size = into_apart ? shape->span : shape->bytes;
  char *seen = malloc((size_t)size), *wanted = malloc((size_t)size);
  move_bytes(seen, memory, size);
  memset(wanted, 0xa5, (size_t)size);
  for (long i = 0, at = 0; i < shape->count; at += shape->lengths[i++])
    for (long b = 0; b < shape->lengths[i]; ++b)
      wanted[(into_apart ? shape->offsets[i] : at) + b] = byte_of((from_apart ? shape->offsets[i] : at) + b, sender);
  long wrong = 0;
  for (long i = 0; i < size; ++i) wrong += seen[i] != wanted[i];
  free(seen), free(wanted);
  return wrong;
}
static void must_be_right(long wrong, const char* what, const char* name, long block) {
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (wrong == 0) return;
  if (rank == 0)
    fprintf(stderr, "mpi_layouts: %ld bytes are wrong after %s of %s of blocks of %ld\n", wrong, what, name, block);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// ---- what is timed ----

typedef struct {
  const Shape* shape;
  int from, into;  // whose bytes lie apart
} Work;

static void pack_once(const Work* work) {
  int at = 0;
  MPI_Pack(spread, 1, work->shape->type, packed, (int)work->shape->bytes, &at, MPI_COMM_WORLD);
}
static void unpack_once(const Work* work) {
  int at = 0;
  MPI_Unpack(packed, (int)work->shape->bytes, &at, spread, 1, work->shape->type, MPI_COMM_WORLD);
}
static void send_once(const Work* work) {
  if (work->from)
    MPI_Send(spread, 1, work->shape->type, 1 - rank, 1, MPI_COMM_WORLD);
  else
    MPI_Send(packed, (int)work->shape->bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
}
static void receive_once(const Work* work) {
  if (work->into)
    MPI_Recv(spread, 1, work->shape->type, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Recv(packed, (int)work->shape->bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void there_and_back(const Work* work) {
  if (rank == 0) send_once(work);
  receive_once(work);
  if (rank == 1) send_once(work);
}

static int ascending(const void* a, const void* b) {
  const double one = *(const double*)a, other = *(const double*)b;
  return (one > other) - (one < other);
}
static int agreed(int mine, MPI_Comm comm) {
  MPI_Bcast(&mine, 1, MPI_INT, 0, comm);
  return mine;
}

// Median in us; of a message half of there and back, as the slower rank has it. As often as bench_layout.cpp's times_of().
static double time_of(void (*once)(const Work*), const Work* work, MPI_Comm comm) {
  static double times[MOST_SAMPLES];
  const double begin = MPI_Wtime();
  int warm = 0, cold = 1;
  while (cold) {
    once(work);
    ++warm;
    cold = agreed(warm < 3 || (warm < 100 && MPI_Wtime() - begin < 20e-3), comm);
  }
  const double each = (MPI_Wtime() - begin) / warm, most = quick ? 50e-3 : 300e-3;
  int count = quick ? 20 : MOST_SAMPLES;
  if (most / each < count) count = (int)(most / each);
  count = agreed(count < 3 ? 3 : count, comm);
  for (int i = 0; i < count; ++i) {
    const double start = MPI_Wtime();
    once(work);
    times[i] = (MPI_Wtime() - start) * 1e6;
  }
  qsort(times, (size_t)count, sizeof times[0], ascending);
  double median = times[count / 2];
  MPI_Allreduce(MPI_IN_PLACE, &median, 1, MPI_DOUBLE, MPI_MAX, comm);
  return median;
}

static void begin_row(const char* what, const char* name, long block, const Shape* shape) {
  printf("%s\n {\"what\": \"%s\", \"shape\": \"%s\", \"block\": %ld, \"bytes\": %ld, ", rows++ ? "," : "", what, name, block,
         shape->bytes);
}

// By one rank alone, while the other one waits.
static void packing(const char* name, long block, const Shape* shape) {
  const Work work = {shape, 1, 1};
  double times[2] = {0, 0};
  long wrong = 0;
  if (rank == 0) {
    fill(spread, shape->span, 0), fill(packed, shape->bytes, -1);
    pack_once(&work);
    wrong += wrong_at(shape, packed, 1, 0, 0);
    times[0] = time_of(pack_once, &work, MPI_COMM_SELF);
    fill(packed, shape->bytes, 0), fill(spread, shape->span, -1);
    unpack_once(&work);
    wrong += wrong_at(shape, spread, 0, 1, 0);
    times[1] = time_of(unpack_once, &work, MPI_COMM_SELF);
  }
  must_be_right(wrong, "packing", name, block);
  if (rank != 0) return;
  begin_row("pack", name, block, shape);
  printf("\"pack_us\": %.4f, \"unpack_us\": %.4f}", times[0], times[1]);
  fflush(stdout);
}

static void message(const char* name, long block, const Shape* shape, int from, int into) {
  const Work work = {shape, from, into};
  for (int sender = 0; sender < 2; ++sender) {
    fill(spread, shape->span, rank == sender ? sender : -1), fill(packed, shape->bytes, rank == sender ? sender : -1);
    if (rank == sender) send_once(&work);
    if (rank != sender) receive_once(&work);
    must_be_right(rank == sender ? 0 : wrong_at(shape, into ? spread : packed, from, into, sender), "a message", name,
                  block);
  }
  const double us = time_of(there_and_back, &work, MPI_COMM_WORLD);
  if (rank != 0) return;
  begin_row("message", name, block, shape);
  printf("\"source\": \"%s\", \"into\": \"%s\", \"median_us\": %.4f}", from ? "strided" : "contiguous",
         into ? "strided" : "contiguous", us);
  fflush(stdout);
}

static void all_of(const char* name, long size, long block) {
  Shape shape = make_shape(name, block, size);
  spread = take_memory(kind, (size_t)shape.span, 0), packed = take_memory(kind, (size_t)shape.bytes, 0);
  if (spread == NULL || packed == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  packing(name, block, &shape);
  for (int which = 0; which < 4; ++which) message(name, block, &shape, which & 1, which >> 1);
  if (strcmp(kind, "cuda") != 0)
    free(spread), free(packed);  // device memory goes with the process: there is no call for it in the table
  MPI_Type_free(&shape.type);
  free(shape.offsets), free(shape.lengths);
}

static void bind_to(const char* processors) {
  int both[2];
  cpu_set_t one;
  if (processors == NULL || sscanf(processors, "%d,%d", &both[0], &both[1]) != 2) return;
  CPU_ZERO(&one);
  CPU_SET((size_t)both[rank], &one);
  sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char** argv) {
  const char* number = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
  char library[MPI_MAX_LIBRARY_VERSION_STRING], *shapes_left, *sizes_left, *blocks_left;
  int length = 0;
  if (argc < 5) return fprintf(stderr, "usage: mpi_layouts host|cuda SHAPES SIZES BLOCKS [quick]\n"), 2;
  kind = argv[1];
  quick = argc > 5 && strcmp(argv[5], "quick") == 0;
  if (strcmp(kind, "cuda") == 0) use_gpu(number ? atoi(number) : 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) return fprintf(stderr, "mpi_layouts: is for two ranks, and was started on %d\n", ranks), 2;
  bind_to(getenv("PEER_PROCESSORS"));
  MPI_Get_library_version(library, &length);
  library[strcspn(library, ",\n")] = 0;
  if (rank == 0) printf("{\"peer_name\": \"%s\", \"kind\": \"%s\", \"rows\": [", library, kind);
  for (char* shape = strtok_r(strdup(argv[2]), ",", &shapes_left); shape; shape = strtok_r(NULL, ",", &shapes_left))
    for (char* size = strtok_r(strdup(argv[3]), ",", &sizes_left); size; size = strtok_r(NULL, ",", &sizes_left))
      for (char* block = strtok_r(strdup(argv[4]), ",", &blocks_left); block; block = strtok_r(NULL, ",", &blocks_left))
        if (atol(block) <= atol(size)) all_of(shape, atol(size), atol(block));
  if (rank == 0) printf("\n]}\n");
  MPI_Finalize();
  return 0;
}
