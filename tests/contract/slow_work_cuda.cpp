// A host function that sleeps, followed by a copy, in a stream of a user. Works on a real driver and on the fake one.
#ifdef ISTHMUS_HAVE_CUDA
#include <thread>

#include "memory/cuda/cuda_api.hpp"
#include "slow_work.hpp"

namespace ist::test {
namespace {

constexpr std::chrono::milliseconds kDelay{40};

void CUDA_CB sleep_in_stream(void*) { std::this_thread::sleep_for(kDelay); }

class CudaSlowWork final : public SlowWork {
 public:
  CudaSlowWork() : api_(must(load_cuda_api())) {}

  Piece in_new_queue(const Piece& piece, bool) override {
    const Current current{api_, piece.device};
    CUstream stream = nullptr;
    check(api_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    Piece result = piece;
    result.queue = reinterpret_cast<std::uint64_t>(stream);
    device_ = piece.device;
    return result;
  }

  void copy_later(const Piece& to, const Piece& from, std::uint64_t queue) override {
    const Current current{api_, to.device};
    device_ = to.device;
    last_ = reinterpret_cast<CUstream>(queue);
    check(api_.cuLaunchHostFunc(last_, sleep_in_stream, nullptr), "cuLaunchHostFunc");
    check(api_.cuMemcpyAsync(to.object + to.offset.value, from.object + from.offset.value, to.size.value, last_),
          "cuMemcpyAsync");
  }

  void finish(std::uint64_t queue) override {
    const Current current{api_, device_};
    check(api_.cuStreamSynchronize(reinterpret_cast<CUstream>(queue)), "cuStreamSynchronize");
  }

  bool pending() override {
    const Current current{api_, device_};
    return api_.cuStreamQuery(last_) == CUDA_ERROR_NOT_READY;
  }
  bool has_out_of_order() const override { return false; }

 private:
  void check(CUresult result, const char* call) const {
    if (result != CUDA_SUCCESS) throw std::runtime_error(cuda_error(api_, result, call).text());
  }

  // The device's primary context, as the runtime API would make it current.
  struct Current {
    Current(const CudaApi& api_table, int ordinal) : api(api_table) {
      CUcontext context = nullptr;
      if (api.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS ||
          api.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || api.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
        throw std::runtime_error("cuda device " + std::to_string(ordinal) + " cannot be made current");
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      CUcontext context = nullptr;
      api.cuCtxPopCurrent_v2(&context);
      api.cuDevicePrimaryCtxRelease_v2(device);
    }
    const CudaApi& api;
    CUdevice device = 0;
  };

  const CudaApi api_;
  CUstream last_ = nullptr;
  int device_ = 0;
};

}  // namespace

std::unique_ptr<SlowWork> make_cuda_slow_work() { return std::make_unique<CudaSlowWork>(); }

}  // namespace ist::test
#endif
