// NVSHMEM between two GPUs, driven by the host and by streams, timed as nccl_messages.cu times NCCL: one process for each GPU.
//
//   nvshmem_messages [MOST_BYTES]      prints one JSON object: {"peer_name": ..., "rows": [{"benchmark", "bytes", "median_us", ...}]}
//
// latency: half a round trip of puts with a signal, put into streams, in which every step is waited for, as a blocking message is.
// enqueued: the same with nothing waited for between. put: a put and a quiet of the host, which the other side takes no part in, so that
// it is no message. put in a stream: one of many puts in a row, waited for together. barrier: of all, by the host, and many in a stream. bandwidth: windows of 64 puts and a signal behind them; bidirectional: the same both ways at once. The two processes
// find each other by the library's unique id, which lies in memory that they share.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "forked_ranks.cuh"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWindow = 64;
constexpr int kInStream = 100;
using peers::kMostCalls;

struct Board {
  peers::MeetingPlace place;
  nvshmemx_uniqueid_t id;
  double times[2][kMostCalls];
};

void must(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "nvshmem_messages: %s failed: %s\n", what, cudaGetErrorString(cudaGetLastError()));
  std::exit(1);
}
void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "nvshmem_messages: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

struct Rank {
  Board& board;
  int rank;
  cudaStream_t stream = nullptr;
  char* out = nullptr;
  char* in = nullptr;
  std::uint64_t* signal = nullptr;  // the other rank counts its messages here
  std::uint64_t sent = 0;
  std::uint64_t received = 0;

  void meet() { board.place.meet(2); }
  void put(std::size_t bytes) {
    nvshmemx_putmem_signal_on_stream(in, out, bytes, signal, ++sent, NVSHMEM_SIGNAL_SET, 1 - rank, stream);
  }
  void await() { nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_GE, ++received, stream); }
  void finish() { must(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }
};

void round_trip(Rank& r, std::size_t bytes, bool waited) {
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == r.rank)
      r.put(bytes);
    else
      r.await();
    if (waited) r.finish();
  }
}

// The last put of a window brings the signal, and nothing overtakes: each is over before the next one of its stream begins.
void window(Rank& r, std::size_t bytes, bool both_ways) {
  if (both_ways || r.rank == 0) {
    for (int n = 1; n < kWindow; ++n) nvshmemx_putmem_nbi_on_stream(r.in, r.out, bytes, 1 - r.rank, r.stream);
    nvshmemx_quiet_on_stream(r.stream);
    r.put(bytes);
  }
  if (both_ways || r.rank == 1) r.await();
  r.finish();
}

int rows = 0;

// `once` is timed `count` times, after a tenth of that; a time of the row is `share` of it, averaged over the ranks that measure.
template <class Once>
void time_row(Rank& r, const char* benchmark, const char* way, std::size_t bytes, int count, double share, bool alone,
              Once once) {
  r.meet();
  for (int n = -std::max(count / 10, 2); n < count && (r.rank == 0 || !alone); ++n) {
    const auto start = Clock::now();
    once();
    if (n >= 0) r.board.times[r.rank][n] = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / share;
  }
  r.finish();
  r.meet();
  if (r.rank == 0) {
    std::vector<double> times(static_cast<std::size_t>(count));
    for (int n = 0; n < count; ++n)
      times[static_cast<std::size_t>(n)] = alone ? r.board.times[0][n] : (r.board.times[0][n] + r.board.times[1][n]) / 2;
    peers::print_row(rows++ == 0, benchmark, way, bytes, std::move(times));
  }
  r.meet();
}

