// NCCL's send and receive between two GPUs, timed as `isthmus bench` times messages: one process for each GPU.
//
//   nccl_messages [MOST_BYTES]      prints one JSON object: {"peer_name": ..., "rows": [{"benchmark", "bytes", "median_us", ...}]}
//
// latency: half a round trip in which every call is waited for, as a blocking message is. enqueued: the same with nothing waited for
// between. captured: ten of those in one graph, which is launched and waited for. bandwidth: windows of 64 sends, both streams idle before the next window begins. bidirectional: each rank sends and
// receives at once, in groups, as NCCL wants it.
#include <utility>

#include "nccl_ranks.cuh"

namespace {

using namespace peers;
using Clock = std::chrono::steady_clock;

constexpr int kWindow = 64;
constexpr const char* kEach = "send and receive";

double since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

void send(Rank& r, std::size_t bytes) { must(ncclSend(r.send, bytes, ncclChar, 1 - r.rank, r.comm, r.stream), "ncclSend"); }
void receive(Rank& r, std::size_t bytes) {
  must(ncclRecv(r.recv, bytes, ncclChar, 1 - r.rank, r.comm, r.stream), "ncclRecv");
}
void finish(Rank& r) { must(cudaStreamSynchronize(r.stream), "cudaStreamSynchronize"); }

void round_trip(Rank& r, std::size_t bytes, bool waited) {
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == r.rank)
      send(r, bytes);
    else
      receive(r, bytes);
    if (waited) finish(r);
  }
}

// Ten round trips of a graph, a capture of which NCCL knows.
cudaGraphExec_t capture(Rank& r, std::size_t bytes) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  must(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int n = 0; n < 10; ++n) round_trip(r, bytes, false);
  must(cudaStreamEndCapture(r.stream, &graph), "cudaStreamEndCapture");
  must(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  must(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return executable;
}

// `whole`: in one group, of which NCCL makes as few kernels as it can; else each by itself, both ways at once in groups of two.
void window(Rank& r, std::size_t bytes, bool both_ways, bool whole) {
  if (whole) must(ncclGroupStart(), "ncclGroupStart");
  for (int n = 0; n < kWindow; ++n) {
    if (both_ways && !whole) must(ncclGroupStart(), "ncclGroupStart");
    if (both_ways || r.rank == 0) send(r, bytes);
    if (both_ways || r.rank == 1) receive(r, bytes);
    if (both_ways && !whole) must(ncclGroupEnd(), "ncclGroupEnd");
  }
  if (whole) must(ncclGroupEnd(), "ncclGroupEnd");
  finish(r);
}

int rows = 0;

// `once` is timed `count` times, after a tenth of that; a time of the row is `share` of it, averaged over the ranks.
template <class Once>
void time_row(Rank& r, const char* benchmark, const char* way, std::size_t bytes, int count, double share, Once once) {
  r.meet();
  for (int n = -std::max(count / 10, 2); n < count; ++n) {
    const auto start = Clock::now();
    once();
    if (n >= 0) r.board.times[r.rank][n] = since(start) / share;
  }
  finish(r);
  r.meet();
  if (r.rank == 0) {
    std::vector<double> times(static_cast<std::size_t>(count));
    for (int n = 0; n < count; ++n) times[static_cast<std::size_t>(n)] = (r.board.times[0][n] + r.board.times[1][n]) / 2;
    print_row(rows++ == 0, benchmark, way, bytes, std::move(times));
  }
  r.meet();
}

// Before anything is timed: the bytes that arrive are those that were sent.
void prove(Rank& r) {
  constexpr std::size_t kBytes = (1 << 20) + 1;
  std::vector<char> bytes(kBytes, static_cast<char>(7 + r.rank));
  must(cudaMemcpy(r.send, bytes.data(), kBytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  round_trip(r, kBytes, true);
  must(cudaMemcpy(bytes.data(), r.recv, kBytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (std::count(bytes.begin(), bytes.end(), static_cast<char>(8 - r.rank)) == static_cast<std::ptrdiff_t>(kBytes)) return;
  std::fprintf(stderr, "nccl_messages: wrong bytes arrived on rank %d\n", r.rank);
  std::exit(1);
}

int be_rank(Board& board, int rank, int ranks, std::size_t most) {
  Rank r{board, rank, ranks};
  connect(r, std::max(most, std::size_t{2} << 20));
  prove(r);
  int version = 0;
  ncclGetVersion(&version);
  if (rank == 0)
    std::printf("{\"peer_name\": \"NCCL %d.%d.%d\", \"rows\": [", version / 10000, version / 100 % 100, version % 100);
  for (const std::size_t bytes :
       {std::size_t{8}, std::size_t{8} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{4} << 20}) {
    if (bytes > most) continue;
    time_row(r, "latency", kEach, bytes, bytes <= 8192 ? 1000 : 200, 2, [&] { round_trip(r, bytes, true); });
    time_row(r, "enqueued", kEach, bytes, 100, 20, [&] {
      for (int n = 0; n < 10; ++n) round_trip(r, bytes, false);
      finish(r);
    });
    const cudaGraphExec_t graph = capture(r, bytes);
    time_row(r, "captured", kEach, bytes, 100, 20, [&] {
      must(cudaGraphLaunch(graph, r.stream), "cudaGraphLaunch");
      finish(r);
    });
    must(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
  }
  for (std::size_t bytes = 64 << 10; bytes <= most; bytes *= 4) {
    for (const bool whole : {false, true}) {
      const char* const way = whole ? "a window in one group" : kEach;
      time_row(r, "bandwidth", way, bytes, 20, kWindow, [&] { window(r, bytes, false, whole); });
      time_row(r, "bidirectional", way, bytes, 20, kWindow, [&] { window(r, bytes, true, whole); });
    }
  }
  if (rank == 0) std::printf("\n]}\n");
  return disconnect(r);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : std::size_t{64} << 20;
  if (most < 8) {
    std::fprintf(stderr, "usage: nccl_messages [MOST_BYTES], with two GPUs\n");
    return 2;
  }
  return run_ranks(2, be_rank, most);
}
