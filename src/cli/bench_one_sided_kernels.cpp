#include "cli/bench_one_sided_kernels.hpp"

#include <algorithm>

namespace ist::cli {

// Of bench_one_sided_kernels.cu, made by the build.
extern "C" const unsigned char isthmus_bench_one_sided_kernels[];

const char* name_of_kernel(OneSidedKernel kernel) { return one_sided::kKernelNames[static_cast<std::size_t>(kernel)]; }

OneSidedKernels::OneSidedKernels(int device) : device_(device), number_(device) {
  const CudaApi& api = device_.api;
  if (!api.cuModuleLoadData || !api.cuModuleGetFunction || !api.cuModuleUnload || !api.cuLaunchKernel ||
      !api.cuMemHostAlloc || !api.cuMemFreeHost)
    throw Failure(1, "this driver lacks calls that kernels need; install an NVIDIA driver for CUDA 12 or newer");
  device_.must(api.cuModuleLoadData(&module_, isthmus_bench_one_sided_kernels), "cuModuleLoadData");
  void* made = nullptr;
  device_.must(api.cuMemHostAlloc(&made, one_sided::kMostBlocks * sizeof(one_sided::BlockEnd),
                                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
               "cuMemHostAlloc");
  ends_ = static_cast<one_sided::BlockEnd*>(made);
  for (std::size_t n = 0; n < kOneSidedKernels; ++n) {
    const std::string name = std::string{"isthmus_one_sided_"} + one_sided::kKernelNames[n];
    device_.must(api.cuModuleGetFunction(&functions_[n], module_, name.c_str()), ("cuModuleGetFunction of " + name).c_str());
    launch(static_cast<OneSidedKernel>(n), {}, 1, 1);
  }
  device_.wait();
}

OneSidedKernels::~OneSidedKernels() {
  device_.api.cuStreamSynchronize(device_.stream);
  if (ends_ != nullptr) device_.api.cuMemFreeHost(ends_);
  if (module_ != nullptr) device_.api.cuModuleUnload(module_);
}

void OneSidedKernels::launch(OneSidedKernel kernel, const one_sided::Work& work, unsigned blocks, unsigned threads) const {
  one_sided::Work copied = work;
  void* arguments[] = {&copied};
  const CUresult result = device_.api.cuLaunchKernel(functions_[static_cast<std::size_t>(kernel)], blocks, 1, 1, threads, 1,
                                                     1, 0, device_.stream, arguments, nullptr);
  device_.must(result, (std::string{"cuLaunchKernel of "} + name_of_kernel(kernel)).c_str());
}

void OneSidedKernels::copy(void* to, const void* from, std::uint64_t bytes) const {
  device_.must(device_.api.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes,
                                         device_.stream),
               "cuMemcpyAsync");
}

void OneSidedKernels::write(std::uint64_t* word, std::uint64_t value) const {
  device_.must(device_.api.cuStreamWriteValue64_v2(device_.stream, reinterpret_cast<CUdeviceptr>(word), value,
                                                   CU_STREAM_WRITE_VALUE_DEFAULT),
               "cuStreamWriteValue64");
}

void OneSidedKernels::await(const std::uint64_t* word, std::uint64_t value) const {
  device_.must(device_.api.cuStreamWaitValue64_v2(device_.stream, reinterpret_cast<CUdeviceptr>(word), value,
                                                  CU_STREAM_WAIT_VALUE_GEQ),
               "cuStreamWaitValue64");
}

unsigned OneSidedKernels::multiprocessors() const {
  CUdevice device = 0;
  int found = 0;
  const auto ask = device_.api.cuDeviceGetAttribute;
  if (ask == nullptr || device_.api.cuDeviceGet(&device, number_) != CUDA_SUCCESS ||
      ask(&found, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS)
    throw Failure(1, "the driver does not tell how many multiprocessors cuda device " + std::to_string(number_) + " has");
  return static_cast<unsigned>(std::clamp(found, 1, static_cast<int>(one_sided::kMostBlocks)));
}

}  // namespace ist::cli
