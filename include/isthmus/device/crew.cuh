// Isthmus in kernels: who makes a call together. A thread, a warp, a block, or all blocks of a cooperative grid.
//
// Who calls this : kernels, which pass one to every call; compiled by nvcc alone. Tests on processors have crews of their own.
// Threads        : all threads of a crew make the same calls in the same order, with the same arguments.
// Ownership      : none.
// Errors         : none.
//
// A crew has thread, threads, block and blocks, of which the last two are 0 and 1 but for a grid's; sync(), where its threads (of
// one block) meet; and any(bool), which also is a meeting.
#ifndef ISTHMUS_DEVICE_CREW_CUH
#define ISTHMUS_DEVICE_CREW_CUH

#include "isthmus/device/wait.cuh"

namespace ist::device {

#if defined(__CUDACC__)
struct Thread {
  static constexpr unsigned thread = 0, threads = 1, block = 0, blocks = 1;
  IST_DEVICE_CODE void sync() const {}
  IST_DEVICE_CODE bool any(bool mine) const { return mine; }
};

// All 32 lanes of a warp, of a block whose threads are numbered in one dimension.
struct Warp {
  static constexpr unsigned threads = 32, block = 0, blocks = 1;
  unsigned thread = threadIdx.x % 32;
  IST_DEVICE_CODE void sync() const { __syncwarp(); }
  // A vote alone orders no memory.
  IST_DEVICE_CODE bool any(bool mine) const {
    __syncwarp();
    return __any_sync(~0U, mine) != 0;
  }
};

// All threads of a block, numbered in one dimension. One warp is quicker to meet by itself.
struct Block {
  static constexpr unsigned block = 0, blocks = 1;
  unsigned thread = threadIdx.x;
  unsigned threads = blockDim.x;
  IST_DEVICE_CODE void sync() const {
    if (threads == 32)
      __syncwarp();
    else
      __syncthreads();
  }
  IST_DEVICE_CODE bool any(bool mine) const { return threads == 32 ? Warp().any(mine) : __syncthreads_or(mine) != 0; }
};

// All blocks of a grid, which must all be resident: isthmus/launch.cuh sees to that.
struct Grid {
  unsigned thread = threadIdx.x;
  unsigned threads = blockDim.x;
  unsigned block = blockIdx.x;
  unsigned blocks = gridDim.x;
  IST_DEVICE_CODE void sync() const { __syncthreads(); }
  IST_DEVICE_CODE bool any(bool mine) const { return __syncthreads_or(mine) != 0; }
};
#endif

// Are they blocks that meet nowhere in a call? What puts one word behind the data of all its threads is no call of theirs, and says so when it
// is compiled.
template <class Crew>
inline constexpr bool kIsGrid = false;
#if defined(__CUDACC__)
template <>
inline constexpr bool kIsGrid<Grid> = true;
#endif

// All threads (of a block) learn the worst that any of them met; meetings. Where one of them met something. A death is the worst, since it ends
// the team whatever else there was; a misuse is worse than a deadline, which passes for those that wait beside who misused the call.
template <class Crew>
IST_DEVICE_CODE Status worst(const Crew& crew, Status mine) {
  if (crew.any(mine == Status::peer_dead)) return Status::peer_dead;
  return crew.any(mine == Status::misuse) ? Status::misuse : Status::late;
}
template <class Crew>
IST_DEVICE_CODE Status agreed(const Crew& crew, Status mine) {
  return crew.any(mine != Status::ok) ? worst(crew, mine) : Status::ok;
}

}  // namespace ist::device

#endif
