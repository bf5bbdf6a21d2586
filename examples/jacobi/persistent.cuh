// The kernel that goes through all iterations: a grid that stays, whose blocks take tiles as they get to them. There is no meeting between iterations: a tile waits for
// the rows beside it alone, so that blocks that are through with one iteration begin the next while others end the one before.
//
// Who calls this : persistent.cu; a test, whose threads play those of a GPU.
// Threads        : a cooperative grid.
// Ownership      : none.
// Errors         : left in Outcome::failure; all blocks end then.
//
// Blocks take tickets, which are the pieces of work of all iterations in their order, and whoever waits does so for pieces of earlier tickets: those have been taken by blocks
// that run, so that the one of the earliest ticket that is not over waits for nobody here. A piece of iteration n needs the rows above it, below it and its own of n - 1: what
// it reads is there then, and what it overwrites, of n - 2, has been read. Norms bound how far blocks get ahead: none begins with n before that of n - 2 was looked at.
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

// Rows that are over together: the first one, each band of tiles, the last one. A piece's own, of which it has so many tiles of warps.
struct Strips {
  int first, last;
  __device__ __forceinline__ Strips(const Plan& plan, int item) {
    const int side_items = plan.sides * plan.side_items;
    const int tile = (item - side_items) * kWarps;
    first = item < side_items ? item / plan.side_items * (plan.bands + 1) : 1 + tile / plan.warp_tiles;
    last = item < side_items ? first : min(1 + (tile + kWarps - 1) / plan.warp_tiles, plan.bands);
  }
  static __device__ __forceinline__ int all(const Plan& plan) { return plan.sides == 1 ? 1 : plan.bands + 2; }
  // Of an outermost row's item, and of the tiles of a strip.
  static __device__ __forceinline__ int tiles_of_side(const Plan& plan, int item) {
    return min(kWarps, plan.warp_tiles - item % plan.side_items * kWarps);
  }
  static __device__ __forceinline__ int tiles_in(const Plan& plan, int item, int strip) {
    const int tile = (item - plan.sides * plan.side_items) * kWarps, begin = (strip - 1) * plan.warp_tiles;
    return min(tile + kWarps, begin + plan.warp_tiles) - (tile > begin ? tile : begin);
  }
};

// What a ticket is for: of each iteration its items, and about in the middle of them what the norm of the one before says, whose parts have come from all PEs by then.
struct Piece {
  static constexpr int kNorm = -1;
  int iteration;
  int item;
};
__device__ __forceinline__ Piece piece_of(const Plan& plan, unsigned long long ticket) {
  const unsigned all = static_cast<unsigned>(plan.items) + 1;
  const int turn = static_cast<int>(ticket % all), middle = (plan.items + 1) / 2;
  return {1 + static_cast<int>(ticket / all), turn == middle ? Piece::kNorm : turn < middle ? turn : turn - 1};
}

__device__ __forceinline__ int now(const int* word) { return *static_cast<const volatile int*>(word); }

// One thread: until other blocks have brought it about. False: they will not.
template <class Look>
__device__ __forceinline__ bool comes(const Job& job, int iteration, const Look& look) {
  Waiter waiter(job.others.view, 3 * kDeadline);  // another block may wait for a neighbour, and for a norm
  while (!look()) {
    const Status status = waiter.vain();
    if (status != Status::ok) {
      leave_failure(job.others.failure, job.steps + static_cast<unsigned>(iteration), Awaited::grid, status);
      *static_cast<volatile int*>(&job.scratch->failed) = 1;
    }
    if (now(&job.scratch->failed) != 0) return false;
  }
  return true;
}

// All threads, each its part of the waiting: until the piece may begin. False: it will not, since all is over, or something failed.
__device__ __forceinline__ bool may_begin(const Job& job, const Plan& plan, const Piece& piece) {
  Scratch& scratch = *job.scratch;
  const int n = piece.iteration;
  const auto stopped = [&] {
    const int stop_at = now(&scratch.stop_at);
    return stop_at != 0 && n > stop_at;
  };
  bool fine = true;
  if (threadIdx.x == 0) {
    const auto before = static_cast<std::uint64_t>(n - 2);
    // Also whether the last one is the last: a norm may have been reached before it.
    fine = n <= job.iterations + 1 &&
           (n <= 2 || comes(job, n, [&] { return load_acquire_here(&scratch.judged) >= before || stopped(); }));
    fine = fine && n <= job.iterations && !stopped() && now(&scratch.failed) == 0;
  } else if (piece.item != Piece::kNorm && n > 1 && n <= job.iterations) {
    const Strips own(plan, piece.item);
    const int strip = own.first - 2 + static_cast<int>(threadIdx.x);
    const auto over = static_cast<std::uint64_t>(n - 1) * static_cast<unsigned>(plan.warp_tiles);
    if (strip >= 0 && strip <= own.last + 1 && strip < Strips::all(plan))
      fine = comes(job, n, [&] { return load_acquire_here(&job.progress[strip]) >= over || stopped(); });
  }
  return agreed(Block(), fine ? Status::ok : Status::late) == Status::ok;
}

// One thread, when all of an iteration is over, and the norm of the one before was looked at.
__device__ __forceinline__ void end_iteration(const Job& job, int iteration) {
  Scratch& scratch = *job.scratch;
  if (iteration % job.nccheck == 0)
    tell_sum(job.others, job.steps + static_cast<unsigned>(iteration),
             job.norms + static_cast<unsigned>(iteration / job.nccheck),
             *static_cast<volatile float*>(&scratch.sums[iteration % kRing]));
  // Last used two iterations ago, and not before the norm of this one is looked at again.
  scratch.over[(iteration + 2) % kRing] = 0;
  scratch.sums[(iteration + 2) % kRing] = 0;
  store_release_here(&scratch.ended, static_cast<std::uint64_t>(iteration));
}

