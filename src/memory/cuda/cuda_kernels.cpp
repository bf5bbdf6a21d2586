#include "memory/cuda/cuda_kernels.hpp"

#include <algorithm>
#include <bit>

#include "memory/cuda/box_protocol.hpp"

namespace ist {
namespace {

constexpr unsigned kThreads = 256;         // of a block
constexpr int kBlocksAtOnce = 8;           // of a multiprocessor: all the threads it holds
constexpr std::uint64_t kVector = 16;      // bytes that a thread moves at once
constexpr int kUsualMultiprocessors = 64;  // where the driver does not tell
constexpr std::uint64_t kMostInGrid = 0x7fffffff;

std::size_t index_of(const PackKernel& kernel) {
  const auto width = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(kernel.width)) - 1);
  if (kernel.relays) return kPackKernels - (kernel.far ? 5 : 10) + width;
  return ((width * 2 + (kernel.far ? 1 : 0)) * 2 + (kernel.listed ? 1 : 0)) * 2 + (kernel.unpacks ? 1 : 0);
}

}  // namespace

std::string pack_kernel_name(const PackKernel& kernel) {
  if (kernel.relays) return (kernel.far ? "isthmus_relay_any_" : "isthmus_relay_strided_") + std::to_string(kernel.width);
  return std::string{"isthmus_"} + (kernel.unpacks ? "unpack_" : "pack_") + (kernel.far ? "far_" : "") +
         (kernel.listed ? "listed_" : "strided_") + std::to_string(kernel.width);
}

std::string box_kernel_name(bool unpacks) { return unpacks ? "isthmus_unpack_boxes" : "isthmus_pack_boxes"; }

Status CudaKernels::runs_on(int device, const std::string& whose) const {
  const std::string place = "cuda device " + std::to_string(device);
  CUdevice handle = 0;
  CUresult result = api_.cuDeviceGet(&handle, device);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuDeviceGet of " + place + " for the kernels of " + whose);
  if (api_.cuDeviceGetAttribute == nullptr) return {};
  int major = 0;
  int minor = 0;
  int version = 0;
  result = api_.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle);
  if (result == CUDA_SUCCESS)
    result = api_.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle);
  if (result != CUDA_SUCCESS)
    return cuda_error(api_, result, "cuDeviceGetAttribute of " + place + " for the kernels of " + whose);
  if (result = api_.cuDriverGetVersion(&version); result != CUDA_SUCCESS)
    return cuda_error(api_, result, "cuDriverGetVersion for the kernels of " + whose);
  // As ISTHMUS_CUDA_CODE says: machine code for 9.0, which every driver of its generation takes, and for all others text that
  // only a driver as new as the compiler can translate.
  const std::string found = std::to_string(major) + "." + std::to_string(minor);
  if (major * 10 + minor < 75)
    return {IST_ERR_KIND, place + " has compute capability " + found + "; the kernels of " + whose + " need 7.5"};
  const bool machine_code = major == 9 && minor == 0;
  if (machine_code ? version / 1000 < CUDA_VERSION / 1000 : version / 10 < CUDA_VERSION / 10)
    return {IST_ERR_KIND, "the kernels of " + whose + " were made by CUDA " + std::to_string(CUDA_VERSION / 1000) + "." +
                              std::to_string(CUDA_VERSION % 1000 / 10) + " and the driver is for " +
                              std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10) +
                              "; install a newer driver"};
  return {};
}

