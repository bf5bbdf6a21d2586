// What blocks tell those of other ranks: outermost rows and sums, and how they wait for theirs.
//
// Who calls this : sweep.cu, persistent.cu.
// Threads        : as each function says.
// Ownership      : none.
// Errors         : a Status, and the first failure in host memory.
//
// A row of step n goes into the halo that the neighbour has read in its step n - 1 at the latest. Its flag of step n - 1 is stored when all
// blocks of its row are through, those that read this halo: so that whoever has seen that flag, as he needs to for what it brought, may
// overwrite the halo of two steps ago. Nobody asks anybody for leave.
#pragma once

#include <isthmus/device.cuh>

#include "tile.cuh"

namespace jacobi {

#if defined(__CUDACC__) || defined(JACOBI_PLAYED)

// The first one says most: others follow from it.
__device__ __forceinline__ void leave_failure(std::uint64_t* failure, std::uint64_t step, Awaited what,
                                              ist::device::Status status) {
  if (ist::device::load_relaxed(failure) != 0) return;
  ist::device::store_relaxed(failure,
                             step << 8 | static_cast<std::uint64_t>(what) << 4 | static_cast<std::uint64_t>(status));
}

// All threads of a block that is to compute an outermost row: until the neighbour's row of the step before is here.
__device__ __forceinline__ bool rows_are_here(const Others& others, const Plan& plan, int item, std::uint64_t step) {
  using namespace ist::device;
  Status status = Status::ok;
  if (threadIdx.x == 0) {
    const bool last = item / plan.side_items == plan.sides - 1;
    if (item < plan.side_items) {
      status = wait_until(others.view, &others.flags[0], Compare::greater_equal, step - 1, kDeadline);
      if (status != Status::ok) leave_failure(others.failure, step, Awaited::above, status);
    }
    if (last && status == Status::ok) {
      status = wait_until(others.view, &others.flags[1], Compare::greater_equal, step - 1, kDeadline);
      if (status != Status::ok) leave_failure(others.failure, step, Awaited::below, status);
    }
  }
  return agreed(Block(), status) == Status::ok;
}

// All threads of that block, when it has stored its part of the row: the last one of the row tells the neighbour.
__device__ __forceinline__ void tell_neighbour(const Others& others, const Plan& plan, int item, std::uint64_t step) {
  using namespace ist::device;
  __syncthreads();
  if (threadIdx.x != 0) return;
  const int side = item / plan.side_items;
  // Ordered both ways: what the row's other blocks have stored comes before the signal.
  if (fetch_sum_in_order(&others.arrived[side], 1) + 1 != static_cast<std::uint32_t>(plan.side_items)) return;
  store_relaxed(&others.arrived[side], std::uint32_t{0});
  if (side == 0) signal(others.view, &others.flags[1], step, Signal::set, others.up);
  if (side == plan.sides - 1) signal(others.view, &others.flags[0], step, Signal::set, others.down);
}

__device__ __forceinline__ std::uint64_t packet_of(std::uint64_t step, float value) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(step)) << 32 | __float_as_uint(value);
}

// One thread: this PE's sum to all, in packets that say of which step they are.
__device__ __forceinline__ void tell_sum(const Others& others, std::uint64_t step, std::uint64_t number, float sum) {
  using namespace ist::device;
  std::uint64_t* const mine = others.inbox + number % kRing * static_cast<unsigned>(others.view.pes) + others.view.pe;
  for (int pe = 0; pe < others.view.pes; ++pe) store_relaxed(peer_ptr(others.view, mine, pe), packet_of(step, sum));
}

// One thread: the sum of all, added in the order of PEs, so that all find the same bits.
__device__ __forceinline__ bool sum_of_all(const Others& others, std::uint64_t step, std::uint64_t number, float& sum) {
  using namespace ist::device;
  const std::uint64_t* const packets = others.inbox + number % kRing * static_cast<unsigned>(others.view.pes);
  sum = 0;
  for (int pe = 0; pe < others.view.pes; ++pe) {
    Waiter waiter(others.view, kDeadline);
    std::uint64_t packet = load_relaxed(&packets[pe]);
    while (packet >> 32 != static_cast<std::uint32_t>(step)) {
      const Status status = waiter.vain();
      if (status != Status::ok) {
        leave_failure(others.failure, step, Awaited::norm, status);
        return false;
      }
      packet = load_relaxed(&packets[pe]);
    }
    sum = __fadd_rn(sum, __uint_as_float(static_cast<std::uint32_t>(packet)));
  }
  return true;
}

#endif

}  // namespace jacobi
