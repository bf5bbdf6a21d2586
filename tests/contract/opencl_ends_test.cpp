// A kind whose devices are the host's own processor tells of ends to who would rather sleep than look.
#include <atomic>
#include <chrono>
#include <thread>

#include "base/bell.hpp"
#include "memory/opencl/opencl_kind.hpp"
#include "support.hpp"

namespace ist::test {
namespace {

constexpr std::chrono::seconds kLong{20};

std::atomic<int> asked{0};
cl_int CL_API_CALL count_questions(cl_event event, cl_event_info what, std::size_t size, void* answer, std::size_t* length) {
  if (what == CL_EVENT_COMMAND_EXECUTION_STATUS) ++asked;
  return (*OpenclApi::get())->clGetEventInfo(event, what, size, answer, length);
}

std::atomic<bool> never_tells{false};
cl_int CL_API_CALL tell_or_not(cl_event event, cl_int status, void(CL_CALLBACK* over)(cl_event, cl_int, void*), void* data) {
  return never_tells ? CL_SUCCESS : (*OpenclApi::get())->clSetEventCallback(event, status, over, data);
}

class OpenclEnds : public testing::Test {
 protected:
  void SetUp() override {
    if (!kinds().find(KindId::opencl)) GTEST_SKIP() << "SKIPPED: opencl is not loaded here";
    api_ = *must(OpenclApi::get());
    api_.clGetEventInfo = count_questions;
    api_.clSetEventCallback = tell_or_not;
    never_tells = false;
    kind_ = std::make_unique<OpenclKind>(api_);
    must(kind_->list_devices());
    if (!kind_->tell_ends([this] { bell_.ring(); })) GTEST_SKIP() << "SKIPPED: no OpenCL device is the host's own processor";
    piece_ = must(kind_->allocate(0, Bytes{64}));
  }
  void TearDown() override {
    if (gate_ != nullptr) api_.clReleaseEvent(gate_);
    if (piece_.object != 0) must(kind_->release(piece_));
  }
  // Work that is not over until the gate opens.
  Ticket closed() {
    cl_context context = nullptr;
    cl_int error = api_.clGetMemObjectInfo(memory_of(piece_), CL_MEM_CONTEXT, sizeof context, &context, nullptr);
    must(opencl_status(error, "clGetMemObjectInfo"));
    if (gate_ != nullptr) api_.clReleaseEvent(gate_);
    gate_ = api_.clCreateUserEvent(context, &error);
    must(opencl_status(error, "clCreateUserEvent"));
    must(opencl_status(api_.clEnqueueMarkerWithWaitList(queue_of(piece_), 1, &gate_, nullptr),
                       "clEnqueueMarkerWithWaitList"));
    return must(kind_->ready(piece_));
  }
  void open() { must(opencl_status(api_.clSetUserEventStatus(gate_, CL_COMPLETE), "clSetUserEventStatus")); }

  OpenclApi api_;
  Bell bell_;
  std::unique_ptr<OpenclKind> kind_;
  Piece piece_;
  cl_event gate_ = nullptr;
};

TEST_F(OpenclEnds, who_has_looked_in_vain_is_told) {
  Ticket work = closed();
  EXPECT_FALSE(must(kind_->finished(work)));
  const std::uint32_t count = bell_.count();
  std::thread opener([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    open();
  });
  const auto began = std::chrono::steady_clock::now();
  bell_.wait(count, kLong);
  EXPECT_LT(std::chrono::steady_clock::now() - began, kLong) << "the end was not told";
  EXPECT_TRUE(must(kind_->finished(work)));
  EXPECT_TRUE(work.empty());
  opener.join();
}

TEST_F(OpenclEnds, until_it_has_told_the_driver_is_asked_now_and_then) {
  Ticket work = closed();
  EXPECT_FALSE(must(kind_->finished(work)));
  const int before = asked;
  for (int look = 0; look < 80; ++look) EXPECT_FALSE(must(kind_->finished(work)));
  EXPECT_EQ(asked - before, 10);
  open();
  wait(work);
}

// As of work that was terminated.
TEST_F(OpenclEnds, an_end_of_which_no_driver_tells_is_found) {
  never_tells = true;
  Ticket work = closed();
  EXPECT_FALSE(must(kind_->finished(work)));
  open();
  must(opencl_status(api_.clFinish(queue_of(piece_)), "clFinish"));
  const std::uint32_t count = bell_.count();
  int looks = 0;
  for (; !must(kind_->finished(work)); ++looks) ASSERT_LT(looks, 8);
  EXPECT_EQ(bell_.count(), count);
}

TEST_F(OpenclEnds, nobody_is_told_any_longer) {
  Ticket work = closed();
  EXPECT_FALSE(must(kind_->finished(work)));
  const std::uint32_t count = bell_.count();
  EXPECT_TRUE(kind_->tell_ends({}));
  open();
  wait(work);
  Ticket more = closed();
  EXPECT_FALSE(must(kind_->finished(more)));
  open();
  wait(more);
  EXPECT_EQ(bell_.count(), count);
}

// The driver tells of it when the kind is gone.
TEST_F(OpenclEnds, an_end_may_come_after_the_kind_has_gone) {
  Ticket work = closed();
  EXPECT_FALSE(must(kind_->finished(work)));
  cl_command_queue queue = queue_of(piece_);
  must(opencl_status(api_.clEnqueueMarkerWithWaitList(queue, 0, nullptr, nullptr), "clEnqueueMarkerWithWaitList"));
  must(kind_->release(std::exchange(piece_, Piece{})));
  work = Ticket{};
  const std::uint32_t count = bell_.count();
  kind_.reset();
  open();
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  EXPECT_EQ(bell_.count(), count);
}

}  // namespace
}  // namespace ist::test
