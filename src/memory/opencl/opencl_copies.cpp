// Copies, and the promises that they will have finished.
#include "base/ranges.hpp"
#include "memory/opencl/opencl_kind.hpp"

namespace ist {
namespace {

cl_int execution_status(const OpenclApi& api, cl_event event) {
  cl_int status = CL_QUEUED;
  const cl_int error = api.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return error == CL_SUCCESS ? status : error;
}

// Lets an event of one context be waited for in another: OpenCL has wait lists only within a context.
struct Bridge {
  const OpenclApi* api;
  cl_event end;  // the user event of the other context
};

void CL_CALLBACK finish_bridge(cl_event, cl_int status, void* data) {
  const std::unique_ptr<Bridge> bridge{static_cast<Bridge*>(data)};
  bridge->api->clSetUserEventStatus(bridge->end, status < 0 ? status : CL_COMPLETE);
  bridge->api->clReleaseEvent(bridge->end);
}

Result<cl_event> make_bridge(const OpenclApi& api, cl_event event, cl_context context) {
  cl_int error = CL_SUCCESS;
  cl_event waited = api.clCreateUserEvent(context, &error);
  IST_TRY(opencl_status(error, "clCreateUserEvent"));
  // Two owners: the callback and the caller. The callback's share is a second reference.
  if (error = api.clRetainEvent(waited); error == CL_SUCCESS) {
    auto bridge = std::make_unique<Bridge>(Bridge{&api, waited});
    error = api.clSetEventCallback(event, CL_COMPLETE, finish_bridge, bridge.get());
    if (error == CL_SUCCESS) {
      static_cast<void>(bridge.release());
      return waited;
    }
    api.clReleaseEvent(waited);
  }
  api.clReleaseEvent(waited);
  return opencl_status(error, "clSetEventCallback");
}

}  // namespace

Result<Ticket> OpenclKind::copy(const Piece& to, const Piece& from, const Ticket& after) {
  const Piece& device_side = to.kind == KindId::opencl ? to : from;
  if (to.size.value == 0 && after.empty()) return Ticket{};
  auto context = contexts_.context_of(memory_of(device_side));
  if (!context.ok()) return context.status();
  if (to.kind == from.kind && !reaches(to, from))
    return Status{IST_ERR_KIND,
                  "a direct copy between OpenCL buffers of two contexts was asked for; only a staged one can be"};
  auto queue = contexts_.queue(*context, device_side.device);
  if (!queue.ok()) return queue.status();
  auto before = wait_for(after, *context);
  if (!before.ok()) return before.status();
  const Range range("isthmus: opencl copy");
  auto ticket = enqueue(*queue, to, from, *before);
  if (*before) api_.clReleaseEvent(*before);
  return ticket;
}

// The event to wait for, as one of `context`, and a reference that the caller releases; null for the empty ticket.
Result<cl_event> OpenclKind::wait_for(const Ticket& after, cl_context context) {
  if (after.empty()) return cl_event{nullptr};
  Promise promise;
  {
    const std::lock_guard lock(mutex_);
    promise = promises_[static_cast<std::uint32_t>(after.id())];
  }
  if (promise.context != context) return make_bridge(api_, promise.event, context);
  IST_TRY(opencl_status(api_.clRetainEvent(promise.event), "clRetainEvent"));
  return promise.event;
}

Result<Ticket> OpenclKind::enqueue(cl_command_queue queue, const Piece& to, const Piece& from, cl_event after) {
  const cl_uint waits = after ? 1 : 0;
  const cl_event* list = after ? &after : nullptr;
  const std::size_t size = to.size.value;
  cl_event done = nullptr;
  cl_int error = CL_SUCCESS;
  const char* call = nullptr;
  if (size == 0) {
    call = "clEnqueueMarkerWithWaitList";
    error = api_.clEnqueueMarkerWithWaitList(queue, waits, list, &done);
  } else if (to.kind == KindId::host) {
    call = "clEnqueueReadBuffer";
    error = api_.clEnqueueReadBuffer(queue, memory_of(from), CL_FALSE, from.offset.value, size, to.address(), waits, list,
                                     &done);
  } else if (from.kind == KindId::host) {
    call = "clEnqueueWriteBuffer";
    error =
        api_.clEnqueueWriteBuffer(queue, memory_of(to), CL_FALSE, to.offset.value, size, from.address(), waits, list, &done);
  } else {
    call = "clEnqueueCopyBuffer";
    error = api_.clEnqueueCopyBuffer(queue, memory_of(from), memory_of(to), from.offset.value, to.offset.value, size, waits,
                                     list, &done);
  }
  if (error != CL_SUCCESS) {
    const char* more = error == CL_MEM_COPY_OVERLAP ? "source and destination overlap"
                       : error == CL_INVALID_OPERATION
                           ? "was the buffer made with CL_MEM_HOST_NO_ACCESS or one-way host access?"
                           : "";
    return opencl_status(error, std::string{call} + " of " + std::to_string(size) + " bytes",
                         error == CL_MEM_COPY_OVERLAP ? IST_ERR_ARGUMENT : IST_ERR_DEVICE, more);
  }
  return promise(queue, done, to, from);
}

Result<Ticket> OpenclKind::promise(cl_command_queue queue, cl_event done, const Piece& to, const Piece& from) {
  Promise promise;
  promise.event = done;
  for (auto [kept, piece] : {std::pair{&promise.first, &to}, std::pair{&promise.second, &from}})
    if (piece->kind == KindId::opencl && api_.clRetainMemObject(memory_of(*piece)) == CL_SUCCESS) *kept = memory_of(*piece);
  api_.clGetEventInfo(promise.event, CL_EVENT_CONTEXT, sizeof promise.context, &promise.context, nullptr);
  // At once, since somebody will wait for it; of what a queue holds (ready()) when somebody asks. Once the device is at work, PoCL's lock is in the way: a step of
  // the demo takes 367 us so, and 399 if copies are told of when they are asked for.
  promise.told = tells_ && tell_when_over(api_, promise.event, listener_) == CL_SUCCESS;
  Ticket ticket = remember(promise);
  if (Status flushed = opencl_status(api_.clFlush(queue), "clFlush"); !flushed.ok()) {
    // The command may run all the same, and after the error its owner may free the memory: this once we wait.
    if (api_.clWaitForEvents(1, &promise.event) != CL_SUCCESS) api_.clFinish(queue);
    return flushed;
  }
  return ticket;
}

Result<Ticket> OpenclKind::ready(const Piece& piece) {
  if (piece.queue == 0) return Ticket{};
  Promise promise;
  // With an empty wait list a marker stands for all commands before it, in out-of-order queues too. There is no cheaper
  // question: OpenCL does not tell whether a queue is idle.
  IST_TRY(opencl_status(api_.clEnqueueMarkerWithWaitList(queue_of(piece), 0, nullptr, &promise.event),
                        "clEnqueueMarkerWithWaitList on the buffer's queue"));
  api_.clGetEventInfo(promise.event, CL_EVENT_CONTEXT, sizeof promise.context, &promise.context, nullptr);
  Ticket ticket = remember(promise);
  IST_TRY(opencl_status(api_.clFlush(queue_of(piece)), "clFlush on the buffer's queue"));
  if (auto done = is_over(ticket, false); !done.ok()) return done.status();
  return ticket;
}

Ticket OpenclKind::remember(Promise promise) {
  const std::lock_guard lock(mutex_);
  if (free_places_.empty()) {
    free_places_.push_back(static_cast<std::uint32_t>(promises_.size()));
    promises_.emplace_back();
  }
  const std::uint32_t place = free_places_.back();
  free_places_.pop_back();
  promise.generation = promises_[place].generation;
  promises_[place] = promise;
  return {this, std::uint64_t{promise.generation} << 32U | place};
}

// Frees the place of a ticket; the caller releases what was in it. Gives an empty promise if the ticket is an old one.
OpenclKind::Promise OpenclKind::take(std::uint64_t id) {
  const auto place = static_cast<std::uint32_t>(id);
  const std::lock_guard lock(mutex_);
  if (place >= promises_.size() || promises_[place].generation != id >> 32U) return {};
  const Promise promise = promises_[place];
  promises_[place] = Promise{};
  promises_[place].generation = promise.generation + 1;
  free_places_.push_back(place);
  return promise;
}

void OpenclKind::release_promise(const Promise& promise) const {
  if (promise.event) api_.clReleaseEvent(promise.event);
  for (cl_mem memory : {promise.first, promise.second})
    if (memory) api_.clReleaseMemObject(memory);
}

Result<bool> OpenclKind::finished(Ticket& ticket) { return is_over(ticket, tells_); }

// `tell`: unless it is over by now, the driver is to tell of its end. Whoever asks again may sleep in between.
Result<bool> OpenclKind::is_over(Ticket& ticket, bool tell) {
  cl_event event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Promise& promise = promises_[static_cast<std::uint32_t>(ticket.id())];
    const std::uint32_t ends = ends_.load();
    ++promise.looks;
    if (promise.told && promise.ends == ends && promise.looks % kAskEvery != 0) return false;
    promise.ends = ends;
    event = promise.event;
    tell = tell && !promise.told;
    promise.told |= tell;
  }
  cl_int status = execution_status(api_, event);
  if (tell && status > CL_COMPLETE) tell_when_over(api_, event, listener_);
  if (status > CL_COMPLETE) return false;
  // Seeing CL_COMPLETE is no synchronisation point in OpenCL; waiting for the complete event is, and returns at once.
  if (status == CL_COMPLETE) status = api_.clWaitForEvents(1, &event);
  release_promise(take(ticket.id()));
  ticket.forget();
  if (status == CL_SUCCESS) return true;
  return opencl_status(status, "an OpenCL copy or reduction, or the work in the queue before it, failed on the device");
}

// The driver keeps event and buffers until the command is over, whoever lets go of them before.
void OpenclKind::drop(std::uint64_t id) { release_promise(take(id)); }

}  // namespace ist
