#include "cli/bench_stream_calls.hpp"

#include "cli/failure.hpp"

#ifdef ISTHMUS_CUDA_COMPILED

#include <isthmus/stream.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "cli/bench_collective.hpp"
#include "cli/bench_stream_device.hpp"

namespace ist::cli {
namespace {

constexpr int kStreamRoot = 0;

// The driver, with the device's context current in this thread from then on.
class StreamDriver {
 public:
  explicit StreamDriver(int device) {
    auto loaded = load_cuda_api();
    if (!loaded.ok()) throw Failure(loaded.status());
    api = *loaded;
    CUdevice found = 0;
    CUcontext context = nullptr;
    must(api.cuInit(0), "cuInit");
    must(api.cuDeviceGet(&found, std::max(device, 0)), "cuDeviceGet");
    must(api.cuDevicePrimaryCtxRetain(&context, found), "cuDevicePrimaryCtxRetain");
    must(api.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent");
  }
  void wait(CUstream stream) const { must(api.cuStreamSynchronize(stream), "cuStreamSynchronize"); }
  void must(CUresult result, const char* what) const {
    if (result != CUDA_SUCCESS) throw Failure(cuda_error(api, result, what));
  }
  CudaApi api{};
};

const StreamDriver& driver_of(const CallArguments& with) {
  static const StreamDriver driver{with.recv.device};
  return driver;
}

CUstream stream_of(const CallArguments& with) { return reinterpret_cast<CUstream>(with.recv.queue); }

int wait_after(const CallArguments& with, int code) {
  if (code == IST_OK) driver_of(with).wait(stream_of(with));
  return code;
}

std::int64_t floats_of(const CallArguments& with) { return static_cast<std::int64_t>(with.bytes / sizeof(float)); }

// False: they cannot be captured, which is so on every rank alike.
bool are_captured(int code) {
  if (code != IST_OK && code != IST_ERR_NOT_CAPTURABLE) cli::must(code, "a captured call");
  return code == IST_OK;
}

// So many in one batch, and in one graph: fewer of long ones.
std::uint64_t calls_in_batch(std::size_t bytes) {
  constexpr std::uint64_t kMostCalls = 200;
  constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
  return std::clamp<std::uint64_t>(bytes == 0 ? kMostCalls : kMostBytes / bytes, 4, kMostCalls);
}

}  // namespace

int put_barrier_on(const CallArguments& with) { return ist_barrier_on(stream_of(with), with.comm); }
int put_bcast_on(const CallArguments& with) {
  return ist_bcast_on(stream_of(with), with.recv, static_cast<std::int64_t>(with.bytes), IST_BYTE, kStreamRoot, with.comm);
}
int put_reduce_on(const CallArguments& with) {
  return ist_reduce_on(stream_of(with), with.send, with.recv, floats_of(with), IST_FLOAT, IST_SUM, kStreamRoot, with.comm);
}
int put_allreduce_on(const CallArguments& with) {
  return ist_allreduce_on(stream_of(with), with.send, with.recv, floats_of(with), IST_FLOAT, IST_SUM, with.comm);
}

int barrier_on(const CallArguments& with) { return wait_after(with, put_barrier_on(with)); }
int bcast_on(const CallArguments& with) { return wait_after(with, put_bcast_on(with)); }
int reduce_on(const CallArguments& with) { return wait_after(with, put_reduce_on(with)); }
int allreduce_on(const CallArguments& with) { return wait_after(with, put_allreduce_on(with)); }

std::array<double, 2> measure_forms(Session& session, const CallArguments& with) {
  const CollectiveCall& call = *session.options().timed_call();
  const StreamDriver& driver = driver_of(with);
  CUstream const stream = stream_of(with);
  const std::uint64_t calls = calls_in_batch(with.bytes);
  const auto put = [&] {
    int code = IST_OK;
    for (std::uint64_t n = 0; n < calls && code == IST_OK; ++n) code = call.put(with);
    return code;
  };
  const StreamGraph graph(driver.api, stream, [&] { return are_captured(put()); });
  const auto timed = [&](const std::function<void()>& body) {
    session.meet();
    const auto start = Clock::now();
    body();
    driver.wait(stream);
    return microseconds_since(start) / static_cast<double>(calls);
  };
  constexpr std::uint64_t kFewestForms = 3;
  constexpr double kLongestForms = 10e6;
  std::uint64_t batches = session.options().quick ? kFewestForms : 25;
  std::array<std::vector<double>, 2> times;
  for (std::uint64_t n = 0; n <= batches; ++n) {
    const double ahead = timed([&] { must(put(), call.name); });
    const double replayed = graph.there() ? timed([&] { graph.launch(); }) : 0;
    if (n == 0) {  // the first ones warm up, and tell how many can be had in time
      const double afford = kLongestForms / std::max(static_cast<double>(calls) * (ahead + replayed), 1.0);
      batches = session.from_first(std::min(batches, std::max(static_cast<std::uint64_t>(afford), kFewestForms)));
      continue;
    }
    times[0].push_back(ahead);
    if (graph.there()) times[1].push_back(replayed);
  }
  std::array<double, 2> medians{};
  for (std::size_t form = 0; form < medians.size(); ++form) {
    medians[form] = std::numeric_limits<double>::quiet_NaN();
    if (times[form].empty()) continue;
    const auto all = session.from_all(std::span<const double>{times[form]});
    std::vector<double> averages = average_of_ranks(all, static_cast<std::size_t>(session.size()));
    std::sort(averages.begin(), averages.end());
    medians[form] = percentile(averages, 0.5);
  }
  session.meet();
  return medians;
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
int put_barrier_on(const CallArguments&) { return left_out(); }
int put_bcast_on(const CallArguments&) { return left_out(); }
int put_reduce_on(const CallArguments&) { return left_out(); }
int put_allreduce_on(const CallArguments&) { return left_out(); }
std::array<double, 2> measure_forms(Session&, const CallArguments&) {
  left_out();
  return {};
}

}  // namespace ist::cli

#endif
