// A tile's cells, by a block of eight warps: each warp takes 128 columns, four of them by each lane, and goes down the rows with three rows in
// registers, so that every cell is loaded once but for a tile's first two rows. Left and right come from the lanes beside.
//
// Who calls this : sweep.cu, persistent.cu.
// Threads        : all of a block.
// Ownership      : none.
// Errors         : none.
//
// The sum's order is that of the serial loop, and nothing is contracted, so that all bits are the same. Levels are loaded by plain loads:
// within one launch they change, so that the read-only path would find old ones.
#pragma once

#include "kernels.hpp"

namespace jacobi {

#ifdef JACOBI_PLAYED  // by a test, whose processor has few
inline constexpr int kThreads = 64;
#else
inline constexpr int kThreads = 256;
#endif
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kWarpColumns = 128;

// Blocks' work, in this order: the first row, the last row (unless it is the first), tiles between.
struct Plan {
  int warp_tiles;  // beside each other
  int side_items;  // of one side
  int sides;
  int high_bands;  // of whole tiles, below which there are fine ones
  int bands;
  int items;
};
inline __host__ __device__ int over(int value, int by) { return (value + by - 1) / by; }
inline __host__ __device__ Plan plan_of(int columns, int rows, int height, int fine_rows) {
  Plan plan;
  plan.warp_tiles = over(columns, kWarpColumns);
  plan.side_items = over(plan.warp_tiles, kWarps);
  plan.sides = rows > 1 ? 2 : 1;
  const int interior = rows > 2 ? rows - 2 : 0, fine = fine_rows < interior / 2 ? fine_rows : interior / 2;
  plan.high_bands = (interior - fine) / height;
  plan.bands = plan.high_bands + over(interior - plan.high_bands * height, kFineHeight);
  plan.items = plan.sides * plan.side_items + over(plan.bands * plan.warp_tiles, kWarps);
  return plan;
}

#if defined(__CUDACC__) || defined(JACOBI_PLAYED)

__device__ __forceinline__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

__device__ __forceinline__ float mean(float left, float right, float up, float down, float factor) {
  return __fmul_rn(factor, __fadd_rn(__fadd_rn(__fadd_rn(left, right), up), down));
}

// A lane's four columns.
struct Strip {
  const float* above;  // in the row above the first one that is computed
  float* to;           // in the first row
  std::int64_t pitch;
  float factor;
  int edge;  // where, beside its own columns, the outermost lanes load what no lane beside them has; 0: they load nothing
  int fixed_from;  // of the four, from here on none is computed
  bool first_fixed;
  bool stores;

  __device__ __forceinline__ Strip(const Sweep& sweep, int warp_tile, int first_row) {
    const int lane = static_cast<int>(threadIdx.x % 32), x = warp_tile * kWarpColumns + lane * 4;
    const int pitch_columns = static_cast<int>(sweep.pitch);
    // Lanes beyond the last column look at the last four, and store nothing.
    const int at = min(x, pitch_columns - 4);
    pitch = sweep.pitch;
    above = sweep.from + (first_row - 1) * pitch + at;
    to = sweep.to + first_row * pitch + at;
    factor = sweep.factor;
    edge = lane == 0 && x > 0 ? -1 : lane == 31 && x + 4 < pitch_columns ? 4 : 0;
    fixed_from = sweep.columns - 1 - x;
    first_fixed = x == 0;
    stores = x < sweep.columns;
  }
  __device__ __forceinline__ float4 computed(const float4& up, const float4& here, const float4& down, float beside) const {
    float left = __shfl_up_sync(~0U, here.w, 1), right = __shfl_down_sync(~0U, here.x, 1);
    if (edge < 0) left = beside;
    if (edge > 0) right = beside;
    float4 value;
    value.x = mean(left, here.y, up.x, down.x, factor);
    value.y = mean(here.x, here.z, up.y, down.y, factor);
    value.z = mean(here.y, here.w, up.z, down.z, factor);
    value.w = mean(here.z, right, up.w, down.w, factor);
    if (first_fixed) value.x = here.x;
    if (fixed_from < 4) {
      if (fixed_from <= 0) value.x = here.x;
      if (fixed_from <= 1) value.y = here.y;
      if (fixed_from <= 2) value.z = here.z;
      value.w = here.w;
    }
    return value;
  }
};

__device__ __forceinline__ void add_squares(float& sum, const float4& value, const float4& here) {
  const float x = value.x - here.x, y = value.y - here.y, z = value.z - here.z, w = value.w - here.w;
  sum += x * x + y * y + (z * z + w * w);
}

// So many rows; all loads are on their way before the first is used. Moves the strip on.
template <int kBatch>
__device__ __forceinline__ void march(Strip& strip, float4& up, float4& here, float& sum) {
  float4 down[kBatch];
  float beside[kBatch];
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    down[i] = load4(strip.above + (i + 2) * strip.pitch);
    beside[i] = 0;
    if (strip.edge != 0) beside[i] = strip.above[(i + 1) * strip.pitch + strip.edge];
  }
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    const float4 value = strip.computed(up, here, down[i], beside[i]);
    if (strip.stores) {
      __stcs(reinterpret_cast<float4*>(strip.to + i * strip.pitch), value);
      add_squares(sum, value, here);
    }
    up = here;
    here = down[i];
  }
  strip.above += kBatch * strip.pitch;
  strip.to += kBatch * strip.pitch;
}

