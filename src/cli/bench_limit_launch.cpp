#include "cli/bench_limit_launch.hpp"

namespace ist::cli {

// Of bench_limit_kernels.cu, made by the build.
extern "C" const unsigned char isthmus_bench_limit_kernels[];

namespace {

constexpr std::array<const char*, kBareKernels> kBareNames{
    "isthmus_limit_empty",  "isthmus_limit_store", "isthmus_limit_flags", "isthmus_limit_packets", "isthmus_limit_meet",
    "isthmus_limit_answer", "isthmus_limit_copy",  "isthmus_limit_once",  "isthmus_limit_post",    "isthmus_limit_take"};
constexpr unsigned kStoreThreads = 512;

}  // namespace

BareKernels::BareKernels(const Driver& driver, const DriverSide& side) : driver_(driver), side_(side) {
  const CudaApi& api = driver_.api();
  if (!api.cuModuleLoadData || !api.cuModuleGetFunction || !api.cuModuleUnload || !api.cuLaunchKernel ||
      !api.cuMemHostAlloc || !api.cuMemFreeHost) {
    why_none_ = "this driver lacks calls that kernels need; install an NVIDIA driver for CUDA 12 or newer";
    return;
  }
  side_.use();
  const CUresult result = api.cuModuleLoadData(&module_, isthmus_bench_limit_kernels);
  side_.leave();
  if (result == CUDA_SUCCESS) {
    load();
    return;
  }
  module_ = nullptr;
  why_none_ =
      cuda_error(api, result, "cuModuleLoadData of the limits' kernels on cuda device " + std::to_string(side_.number()))
          .text();
}

void BareKernels::load() {
  for (std::size_t n = 0; n < kBareKernels; ++n) {
    side_.use();
    const CUresult result = driver_.api().cuModuleGetFunction(&functions_[n], module_, kBareNames[n]);
    side_.leave();
    driver_.must(result, std::string{"cuModuleGetFunction of "} + kBareNames[n]);
    const auto kernel = static_cast<BareKernel>(n);
    if (kernel == BareKernel::empty)
      launch_empty();
    else if (kernel == BareKernel::store)
      launch(StoreWork{}, 1);
    else
      launch(kernel, TripWork{}, 32);
  }
  wait();
}

BareKernels::~BareKernels() {
  if (module_ == nullptr) return;
  side_.use();
  driver_.api().cuModuleUnload(module_);
  side_.leave();
}

void BareKernels::launch(const StoreWork& work, unsigned blocks) const {
  StoreWork copied = work;
  void* arguments[] = {&copied};
  launch(BareKernel::store, blocks, kStoreThreads, arguments);
}

void BareKernels::launch(BareKernel kernel, const TripWork& work, unsigned threads) const {
  TripWork copied = work;
  void* arguments[] = {&copied};
  launch(kernel, 1, threads, arguments);
}

void BareKernels::launch(BareKernel kernel, unsigned blocks, unsigned threads, void** arguments) const {
  const auto which = static_cast<std::size_t>(kernel);
  side_.use();
  const CUresult result =
      driver_.api().cuLaunchKernel(functions_[which], blocks, 1, 1, threads, 1, 1, 0, side_.stream(0), arguments, nullptr);
  side_.leave();
  driver_.must(result, std::string{"cuLaunchKernel of "} + kBareNames[which]);
}

}  // namespace ist::cli