Status CudaKernels::load(CudaContext& context) const {
  const CUresult result = api_.cuModuleLoadData(&context.module, isthmus_cuda_kernels);
  if (result != CUDA_SUCCESS) {
    context.module = nullptr;
    return cuda_error(api_, result,
                      "cuModuleLoadData of the kernels of reductions on cuda device " + std::to_string(context.device));
  }
  CUdevice device = 0;
  context.multiprocessors = kUsualMultiprocessors;
  if (api_.cuDeviceGetAttribute == nullptr || api_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return {};
  int found = 0;
  if (api_.cuDeviceGetAttribute(&found, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) == CUDA_SUCCESS && found > 0)
    context.multiprocessors = found;
  return {};
}

Result<CUfunction> CudaKernels::find(CudaContext& context, Reduction reduction, Element element) {
  const std::lock_guard lock(mutex_);
  CUfunction& kernel =
      context.kernels[(static_cast<std::size_t>(reduction) - 1) * kElements + static_cast<std::size_t>(element)];
  IST_TRY(find_named(context, kernel_name(reduction, element), kernel));
  return kernel;
}

Result<CUfunction> CudaKernels::find(CudaContext& context, const PackKernel& wanted) {
  const std::lock_guard lock(mutex_);
  CUfunction& kernel = context.pack_kernels[index_of(wanted)];
  IST_TRY(find_named(context, pack_kernel_name(wanted), kernel));
  return kernel;
}

Result<CUfunction> CudaKernels::find(CudaContext& context, OrderKernel wanted) {
  static constexpr const char* kNames[kOrderKernels] = {"isthmus_change_word", "isthmus_wait_for_word", "isthmus_meet",
                                                        "isthmus_put_signal"};
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(wanted);
  CUfunction& kernel = context.order_kernels[index];
  IST_TRY(find_named(context, kNames[index], kernel));
  return kernel;
}

Result<CUfunction> CudaKernels::find_boxes(CudaContext& context, bool unpacks) {
  const std::lock_guard lock(mutex_);
  CUfunction& kernel = context.box_kernels[unpacks ? 1 : 0];
  IST_TRY(find_named(context, box_kernel_name(unpacks), kernel));
  return kernel;
}

Status CudaKernels::find_named(CudaContext& context, const std::string& name, CUfunction& kernel) const {
  if (kernel != nullptr) return {};
  if (context.module == nullptr) IST_TRY(load(context));
  const CUresult result = api_.cuModuleGetFunction(&kernel, context.module, name.c_str());
  if (result == CUDA_SUCCESS) return {};
  kernel = nullptr;
  return cuda_error(api_, result, "cuModuleGetFunction of " + name + " on cuda device " + std::to_string(context.device));
}

// One that cannot be loaded is told by whoever needs it.
void CudaKernels::prepare(CudaContext& context) {
  for (std::size_t reduction = 1; reduction <= kReductions; ++reduction)
    for (int type = 0; element_of(static_cast<ist_type>(type)); ++type)
      if (applicable(static_cast<Reduction>(reduction), static_cast<ist_type>(type)).ok())
        static_cast<void>(find(context, static_cast<Reduction>(reduction), *element_of(static_cast<ist_type>(type))));
  for (std::size_t kernel = 0; kernel < kOrderKernels; ++kernel)
    static_cast<void>(find(context, static_cast<OrderKernel>(kernel)));
  for (const bool far : {false, true})
    for (std::int64_t width = 1; width <= 16; width *= 2)
      static_cast<void>(find(context, PackKernel{.far = far, .width = width, .relays = true}));
  for (const bool unpacks : {false, true}) {
    static_cast<void>(find_boxes(context, unpacks));
    for (const bool listed : {false, true})
      for (const bool far : {false, true})
        for (std::int64_t width = 1; width <= 16; width *= 2)
          static_cast<void>(find(context, PackKernel{unpacks, listed, far, width}));
  }
}

Status CudaKernels::warm_up_packing(CudaContext& context, CUstream stream) {
  packing::Relay nothing;  // begins with a Work, which is all that the other kernels take
  packing::Boxes no_boxes;
  no_boxes.count = 1;
  no_boxes.box[0].end = 1;
  const std::lock_guard lock(mutex_);
  CUresult result = CUDA_SUCCESS;
  const auto launch = [&](CUfunction kernel, void* work) {
    if (kernel != nullptr && result == CUDA_SUCCESS) result = launch_blocks(kernel, work, 1, stream);
  };
  for (CUfunction kernel : context.pack_kernels) launch(kernel, &nothing);
  for (CUfunction kernel : context.box_kernels) launch(kernel, &no_boxes);
  if (result == CUDA_SUCCESS) result = api_.cuStreamSynchronize(stream);
  if (result == CUDA_SUCCESS) return {};
  return cuda_error(
      api_, result,
      "cuLaunchKernel of the kernels that pack, without work, on cuda device " + std::to_string(context.device));
}

CUresult CudaKernels::launch(const CudaContext& context, CUfunction kernel, CUdeviceptr into, CUdeviceptr with,
                             std::uint64_t count, Bytes size, CUstream stream) const {
  const bool vectors = (into | with) % kVector == 0;
  const std::uint64_t steps = vectors ? (count * size.value + kVector - 1) / kVector : count;
  const std::uint64_t most = static_cast<std::uint64_t>(context.multiprocessors) * kBlocksAtOnce;
  const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>((steps + kThreads - 1) / kThreads, 1, most));
  void* arguments[] = {&into, &with, &count};
  return api_.cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr);
}

unsigned CudaKernels::blocks_for(std::uint64_t units, std::uint32_t each) {
  const std::uint64_t of_block = std::uint64_t{kThreads} * each;
  const std::uint64_t blocks = units / of_block + (units % of_block == 0 ? 0 : 1);
  return static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, kMostInGrid));
}

CUresult CudaKernels::launch_blocks(CUfunction kernel, void* work, unsigned blocks, CUstream stream) const {
  void* arguments[] = {work};
  return api_.cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr);
}

CUresult CudaKernels::launch(CUfunction kernel, void* work, CUstream stream, unsigned threads) const {
  void* arguments[] = {work};
  return api_.cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
}

}  // namespace ist
