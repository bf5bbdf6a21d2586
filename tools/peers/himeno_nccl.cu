// Himeno over NCCL in a graph, by the sweeps of the example program: planes along i by ncclSend and ncclRecv, and one sum over all cells in each
// iteration by ncclAllReduce, in one group with them. One process for each GPU.
//
//   himeno_nccl [XS, S, M, L or XL] [iterations] [GPUs]    prints one JSON object, and on standard error the same for people
//
// "whole": one sweep, then planes and its sum. "overlapped": the border first, whose way the interior hides; the sum of an iteration, which is known
// later, goes with the planes of the next one. Medians of three runs; every rank compares its cells with the whole box, which it computes alone.
// Build: nvcc -std=c++20 -O3 -arch=native -Iinclude -Iexamples -Iexamples/himeno tools/peers/himeno_nccl.cu examples/himeno/cuda_sweeps.cu -lnccl
#include <cstring>
#include <string>

#include "cuda_kernels.hpp"
#include "nccl_ranks.cuh"

namespace {

using namespace peers;
using namespace himeno;

constexpr int kInGraph = 64, kLead = 8;

struct Size {
  const char* name;
  int cells[3];
};
constexpr Size kSizes[] = {
    {"XS", {32, 32, 64}}, {"S", {64, 64, 128}}, {"M", {128, 128, 256}}, {"L", {256, 256, 512}}, {"XL", {512, 512, 1024}}};

// Planes first to first + count - 1 of the box, with one more on either side.
struct Slab {
  const Size& size;
  int first, count;
  Shape shape{};
  float* levels[2]{};
  float* arrays[kCoefficients]{};
  double* sums = nullptr;

