// Processes with a GPU and a rank of NCCL each, forked before any of them touches CUDA, and what their programs have in common.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

namespace peers {

constexpr int kMostRanks = 16;
constexpr int kMostCalls = 1000;

// In memory that all ranks share.
struct Board {
  std::atomic<int> arrived{0};
  std::atomic<int> round{0};
  ncclUniqueId id;
  double times[kMostRanks][kMostCalls];
};

inline void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "peer of NCCL: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}
inline void must(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "peer of NCCL: %s: %s\n", what, ncclGetErrorString(result));
  std::exit(1);
}

struct Rank {
  Board& board;
  int rank;
  int ranks;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* send = nullptr;
  float* recv = nullptr;

  void meet() {
    const int round = board.round.load();
    if (board.arrived.fetch_add(1) + 1 == ranks) {
      board.arrived = 0;
      board.round = round + 1;
    } else {
      while (board.round.load() == round) {
      }
    }
  }
};

inline double percentile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - std::floor(position));
}

// The rank's device, stream, communicator and buffers of `room` bytes each.
inline void connect(Rank& r, std::size_t room) {
  must(cudaSetDevice(r.rank), "cudaSetDevice");
  must(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  if (r.rank == 0) must(ncclGetUniqueId(&r.board.id), "ncclGetUniqueId");
  r.meet();
  must(ncclCommInitRank(&r.comm, r.ranks, r.board.id, r.rank), "ncclCommInitRank");
  must(cudaMalloc(reinterpret_cast<void**>(&r.send), room), "cudaMalloc");
  must(cudaMalloc(reinterpret_cast<void**>(&r.recv), room), "cudaMalloc");
  int version = 0;
  ncclGetVersion(&version);
  if (r.rank == 0)
    std::fprintf(stderr, "NCCL %d.%d.%d on %d GPUs\n", version / 10000, version / 100 % 100, version % 100, r.ranks);
}

// Rank 0 has printed all that it has to say by then.
inline int disconnect(Rank& r) {
  std::fflush(stdout);
  r.meet();
  must(ncclCommDestroy(r.comm), "ncclCommDestroy");
  return 0;
}

// Every rank as a process of its own: `be_rank` is called in each. The number of those that failed, as an exit status.
inline int run_ranks(int ranks, int (*be_rank)(Board& board, int rank, int ranks, std::size_t most), std::size_t most) {
  void* shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Board& board = *new (shared) Board;
  // No rank touches CUDA before it is a process of its own.
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      const int status = be_rank(board, rank, ranks, most);
      std::fflush(stdout);
      _exit(status);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (std::size_t ended = 0; ended < children.size(); ++ended) {
    int status = 0;
    wait(&status);
    if (status == 0) continue;
    failed = 1;
    for (const pid_t child : children) kill(child, SIGTERM);  // they would wait for it
  }
  return failed;
}

}  // namespace peers
