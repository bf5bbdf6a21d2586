#include "memory/opencl/opencl_queues.hpp"

#include <array>
#include <utility>
#include <vector>

#include "base/thread_sanitizer.hpp"
#include "memory/opencl/opencl_listeners.hpp"

namespace ist {
namespace {

// An event, let go of with this.
class HeldEvent {
 public:
  explicit HeldEvent(const OpenclApi& api) : api_(&api) {}
  HeldEvent(HeldEvent&& other) noexcept : api_(other.api_), event_(std::exchange(other.event_, nullptr)) {}
  HeldEvent(const HeldEvent&) = delete;
  HeldEvent& operator=(const HeldEvent&) = delete;
  ~HeldEvent() {
    if (event_ != nullptr) api_->clReleaseEvent(event_);
  }
  cl_event get() const { return event_; }
  cl_event* place() { return &event_; }
  cl_event release() { return std::exchange(event_, nullptr); }

 private:
  const OpenclApi* api_;
  cl_event event_ = nullptr;
};

class OpenclTurn final : public QueueTurn {
 public:
  OpenclTurn(const OpenclApi& api, std::span<const Piece> pieces, std::function<void()> reached)
      : api_(api), before_(api), waited_(api), over_(api), number_(OpenclListeners::all().add(std::move(reached))) {
    for (const Piece& piece : pieces)
      if (piece.kind == KindId::opencl && api_.clRetainMemObject(memory_of(piece)) == CL_SUCCESS)
        kept_.push_back(memory_of(piece));
  }
  ~OpenclTurn() override {
    OpenclListeners::all().remove(number_);
    end();
    for (cl_mem each : kept_) api_.clReleaseMemObject(each);
  }
  OpenclTurn(const OpenclTurn&) = delete;
  OpenclTurn& operator=(const OpenclTurn&) = delete;

  Result<bool> has_come() override {
    cl_event event = before_.get();
    cl_int status = CL_QUEUED;
    cl_int error = api_.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (error == CL_SUCCESS && status > CL_COMPLETE) return false;
    // Seeing CL_COMPLETE is no synchronisation point in OpenCL; waiting for the complete event is, and returns at once.
    if (error == CL_SUCCESS) error = status < 0 ? status : api_.clWaitForEvents(1, &event);
    if (error == CL_SUCCESS) return true;
    return opencl_status(error, "what it waits for in its queue");
  }
  // Never to an error: what waits for it would be terminated, after which OpenCL promises nothing of the queue, nor of any other of
  // its context; and PoCL 3.1 ends the process, unless somebody holds the event of each command that is terminated.
  void end() override {
    if (waited_.get() == nullptr || std::exchange(ended_, true)) return;
    precedes(reinterpret_cast<void*>(api_.clSetUserEventStatus));  // whoever waits for the queue or an event behind it
    api_.clSetUserEventStatus(waited_.get(), CL_COMPLETE);
  }

  // The command that is over when the turn comes, the user event that is waited for from then on, and the command that waits for both:
  // if the first one fails so does it, by the driver, while somebody holds it.
  HeldEvent& before() { return before_; }
  HeldEvent& waited() { return waited_; }
  HeldEvent& over() { return over_; }
  std::uint64_t number() const { return number_; }

 private:
  const OpenclApi& api_;
  HeldEvent before_;
  HeldEvent waited_;
  HeldEvent over_;
  const std::uint64_t number_;
  bool ended_ = false;
  std::vector<cl_mem> kept_;
};

}  // namespace

Result<cl_context> OpenclQueues::context_of(cl_command_queue queue) const {
  if (queue == nullptr)
    return Status{IST_ERR_ARGUMENT, "the queue is null; messages in queues need a cl_command_queue to be put into"};
  cl_context context = nullptr;
  IST_TRY(opencl_status(api_.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr),
                        "clGetCommandQueueInfo", IST_ERR_HANDLE, "the queue was released, or is not a cl_command_queue"));
  return context;
}

Status OpenclQueues::admit(std::uint64_t queue, const Piece& piece) {
  const auto context = context_of(reinterpret_cast<cl_command_queue>(queue));
  if (!context.ok()) return context.status();
  if (piece.size.value == 0 || piece.kind == KindId::host) return {};
  if (piece.kind != KindId::opencl)
    return {IST_ERR_KIND,
            "a CUDA buffer was given; messages in OpenCL queues are between OpenCL buffers and host memory, use "
            "ist_send_on and ist_recv_on, or ist_send and ist_recv"};
  cl_context other = nullptr;
  IST_TRY(opencl_status(api_.clGetMemObjectInfo(memory_of(piece), CL_MEM_CONTEXT, sizeof other, &other, nullptr),
                        "clGetMemObjectInfo", IST_ERR_HANDLE, "the buffer was released, or is not a cl_mem"));
  if (other != *context)
    return {IST_ERR_ARGUMENT, "the queue belongs to another context than the buffer; name a queue of its context"};
  return {};
}

