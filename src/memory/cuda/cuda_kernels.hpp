// The kernels of reductions, of packing and of words: machine code that is part of the library, brought into a context when it first combines or packs there.
//
// Who calls this : cuda_arithmetic.cpp, cuda_packing.cpp, cuda_words.cpp.
// Threads        : any; one lock, held while a context's module is loaded.
// Ownership      : modules belong to their context and are unloaded with it (cuda_context.cpp).
// Errors         : returned, naming the driver's call and the kernel.
#pragma once

#include <mutex>
#include <string>

#include "memory/cuda/cuda_context.hpp"
#include "memory/reduction.hpp"

namespace ist {

// Of cuda_kernels.cu, made by the build.
extern "C" const unsigned char isthmus_cuda_kernels[];

// Which kernel packs.
struct PackKernel {
  bool unpacks = false;
  bool listed = false;
  bool far = false;        // whatever 32 bits do not count (packing::is_near)
  std::int64_t width = 1;  // of a unit: 1, 2, 4, 8 or 16 bytes
  bool relays =
      false;  // from one form to another, and of the above the width and `far`: packing::relay, between strides, or relay_any
};
// "isthmus_pack_strided_16"
std::string pack_kernel_name(const PackKernel& kernel);

// "isthmus_pack_boxes": of many boxes at once.
std::string box_kernel_name(bool unpacks);

// Those of one block: what changes a word, what holds a stream until a word is changed or all PEs are there, and what stores a few bytes and a
// word behind them.
enum class OrderKernel : std::uint8_t { change, wait, meet, put_signal };
inline constexpr std::size_t kOrderKernels = 4;

class CudaKernels {
 public:
  explicit CudaKernels(const CudaApi& api) : api_(api) {}
  // False with a driver that lacks the calls; none that this kind loads with is known to.
  bool present() const {
    return api_.cuModuleLoadData && api_.cuModuleGetFunction && api_.cuModuleUnload && api_.cuLaunchKernel;
  }
  // Why the machine code does not run on that device, or with this driver; `whose` kernels, in words.
  Status runs_on(int device, const std::string& whose = "reductions") const;
  // The function, loaded if it is the first time. The context must be current.
  Result<CUfunction> find(CudaContext& context, Reduction reduction, Element element);
  Result<CUfunction> find(CudaContext& context, const PackKernel& kernel);
  Result<CUfunction> find(CudaContext& context, OrderKernel kernel);
  Result<CUfunction> find_boxes(CudaContext& context, bool unpacks);
  // Loads all of them, which waits for whatever runs on the device: before something waits there. The context must be current.
  void prepare(CudaContext& context);
  // Those that pack are launched once, without work: the driver may bring a kernel's code to the device with its first launch, and waits for
  // running kernels before that. The stream's context is current. Returns when they are over.
  Status warm_up_packing(CudaContext& context, CUstream stream);
  // `count` elements of `size` bytes in the stream.
  CUresult launch(const CudaContext& context, CUfunction kernel, CUdeviceptr into, CUdeviceptr with, std::uint64_t count,
                  Bytes size, CUstream stream) const;
  // By one block.
  CUresult launch(CUfunction kernel, void* work, CUstream stream, unsigned threads = 1) const;
  // How many blocks take so many units at once, `each` by a thread, as far as there may be as many; and a launch of as many.
  static unsigned blocks_for(std::uint64_t units, std::uint32_t each);
  CUresult launch_blocks(CUfunction kernel, void* work, unsigned blocks, CUstream stream) const;

 private:
  Status load(CudaContext& context) const;
  // Under the lock.
  Status find_named(CudaContext& context, const std::string& name, CUfunction& kernel) const;

  const CudaApi& api_;
  std::mutex mutex_;  // guards the kernels of the contexts
};

}  // namespace ist
