// The kernels of one iteration, and of its norm.
//
// Who calls this : sweep.cu; a test, whose threads play those of a GPU.
// Threads        : blocks in any order, the outermost rows' first.
// Ownership      : none.
// Errors         : left in Others::failure.
#pragma once

#include "meet.cuh"

namespace jacobi {
namespace {

using ist::device::store_relaxed;

template <int kBatch>
__device__ __forceinline__ void compute(const Sweep& sweep, const Plan& plan, int item, float& sum) {
  if (item < plan.sides * plan.side_items)
    compute_side(sweep, plan, item, sum);
  else
    compute_tile<kBatch>(sweep, plan, item, sum);
}

__device__ __forceinline__ void end_of_block(const Sweep& sweep, int item, float sum) {
  if (item == 0 && threadIdx.x == 0 && sweep.cleared != nullptr) *sweep.cleared = 0;
  if (sweep.sum == nullptr) return;
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) atomicAdd(sweep.sum, sum);
}

template <int kBatch>
__global__ void __launch_bounds__(kThreads, kBatch > 4 ? 3 : 4)
    sweep_kernel(const __grid_constant__ Sweep sweep, const __grid_constant__ Plan plan, int first_item) {
  const int item = static_cast<int>(blockIdx.x) + first_item;
  float sum = 0;
  compute<kBatch>(sweep, plan, item, sum);
  end_of_block(sweep, item, sum);
}

// Stores what the processor waits for: one word, so that it is whole.
__device__ __forceinline__ void add_norm(const Others& others, const Norm& norm) {
  tell_sum(others, norm.step, norm.number, *const_cast<const volatile float*>(norm.sum));
  float all = 0;
  if (sum_of_all(others, norm.step, norm.number, all)) store_relaxed(norm.published, packet_of(norm.step, all));
}

// All threads of a block: until the grid before it in the stream is over, and what it stored is seen, where the launch let this one begin before (launch_step); from here
// on the next grid's blocks may be brought to multiprocessors that have nothing else to do, and wait here.
__device__ __forceinline__ void wait_for_turn() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// With `adds`, the first block adds up the norm of the step before, whose sum was complete when this kernel began.
template <int kBatch>
__global__ void __launch_bounds__(kThreads, kBatch > 4 ? 3 : 4)
    step_kernel(const __grid_constant__ Sweep sweep, const __grid_constant__ Plan plan,
                const __grid_constant__ Others others, std::uint64_t step, bool adds, const __grid_constant__ Norm before) {
  const int item = static_cast<int>(blockIdx.x) - (adds ? 1 : 0);
  wait_for_turn();
  if (item < 0) {
    if (threadIdx.x == 0) add_norm(others, before);
    return;
  }
  const bool side = item < plan.sides * plan.side_items;
  // Nobody is told then: the others give up, too.
  if (side && !rows_are_here(others, plan, item, step)) return;
  float sum = 0;
  compute<kBatch>(sweep, plan, item, sum);
  if (side) tell_neighbour(others, plan, item, step);
  end_of_block(sweep, item, sum);
}

__global__ void norm_kernel(const __grid_constant__ Others others, const __grid_constant__ Norm norm) {
  add_norm(others, norm);
}

}  // namespace
}  // namespace jacobi