// Commands that do nothing but to be over in their turn. In queues with order they are markers; in others a marker may wait for all
// that is there (with an empty list it must, and PoCL's does so with any), while no copy does: a byte of a buffer of their own.
class OpenclQueues::Points {
 public:
  Points(const OpenclApi& api, cl_command_queue queue) : api_(api), queue_(queue) {}
  Points(const Points&) = delete;
  Points& operator=(const Points&) = delete;
  ~Points() {
    if (bytes_ != nullptr) api_.clReleaseMemObject(bytes_);
  }
  Status make(cl_context context) {
    cl_command_queue_properties properties = 0;
    IST_TRY(opencl_status(api_.clGetCommandQueueInfo(queue_, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr),
                          "clGetCommandQueueInfo"));
    if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0) return {};
    cl_int error = CL_SUCCESS;
    bytes_ = api_.clCreateBuffer(context, CL_MEM_READ_WRITE, kRoom, nullptr, &error);
    if (error != CL_SUCCESS) bytes_ = nullptr;
    return opencl_status(error, "clCreateBuffer of " + std::to_string(kRoom) + " bytes", IST_ERR_MEMORY);
  }
  Status put(cl_uint waits, const cl_event* list, cl_event* event) const {
    if (waits == 0) list = nullptr;
    const cl_int error = bytes_ == nullptr
                             ? api_.clEnqueueMarkerWithWaitList(queue_, waits, list, event)
                             : api_.clEnqueueCopyBuffer(queue_, bytes_, bytes_, 0, kRoom / 2, 1, waits, list, event);
    const bool wrong_list = error == CL_INVALID_CONTEXT || error == CL_INVALID_EVENT_WAIT_LIST || error == CL_INVALID_EVENT;
    return opencl_status(error, bytes_ == nullptr ? "clEnqueueMarkerWithWaitList" : "clEnqueueCopyBuffer",
                         wrong_list ? IST_ERR_ARGUMENT : IST_ERR_DEVICE,
                         wrong_list ? "the wait list must hold events of the queue's context" : "");
  }

 private:
  static constexpr std::size_t kRoom = 8;
  const OpenclApi& api_;
  cl_command_queue queue_;
  cl_mem bytes_ = nullptr;
};

Status OpenclQueues::first(const Points& points, const QueueEvents& events, cl_event* event) {
  if (events.waits > 0 && events.wait_list == nullptr)
    return {IST_ERR_ARGUMENT, "the wait list is null and " + std::to_string(events.waits) + " events are said to be in it"};
  return points.put(events.waits, static_cast<const cl_event*>(events.wait_list), event);
}

Status OpenclQueues::pass(std::uint64_t queue, const QueueEvents& events) {
  auto* const into = reinterpret_cast<cl_command_queue>(queue);
  const auto context = context_of(into);
  if (!context.ok()) return context.status();
  Points points{api_, into};
  IST_TRY(points.make(*context));
  HeldEvent over{api_};
  IST_TRY(first(points, events, over.place()));
  if (events.event != nullptr) *static_cast<cl_event*>(events.event) = over.release();
  return {};
}

Result<std::unique_ptr<QueueTurn>> OpenclQueues::enter(std::uint64_t queue, const QueueEvents& events,
                                                       std::span<const Piece> pieces, std::function<void()> reached) {
  auto* const into = reinterpret_cast<cl_command_queue>(queue);
  const auto context = context_of(into);
  if (!context.ok()) return context.status();
  auto turn = std::make_unique<OpenclTurn>(api_, pieces, std::move(reached));
  Points points{api_, into};
  IST_TRY(points.make(*context));
  IST_TRY(first(points, events, turn->before().place()));
  cl_int error = CL_SUCCESS;
  *turn->waited().place() = api_.clCreateUserEvent(*context, &error);
  IST_TRY(opencl_status(error, "clCreateUserEvent"));
  const std::array both{turn->before().get(), turn->waited().get()};
  Status status = points.put(both.size(), both.data(), turn->over().place());
  if (status.ok()) status = opencl_status(tell_when_over(api_, turn->before().get(), turn->number()), "clSetEventCallback");
  if (status.ok()) status = opencl_status(api_.clFlush(into), "clFlush");
  if (status.ok() && events.event != nullptr)
    status = opencl_status(api_.clRetainEvent(turn->over().get()), "clRetainEvent");
  if (!status.ok()) return status;  // what is there by now is in nobody's way once the turn is gone
  if (events.event != nullptr) *static_cast<cl_event*>(events.event) = turn->over().get();
  return std::unique_ptr<QueueTurn>{std::move(turn)};
}

}  // namespace ist
