#include "cli/bench_stream.hpp"

#include "cli/failure.hpp"

#ifdef ISTHMUS_CUDA_COMPILED

#include <isthmus/stream.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "cli/bench_stream_bare.hpp"
#include "cli/bench_stream_device.hpp"

namespace ist::cli {

// Of bench_stream_kernels.cu, made by the build.
extern "C" const unsigned char isthmus_bench_stream_kernels[];

namespace {

constexpr int kStreamTag = 3;
// Round trips in one batch, and in one graph: fewer of long messages, which need none beside them to be longer than a launch.
constexpr std::uint64_t kRoundTrips = 200;
constexpr std::uint64_t kBatchBytes = std::uint64_t{64} << 20;
// Microseconds that a row takes at most, and what it has at least.
constexpr double kLongestTimed = 10e6;
constexpr double kLongestQuickTimed = 1.5e6;
constexpr std::uint64_t kFewestTimed = 3;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The bare pair: packets in this rank's memory, which the other one has opened.
class BarePair {
 public:
  BarePair(Session& session, const StreamDevice& device) : device_(device) {
    const auto& api = device.api;
    device.must(api.cuModuleLoadData(&module_, isthmus_bench_stream_kernels), "cuModuleLoadData");
    device.must(api.cuModuleGetFunction(&send_, module_, "isthmus_bare_send"), "cuModuleGetFunction");
    device.must(api.cuModuleGetFunction(&receive_, module_, "isthmus_bare_receive"), "cuModuleGetFunction");
    device.must(api.cuMemAlloc_v2(&own_, kWhole), "cuMemAlloc");
    device.must(api.cuMemsetD8Async(own_, 0, kWhole, device.stream), "cuMemsetD8Async");
    // Their code is there before one of them waits.
    BareWork nothing{};
    launch(send_, nothing, 32);
    launch(receive_, nothing, 32);
    device.wait();
    CUipcMemHandle handle{};
    device.must(api.cuIpcGetMemHandle(&handle, own_), "cuIpcGetMemHandle");
    if (session.rank() == 0) session.tell(handle);
    const auto theirs = session.hear<CUipcMemHandle>();
    if (session.rank() != 0) session.tell(handle);
    device.must(api.cuIpcOpenMemHandle_v2(&other_, theirs, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
  }
  BarePair(const BarePair&) = delete;
  BarePair& operator=(const BarePair&) = delete;
  // Both ranks have met since the last message.
  ~BarePair() {
    device_.api.cuIpcCloseMemHandle(other_);
    device_.api.cuMemFree_v2(own_);
    device_.api.cuModuleUnload(module_);
  }
  void send(std::uint64_t bytes) const { put(send_, other_, kFrom, kSent, bytes); }
  void receive(std::uint64_t bytes) const { put(receive_, own_, kTo, kTaken, bytes); }

 private:
  // In the memory of each: packets, what is sent, what is received, two numbers.
  static constexpr std::uint64_t kFrom = std::uint64_t{2} * channel::kSmall;
  static constexpr std::uint64_t kTo = kFrom + channel::kSmall;
  static constexpr std::uint64_t kSent = kTo + channel::kSmall;
  static constexpr std::uint64_t kTaken = kSent + 128;
  static constexpr std::uint64_t kWhole = kTaken + 128;

  void launch(CUfunction kernel, BareWork& work, unsigned threads) const {
    void* arguments[] = {&work};
    device_.must(device_.api.cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, device_.stream, arguments, nullptr),
                 "cuLaunchKernel");
  }
  void put(CUfunction kernel, CUdeviceptr packets, std::uint64_t bytes_at, std::uint64_t sequence,
           std::uint64_t bytes) const {
    BareWork work{reinterpret_cast<channel::Quad*>(packets), reinterpret_cast<std::uint64_t*>(own_ + bytes_at),
                  reinterpret_cast<std::uint64_t*>(own_ + sequence), (bytes + 7) / 8};
    launch(kernel, work, channel::threads_for(bytes));
  }

  const StreamDevice& device_;
  CUmodule module_ = nullptr;
  CUfunction send_ = nullptr;
  CUfunction receive_ = nullptr;
  CUdeviceptr own_ = 0;
  CUdeviceptr other_ = 0;
};

using Puts = std::function<void()>;

// As many round trips as a batch has, put into the stream.
Puts round_trips(const Session& session, std::uint64_t trips, Puts send, Puts receive) {
  if (session.rank() != 0) std::swap(send, receive);
  return [trips, send = std::move(send), receive = std::move(receive)] {
    for (std::uint64_t n = 0; n < trips; ++n) {
      send();
      receive();
    }
  };
}

// Half a round trip, in us, batch by batch.
double batch(Session& session, const StreamDevice& device, std::uint64_t trips, const Puts& put) {
  session.meet();
  const auto start = Clock::now();
  put();
  device.wait();
  return microseconds_since(start) / (2.0 * static_cast<double>(trips));
}

bool one_device(Session& session, const StreamDevice& device) {
  if (session.rank() == 0) session.tell(device.uuid);
  const auto theirs = session.hear<CUuuid>();
  if (session.rank() != 0) session.tell(device.uuid);
  return std::memcmp(&theirs, &device.uuid, sizeof theirs) == 0;
}

}  // namespace

Row measure_stream(Session& session, std::uint64_t bytes) {
  const StreamDevice device(session.place(session.rank()).device);
  const auto size = static_cast<std::size_t>(bytes);
  session.prepare_on(device.stream, kStreamTag);
  const std::uint64_t trips = std::clamp<std::uint64_t>(kBatchBytes / std::max<std::uint64_t>(bytes, 1), 1, kRoundTrips);
  const Puts plain = round_trips(
      session, trips, [&] { session.send_on(device.stream, 0, size, kStreamTag); },
      [&] { session.receive_on(device.stream, session.recv_offset(), size, kStreamTag); });
  const StreamGraph captured = device.graph_of(plain);
  std::optional<BarePair> bare;
  std::optional<StreamGraph> bare_graph;
  Puts bare_plain;
  if (bytes <= channel::kSmall && !one_device(session, device)) {
    bare.emplace(session, device);
    bare_plain = round_trips(
        session, trips, [&] { bare->send(bytes); }, [&] { bare->receive(bytes); });
    bare_graph.emplace(device.api, device.stream, [&] {
      bare_plain();
      return true;
    });
  }
  const bool quick = session.options().quick;
  std::uint64_t batches = quick ? 5 : std::max<std::uint64_t>(session.options().iterations / kRoundTrips, 25);
  // In turn, so that whatever else changes meanwhile changes for all.
  std::array<std::vector<double>, 4> times;
  for (std::uint64_t n = 0; n <= batches; ++n) {
    const auto start = Clock::now();
    const std::array<double, 4> took{batch(session, device, trips, plain),
                                     batch(session, device, trips, [&] { captured.launch(); }),
                                     bare ? batch(session, device, trips, bare_plain) : kNone,
                                     bare ? batch(session, device, trips, [&] { bare_graph->launch(); }) : kNone};
    // The first ones warm up, and tell how many can be had in time.
    const double afford = (quick ? kLongestQuickTimed : kLongestTimed) / std::max(microseconds_since(start), 1.0);
    if (n == 0 && session.options().iterations == 0)
      batches = session.from_first(std::min(batches, std::max(static_cast<std::uint64_t>(afford), kFewestTimed)));
    for (std::size_t i = 0; n > 0 && i < took.size(); ++i)
      if (!std::isnan(took[i])) times[i].push_back(took[i]);
  }
  session.meet();
  Plan plan;
  plan.batches = batches;
  plan.per_batch = trips;
  Row row = make_row(bytes, times[0], plan);
  const double graph = median_of(times[1]);
  const double limit = median_of(times[2]);
  const double graph_limit = median_of(times[3]);
  row.added = {graph, limit, graph_limit, limit_ratio(row.median_us, limit), limit_ratio(graph, graph_limit)};
  row.path = "stream";
  return row;
}

}  // namespace ist::cli

#else

namespace ist::cli {

Row measure_stream(Session&, std::uint64_t) {
  throw Failure(
      2, "messages in streams need CUDA, whose parts were left out of this build; build where nvcc is, with make CUDA=ON");
}

}  // namespace ist::cli

#endif