// Before anything is timed: the bytes that arrive are those that were sent.
void prove(Rank& r) {
  constexpr std::size_t kBytes = (1 << 20) + 1;
  std::vector<unsigned char> bytes(kBytes);
  const auto value = [](int rank, std::size_t i) {
    return static_cast<unsigned char>(i * 31 + i / 257 + 7 * static_cast<std::size_t>(rank));
  };
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = value(r.rank, i);
  must(cudaMemcpy(r.out, bytes.data(), kBytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  must(cudaMemset(r.in, 0xa5, kBytes), "cudaMemset");
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  r.meet();
  round_trip(r, kBytes, true);
  must(cudaMemcpy(bytes.data(), r.in, kBytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (std::size_t i = 0; i < kBytes; ++i)
    must(bytes[i] == value(1 - r.rank, i), "the comparison of the bytes that arrived");
}

// What no other side takes part in, or all do: many in a stream are waited for together.
void put_in_stream(Rank& r, std::size_t bytes) {
  time_row(r, "put in a stream", "puts in a stream", bytes, bytes <= 8192 ? 100 : 20, kInStream, true, [&] {
    for (int n = 0; n < kInStream; ++n) nvshmemx_putmem_on_stream(r.in, r.out, bytes, 1 - r.rank, r.stream);
    r.finish();
  });
}
void barriers(Rank& r) {
  time_row(r, "barrier", "of the host", 0, 1000, 1, false, [] { nvshmem_barrier_all(); });
  time_row(r, "barrier", "in a stream", 0, 100, kInStream, false, [&] {
    for (int n = 0; n < kInStream; ++n) nvshmemx_barrier_all_on_stream(r.stream);
    r.finish();
  });
}

int be_rank(Board& board, int rank, std::size_t most) {
  Rank r{board, rank};
  must(cudaSetDevice(rank), "cudaSetDevice");
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (rank == 0) {
    must(nvshmemx_get_uniqueid(&id) == 0, "nvshmemx_get_uniqueid");
    board.id = id;
  }
  r.meet();
  id = board.id;
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  must(nvshmemx_set_attr_uniqueid_args(rank, 2, &id, &attributes) == 0, "nvshmemx_set_attr_uniqueid_args");
  must(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0, "nvshmemx_init_attr");
  must(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const std::size_t room = std::max(most, std::size_t{2} << 20);
  r.out = static_cast<char*>(nvshmem_malloc(room));
  r.in = static_cast<char*>(nvshmem_malloc(room));
  r.signal = static_cast<std::uint64_t*>(nvshmem_calloc(1, sizeof(std::uint64_t)));
  must(r.out != nullptr && r.in != nullptr && r.signal != nullptr, "nvshmem_malloc");
  nvshmem_barrier_all();
  prove(r);
  int major = 0;
  int minor = 0;
  int patch = 0;
  nvshmemx_vendor_get_version_info(&major, &minor, &patch);
  if (rank == 0) std::printf("{\"peer_name\": \"NVSHMEM %d.%d.%d\", \"rows\": [", major, minor, patch);
  for (const std::size_t bytes :
       {std::size_t{8}, std::size_t{8} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{4} << 20}) {
    if (bytes > most) continue;
    time_row(r, "latency", "put with a signal in a stream", bytes, bytes <= 8192 ? 1000 : 200, 2, false,
             [&] { round_trip(r, bytes, true); });
    time_row(r, "enqueued", "put with a signal in a stream", bytes, 100, 20, false, [&] {
      for (int n = 0; n < 10; ++n) round_trip(r, bytes, false);
      r.finish();
    });
    time_row(r, "put", "put and quiet of the host", bytes, bytes <= 8192 ? 1000 : 200, 1, true, [&] {
      nvshmem_putmem(r.in, r.out, bytes, 1 - r.rank);
      nvshmem_quiet();
    });
    put_in_stream(r, bytes);
  }
  barriers(r);
  for (std::size_t bytes = 64 << 10; bytes <= most; bytes *= 4)
    for (const bool both_ways : {false, true})
      time_row(r, both_ways ? "bidirectional" : "bandwidth", "puts in a stream", bytes, 20, kWindow, false,
               [&] { window(r, bytes, both_ways); });
  if (rank == 0) std::printf("\n]}\n");
  std::fflush(stdout);
  r.meet();
  nvshmem_finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : std::size_t{64} << 20;
  Board* const board = most < 8 ? nullptr : peers::shared_board<Board>();
  if (board == nullptr) {
    std::fprintf(stderr, "usage: nvshmem_messages [MOST_BYTES], with two GPUs\n");
    return 2;
  }
  return peers::fork_ranks(2, [=](int rank) { return be_rank(*board, rank, most); });
}
