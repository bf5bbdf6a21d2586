// Processes with a GPU and a rank of NCCL each, forked before any of them touches CUDA, and what their programs have in common.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "forked_ranks.cuh"

namespace peers {

constexpr int kMostRanks = 16;

// In memory that all ranks share.
struct Board {
  MeetingPlace place;
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

  void meet() { board.place.meet(ranks); }
};

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
  Board* const board = shared_board<Board>();
  if (board == nullptr) return 1;
  return fork_ranks(ranks, [=](int rank) { return be_rank(*board, rank, ranks, most); });
}

}  // namespace peers
