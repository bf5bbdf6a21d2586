// The kernels of meetings: one for each operation and element, since what is small is over before much code is fetched. Compiled
// without fusing multiply and add, as the kernels of reductions (cuda_kernels.cu).
#include "memory/arithmetic.hpp"
#include "memory/cuda/channel_crew.hpp"
#include "memory/cuda/meeting_protocol.hpp"

namespace ist::meeting {
namespace {

template <Reduction reduction, Element element>
struct Combine {
  using T = ElementType<element>;
  static constexpr int kEach = kUnit / sizeof(T);
  struct alignas(16) Elements {
    Stored<T> each[kEach];
  };
  __device__ __forceinline__ Quad operator()(const Quad& with, const Quad& into) const {
    const auto left = same_bits<Elements>(with);
    const auto right = same_bits<Elements>(into);
    Elements result;
#pragma unroll
    for (int i = 0; i < kEach; ++i) result.each[i] = combined<reduction, T>(left.each[i], right.each[i]);
    return same_bits<Quad>(result);
  }
};

}  // namespace
}  // namespace ist::meeting

// A kernel without work only has to be there: it is run once so that its code is on the device before any kernel waits.
#define MEET(name) \
  extern "C" __global__ void __launch_bounds__(512) isthmus_meet_##name(const __grid_constant__ ist::meeting::MeetWork work)

MEET(barrier) {
  if (work.own != nullptr) ist::meeting::barrier(ist::channel::OneBlock{}, work);
}
MEET(bcast) {
  if (work.own != nullptr) ist::meeting::bcast(ist::channel::DeviceCrew{0, gridDim.x}, work);
}

// Named as kernel_name() says, behind isthmus_meet.
#define KERNEL(reduction, element)                                                                     \
  MEET(reduction##_##element) {                                                                        \
    if (work.own != nullptr)                                                                           \
      ist::meeting::reduce(ist::channel::DeviceCrew{0, gridDim.x}, work,                               \
                           ist::meeting::Combine<ist::Reduction::reduction, ist::Element::element>{}); \
  }
#include "memory/cuda/each_reduction.hpp"
