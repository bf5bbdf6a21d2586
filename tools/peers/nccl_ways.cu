// What an allreduce costs on two GPUs, by a communicator of NCCL's whose calls wait (where NCCL has to connect something), by one whose calls
// do not, and by a child whose calls wait of one whose calls do not: until the call is handed over, and until its stream is idle.
//
//   nccl_ways      prints a line for each way and size, medians of 200 calls in us
#include "nccl_ranks.cuh"

namespace {

using namespace peers;
using Clock = std::chrono::steady_clock;

constexpr int kCalls = 200;
constexpr std::size_t kMost = std::size_t{16} << 20;

void begun(ncclResult_t result, const char* what) {
  if (result != ncclInProgress) must(result, what);
}

void wait_until_ready(ncclComm_t comm, const char* what) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) must(ncclCommGetAsyncError(comm, &state), what);
  must(state, what);
}

double us_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

void time_calls(Rank& r, const char* way, ncclComm_t comm, std::size_t bytes) {
  std::vector<double> handed(kCalls);
  std::vector<double> over(kCalls);
  for (int n = -kCalls / 10; n < kCalls; ++n) {
    const auto start = Clock::now();
    begun(ncclAllReduce(r.send, r.recv, bytes / 4, ncclFloat, ncclSum, comm, r.stream), "ncclAllReduce");
    wait_until_ready(comm, "ncclAllReduce");
    const double until_handed = us_since(start);
    cudaError_t state = cudaErrorNotReady;
    while (state == cudaErrorNotReady) state = cudaStreamQuery(r.stream);
    must(state, "cudaStreamQuery");
    if (n >= 0) {
      handed[static_cast<std::size_t>(n)] = until_handed;
      over[static_cast<std::size_t>(n)] = us_since(start);
    }
    r.meet();
  }
  std::sort(handed.begin(), handed.end());
  std::sort(over.begin(), over.end());
  if (r.rank == 0)
    std::printf("%-27s %9zu B: handed over in %.2f us, over after %.2f us\n", way, bytes, percentile(handed, 0.5),
                percentile(over, 0.5));
}

int be_rank(Board& board, int rank, int ranks, std::size_t most) {
  Rank r{board, rank, ranks};
  connect(r, most);
  r.meet();
  if (rank == 0) must(ncclGetUniqueId(&board.id), "ncclGetUniqueId");
  r.meet();
  ncclConfig_t waits_for_nothing = NCCL_CONFIG_INITIALIZER;
  waits_for_nothing.blocking = 0;
  ncclConfig_t waits = NCCL_CONFIG_INITIALIZER;
  waits.blocking = 1;
  ncclComm_t parent = nullptr;
  ncclComm_t child = nullptr;
  begun(ncclCommInitRankConfig(&parent, ranks, board.id, rank, &waits_for_nothing), "ncclCommInitRankConfig");
  wait_until_ready(parent, "ncclCommInitRankConfig");
  begun(ncclCommSplit(parent, 0, rank, &child, &waits), "ncclCommSplit");
  wait_until_ready(parent, "ncclCommSplit");
  wait_until_ready(child, "ncclCommSplit");
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{65536}, std::size_t{1} << 20, kMost}) {
    time_calls(r, "calls wait", r.comm, bytes);
    time_calls(r, "calls do not wait", parent, bytes);
    time_calls(r, "calls of a child wait", child, bytes);
  }
  r.meet();
  must(ncclCommDestroy(child), "ncclCommDestroy");
  begun(ncclCommFinalize(parent), "ncclCommFinalize");
  wait_until_ready(parent, "ncclCommFinalize");
  begun(ncclCommDestroy(parent), "ncclCommDestroy");
  return disconnect(r);
}

}  // namespace

int main() { return run_ranks(2, be_rank, kMost); }
