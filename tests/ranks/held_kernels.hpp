// A context of OpenCL whose kernels are counted, and begin only when a test lets them.
//
// Who calls this : queues_arithmetic_test.cpp, queues_layouts_test.cpp.
// Threads        : one; kernels are enqueued by any.
// Ownership      : owns context, queue and buffers, but for the table of functions.
// Errors         : fail the test.
#pragma once

#include <CL/cl_icd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

// After gtest.
#include "queues_support.hpp"

namespace queues {

// Every object of OpenCL begins with the address of its driver's table, by which the loader calls it. One that was given another has both here; they
// stay for good, since what the library makes of an object may keep them.
struct Tables {
  cl_icd_dispatch changed{};  // first, so that its address is that of both
  cl_icd_dispatch* driver = nullptr;

  static cl_icd_dispatch*& place_of(void* object) { return *static_cast<cl_icd_dispatch**>(object); }
  static Tables& of(void* object) { return *reinterpret_cast<Tables*>(place_of(object)); }
  // A copy of its driver's own, to be changed.
  static cl_icd_dispatch& give(void* object) {
    // So much of it every driver of OpenCL 1.2 has.
    constexpr std::size_t kShared = offsetof(cl_icd_dispatch, clCreateCommandQueueWithProperties);
    static std::vector<std::unique_ptr<Tables>> all;
    Tables& made = *all.emplace_back(std::make_unique<Tables>());
    made.driver = place_of(object);
    std::memcpy(&made.changed, made.driver, kShared);
    place_of(object) = &made.changed;
    return made.changed;
  }
};

// This context has one of its own, and gives it to the queues that are made in it, the library's among them.
class HeldKernels {
 public:
  // On the device of a buffer of the library's.
  explicit HeldKernels(const ist_buffer& beside) {
    cl_device_id device = nullptr;
    ok(api().clGetCommandQueueInfo(reinterpret_cast<cl_command_queue>(beside.queue), CL_QUEUE_DEVICE, sizeof device, &device,
                                   nullptr));
    cl_int error = CL_SUCCESS;
    context_ = api().clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    ok(error);
    cl_icd_dispatch& table = Tables::give(context_);
    table.clCreateCommandQueue = make_queue;
    table.clEnqueueNDRangeKernel = enqueue;
    queue_ = api().clCreateCommandQueue(context_, device, 0, &error);
    ok(error);
  }
  ~HeldKernels() {
    let_go();
    for (cl_mem each : buffers_) api().clReleaseMemObject(each);
    api().clReleaseCommandQueue(queue_);
    api().clReleaseContext(context_);
  }
  HeldKernels(const HeldKernels&) = delete;
  HeldKernels& operator=(const HeldKernels&) = delete;

  ist_buffer buffer(std::size_t bytes) {
    cl_int error = CL_SUCCESS;
    buffers_.push_back(api().clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &error));
    ok(error);
    return ist_opencl(buffers_.back(), 0, queue_);
  }
  // From now on kernels wait, until they are let go.
  void hold() {
    cl_int error = CL_SUCCESS;
    cl_event gate = api().clCreateUserEvent(context_, &error);
    ok(error);
    const std::lock_guard lock(state().mutex);
    state().gate = gate;
    state().waiting = 0;
  }
  void let_go() {
    cl_event gate = nullptr;
    {
      const std::lock_guard lock(state().mutex);
      gate = std::exchange(state().gate, nullptr);
    }
    if (gate == nullptr) return;
    ok(api().clSetUserEventStatus(gate, CL_COMPLETE));
    ok(api().clReleaseEvent(gate));
  }
  int waiting() const {
    const std::lock_guard lock(state().mutex);
    return state().waiting;
  }
  // Kernels that were enqueued since the process began.
  static int begun() {
    const std::lock_guard lock(state().mutex);
    return state().begun;
  }

 private:
  struct State {
    std::mutex mutex;
    cl_event gate = nullptr;
    int waiting = 0;
    int begun = 0;
  };
  static State& state() {
    static State one;
    return one;
  }
  static cl_command_queue CL_API_CALL make_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties, cl_int* error) {
    cl_command_queue made = Tables::of(context).driver->clCreateCommandQueue(context, device, properties, error);
    if (made != nullptr) Tables::place_of(made) = Tables::place_of(context);
    return made;
  }
  static cl_int CL_API_CALL enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset,
                                    const std::size_t* items, const std::size_t* group, cl_uint waits, const cl_event* list,
                                    cl_event* event) {
    std::vector<cl_event> all;
    for (cl_uint i = 0; i < waits; ++i) all.push_back(list[i]);
    Event gate;
    {
      const std::lock_guard lock(state().mutex);
      ++state().begun;
      if (state().gate != nullptr && api().clRetainEvent(state().gate) == CL_SUCCESS) {
        gate = Event{state().gate};
        all.push_back(gate.get());
        ++state().waiting;
      }
    }
    return Tables::of(queue).driver->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, items, group,
                                                            static_cast<cl_uint>(all.size()),
                                                            all.empty() ? nullptr : all.data(), event);
  }

  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::vector<cl_mem> buffers_;
};

// True if it comes about within some seconds.
template <class Condition>
bool soon(const Condition& condition) {
  const auto last_moment = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > last_moment) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

}  // namespace queues
