/* The loops of `isthmus bench` between two ranks, of messages from host buffers and windows of them, for every peer's program: how a
   message goes is the includer's (mpi_bench.c by an MPI, ucx_bench.c by UCX itself), and all else is the same. Rank 0 prints its rows into
   one JSON object. */
#pragma once
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  WINDOW = 64,
  MOST_FRESH = 1 << 20,
  LINE = 64,
  BATCHES = 100,
  WINDOWS = 1000,
  SMALL = 8192,
  MOST = 4 << 20,
  PAGE = 4096,
  SIZES = 4
};
/* A row of a slow pair is cut short here, as that of `isthmus bench` is, but never to fewer than FEWEST repetitions. */
static const double longest = 3;
enum { FEWEST = 10 };
enum { MESSAGE_TAG = 1, ANSWER_TAG = 2 };
static const int sizes[SIZES] = {8, 1024, 65536, 1 << 20};
static int rank, ranks;
static char *input, *output;
static int rows;

/* The includer's: all but the last two are of two ranks, and of the other one. */
static double now(void);
static void send_one(const void* from, int bytes, int tag);
static void receive_one(void* into, int bytes, int tag);
static void begin_send(const void* from, int bytes, int number);
static void begin_receive(void* into, int bytes, int number);
static void finish_all(int count);
static void give_up(const char* why);
static void as_rank_0_says(int* value);
static void add_to_rank_0(const double* times, double* sums, int count);

static int ascending(const void* a, const void* b) {
  const double one = *(const double*)a, other = *(const double*)b;
  return (one > other) - (one < other);
}

/* Each rank's batches, averaged over the ranks, sorted. */
static void print_row(const char* benchmark, int bytes, const double* times, int batches) {
  double sums[WINDOWS];
  add_to_rank_0(times, sums, batches);
  if (rank != 0) return;
  for (int n = 0; n < batches; ++n) sums[n] *= 1e6 / ranks;
  qsort(sums, batches, sizeof sums[0], ascending);
  printf("%s\n {\"benchmark\": \"%s\", \"bytes\": %d, \"median_us\": %.4f, \"p10_us\": %.4f, \"p90_us\": %.4f}",
         rows++ ? "," : "", benchmark, bytes, sums[batches / 2], sums[batches / 10], sums[batches * 9 / 10]);
}

/* How many of `batches` can be afforded, of which the one before took that many seconds: as rank 0 says. */
static int affordable(int batches, double took) {
  int some = took * batches <= longest ? batches : (int)(longest / took);
  if (some < FEWEST) some = FEWEST;
  as_rank_0_says(&some);
  return some;
}

/* Of the batches before those that count, the number of the next one: it stays at the first until 10 ms are over, as rank 0 says. That is
   the warm-up of `isthmus bench`, too. */
static int once_warm(int batch, int first, double begin) {
  int warm = 1;
  if (batch != first) return batch;
  warm = now() - begin > 0.01;
  as_rank_0_says(&warm);
  return warm ? batch : batch - 1;
}

static void ping_pong(int bytes) {
  const int each = bytes <= SMALL ? 100 : 10;
  const double begin = now();
  double times[BATCHES];
  int batches = BATCHES;
  for (int batch = -2; batch < batches; ++batch) {
    const double start = now();
    for (int n = 0; n < each; ++n) {
      if (rank == 0) {
        send_one(input, bytes, MESSAGE_TAG);
        receive_one(input, bytes, MESSAGE_TAG);
      } else {
        receive_one(input, bytes, MESSAGE_TAG);
        send_one(input, bytes, MESSAGE_TAG);
      }
    }
    if (batch >= 0) times[batch] = (now() - start) / (2.0 * each);
    batch = once_warm(batch, -2, begin);
    if (batch == -1) batches = affordable(BATCHES, now() - start);
  }
  print_row("latency", bytes, times, batches);
}

/* One window and its answer. `both`: each rank sends a window and receives one. */
static void one_window(int bytes, int messages, int both, size_t stride) {
  int used = 0, answer = 0;
  for (int n = 0; n < messages && (both || rank == 1); ++n)
    begin_receive((both ? output : input) + (size_t)n * stride, bytes, used++);
  for (int n = 0; n < messages && (both || rank == 0); ++n) begin_send(input + (size_t)n * stride, bytes, used++);
  finish_all(used);
  if (rank == 0)
    receive_one(&answer, sizeof answer, ANSWER_TAG);
  else
    send_one(&answer, sizeof answer, ANSWER_TAG);
}