// One thread: the block is through with the piece, and all of its threads have met since.
__device__ __forceinline__ void tell_all(const Job& job, const Plan& plan, const Piece& piece) {
  Scratch& scratch = *job.scratch;
  fence_here();
  if (piece.item != Piece::kNorm) {
    const Strips own(plan, piece.item);
    const bool side = piece.item < plan.sides * plan.side_items;
    for (int strip = own.first; strip <= own.last; ++strip)
      atomicAdd(reinterpret_cast<unsigned long long*>(&job.progress[strip]),
                static_cast<unsigned long long>(side ? Strips::tiles_of_side(plan, piece.item)
                                                     : Strips::tiles_in(plan, piece.item, strip)));
  }
  if (atomicAdd(&scratch.over[piece.iteration % kRing], 1U) != static_cast<unsigned>(plan.items)) return;
  fence_here();
  end_iteration(job, piece.iteration);
}

// One thread: the norm of an iteration that is over here. False: another PE's part did not come.
__device__ __forceinline__ bool judge(const Job& job, int iteration) {
  Scratch& scratch = *job.scratch;
  float sum = 0;
  if (!sum_of_all(job.others, job.steps + static_cast<unsigned>(iteration),
                  job.norms + static_cast<unsigned>(iteration / job.nccheck), sum))
    return false;
  scratch.norm = __fsqrt_rn(sum);
  if (iteration == 1) scratch.first_norm = scratch.norm;
  if (static_cast<double>(scratch.norm) <= job.tolerance) scratch.result = iteration;
  return true;
}

// One thread: of the iteration before this one, which a norm may make the last.
__device__ __forceinline__ bool look_at_norm(const Job& job, int iteration) {
  Scratch& scratch = *job.scratch;
  const int before = iteration - 1;
  if (before == 0) return true;
  if (!comes(job, iteration, [&] { return load_acquire_here(&scratch.ended) >= static_cast<std::uint64_t>(before); }))
    return false;
  if (before % job.nccheck == 0) {
    if (!judge(job, before)) return false;
    if (scratch.result != 0) *static_cast<volatile int*>(&scratch.stop_at) = iteration;
  }
  store_release_here(&scratch.judged, static_cast<std::uint64_t>(before));
  return true;
}

// One thread of the block that got the first ticket behind the last iteration.
__device__ __forceinline__ bool finish(const Job& job, int last) {
  Scratch& scratch = *job.scratch;
  if (!comes(job, last, [&] { return load_acquire_here(&scratch.ended) >= static_cast<std::uint64_t>(last); })) return false;
  if (scratch.result == 0 && last % job.nccheck == 0 && !judge(job, last)) return false;
  job.outcome->run = last;
  job.outcome->iterations = scratch.result != 0 ? scratch.result : last;
  job.outcome->first_norm = scratch.first_norm;
  job.outcome->norm = scratch.norm;
  return true;
}

// All threads. False: a neighbour's row, or another PE's norm, did not come.
template <int kBatch>
__device__ __forceinline__ bool do_piece(const Job& job, const Plan& plan, const Piece& piece) {
  if (piece.item == Piece::kNorm)
    return agreed(Block(), threadIdx.x != 0 || look_at_norm(job, piece.iteration) ? Status::ok : Status::late) == Status::ok;
  const Sweep sweep = sweep_of(job, piece.iteration);
  const std::uint64_t step = job.steps + static_cast<unsigned>(piece.iteration);
  float sum = 0;
  if (piece.item >= plan.sides * plan.side_items) {
    compute_tile<kBatch>(sweep, plan, piece.item, sum);
  } else {
    if (!rows_are_here(job.others, plan, piece.item, step)) return false;
    compute_side(sweep, plan, piece.item, sum);
    tell_neighbour(job.others, plan, piece.item, step);
  }
  if (piece.iteration % job.nccheck == 0) {
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) atomicAdd(&job.scratch->sums[piece.iteration % kRing], sum);
  }
  return true;
}

template <int kBatch>
__global__ void __launch_bounds__(kThreads, kBatch > 4 ? 3 : 4) persistent_kernel(const __grid_constant__ Job job) {
  __shared__ Piece pieces[2];
  const Plan plan = plan_of(job.cells.columns, job.cells.rows, job.height, job.fine_rows);
  Scratch& scratch = *job.scratch;
  Piece piece = piece_of(plan, blockIdx.x);
  bool fine = true;
  for (int turn = 0; may_begin(job, plan, piece); turn ^= 1) {
    // Asked for while the one before is computed.
    if (threadIdx.x == 0) pieces[turn] = piece_of(plan, gridDim.x + atomicAdd(&scratch.tickets, 1ULL));
    fine = do_piece<kBatch>(job, plan, piece);
    if (!fine) break;
    __syncthreads();
    // Not by those that wait for what the next one needs.
    if (threadIdx.x == 32) tell_all(job, plan, piece);
    piece = pieces[turn];
  }
  if (threadIdx.x != 0) return;
  const int stop_at = now(&scratch.stop_at), last = stop_at != 0 ? stop_at : job.iterations;
  if (fine && piece.iteration == last + 1 && piece.item == 0 && now(&scratch.failed) == 0) fine = finish(job, last);
  if (!fine) *static_cast<volatile int*>(&scratch.failed) = 1;
}

}  // namespace
}  // namespace jacobi
