// Turns in OpenCL queues: when they come, that a queue goes on in any case, and drivers that refuse a call, or call back late or never.
#include <atomic>
#include <chrono>
#include <thread>

#include "memory/opencl/opencl_kind.hpp"
#include "memory/queues.hpp"
#include "support.hpp"

namespace ist::test {
namespace {

enum class Call : std::uint8_t { none, first_marker, second_marker, user_event, copy, callback, flush, properties };
std::atomic<Call> broken{Call::none};
std::atomic<int> markers{0};
std::atomic<bool> keeps_callbacks{false};
std::atomic<void(CL_CALLBACK*)(cl_event, cl_int, void*)> kept{nullptr};
std::atomic<void*> kept_for{nullptr};

const OpenclApi& real() { return **OpenclApi::get(); }

cl_int CL_API_CALL marker(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
  const int number = ++markers;
  if ((broken == Call::first_marker && number == 1) || (broken == Call::second_marker && number == 2))
    return CL_OUT_OF_RESOURCES;
  return real().clEnqueueMarkerWithWaitList(queue, waits, list, event);
}
cl_int CL_API_CALL copy(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t at, std::size_t into, std::size_t size,
                        cl_uint waits, const cl_event* list, cl_event* event) {
  if (broken == Call::copy) return CL_OUT_OF_RESOURCES;
  return real().clEnqueueCopyBuffer(queue, from, to, at, into, size, waits, list, event);
}
cl_event CL_API_CALL user_event(cl_context context, cl_int* error) {
  if (broken != Call::user_event) return real().clCreateUserEvent(context, error);
  *error = CL_OUT_OF_HOST_MEMORY;
  return nullptr;
}
cl_int CL_API_CALL callback(cl_event event, cl_int type, void(CL_CALLBACK* call)(cl_event, cl_int, void*), void* data) {
  if (broken == Call::callback) return CL_OUT_OF_HOST_MEMORY;
  if (!keeps_callbacks) return real().clSetEventCallback(event, type, call, data);
  kept = call;
  kept_for = data;
  return CL_SUCCESS;
}
cl_int CL_API_CALL flush(cl_command_queue queue) {
  return broken == Call::flush ? CL_OUT_OF_RESOURCES : real().clFlush(queue);
}
cl_int CL_API_CALL describe(cl_command_queue queue, cl_command_queue_info what, std::size_t size, void* answer,
                            std::size_t* length) {
  if (broken == Call::properties && what == CL_QUEUE_PROPERTIES) return CL_OUT_OF_RESOURCES;
  return real().clGetCommandQueueInfo(queue, what, size, answer, length);
}

class Turns : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!kinds().find(KindId::opencl))
      GTEST_SKIP() << "SKIPPED: not covered here: turns in OpenCL queues; opencl is not loaded";
    api_ = real();
    api_.clEnqueueMarkerWithWaitList = marker;
    api_.clEnqueueCopyBuffer = copy;
    api_.clCreateUserEvent = user_event;
    api_.clSetEventCallback = callback;
    api_.clFlush = flush;
    api_.clGetCommandQueueInfo = describe;
    kind_ = std::make_unique<OpenclKind>(api_);
    must(kind_->list_devices());
    piece_ = must(kind_->allocate(0, Bytes{64}));
    cl_device_id device = nullptr;
    ok(real().clGetCommandQueueInfo(queue_of(piece_), CL_QUEUE_CONTEXT, sizeof context_, &context_, nullptr));
    ok(real().clGetCommandQueueInfo(queue_of(piece_), CL_QUEUE_DEVICE, sizeof device, &device, nullptr));
    cl_int error = CL_SUCCESS;
    queue_ = real().clCreateCommandQueue(context_, device, GetParam() ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    ok(error);
  }
  void TearDown() override {
    broken = Call::none;
    keeps_callbacks = false;
    if (!queue_) return;
    ok(real().clFinish(queue_));
    ok(real().clReleaseCommandQueue(queue_));
    must(kind_->release(piece_));
  }
  static void ok(cl_int error) { must(opencl_status(error, "a call of the test")); }
  static cl_int status_of(cl_event event) {
    cl_int status = CL_QUEUED;
    ok(real().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
    return status;
  }
  std::uint64_t number() const { return reinterpret_cast<std::uint64_t>(queue_); }
  Result<std::unique_ptr<QueueTurn>> enter(const QueueEvents& events, std::atomic<int>& told) {
    markers = 0;
    return kind_->queues()->enter(number(), events, std::array{piece_}, [&told] { ++told; });
  }
  template <class Condition>
  static bool soon(const Condition& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (!condition() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    return condition();
  }

  OpenclApi api_;
  std::unique_ptr<OpenclKind> kind_;
  Piece piece_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
};

TEST_P(Turns, come_after_the_wait_list_and_hold_up_what_waits_for_them) {
  std::atomic<int> told{0};
  cl_int error = CL_SUCCESS;
  cl_event gate = real().clCreateUserEvent(context_, &error);
  ok(error);
  cl_event over = nullptr;
  auto turn = must(enter({1, static_cast<const void*>(&gate), static_cast<void*>(&over)}, told));
  EXPECT_FALSE(must(turn->has_come()));
  EXPECT_EQ(0, told);
  ok(real().clSetUserEventStatus(gate, CL_COMPLETE));
  EXPECT_TRUE(soon([&] { return told == 1; }));
  EXPECT_TRUE(must(turn->has_come()));
  EXPECT_GT(status_of(over), CL_COMPLETE);
  turn->end();
  ok(real().clWaitForEvents(1, &over));
  turn.reset();
  ok(real().clReleaseEvent(over));
  ok(real().clReleaseEvent(gate));
}

TEST_P(Turns, that_nobody_ends_let_the_queue_go_on) {
  std::atomic<int> told{0};
  auto turn = must(enter({}, told));
  EXPECT_TRUE(soon([&] { return told == 1; }));
  turn.reset();
  ok(real().clFinish(queue_));
}

TEST_P(Turns, whose_wait_list_fails_say_so_and_their_event_fails_too) {
  std::atomic<int> told{0};
  cl_int error = CL_SUCCESS;
  cl_event gate = real().clCreateUserEvent(context_, &error);
  ok(error);
  cl_event over = nullptr;
  auto turn = must(enter({1, static_cast<const void*>(&gate), static_cast<void*>(&over)}, told));
  ok(real().clSetUserEventStatus(gate, -9));
  EXPECT_TRUE(soon([&] { return !turn->has_come().ok(); }));
  turn->end();
  EXPECT_NE(CL_SUCCESS, real().clWaitForEvents(1, &over));
  EXPECT_LT(status_of(over), 0);
  turn.reset();
  ok(real().clReleaseEvent(over));
  ok(real().clReleaseEvent(gate));
}

TEST_P(Turns, that_a_driver_refuses_leave_nothing_that_waits) {
  const std::vector<Call> calls =
      GetParam() ? std::vector{Call::properties,    Call::first_marker, Call::user_event,
                               Call::second_marker, Call::callback,     Call::flush}
                 : std::vector{Call::properties, Call::copy, Call::user_event, Call::callback, Call::flush};
  for (const Call call : calls) {
    std::atomic<int> told{0};
    int unused = 0;
    void* const before = &unused;
    void* event = before;
    broken = call;
    EXPECT_FALSE(enter({0, nullptr, static_cast<void*>(&event)}, told).ok()) << static_cast<int>(call);
    broken = Call::none;
    EXPECT_EQ(before, event);
    ok(real().clFinish(queue_));
    const int heard = told;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    EXPECT_EQ(heard, told) << "it is not told of a turn that is gone";
    auto turn = must(enter({}, told));
    EXPECT_TRUE(soon([&] { return told == heard + 1; }));
    turn->end();
  }
}

TEST_P(Turns, are_not_told_of_once_they_are_gone) {
  keeps_callbacks = true;
  std::atomic<int> told{0};
  auto turn = must(enter({}, told));
  ASSERT_NE(nullptr, kept.load());
  turn.reset();
  kept.load()(nullptr, CL_COMPLETE, kept_for);
  EXPECT_EQ(0, told);
}

INSTANTIATE_TEST_SUITE_P(InQueues, Turns, testing::Values(true, false),
                         [](const auto& with) { return with.param ? "with_order" : "without_order"; });

}  // namespace
}  // namespace ist::test
