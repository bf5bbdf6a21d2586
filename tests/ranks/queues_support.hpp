// What tests of messages in OpenCL queues share: queues of the program's own beside the library's buffers, and events.
//
// Who calls this : queues_test.cpp, queues_failures_test.cpp.
// Threads        : one.
// Ownership      : a Queue and an Event let go of theirs.
// Errors         : a call of OpenCL that fails is a test that fails.
#pragma once

#include <isthmus/collective.h>
#include <isthmus/queue.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/thread_sanitizer.hpp"
#include "memory/opencl/opencl_api.hpp"

namespace queues {

inline const ist::OpenclApi& api() { return **ist::OpenclApi::get(); }
inline void ok(cl_int error) { EXPECT_EQ(CL_SUCCESS, error) << ist::opencl_error_name(error); }
inline std::int64_t count(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }
// What the library's thread did in the turns that are over comes before what follows here.
inline void turns_are_over() { ist::follows(reinterpret_cast<void*>(api().clSetUserEventStatus)); }

class Event {
 public:
  Event() = default;
  explicit Event(cl_event event) : event_(event) {}
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_ != nullptr) api().clReleaseEvent(event_);
  }
  cl_event* place() { return &event_; }
  cl_event get() const { return event_; }
  cl_int wait() const {
    const cl_int waited = api().clWaitForEvents(1, &event_);
    turns_are_over();
    return waited;
  }
  cl_int status() const {
    cl_int status = CL_QUEUED;
    ok(api().clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
    return status;
  }

 private:
  cl_event event_ = nullptr;
};

// One more queue of the context in which a buffer of the library's lies.
class Queue {
 public:
  explicit Queue(const ist_buffer& beside, bool ordered = true) : ordered_(ordered) {
    auto* const library = reinterpret_cast<cl_command_queue>(beside.queue);
    cl_device_id device = nullptr;
    ok(api().clGetCommandQueueInfo(library, CL_QUEUE_CONTEXT, sizeof context_, &context_, nullptr));
    ok(api().clGetCommandQueueInfo(library, CL_QUEUE_DEVICE, sizeof device, &device, nullptr));
    cl_int error = CL_SUCCESS;
    queue_ = api().clCreateCommandQueue(context_, device, ordered ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    ok(error);
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() {
    wait();
    ok(api().clReleaseCommandQueue(queue_));
  }
  void* get() const { return queue_; }
  cl_context context() const { return context_; }
  bool ordered() const { return ordered_; }
  void wait() const {
    ok(api().clFinish(queue_));
    turns_are_over();
  }
  Event user_event() const {
    cl_int error = CL_SUCCESS;
    Event made{api().clCreateUserEvent(context_, &error)};
    ok(error);
    return made;
  }
  // The program's own commands; `after`: what they wait for.
  Event write(const ist_buffer& to, const std::vector<unsigned char>& bytes, const Event& after = {}) const {
    Event done;
    cl_event waits = after.get();
    ok(api().clEnqueueWriteBuffer(queue_, reinterpret_cast<cl_mem>(to.object), CL_FALSE, to.offset, bytes.size(),
                                  bytes.data(), waits != nullptr ? 1 : 0, waits != nullptr ? &waits : nullptr,
                                  done.place()));
    return done;
  }
  Event read(std::vector<unsigned char>& bytes, const ist_buffer& from, const Event& after = {}) const {
    Event done;
    cl_event waits = after.get();
    ok(api().clEnqueueReadBuffer(queue_, reinterpret_cast<cl_mem>(from.object), CL_FALSE, from.offset, bytes.size(),
                                 bytes.data(), waits != nullptr ? 1 : 0, waits != nullptr ? &waits : nullptr, done.place()));
    return done;
  }

 private:
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  bool ordered_;
};

// A call's events: what it waits for, and what it gives.
struct Given {
  const Event* after = nullptr;
  Event* done = nullptr;
  std::uint32_t waits() const { return after != nullptr && after->get() != nullptr ? 1 : 0; }
  cl_event list() const { return waits() != 0 ? after->get() : nullptr; }
};

inline int send(const Queue& queue, const ist_buffer& buffer, std::size_t bytes, int to, int tag, ist_comm comm,
                const Given& events = {}) {
  const cl_event list = events.list();
  return ist_send_on_queue(queue.get(), buffer, count(bytes), IST_BYTE, to, tag, comm, events.waits(), &list,
                           events.done != nullptr ? events.done->place() : nullptr);
}
inline int receive(const Queue& queue, const ist_buffer& buffer, std::size_t bytes, int from, int tag, ist_comm comm,
                   const Given& events = {}) {
  const cl_event list = events.list();
  return ist_recv_on_queue(queue.get(), buffer, count(bytes), IST_BYTE, from, tag, comm, events.waits(), &list,
                           events.done != nullptr ? events.done->place() : nullptr);
}

}  // namespace queues