// One of the outermost rows.
__device__ __forceinline__ void compute_side(const Sweep& sweep, const Plan& plan, int item, float& sum) {
  const int side = item / plan.side_items;
  const int warp_tile = item % plan.side_items * kWarps + static_cast<int>(threadIdx.x / 32);
  if (warp_tile >= plan.warp_tiles) return;
  const int row = side == 0 ? 1 : sweep.rows;
  const Strip strip(sweep, warp_tile, row);
  const float4 up = load4(strip.above), here = load4(strip.above + strip.pitch), down = load4(strip.above + 2 * strip.pitch);
  const float4 value = strip.computed(up, here, down, strip.edge != 0 ? strip.above[strip.pitch + strip.edge] : 0.0F);
  if (!strip.stores) return;
  *reinterpret_cast<float4*>(strip.to) = value;
  const std::int64_t at = strip.to - (sweep.to + row * sweep.pitch);
  if (row == 1 && sweep.beside_up != nullptr) *reinterpret_cast<float4*>(sweep.beside_up + at) = value;
  if (row == sweep.rows && sweep.beside_down != nullptr) *reinterpret_cast<float4*>(sweep.beside_down + at) = value;
  add_squares(sum, value, here);
}

template <int kBatch>
__device__ __forceinline__ void compute_tile(const Sweep& sweep, const Plan& plan, int item, float& sum) {
  const int warp_tile = (item - plan.sides * plan.side_items) * kWarps + static_cast<int>(threadIdx.x / 32);
  const int band = warp_tile / plan.warp_tiles;
  if (band >= plan.bands) return;
  const int fine = band - plan.high_bands;
  const int first = 2 + (fine < 0 ? band * sweep.height : plan.high_bands * sweep.height + fine * kFineHeight);
  int rows = fine < 0 ? sweep.height : min(kFineHeight, sweep.rows - first);
  Strip strip(sweep, warp_tile % plan.warp_tiles, first);
  float4 up = load4(strip.above), here = load4(strip.above + strip.pitch);
  for (; rows >= kBatch; rows -= kBatch) march<kBatch>(strip, up, here, sum);
  if (kBatch > kFineHeight && rows >= kFineHeight) {
    march<kFineHeight>(strip, up, here, sum);
    rows -= kFineHeight;
  }
  for (; rows > 0; --rows) march<1>(strip, up, here, sum);
}

// A block's sum, in its first thread.
__device__ __forceinline__ float sum_of_block(float mine) {
  __shared__ float of_warps[kWarps];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(~0U, mine, distance);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  float all = 0;
  if (threadIdx.x == 0)
    for (int warp = 0; warp < kWarps; ++warp) all += of_warps[warp];
  return all;
}

#endif

}  // namespace jacobi
