// The kernel that goes through all iterations: a grid that stays, whose blocks take tiles as they get to them, and meet once in an iteration.
//
// Who calls this : persistent.cu; a test, whose threads play those of a GPU.
// Threads        : a cooperative grid.
// Ownership      : none.
// Errors         : left in Outcome::failure; all blocks end then.
#pragma once

#include "meet.cuh"

namespace jacobi {
namespace {

using namespace ist::device;

__device__ __forceinline__ Sweep sweep_of(const Job& job, int iteration) {
  const int to = iteration % 2;
  return {job.cells.levels[1 - to],
          job.cells.levels[to],
          job.beside_up[to],
          job.beside_down[to],
          job.cells.pitch,
          job.cells.columns,
          job.cells.rows,
          job.height,
          job.fine_rows,
          job.factor,
          nullptr,
          nullptr};
}

// The block's share. The first item is that of its number, so that the outermost rows are begun at once; each next one is asked for while the
// one before is computed. False: a neighbour's row did not come.
template <int kBatch>
__device__ __forceinline__ bool compute_share(const Job& job, const Plan& plan, int iteration, float& sum) {
  __shared__ int following[2];
  const Sweep sweep = sweep_of(job, iteration);
  const std::uint64_t step = job.steps + static_cast<unsigned>(iteration);
  std::uint32_t* const tickets = &job.scratch->tickets[iteration % kRing];
  bool fine = true;
  int turn = 0;
  for (int item = static_cast<int>(blockIdx.x); item < plan.items; turn ^= 1) {
    int next = 0;
    if (threadIdx.x == 0) next = static_cast<int>(gridDim.x + atomicAdd(tickets, 1U));
    if (item >= plan.sides * plan.side_items) {
      compute_tile<kBatch>(sweep, plan, item, sum);
    } else if (rows_are_here(job.others, plan, item, step)) {
      compute_side(sweep, plan, item, sum);
      tell_neighbour(job.others, plan, item, step);
    } else {
      fine = false;
    }
    if (threadIdx.x == 0) following[turn] = next;
    __syncthreads();
    item = following[turn];
  }
  return fine;
}

// One thread of the block that comes last: all have come, none has left.
__device__ __forceinline__ void begin_next(const Job& job, int iteration) {
  Scratch& scratch = *job.scratch;
  if (iteration % job.nccheck == 0)
    tell_sum(job.others, job.steps + static_cast<unsigned>(iteration),
             job.norms + static_cast<unsigned>(iteration / job.nccheck),
             *static_cast<volatile float*>(&scratch.sums[iteration % kRing]));
  // Last used two iterations ago.
  scratch.tickets[(iteration + 2) % kRing] = 0;
  scratch.sums[(iteration + 2) % kRing] = 0;
}

// All blocks meet, and find what any of them has stored. False: all are to end, or some did not come.
__device__ __forceinline__ bool meet(const Job& job, int iteration) {
  __shared__ bool goes_on;
  Scratch& scratch = *job.scratch;
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto meeting = static_cast<std::uint64_t>(iteration);
    Status status = Status::ok;
    fence_here();
    const unsigned long long before = atomicAdd(reinterpret_cast<unsigned long long*>(&scratch.arrivals), 1ULL);
    fence_here();
    if (before + 1 == meeting * gridDim.x) {
      begin_next(job, iteration);
      store_release_here(&scratch.released, meeting);
    } else {
      Waiter waiter(job.others.view, 3 * kDeadline);  // another block may wait for a neighbour, and for a norm
      while (status == Status::ok && load_acquire_here(&scratch.released) < meeting) status = waiter.vain();
      if (status != Status::ok) leave_failure(job.others.failure, job.steps + meeting, Awaited::grid, status);
    }
    const int stop_at = *static_cast<volatile int*>(&scratch.stop_at);
    // A block that is quick may have set it for the next meeting.
    goes_on =
        status == Status::ok && *static_cast<volatile int*>(&scratch.failed) == 0 && (stop_at == 0 || stop_at > iteration);
  }
  __syncthreads();
  return goes_on;
}

// By one thread of the grid: what the norms say.
struct Judge {
  int result = 0;
  float first_norm = 0, norm = 0;

  // Of an iteration whose meeting is over on all PEs, or will be. False: another PE's part did not come.
  __device__ __forceinline__ bool hears(const Job& job, int iteration, bool& ends) {
    float sum = 0;
    if (!sum_of_all(job.others, job.steps + static_cast<unsigned>(iteration),
                    job.norms + static_cast<unsigned>(iteration / job.nccheck), sum))
      return false;
    norm = __fsqrt_rn(sum);
    if (iteration == 1) first_norm = norm;
    ends = static_cast<double>(norm) <= job.tolerance;
    if (ends) result = iteration;
    return true;
  }
};

template <int kBatch>
__global__ void __launch_bounds__(kThreads, kBatch > 4 ? 3 : 4) persistent_kernel(const __grid_constant__ Job job) {
  const Plan plan = plan_of(job.cells.columns, job.cells.rows, job.height, job.fine_rows);
  const bool judges = blockIdx.x == 0 && threadIdx.x == 0;
  Scratch& scratch = *job.scratch;
  Judge judge;
  int iteration = 1;
  for (;; ++iteration) {
    float sum = 0;
    const bool fine = compute_share<kBatch>(job, plan, iteration, sum);
    if (!fine && threadIdx.x == 0) *static_cast<volatile int*>(&scratch.failed) = 1;
    if (iteration % job.nccheck == 0) {
      sum = sum_of_block(sum);
      if (threadIdx.x == 0) atomicAdd(&scratch.sums[iteration % kRing], sum);
    }
    // The norm of the iteration before, whose parts came while this one was computed.
    if (judges && iteration > 1 && (iteration - 1) % job.nccheck == 0) {
      bool ends = false;
      if (!judge.hears(job, iteration - 1, ends)) *static_cast<volatile int*>(&scratch.failed) = 1;
      if (ends) *static_cast<volatile int*>(&scratch.stop_at) = iteration;
    }
    if (!meet(job, iteration) || iteration == job.iterations) break;
  }
  if (!judges) return;
  bool ends = false;
  if (judge.result == 0 && *static_cast<volatile int*>(&scratch.failed) == 0 && iteration == job.iterations &&
      iteration % job.nccheck == 0)
    judge.hears(job, iteration, ends);
  job.outcome->run = iteration;
  job.outcome->iterations = judge.result != 0 ? judge.result : iteration;
  job.outcome->first_norm = judge.first_norm;
  job.outcome->norm = judge.norm;
}

}  // namespace
}  // namespace jacobi
