// One kernel per operation and element, as combine_on_host does it. Compiled without fusing multiply and add, so that both
// give the same bits. Beside them those that pack, and those of words and streams, in the same image.
#include "memory/arithmetic.hpp"
#include "memory/cuda/cuda_pack_kernels.cuh"
#include "memory/cuda/stream_protocol.hpp"

namespace ist {
namespace {

// What one thread moves at once.
struct alignas(16) Vector {
  std::uint32_t words[4];
};

template <Reduction reduction, class T>
__device__ __forceinline__ Vector combined_vectors(const Vector& with, const Vector& into) {
  constexpr int kEach = sizeof(Vector) / sizeof(T);
  struct alignas(16) Elements {
    Stored<T> each[kEach];
  };
  const auto left = same_bits<Elements>(with);
  const auto right = same_bits<Elements>(into);
  Elements result;
#pragma unroll
  for (int i = 0; i < kEach; ++i) result.each[i] = combined<reduction, T>(left.each[i], right.each[i]);
  return same_bits<Vector>(result);
}

// Neighbouring threads take neighbouring places, whole vectors where both addresses allow it.
template <Reduction reduction, Element element>
__device__ __forceinline__ void combine(void* into, const void* with, std::uint64_t count) {
  using T = ElementType<element>;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint64_t done = 0;
  if ((reinterpret_cast<std::uintptr_t>(into) | reinterpret_cast<std::uintptr_t>(with)) % sizeof(Vector) == 0) {
    constexpr std::uint64_t kEach = sizeof(Vector) / sizeof(T);
    auto* __restrict__ to = static_cast<Vector*>(into);
    const auto* __restrict__ from = static_cast<const Vector*>(with);
    for (std::uint64_t i = first; i < count / kEach; i += stride) to[i] = combined_vectors<reduction, T>(from[i], to[i]);
    done = count / kEach * kEach;
  }
  auto* __restrict__ to = static_cast<Stored<T>*>(into);
  const auto* __restrict__ from = static_cast<const Stored<T>*>(with);
  for (std::uint64_t i = done + first; i < count; i += stride) to[i] = combined<reduction, T>(from[i], to[i]);
}

}  // namespace
}  // namespace ist

// Named as kernel_name() says.
#define KERNEL(reduction, element)                                                                                \
  extern "C" __global__ void isthmus_##reduction##_##element(void* into, const void* with, std::uint64_t count) { \
    ist::combine<ist::Reduction::reduction, ist::Element::element>(into, with, count);                            \
  }
#include "memory/cuda/each_reduction.hpp"

extern "C" __global__ void isthmus_wait_for_word(const __grid_constant__ ist::words::Wait work) { ist::words::wait(work); }
extern "C" __global__ void __launch_bounds__(32) isthmus_meet(const __grid_constant__ ist::words::Meet work) {
  ist::words::meet(ist::device::Warp{}, work);
}
extern "C" __global__ void __launch_bounds__(256) isthmus_put_signal(const __grid_constant__ ist::words::PutSignal work) {
  ist::words::put_signal(ist::device::Block{}, work);
}
extern "C" __global__ void isthmus_change_word(const __grid_constant__ ist::words::Work work) { ist::words::change(work); }
