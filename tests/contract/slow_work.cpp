#include "slow_work.hpp"

namespace ist::test {

#ifndef ISTHMUS_HAVE_CUDA
std::unique_ptr<SlowWork> make_cuda_slow_work() { return nullptr; }
#endif

SlowWork* SlowWork::of(KindId kind) {
  // Never destroyed, like the kinds.
  static SlowWork* opencl = kinds().find(KindId::opencl) ? make_opencl_slow_work().release() : nullptr;
  static SlowWork* cuda = kinds().find(KindId::cuda) ? make_cuda_slow_work().release() : nullptr;
  return kind == KindId::opencl ? opencl : kind == KindId::cuda ? cuda : nullptr;
}

}  // namespace ist::test
