#include "cli/bench_one_sided_device.hpp"

#include "cli/failure.hpp"

#ifdef ISTHMUS_CUDA_COMPILED

#include "cli/bench_one_sided_kernels.hpp"

namespace ist::cli {
namespace {

class DriverDevice final : public OneSidedDevice {
 public:
  explicit DriverDevice(int number) : kernels_(number) {}
  void copy(void* to, const void* from, std::uint64_t bytes) override { kernels_.copy(to, from, bytes); }
  void launch_empty() override { kernels_.launch(OneSidedKernel::empty, {}, 1, 1); }
  void wait() override { kernels_.wait(); }

 private:
  OneSidedKernels kernels_;
};

}  // namespace

std::unique_ptr<OneSidedDevice> open_one_sided_device(int number) { return std::make_unique<DriverDevice>(number); }

}  // namespace ist::cli

#else

namespace ist::cli {
namespace {

[[noreturn]] void without_cuda_parts() {
  throw Failure(
      2,
      "heaps of CUDA memory need the CUDA parts, which were left out of this build; build where nvcc is, with make CUDA=ON");
}

}  // namespace

std::unique_ptr<OneSidedDevice> open_one_sided_device(int) { without_cuda_parts(); }
void measure_kernel_side(OneSidedBench&) { without_cuda_parts(); }
void measure_stream_side(OneSidedBench&) { without_cuda_parts(); }

}  // namespace ist::cli

#endif

namespace ist::cli {

int own_device(const OneSidedBench& bench) {
  if (bench.kind == isthmus::Kind::host) return IST_OWN_DEVICE;
  return bench.world.allocate(bench.kind, 64).buffer().c().device;
}

}  // namespace ist::cli
