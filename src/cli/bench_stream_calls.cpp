#include "cli/bench_stream_calls.hpp"

#include "cli/failure.hpp"

#ifdef ISTHMUS_CUDA_COMPILED

#include <isthmus/stream.h>

#include <algorithm>

#include "memory/cuda/cuda_api.hpp"

namespace ist::cli {
namespace {

constexpr int kRoot = 0;

// The driver, with the device's context current in this thread from then on.
class StreamDriver {
 public:
  explicit StreamDriver(int device) {
    auto loaded = load_cuda_api();
    if (!loaded.ok()) throw Failure(loaded.status());
    api_ = *loaded;
    CUdevice found = 0;
    CUcontext context = nullptr;
    must(api_.cuInit(0), "cuInit");
    must(api_.cuDeviceGet(&found, std::max(device, 0)), "cuDeviceGet");
    must(api_.cuDevicePrimaryCtxRetain(&context, found), "cuDevicePrimaryCtxRetain");
    must(api_.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent");
  }
  void wait(void* stream) const { must(api_.cuStreamSynchronize(static_cast<CUstream>(stream)), "cuStreamSynchronize"); }

 private:
  void must(CUresult result, const char* what) const {
    if (result != CUDA_SUCCESS) throw Failure(cuda_error(api_, result, what));
  }
  CudaApi api_{};
};

template <class Put>
int put_and_wait(const CallArguments& with, const Put& put) {
  static const StreamDriver driver{with.recv.device};
  auto* const stream = reinterpret_cast<void*>(with.recv.queue);
  const int code = put(stream);
  if (code == IST_OK) driver.wait(stream);
  return code;
}

std::int64_t floats(const CallArguments& with) { return static_cast<std::int64_t>(with.bytes / sizeof(float)); }

}  // namespace

int barrier_on(const CallArguments& with) {
  return put_and_wait(with, [&](void* stream) { return ist_barrier_on(stream, with.comm); });
}
int bcast_on(const CallArguments& with) {
  return put_and_wait(with, [&](void* stream) {
    return ist_bcast_on(stream, with.recv, static_cast<std::int64_t>(with.bytes), IST_BYTE, kRoot, with.comm);
  });
}
int reduce_on(const CallArguments& with) {
  return put_and_wait(with, [&](void* stream) {
    return ist_reduce_on(stream, with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, kRoot, with.comm);
  });
}
int allreduce_on(const CallArguments& with) {
  return put_and_wait(with, [&](void* stream) {
    return ist_allreduce_on(stream, with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, with.comm);
  });
}

}  // namespace ist::cli

#else

namespace ist::cli {
namespace {

int left_out() {
  throw Failure(
      2, "calls in streams need CUDA, whose parts were left out of this build; build where nvcc is, with make CUDA=ON");
}

}  // namespace

int barrier_on(const CallArguments&) { return left_out(); }
int bcast_on(const CallArguments&) { return left_out(); }
int reduce_on(const CallArguments&) { return left_out(); }
int allreduce_on(const CallArguments&) { return left_out(); }

}  // namespace ist::cli

#endif
