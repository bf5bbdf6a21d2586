// Four cells of the Himeno benchmark, by one thread. Every operation is rounded by itself, whatever the compiler is told, so that results are
// those of the processor and of any other cut to the last bit.
//
// Who calls this : cuda_sweeps.cu, cuda_persistent.cuh and a test that plays them.
// Threads        : each thread for itself.
// Ownership      : none.
// Errors         : none.
#pragma once

#include "cuda_kernels.hpp"
#include "formula.hpp"

namespace himeno {

// Products and sums of its are never fused.
struct Rounded {
  float value;
};
__device__ __forceinline__ Rounded operator+(Rounded a, Rounded b) { return {__fadd_rn(a.value, b.value)}; }
__device__ __forceinline__ Rounded operator-(Rounded a, Rounded b) { return {__fsub_rn(a.value, b.value)}; }
__device__ __forceinline__ Rounded operator*(Rounded a, Rounded b) { return {__fmul_rn(a.value, b.value)}; }

// Where four cells lie. `cells`: bit n is set where cell n is of the box.
struct Quad {
  int at, i, j, k;
  unsigned cells;
};

__device__ __forceinline__ Quad quad_of(const Shape& shape, const Work& work, unsigned number) {
  int b = 0;
  while (b + 1 < work.boxes && number >= work.begin[b + 1]) ++b;
  const Box& box = work.box[b];
  const unsigned low = static_cast<unsigned>(box.first[2]) / kQuad,
                 across = static_cast<unsigned>(box.last[2]) / kQuad - low + 1,
                 rows = static_cast<unsigned>(box.last[1] - box.first[1] + 1);
  unsigned left = number - work.begin[b];
  Quad quad{};
  quad.k = static_cast<int>((low + left % across) * kQuad);
  left /= across;
  quad.j = box.first[1] + static_cast<int>(left % rows);
  quad.i = box.first[0] + static_cast<int>(left / rows);
  quad.at = quad.i * shape.plane + quad.j * shape.row + quad.k;
#pragma unroll
  for (int c = 0; c < kQuad; ++c)
    if (quad.k + c >= box.first[2] && quad.k + c <= box.last[2]) quad.cells |= 1U << c;
  return quad;
}

struct Four {
  float value[kQuad];
};
__device__ __forceinline__ Four four_of(float4 four) { return {{four.x, four.y, four.z, four.w}}; }
// Coefficients are read once in a sweep, and shall not drive out what is read again.
__device__ __forceinline__ Four once(const float* array, int at) {
  return four_of(__ldcs(reinterpret_cast<const float4*>(array + at)));
}

// A row of p from one in front of the quad to one behind it, or the quad alone. Ordinary loads: in a kernel that stays, other blocks and
// other devices store into these arrays between two meetings.
struct Row {
  float value[kQuad + 2];
};
template <bool kEnds>
__device__ __forceinline__ Row row_at(const float* at) {
  const float4 four = *reinterpret_cast<const float4*>(at);
  if constexpr (kEnds) return {{at[-1], four.x, four.y, four.z, four.w, at[kQuad]}};
  return {{0, four.x, four.y, four.z, four.w, 0}};
}

// Of one plane, at the quad and the ones before and behind it along j. Of planes beside the quad's own only the middle row has ends.
struct Plane {
  Row row[3];
};
template <bool kOwn>
__device__ __forceinline__ Plane plane_at(const Shape& shape, const float* at) {
  return {{row_at<kOwn>(at - shape.row), row_at<true>(at), row_at<kOwn>(at + shape.row)}};
}

// The coefficients of a quad, in their order.
struct Fours {
  Four of[kCoefficients];
};
__device__ __forceinline__ Fours coefficients_at(const Coefficients& with, int at) {
  Fours fours;
#pragma unroll
  for (int n = 0; n < kCoefficients; ++n) fours.of[n] = once(with.of[n], at);
  return fours;
}

// The new values of the quad; the sum of the squares of what has changed in those of its cells that count. The others keep theirs.
__device__ __forceinline__ double change(const Fours& with, const Plane& below, const Plane& own, const Plane& above,
                                         unsigned cells, Four& to) {
  double gosa = 0;
#pragma unroll
  for (int c = 0; c < kQuad; ++c) {
    const auto of = [&](int n) { return Rounded{with.of[n].value[c]}; };
    const Cell<Rounded> cell{of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11)};
    const auto p = [&](int i, int j, int k) {
      const Plane& plane = i < 0 ? below : i > 0 ? above : own;
      return Rounded{plane.row[1 + j].value[1 + c + k]};
    };
    const Rounded ss = change_of(cell, p);
    const bool counts = (cells & 1U << c) != 0;
    to.value[c] = counts ? changed(p(0, 0, 0), ss).value : p(0, 0, 0).value;
    if (counts) gosa += static_cast<double>((ss * ss).value);
  }
  return gosa;
}
// With all planes where the level lies.
__device__ __forceinline__ double change(const Shape& shape, const Coefficients& with, const float* from, const Quad& quad,
                                         Four& to) {
  const float* const here = from + quad.at;
  const Plane below = plane_at<false>(shape, here - shape.plane), own = plane_at<true>(shape, here),
              above = plane_at<false>(shape, here + shape.plane);
  return change(coefficients_at(with, quad.at), below, own, above, quad.cells, to);
}

__device__ __forceinline__ void store(float* to, const Quad& quad, const Four& four) {
  if (quad.cells == (1U << kQuad) - 1) {
    *reinterpret_cast<float4*>(to + quad.at) = make_float4(four.value[0], four.value[1], four.value[2], four.value[3]);
    return;
  }
#pragma unroll
  for (int c = 0; c < kQuad; ++c)
    if (quad.cells & 1U << c) to[quad.at + c] = four.value[c];
}

// In the lanes of a warp, to all of them.
__device__ __forceinline__ double sum_of_warp(double mine) {
#pragma unroll
  for (int far = 16; far > 0; far /= 2) mine += __shfl_xor_sync(~0U, mine, far);
  return mine;
}

}  // namespace himeno
