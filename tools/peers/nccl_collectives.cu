// NCCL's collective calls timed as `isthmus bench collective` times ours: one process for each GPU, first proved right, then
// warmed up; a time is that of one call until its stream is idle, averaged over the ranks, with an untimed meeting after each.
//
//   nccl_collectives RANKS [MOST_BYTES]      prints one JSON list: an object for each call, rows from 8 B on
//
// Bytes are counted as there: what a rank has for one other or for all alike, and of reduce_scatter the whole input.
#include "nccl_ranks.cuh"

namespace {

using namespace peers;

ncclResult_t allreduce(Rank& r, std::size_t bytes) {
  return ncclAllReduce(r.send, r.recv, bytes / 4, ncclFloat, ncclSum, r.comm, r.stream);
}
ncclResult_t bcast(Rank& r, std::size_t bytes) {
  return ncclBroadcast(r.send, r.recv, bytes, ncclChar, 0, r.comm, r.stream);
}
ncclResult_t allgather(Rank& r, std::size_t bytes) {
  return ncclAllGather(r.send, r.recv, bytes, ncclChar, r.comm, r.stream);
}
ncclResult_t reduce_scatter(Rank& r, std::size_t bytes) {
  const std::size_t part = bytes / 4 / static_cast<std::size_t>(r.ranks);
  return ncclReduceScatter(r.send, r.recv, part, ncclFloat, ncclSum, r.comm, r.stream);
}
ncclResult_t alltoall(Rank& r, std::size_t bytes) {
  ncclGroupStart();
  for (int peer = 0; peer < r.ranks; ++peer) {
    const std::size_t place = static_cast<std::size_t>(peer) * bytes;
    ncclSend(reinterpret_cast<char*>(r.send) + place, bytes, ncclChar, peer, r.comm, r.stream);
    ncclRecv(reinterpret_cast<char*>(r.recv) + place, bytes, ncclChar, peer, r.comm, r.stream);
  }
  return ncclGroupEnd();
}

struct Call {
  const char* name;
  ncclResult_t (*call)(Rank&, std::size_t);
  int parts_in;   // 0: one for each rank
  int parts_out;  // the same; -1: a rank's share
  // What part `part` of the result holds on `rank`, where rank r's input holds 16 r + its part's number.
  float (*expected)(int rank, int part, int ranks);
};

float sum_of(int part, int ranks) {
  return 8.0F * static_cast<float>(ranks * (ranks - 1)) + static_cast<float>(ranks * part);
}

const Call kCalls[] = {
    {"allreduce", allreduce, 1, 1, [](int, int, int ranks) { return sum_of(0, ranks); }},
    {"bcast", bcast, 1, 1, [](int, int, int) { return 0.0F; }},
    {"allgather", allgather, 1, 0, [](int, int part, int) { return 16.0F * static_cast<float>(part); }},
    {"reduce_scatter", reduce_scatter, 0, -1, [](int rank, int, int ranks) { return sum_of(rank, ranks); }},
    {"alltoall", alltoall, 0, 0, [](int rank, int part, int) { return static_cast<float>(16 * part + rank); }},
};

// At one size; every number is looked at.
void prove(Rank& r, const Call& one) {
  const auto ranks = static_cast<std::size_t>(r.ranks);
  const std::size_t part = (std::size_t{1} << 18) / ranks * ranks;  // floats; of a reduce_scatter divided once more
  const std::size_t in = one.parts_out < 0 ? part / ranks : part;
  const std::size_t parts_in = one.parts_in == 0 ? ranks : 1;
  const std::size_t parts_out = one.parts_out == 0 ? ranks : 1;
  std::vector<float> values(in * parts_in);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(16 * r.rank + static_cast<int>(i / in));
  must(cudaMemcpy(r.send, values.data(), values.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
  must(cudaMemset(r.recv, 0xff, in * parts_out * 4), "cudaMemset");
  must(one.call(r, part * 4), one.name);
  must(cudaStreamSynchronize(r.stream), "cudaStreamSynchronize");
  std::vector<float> found(in * parts_out);
  must(cudaMemcpy(found.data(), r.recv, found.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != one.expected(r.rank, static_cast<int>(i / in), r.ranks)) {
      std::fprintf(stderr, "nccl_collectives: %s left %g in element %zu of rank %d\n", one.name, found[i], i, r.rank);
      std::exit(1);
    }
}

void print_row(const Board& board, int ranks, int calls, std::size_t bytes, bool first) {
  std::vector<double> averages(static_cast<std::size_t>(calls), 0.0);
  std::vector<double> means(static_cast<std::size_t>(ranks), 0.0);
  for (int r = 0; r < ranks; ++r)
    for (int n = 0; n < calls; ++n) {
      averages[static_cast<std::size_t>(n)] += board.times[r][n] / ranks;
      means[static_cast<std::size_t>(r)] += board.times[r][n] / calls;
    }
  std::sort(averages.begin(), averages.end());
  double average = 0;
  for (const double mean : means) average += mean / ranks;
  const double median = percentile(averages, 0.5);
  std::printf(
      "%s{\"bytes\": %zu, \"median_us\": %.4f, \"p10_us\": %.4f, \"p90_us\": %.4f, \"gbps\": %.6f, \"path\": \"nccl\", "
      "\"iterations\": %d, \"average_us\": %.4f, \"min_us\": %.4f, \"max_us\": %.4f}",
      first ? "" : ", ", bytes, median, percentile(averages, 0.1), percentile(averages, 0.9),
      static_cast<double>(bytes) / (median * 1e3), calls, average, *std::min_element(means.begin(), means.end()),
      *std::max_element(means.begin(), means.end()));
}

void time_call(Rank& r, const Call& one, std::size_t most) {
  using Clock = std::chrono::steady_clock;
  prove(r, one);
  if (r.rank == 0)
    std::printf("{\"benchmark\": \"%s\", \"from\": \"cuda:0\", \"to\": \"cuda:%d\", \"ranks\": %d, \"rows\": [", one.name,
                std::min(1, r.ranks - 1), r.ranks);
  for (std::size_t bytes = 8; bytes <= most; bytes *= 2) {
    const int calls = bytes <= 8192 ? kMostCalls : 100;
    for (int n = -calls / 10; n < calls; ++n) {
      const auto start = Clock::now();
      must(one.call(r, bytes), one.name);
      must(cudaStreamSynchronize(r.stream), "cudaStreamSynchronize");
      if (n >= 0) r.board.times[r.rank][n] = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      r.meet();
    }
    if (r.rank == 0) print_row(r.board, r.ranks, calls, bytes, bytes == 8);
    r.meet();
  }
  if (r.rank == 0) std::printf("]}");
}

int be_rank(Board& board, int rank, int ranks, std::size_t most) {
  Rank r{board, rank, ranks};
  connect(r, std::max(most, std::size_t{1} << 20) * static_cast<std::size_t>(ranks));
  if (rank == 0) std::printf("[");
  for (const Call& one : kCalls) {
    if (rank == 0 && &one != kCalls) std::printf(",\n ");
    time_call(r, one, most);
  }
  if (rank == 0) std::printf("]\n");
  return disconnect(r);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::size_t most = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::size_t{64} << 20;
  if (ranks < 1 || ranks > kMostRanks || most < 8) {
    std::fprintf(stderr, "usage: nccl_collectives RANKS [MOST_BYTES], with a GPU for each rank\n");
    return 2;
  }
  return run_ranks(ranks, be_rank, most);
}