  Slab(const Size& of, int from, int planes) : size(of), first(from), count(planes) {
    shape.row = kLead + size.cells[2] + kLead;
    shape.plane = shape.row * (size.cells[1] + 2);
    for (float*& level : levels) must(cudaMalloc(&level, elements() * sizeof(float)), "cudaMalloc");
    for (float*& array : arrays) must(cudaMalloc(&array, elements() * sizeof(float)), "cudaMalloc");
    must(cudaMalloc(&sums, kInGraph * sizeof(double)), "cudaMalloc");
    fill_coefficients(nullptr, static_cast<std::int64_t>(elements()), arrays, 0);
    must(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  std::size_t elements() const { return static_cast<std::size_t>(shape.plane) * static_cast<std::size_t>(count + 2); }
  float* plane(int level, int i) const { return levels[level] + static_cast<std::ptrdiff_t>(i) * shape.plane; }
  void start(cudaStream_t stream) const {
    const Extent extent{
        {size.cells[0], size.cells[1], size.cells[2]}, {first - 1, -1, -kLead}, {count + 2, size.cells[1] + 2, shape.row}};
    fill_levels(stream, extent, levels[0], levels[1]);
  }
  // Of the planes from..to of the array, what changes.
  Work work(int from, int to) const {
    Work made;
    made.add({{std::max(from, 2 - first), 2, kLead + 1},
              {std::min(to, size.cells[0] - 1 - first), size.cells[1] - 1, kLead + size.cells[2] - 2}});
    return made;
  }
  void sweep(cudaStream_t stream, const Work& of, int from, double* sum) const {
    Coefficients with{};
    for (int n = 0; n < kCoefficients; ++n) with.of[n] = arrays[n];
    himeno::sweep(stream, shape, with, levels[from], levels[1 - from], of, sum);
  }
};

struct Streams {
  cudaStream_t inner = nullptr;
  cudaEvent_t event = nullptr;
  void order(cudaStream_t first, cudaStream_t second) const {
    must(cudaEventRecord(event, first), "cudaEventRecord");
    must(cudaStreamWaitEvent(second, event, 0), "cudaStreamWaitEvent");
  }
};

void exchange(Rank& r, const Slab& slab, int level, double* sum) {
  const auto count = static_cast<std::size_t>(slab.shape.plane);
  must(ncclGroupStart(), "ncclGroupStart");
  for (const int other : {r.rank - 1, r.rank + 1}) {
    if (other < 0 || other == r.ranks) continue;
    const bool below = other < r.rank;
    must(ncclSend(slab.plane(level, below ? 1 : slab.count), count, ncclFloat, other, r.comm, r.stream), "ncclSend");
    must(ncclRecv(slab.plane(level, below ? 0 : slab.count + 1), count, ncclFloat, other, r.comm, r.stream), "ncclRecv");
  }
  if (sum != nullptr) must(ncclAllReduce(sum, sum, 1, ncclDouble, ncclSum, r.comm, r.stream), "ncclAllReduce");
  must(ncclGroupEnd(), "ncclGroupEnd");
}

cudaGraphExec_t capture(Rank& r, const Slab& slab, const Streams& streams, int iterations, bool overlapped) {
  const int low = r.rank > 0 ? 1 : 0, high = r.rank + 1 < r.ranks ? 1 : 0;
  const Work whole = slab.work(1, slab.count), interior = slab.work(1 + low, slab.count - high);
  Work border;
  if (low != 0) border = slab.work(1, 1);
  if (high != 0) {
    const Work more = slab.work(slab.count, slab.count);
    if (more.boxes > 0 && !(low != 0 && slab.count == 1)) border.add(more.box[0]);
  }
  must(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  must(cudaMemsetAsync(slab.sums, 0, kInGraph * sizeof(double), r.stream), "cudaMemsetAsync");
  streams.order(r.stream, streams.inner);
  for (int n = 0; n < iterations; ++n) {
    const int from = n % 2;
    if (!overlapped) {
      slab.sweep(r.stream, whole, from, slab.sums + n);
      exchange(r, slab, 1 - from, slab.sums + n);
      continue;
    }
    streams.order(streams.inner, r.stream);
    slab.sweep(streams.inner, interior, from, slab.sums + n);
    slab.sweep(r.stream, border, from, slab.sums + n);
    streams.order(r.stream, streams.inner);
    exchange(r, slab, 1 - from, n > 0 ? slab.sums + n - 1 : nullptr);
  }
  streams.order(streams.inner, r.stream);
  if (overlapped) {
    double* const last = slab.sums + iterations - 1;
    must(ncclAllReduce(last, last, 1, ncclDouble, ncclSum, r.comm, r.stream), "ncclAllReduce");
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  must(cudaStreamEndCapture(r.stream, &graph), "cudaStreamEndCapture");
  must(cudaGraphInstantiateWithFlags(&executable, graph, 0), "cudaGraphInstantiateWithFlags");
  must(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return executable;
}

// Seconds of the slowest rank, the same on all.
double timed(Rank& r, const Slab& slab, cudaGraphExec_t graph, int replays, int call) {
  r.meet();
  slab.start(r.stream);
  must(cudaStreamSynchronize(r.stream), "cudaStreamSynchronize");
  r.meet();
  const auto begin = std::chrono::steady_clock::now();
  for (int n = 0; n < replays; ++n) must(cudaGraphLaunch(graph, r.stream), "cudaGraphLaunch");
  must(cudaStreamSynchronize(r.stream), "cudaStreamSynchronize");
  r.board.times[r.rank][call] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  r.meet();
  double slowest = 0;
  for (int rank = 0; rank < r.ranks; ++rank) slowest = std::max(slowest, r.board.times[rank][call]);
  return slowest;
}

// Cells of this rank that are others where one rank computes all of them.
unsigned long long other_cells(Rank& r, const Slab& slab, const Slab& whole) {
  unsigned long long *unlike = nullptr, found = 0;
  must(cudaMalloc(&unlike, sizeof *unlike), "cudaMalloc");
  must(cudaMemset(unlike, 0, sizeof *unlike), "cudaMemset");
  const Box own{{1, 1, kLead}, {slab.count, slab.size.cells[1], kLead + slab.size.cells[2] - 1}};
  compare(nullptr, {slab.levels[0], slab.shape, own, whole.levels[0], whole.shape, {slab.first, 0, 0}}, unlike);
  must(cudaMemcpy(&found, unlike, sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
  must(cudaFree(unlike), "cudaFree");
  r.board.times[r.rank][0] = static_cast<double>(found);
  r.meet();
  double all = 0;
  for (int rank = 0; rank < r.ranks; ++rank) all += r.board.times[rank][0];
  r.meet();
  return static_cast<unsigned long long>(all);
}

int size_asked = 0, replays_asked = 1;

int be_rank(Board& board, int rank, int ranks, std::size_t room) {
  Rank r{board, rank, ranks};
  connect(r, room);
  Streams streams;
  must(cudaStreamCreateWithFlags(&streams.inner, cudaStreamNonBlocking), "cudaStreamCreate");
  must(cudaEventCreateWithFlags(&streams.event, cudaEventDisableTiming), "cudaEventCreate");
  const Size& size = kSizes[size_asked];
  const int iterations = replays_asked * kInGraph, first = size.cells[0] * rank / ranks;
  const Slab slab(size, first, size.cells[0] * (rank + 1) / ranks - first), whole(size, 0, size.cells[0]);
  whole.start(r.stream);
  for (int n = 0; n < iterations; ++n) whole.sweep(r.stream, whole.work(1, whole.count), n % 2, whole.sums);
  exchange(r, slab, 0, slab.sums);  // NCCL connects the ranks before a capture
  must(cudaStreamSynchronize(r.stream), "cudaStreamSynchronize");
  int version = 0, failed = 0;
  ncclGetVersion(&version);
  const double flop = 34.0 * (size.cells[0] - 2) * (size.cells[1] - 2) * (size.cells[2] - 2);
  if (rank == 0)
    std::printf("{\"peer_name\": \"NCCL %d.%d.%d\", \"size\": \"%s\", \"iterations\": %d, \"gpus\": %d, \"ways\": [",
                version / 10000, version / 100 % 100, version % 100, size.name, iterations, ranks);
  for (const bool overlapped : {false, true}) {
    const cudaGraphExec_t graph = capture(r, slab, streams, kInGraph, overlapped);
    std::vector<double> times;
    for (int call = 0; call < 4; ++call) {
      const double seconds = timed(r, slab, graph, replays_asked, call + 1);
      if (call > 0) times.push_back(seconds);
    }
    std::sort(times.begin(), times.end());
    double gosa = 0;
    must(cudaMemcpy(&gosa, slab.sums + kInGraph - 1, sizeof gosa, cudaMemcpyDeviceToHost), "cudaMemcpy");
    const unsigned long long unlike = other_cells(r, slab, whole);
    if (unlike != 0) failed = 1;
    const double micros = times[1] * 1e6 / iterations;
    if (rank == 0) {
      std::printf(
          "%s\n {\"name\": \"NCCL%s\", \"us_per_iteration\": %.4f, \"mflops\": %.1f, \"gosa\": %.9e, \"other_cells\": %llu}",
          overlapped ? "," : "", overlapped ? ", overlapped" : "", micros, flop / micros, gosa, unlike);
      std::fprintf(stderr, "NCCL%-18s %12.0f MFLOPS %10.2f us an iteration, gosa %.6e%s\n", overlapped ? ", overlapped" : "",
                   flop / micros, micros, gosa, unlike == 0 ? "" : ", WRONG CELLS");
    }
    must(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
  }
  if (rank == 0) std::printf("\n]}\n");
  return disconnect(r) + failed;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string size = argc > 1 ? argv[1] : "XS";
  const int iterations = argc > 2 ? std::atoi(argv[2]) : kInGraph, gpus = argc > 3 ? std::atoi(argv[3]) : 2;
  while (size_asked < 5 && size != kSizes[size_asked].name) ++size_asked;
  if (size_asked == 5 || iterations < 1 || gpus < 1 || gpus > kMostRanks) {
    std::fprintf(stderr, "usage: himeno_nccl [XS, S, M, L or XL] [iterations, in steps of %d] [GPUs, 1 to %d]\n", kInGraph,
                 kMostRanks);
    return 2;
  }
  replays_asked = (iterations + kInGraph - 1) / kInGraph;
  return run_ranks(gpus, be_rank, 256);
}
