#include "other_work.hpp"

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace heap_kernels {
namespace {

constexpr std::size_t kBytes = std::size_t{3} << 20;

__global__ void count_kernel(unsigned* word, unsigned by) { atomicAdd_system(word, by); }

// The same, as a module of its own.
constexpr const char* kModule = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry count_here(.param .u64 place, .param .u32 by) {
  .reg .b64 %at;
  .reg .b32 %sum;
  ld.param.u64 %at, [place];
  ld.param.u32 %sum, [by];
  red.relaxed.sys.global.add.u32 [%at], %sum;
  ret;
}
)";

std::string of(cudaError_t error, const char* call) {
  return error == cudaSuccess ? std::string() : std::string(call) + ": " + cudaGetErrorString(error);
}
std::string of(CUresult result, const char* call) {
  return result == CUDA_SUCCESS ? std::string() : std::string(call) + ": CUresult " + std::to_string(result);
}
// The first that went wrong; what is behind it is not done.
#define IN_TURN(CALL)                                                      \
  do {                                                                     \
    if (std::string wrong = of(CALL, #CALL); !wrong.empty()) return wrong; \
  } while (false)

template <class Function>
Function* driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

// What most of them have: a stream of their own, device memory, and a page-locked word that kernels count in.
class Counting : public Work {
 public:
  Counting(const char* name, bool may_wait, int device) : Work(name, may_wait), device_(device) {
    const auto fine = [&](std::string wrong) {
      if (wrong_.empty()) wrong_ = std::move(wrong);
    };
    fine(of(cudaSetDevice(device), "cudaSetDevice"));
    fine(of(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
    fine(of(cudaMalloc(&memory_, kBytes), "cudaMalloc"));
    fine(of(cudaHostAlloc(&word_, kBytes, cudaHostAllocMapped), "cudaHostAlloc"));
    if (wrong_.empty()) *word_ = 0;
  }
  ~Counting() override {
    cudaFreeHost(word_);
    cudaFree(memory_);
    cudaStreamDestroy(stream_);
  }

 protected:
  // What kernels have added since the last time is what was expected.
  std::string counted(unsigned wanted) {
    const unsigned found = *static_cast<volatile unsigned*>(word_) - known_;
    known_ += found;
    return found == wanted ? std::string() : std::to_string(found) + " was counted instead of " + std::to_string(wanted);
  }
  // Of the calling thread.
  std::string use_device() const { return of(cudaSetDevice(device_), "cudaSetDevice"); }

  int device_;
  std::string wrong_;
  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  unsigned* word_ = nullptr;
  unsigned known_ = 0;
};

// A call as it is, with what is before and after it.
class Single final : public Counting {
 public:
  using Step = std::function<std::string(Single&)>;
  Single(const char* name, bool may_wait, int device, Step prepare, Step make, Step prove)
      : Counting(name, may_wait, device), prepare_(std::move(prepare)), make_(std::move(make)), prove_(std::move(prove)) {}
  std::string prepare() override { return wrong_.empty() ? in_device(prepare_) : wrong_; }
  std::string make() override { return in_device(make_); }
  std::string prove() override { return in_device(prove_); }

  std::string get() { return of(cudaMalloc(&more, kBytes), "cudaMalloc"); }
  std::string let_go() { return of(cudaFree(more), "cudaFree"); }
  std::string get_locked() { return of(cudaHostAlloc(&more, kBytes, cudaHostAllocDefault), "cudaHostAlloc"); }
  std::string let_go_locked() { return of(cudaFreeHost(more), "cudaFreeHost"); }
  // Every byte over to the device and back.
  std::string copy() {
    auto* const bytes = reinterpret_cast<unsigned char*>(word_);
    for (std::size_t n = 0; n < kBytes; ++n) bytes[n] = static_cast<unsigned char>(n * 7 + known_);
    IN_TURN(cudaMemcpyAsync(memory_, bytes, kBytes, cudaMemcpyHostToDevice, stream_));
    IN_TURN(cudaMemsetAsync(static_cast<unsigned char*>(memory_) + 5, 1, 1, stream_));
    IN_TURN(cudaMemcpyAsync(bytes, memory_, kBytes, cudaMemcpyDeviceToHost, stream_));
    return of(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  std::string prove_copy() {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(word_);
    for (std::size_t n = 0; n < kBytes; ++n)
      if (bytes[n] != (n == 5 ? 1 : static_cast<unsigned char>(n * 7 + known_))) return "other bytes came back";
    ++known_;
    return {};
  }
  // Of a pool that keeps what it has.
  std::string warm_pool() {
    int device = 0;
    cudaMemPool_t pool = nullptr;
    std::uint64_t all = ~std::uint64_t{0};
    IN_TURN(cudaGetDevice(&device));
    IN_TURN(cudaDeviceGetDefaultMemPool(&pool, device));
    IN_TURN(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    return use_pool();
  }
  std::string use_pool() {
    IN_TURN(cudaMallocAsync(&more, kBytes, stream_));
    IN_TURN(cudaMemsetAsync(more, 3, kBytes, stream_));
    IN_TURN(cudaFreeAsync(more, stream_));
    return of(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  std::string load() {
    return of(driver<decltype(cuModuleLoadData)>("cuModuleLoadData")(&module, kModule), "cuModuleLoadData");
  }
  std::string run_loaded() {
    CUfunction function = nullptr;
    unsigned by = 3;
    void* arguments[] = {&word_, &by};
    IN_TURN(driver<decltype(cuModuleGetFunction)>("cuModuleGetFunction")(&function, module, "count_here"));
    IN_TURN(driver<decltype(cuLaunchKernel)>("cuLaunchKernel")(function, 1, 1, 1, 2, 1, 1, 0, stream_, arguments, nullptr));
    return of(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  std::string prove_loaded() { return counted(6); }
  std::string unload() { return of(driver<decltype(cuModuleUnload)>("cuModuleUnload")(module), "cuModuleUnload"); }
  // Of two kernels and a memset. Other threads allocate meanwhile.
  std::string capture() {
    cudaGraph_t graph = nullptr;
    IN_TURN(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (unsigned by = 1; by <= 2; ++by) count_kernel<<<1, 4, 0, stream_>>>(word_, by);
    const cudaError_t filled = cudaMemsetAsync(memory_, 2, kBytes, stream_);
    IN_TURN(cudaStreamEndCapture(stream_, &graph));
    IN_TURN(filled);
    IN_TURN(cudaGraphInstantiate(&executable, graph, 0));
    return of(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  std::string replay() {
    IN_TURN(cudaGraphLaunch(executable, stream_));
    IN_TURN(cudaGraphLaunch(executable, stream_));
    return of(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  // Each of two launches: 4 threads add 1, and 4 add 2.
  std::string prove_replays(unsigned replays) { return counted(24 * replays); }
  std::string prove_replay() { return prove_replays(1); }
  std::string drop_graph() { return of(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy"); }
  std::string make_stream() {
    cudaStream_t another = nullptr;
    IN_TURN(cudaStreamCreateWithFlags(&another, cudaStreamNonBlocking));
    return of(cudaStreamDestroy(another), "cudaStreamDestroy");
  }

  std::string in_device(const Step& step) {
    std::string wrong = use_device();
    return wrong.empty() && step != nullptr ? step(*this) : wrong;
  }

  void* more = nullptr;
  CUmodule module = nullptr;
  cudaGraphExec_t executable = nullptr;

 private:
  Step prepare_, make_, prove_;
};

// One after the other.
Single::Step in_turn(std::string (Single::*one)(), std::string (Single::*other)()) {
  return [=](Single& work) {
    std::string wrong = (work.*one)();
    return wrong.empty() ? (work.*other)() : wrong;
  };
}

}  // namespace

std::vector<std::unique_ptr<Work>> all_work(int device) {
  std::vector<std::unique_ptr<Work>> all;
  const auto add = [&](const char* name, bool may_wait, const Single::Step& prepare, const Single::Step& make,
                       const Single::Step& prove) {
    all.push_back(std::make_unique<Single>(name, may_wait, device, prepare, make, prove));
  };
  add("copies of page-locked memory", false, &Single::copy, &Single::copy, &Single::prove_copy);
  add("cudaMallocAsync and cudaFreeAsync", false, &Single::warm_pool, &Single::use_pool, nullptr);
  add("launches of a graph", false, in_turn(&Single::capture, &Single::replay), &Single::replay, [](Single& work) {
    const std::string wrong = work.drop_graph();
    const std::string other = work.prove_replays(2);
    return wrong.empty() ? other : wrong;
  });
  add("capture and instantiation of a graph", true, nullptr, &Single::capture, [](Single& work) {
    std::string wrong = in_turn(&Single::replay, &Single::prove_replay)(work);
    return wrong.empty() ? work.drop_graph() : wrong;
  });
  add("cudaMalloc", true, nullptr, &Single::get, &Single::let_go);
  add("cudaFree", true, &Single::get, &Single::let_go, nullptr);
  add("cudaHostAlloc", true, nullptr, &Single::get_locked, &Single::let_go_locked);
  add("cudaFreeHost", true, &Single::get_locked, &Single::let_go_locked, nullptr);
  add("cudaStreamCreate and cudaStreamDestroy", true, nullptr, &Single::make_stream, nullptr);
  add("a module's load and first launch", true, nullptr, in_turn(&Single::load, &Single::run_loaded),
      in_turn(&Single::prove_loaded, &Single::unload));
  add("a module's end", true, in_turn(&Single::load, &Single::run_loaded), &Single::unload, &Single::prove_loaded);
  add(
      kWaitsForDevice, true, nullptr, [](Single&) { return of(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }, nullptr);
  return all;
}

}  // namespace heap_kernels
