// Kernels that begin and end with a sweep, and those that fill and compare arrays.
#include <algorithm>
#include <stdexcept>

#include "common/cuda.hpp"
#include "cuda_quad.cuh"

namespace himeno {
namespace {

using example::cuda::check;

constexpr unsigned kThreads = 256;

__global__ void fill_kernel(std::int64_t elements, float* array, float value) {
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < elements;
       n += std::int64_t{gridDim.x} * blockDim.x)
    array[n] = value;
}

__global__ void levels_kernel(Extent extent, float* p0, float* p1) {
  const std::int64_t elements = extent.total[0] * extent.total[1] * extent.total[2];
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < elements;
       n += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t k = n % extent.total[2] + extent.first[2],
                       j = n / extent.total[2] % extent.total[1] + extent.first[1],
                       i = n / extent.total[2] / extent.total[1] + extent.first[0];
    const bool inside = i >= 0 && i < extent.all[0] && j >= 0 && j < extent.all[1] && k >= 0 && k < extent.all[2];
    const std::int64_t last = extent.all[0] - 1;
    p0[n] = p1[n] = inside ? __fdiv_rn(static_cast<float>(i * i), static_cast<float>(last * last)) : 0.0F;
  }
}

__global__ void __launch_bounds__(kThreads, 2)
    sweep_kernel(Shape shape, const __grid_constant__ Coefficients with, const float* from, float* to,
                 const __grid_constant__ Work work, unsigned rounds, double* gosa) {
  __shared__ double of_warp[kThreads / 32];
  const unsigned quads = work.begin[work.boxes];
  double mine = 0;
  // Side by side, so that blocks which run together read the same planes of p.
  for (unsigned round = 0, n = blockIdx.x * rounds * kThreads + threadIdx.x; round < rounds && n < quads;
       ++round, n += kThreads) {
    const Quad quad = quad_of(shape, work, n);
    Four four;
    mine += change(shape, with, from, quad, four);
    store(to, quad, four);
  }
  mine = sum_of_warp(mine);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  mine = sum_of_warp(threadIdx.x < kThreads / 32 ? of_warp[threadIdx.x] : 0);
  if (threadIdx.x == 0) atomicAdd(gosa, mine);
}

__global__ void compare_kernel(Compared of, unsigned long long* unlike) {
  const int *first = of.box.first, *last = of.box.last;
  const std::int64_t wide = last[2] - first[2] + 1, rows = last[1] - first[1] + 1, planes = last[0] - first[0] + 1;
  unsigned long long mine = 0;
  for (std::int64_t n = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < wide * rows * planes;
       n += std::int64_t{gridDim.x} * blockDim.x) {
    const int k = first[2] + static_cast<int>(n % wide), j = first[1] + static_cast<int>(n / wide % rows),
              i = first[0] + static_cast<int>(n / wide / rows);
    const std::int64_t here = std::int64_t{i} * of.shape.plane + std::int64_t{j} * of.shape.row + k,
                       there = std::int64_t{i + of.shift[0]} * of.other_shape.plane +
                               std::int64_t{j + of.shift[1]} * of.other_shape.row + k + of.shift[2];
    if (__float_as_uint(of.one[here]) != __float_as_uint(of.other[there])) ++mine;
  }
  if (mine != 0) atomicAdd(unlike, mine);
}

unsigned blocks_for(std::int64_t elements) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((elements + kThreads - 1) / kThreads, 1, 4096));
}

}  // namespace

void fill_coefficients(cudaStream_t stream, std::int64_t elements, float* const (&arrays)[kCoefficients], float b) {
  const float values[kCoefficients] = {1, 1, 1, 1.0F / 6.0F, b, b, b, 1, 1, 1, 1, 0};
  for (int n = 0; n < kCoefficients; ++n) {
    fill_kernel<<<blocks_for(elements), kThreads, 0, stream>>>(elements, arrays[n], values[n]);
    check(cudaGetLastError(), "the launch that fills coefficients");
  }
}

void fill_levels(cudaStream_t stream, const Extent& extent, float* p0, float* p1) {
  levels_kernel<<<blocks_for(extent.total[0] * extent.total[1] * extent.total[2]), kThreads, 0, stream>>>(extent, p0, p1);
  check(cudaGetLastError(), "the launch that fills p");
}

// Up to four quads for a thread, where that leaves enough blocks: each block adds to one sum.
void sweep(cudaStream_t stream, const Shape& shape, const Coefficients& with, const float* from, float* to, const Work& work,
           double* gosa) {
  const unsigned quads = work.quads();
  if (quads == 0) return;
  const unsigned blocks = (quads + kThreads - 1) / kThreads, rounds = blocks >= 4096 ? 4 : 1;
  sweep_kernel<<<(blocks + rounds - 1) / rounds, kThreads, 0, stream>>>(shape, with, from, to, work, rounds, gosa);
  check(cudaGetLastError(), "the launch of a sweep");
}

void compare(cudaStream_t stream, const Compared& compared, unsigned long long* unlike) {
  const Box& box = compared.box;
  std::int64_t cells = 1;
  for (int d = 0; d < 3; ++d) cells *= box.last[d] - box.first[d] + 1;
  compare_kernel<<<blocks_for(cells), kThreads, 0, stream>>>(compared, unlike);
  check(cudaGetLastError(), "the launch that compares");
}

}  // namespace himeno
