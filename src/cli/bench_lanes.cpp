#include "cli/bench_lanes.hpp"

#include <isthmus/queue.h>
#include <isthmus/stream.h>

#include "base/thread_sanitizer.hpp"
#include "cli/failure.hpp"
#include "memory/opencl/opencl_api.hpp"

#ifdef ISTHMUS_CUDA_COMPILED
#include "cli/bench_stream_device.hpp"
#endif

namespace ist::cli {
namespace {

std::int64_t count(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

#ifdef ISTHMUS_CUDA_COMPILED

class StreamLane final : public Lane {
 public:
  StreamLane(int device, void* stream) : device_(device, static_cast<CUstream>(stream)) {}
  int send(const ist_buffer& from, std::size_t bytes, const Partner& to) override {
    return ist_send_on(device_.stream, from, count(bytes), IST_BYTE, to.rank, to.tag, to.comm);
  }
  int receive(const ist_buffer& into, std::size_t bytes, const Partner& from) override {
    return ist_recv_on(device_.stream, into, count(bytes), IST_BYTE, from.rank, from.tag, from.comm);
  }
  int exchange(const ist_buffer& from, const ist_buffer& into, std::size_t bytes, const Partner& other) override {
    return ist_sendrecv_on(device_.stream, from, count(bytes), IST_BYTE, other.rank, other.tag, into, count(bytes), IST_BYTE,
                           other.rank, other.tag, other.comm);
  }
  void wait() override { device_.wait(); }
  std::function<void()> capture(const std::function<void()>& put) override {
    const std::shared_ptr<const StreamGraph> graph(new StreamGraph(device_.graph_of(put)));
    return [graph] { graph->launch(); };
  }

 private:
  const StreamDevice device_;
};

#endif

class QueueLane final : public Lane {
 public:
  explicit QueueLane(void* queue) : queue_(static_cast<cl_command_queue>(queue)) {
    const auto api = OpenclApi::get();
    if (!api.ok()) throw Failure(api.status());
    api_ = *api;
  }
  int send(const ist_buffer& from, std::size_t bytes, const Partner& to) override {
    return ist_send_on_queue(queue_, from, count(bytes), IST_BYTE, to.rank, to.tag, to.comm, 0, nullptr, nullptr);
  }
  int receive(const ist_buffer& into, std::size_t bytes, const Partner& from) override {
    return ist_recv_on_queue(queue_, into, count(bytes), IST_BYTE, from.rank, from.tag, from.comm, 0, nullptr, nullptr);
  }
  int exchange(const ist_buffer& from, const ist_buffer& into, std::size_t bytes, const Partner& other) override {
    return ist_sendrecv_on_queue(queue_, from, count(bytes), IST_BYTE, other.rank, other.tag, into, count(bytes), IST_BYTE,
                                 other.rank, other.tag, other.comm, 0, nullptr, nullptr);
  }
  void wait() override {
    if (const Status over = opencl_status(api_->clFinish(queue_), "clFinish"); !over.ok()) throw Failure(over);
    follows(reinterpret_cast<void*>(api_->clSetUserEventStatus));  // by which the library's thread ends its part
  }
  std::function<void()> capture(const std::function<void()>&) override { return {}; }

 private:
  const OpenclApi* api_ = nullptr;
  cl_command_queue queue_;
};

}  // namespace

std::unique_ptr<Lane> Lane::open(const BenchOptions& options, const Place& place, void* handle) {
  if (options.queue()) return std::make_unique<QueueLane>(handle);
#ifdef ISTHMUS_CUDA_COMPILED
  return std::make_unique<StreamLane>(place.device, handle);
#else
  throw Failure(2, "messages in streams of " + place.text() +
                       " need CUDA, whose parts were left out of this build; build where nvcc is, with make CUDA=ON");
#endif
}

}  // namespace ist::cli
