// Launches the kernels of one iteration, and small ones.
#include <stdexcept>
#include <string>

#include "step.cuh"

namespace jacobi {
namespace {

__global__ void publish_kernel(const float* total, std::uint32_t* times, std::uint64_t* published) {
  store_relaxed(published, packet_of(++*times, *total));
}

__global__ void fill_kernel(const __grid_constant__ Cells cells, const float* edges) {
  const std::int64_t all = (cells.rows + 2) * cells.pitch, step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < all; i += step) {
    const auto x = static_cast<int>(i % cells.pitch);
    const float value = x == 0 || x == cells.columns - 1 ? edges[i / cells.pitch] : 0.0F;
    cells.levels[0][i] = value;
    cells.levels[1][i] = value;
  }
}

constexpr int kCopies = 4;  // of 16 bytes, by a thread
__global__ void __launch_bounds__(kThreads) copy_kernel(float4* to, const float4* from, std::int64_t count) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads * kCopies + threadIdx.x;
  float4 value[kCopies];
#pragma unroll
  for (int i = 0; i < kCopies; ++i)
    if (first + i * kThreads < count) value[i] = from[first + i * kThreads];
#pragma unroll
  for (int i = 0; i < kCopies; ++i)
    if (first + i * kThreads < count) __stcs(&to[first + i * kThreads], value[i]);
}

void must_be_launched(const char* kernel) {
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: the launch of ") + kernel + " failed: " + cudaGetErrorString(code));
}

// Launches beside the grid before it, as CUDA calls it by programmatic dependent launch: what a launch costs is over by the time that grid is. The kernel waits for its turn itself.
template <class Kernel, class... Arguments>
void launch_early(Kernel kernel, unsigned blocks, cudaStream_t stream, const Arguments&... arguments) {
  // Code that was compiled for older devices does not wait, whatever runs it.
  static const bool waits = [&] {
    cudaFuncAttributes code = {};
    return cudaFuncGetAttributes(&code, kernel) == cudaSuccess && code.ptxVersion >= 90;
  }();
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = waits ? 1 : 0;
  (void)cudaLaunchKernelEx(&config, kernel, arguments...);  // must_be_launched() looks
}

}  // namespace

void launch_sweep(const Sweep& sweep, Share share, int batch, cudaStream_t stream) {
  const Plan plan = plan_of(sweep.columns, sweep.rows, sweep.height, sweep.fine_rows);
  const int sides = plan.sides * plan.side_items;
  const int first = share == Share::interior ? sides : 0, items = (share == Share::sides ? sides : plan.items) - first;
  if (items == 0) return;
  const auto blocks = static_cast<unsigned>(items);
  if (batch > 4)
    sweep_kernel<8><<<blocks, kThreads, 0, stream>>>(sweep, plan, first);
  else
    sweep_kernel<4><<<blocks, kThreads, 0, stream>>>(sweep, plan, first);
  must_be_launched("sweep_kernel");
}

void launch_step(const Sweep& sweep, const Others& others, std::uint64_t step, const Norm* before, int batch,
                 cudaStream_t stream) {
  const Plan plan = plan_of(sweep.columns, sweep.rows, sweep.height, sweep.fine_rows);
  const bool adds = before != nullptr;
  const Norm norm = adds ? *before : Norm{};
  const auto blocks = static_cast<unsigned>(plan.items + (adds ? 1 : 0));
  if (batch > 4)
    launch_early(step_kernel<8>, blocks, stream, sweep, plan, others, step, adds, norm);
  else
    launch_early(step_kernel<4>, blocks, stream, sweep, plan, others, step, adds, norm);
  must_be_launched("step_kernel");
}

void launch_norm(const Others& others, const Norm& norm, cudaStream_t stream) {
  norm_kernel<<<1, 1, 0, stream>>>(others, norm);
  must_be_launched("norm_kernel");
}

void launch_publish(const float* total, std::uint32_t* times, std::uint64_t* published, cudaStream_t stream) {
  publish_kernel<<<1, 1, 0, stream>>>(total, times, published);
  must_be_launched("publish_kernel");
}

void launch_fill(const Cells& cells, const float* edges, cudaStream_t stream) {
  fill_kernel<<<1024, kThreads, 0, stream>>>(cells, edges);
  must_be_launched("fill_kernel");
}

void launch_copy(float* to, const float* from, std::int64_t floats, cudaStream_t stream) {
  const std::int64_t count = floats / 4, of_block = std::int64_t{kThreads} * kCopies;
  copy_kernel<<<static_cast<unsigned>((count + of_block - 1) / of_block), kThreads, 0, stream>>>(
      reinterpret_cast<float4*>(to), reinterpret_cast<const float4*>(from), count);
  must_be_launched("copy_kernel");
}

}  // namespace jacobi