/* `stride`: from one message's bytes to the next one's, which are written before each window; 0: all have the same, which nobody
   writes. */
static void windows(const char* benchmark, int bytes, int count, int both, size_t stride) {
  const int first = -count / 10 - 1;
  const double begin = now();
  double times[WINDOWS];
  for (int batch = first; batch < count; ++batch) {
    const double start = now();
    for (size_t at = 0; rank == 0 && at < WINDOW * stride; at += LINE) ++input[at];
    one_window(bytes, WINDOW, both, stride);
    if (batch >= 0) times[batch] = (now() - start) / WINDOW;
    batch = once_warm(batch, first, begin);
    if (batch == -1) count = affordable(count, now() - start);
  }
  print_row(benchmark, bytes, times, count);
}

/* Before the library looks at the machine: the rank's one of PEER_PROCESSORS=A,B, whatever a launcher thinks of it. */
static void bind_to(int number) {
  const char* wanted = getenv("PEER_PROCESSORS");
  int processors[2];
  if (!wanted || sscanf(wanted, "%d,%d", &processors[0], &processors[1]) != 2) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(processors[number != 0], &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) perror("cannot run on a processor of PEER_PROCESSORS");
}

/* The same bytes again and again, as in the messages of the other side. */
static void fill_buffers(size_t size) {
  for (size_t n = 0; n < size / sizeof(float); ++n) ((float*)input)[n] = (float)(n % 65536);
  memset(output, 1, size);
}

/* Page-aligned. */
static void take_buffers(size_t size) {
  input = aligned_alloc(PAGE, size);
  output = aligned_alloc(PAGE, size);
  if (!input || !output) give_up("there is no memory");
  fill_buffers(size);
}

/* Words that no other place of a window has, nor that place in a window of another size or of the other rank. */
static void write_words(char* at, size_t size, int from) {
  for (size_t n = 0; n < size / sizeof(uint64_t); ++n)
    ((uint64_t*)at)[n] = (n + size) * 0x9e3779b97f4a7c15u + (uint64_t)from;
}

static int wrong_words(const char* at, size_t size, int from) {
  for (size_t n = 0; n < size / sizeof(uint64_t); ++n)
    if (((const uint64_t*)at)[n] != (n + size) * 0x9e3779b97f4a7c15u + (uint64_t)from) return 1;
  return 0;
}

/* Before anything is timed: of every size a window, or as many messages as a buffer holds, both ways at once, each with bytes of its own. */
static void prove(size_t size) {
  for (int bytes = sizes[0]; bytes <= MOST; bytes *= 2) {
    const int messages = size / (size_t)bytes < WINDOW ? (int)(size / (size_t)bytes) : WINDOW;
    write_words(input, (size_t)bytes * (size_t)messages, rank);
    memset(output, 0, (size_t)bytes * (size_t)messages);
    one_window(bytes, messages, 1, (size_t)bytes);
    if (wrong_words(output, (size_t)bytes * (size_t)messages, 1 - rank)) give_up("wrong bytes arrived");
  }
  fill_buffers(size);
}

/* What both peers' programs measure between two ranks, but for calls of all ranks. */
static void prove_and_take_windows(int windows_only) {
  const size_t size = (size_t)WINDOW * MOST_FRESH;
  if (ranks != 2) give_up("takes 2 ranks");
  take_buffers(size);
  prove(size);
  for (int n = 0; n < SIZES && !windows_only; ++n) ping_pong(sizes[n]);
  windows("rate", 8, WINDOWS, 0, 0);
  for (int bytes = PAGE; bytes <= MOST; bytes *= 2) windows("bandwidth", bytes, bytes <= SMALL ? 100 : 20, 0, 0);
  for (int bytes = PAGE; bytes <= MOST_FRESH; bytes *= 2)
    windows("bandwidth fresh", bytes, bytes <= SMALL ? 100 : 20, 0, (size_t)bytes);
}
