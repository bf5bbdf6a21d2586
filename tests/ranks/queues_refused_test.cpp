// What OpenCL queues are refused: wrong arguments, memory of others, and channels of CUDA streams.
#include "queues_ranks.hpp"

using namespace rank_test;
using queues::Event;
using queues::Queue;

namespace {

TEST(Queues, WhatCannotBeIsRefusedAtOnce) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  GuardedBuffer buffer(IST_KIND_OPENCL, 100);
  const int other = rank() == 0 ? 1 : 0;
  const auto receive = [&](const ist_buffer& into, std::int64_t bytes, int source, int tag) {
    return ist_recv_on_queue(queue.get(), into, bytes, IST_BYTE, source, tag, comm(), 0, nullptr, nullptr);
  };
  fails(IST_ERR_RANK, receive(buffer.get(), 1, IST_ANY_SOURCE, 1), {"ist_recv_on_queue", "source is -1"});
  fails(IST_ERR_ARGUMENT, receive(buffer.get(), 1, other, IST_ANY_TAG), {"tag is -1"});
  fails(IST_ERR_ARGUMENT, receive(buffer.get(), -1, other, 1), {"-1"});
  fails(IST_ERR_ARGUMENT, receive(ist_buffer_at(buffer.get(), 100), 200, other, 1), {"200 bytes"});
  fails(IST_ERR_RANK, queues::send(queue, buffer.get(), 1, size(), 1, comm()), {"ist_send_on_queue", "dest is"});
  fails(IST_ERR_HANDLE, queues::send(queue, buffer.get(), 1, other, 1, IST_COMM_NULL), {"null"});
  fails(IST_ERR_ARGUMENT, ist_prepare_on_queue(queue.get(), other, 1, 0, comm()), {"sides is 0", "IST_SENDS"});
  fails(IST_ERR_ARGUMENT, ist_send_on_queue(nullptr, buffer.get(), 1, IST_BYTE, other, 1, comm(), 0, nullptr, nullptr),
        {"queue is null"});
  fails(IST_ERR_ARGUMENT, ist_send_on_queue(queue.get(), buffer.get(), 1, IST_BYTE, other, 1, comm(), 2, nullptr, nullptr),
        {"wait list", "2 events"});
  // Of another context: the buffer, and an event.
  cl_device_id device = nullptr;
  queues::ok(queues::api().clGetCommandQueueInfo(reinterpret_cast<cl_command_queue>(queue.get()), CL_QUEUE_DEVICE,
                                                 sizeof device, &device, nullptr));
  cl_int error = CL_SUCCESS;
  cl_context far = queues::api().clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  queues::ok(error);
  cl_mem memory = queues::api().clCreateBuffer(far, CL_MEM_READ_WRITE, 100, nullptr, &error);
  queues::ok(error);
  fails(IST_ERR_ARGUMENT, receive(ist_opencl(memory, 0, nullptr), 100, other, 1), {"another context"});
  {
    const Event alien{queues::api().clCreateUserEvent(far, &error)};
    Event done;
    fails(IST_ERR_ARGUMENT, queues::send(queue, buffer.get(), 1, other, 1, comm(), {&alien, &done}),
          {"wait list", "context"});
    EXPECT_EQ(nullptr, done.get());
    queues::ok(queues::api().clSetUserEventStatus(alien.get(), CL_COMPLETE));
  }
  queues::ok(queues::api().clReleaseMemObject(memory));
  queues::ok(queues::api().clReleaseContext(far));
  int cuda = 0;
  if (ist_kind_devices(world(), IST_KIND_CUDA, &cuda) == IST_OK && cuda > 0) {
    GuardedBuffer elsewhere(IST_KIND_CUDA, 100);
    fails(IST_ERR_KIND, receive(elsewhere.get(), 100, other, 1), {"CUDA buffer", "ist_recv_on"});
  }
  queue.wait();
  together();
}

// A stream at one end and a queue at the other would wait for each other for ever.
TEST(Queues, ChannelsOfStreamsAndOfQueuesDoNotMeetAndBothEndsSaySo) {
  NEEDS_QUEUES();
  int cuda = 0;
  if (ist_kind_devices(world(), IST_KIND_CUDA, &cuda) != IST_OK || cuda == 0)
    GTEST_SKIP() << "not covered here: streams and queues in one world, which take a CUDA device, too";
  const Queue queue(anchor());
  const std::vector<std::string> words{"CUDA streams", "OpenCL queues", "do not meet"};
  GuardedBuffer one(IST_KIND_CUDA, 100);
  GuardedBuffer other(IST_KIND_OPENCL, 100);
  const ist_buffer on_device = one.get();
  void* const stream = reinterpret_cast<void*>(on_device.queue);
  for (const bool queue_first : {true, false}) {
    static int tag = 30;  // a channel that both have used is spoiled for good
    ++tag;
    Event done;
    if (rank() == 1 && queue_first) ok(queues::receive(queue, other.get(), 100, 0, tag, comm(), {nullptr, &done}));
    if (queue_first) together();
    if (rank() == 0) {
      // Where the stream is first it is prepared against an end that the other rank opens for it.
      const int code = ist_send_on(stream, on_device, 100, IST_BYTE, 1, tag, comm());
      if (queue_first) fails(IST_ERR_KIND, code, words);
      if (!queue_first) ok(code);
    }
    // The other rank hears of it whatever it calls.
    if (rank() == 1 && queue_first) {
      EXPECT_EQ(CL_SUCCESS, done.wait());
      other.expect({}, "nothing was received");
    }
    together();
    if (rank() == 1) fails(IST_ERR_KIND, queues::receive(queue, other.get(), 100, 0, tag, comm()), words);
    together();
    if (rank() == 0) fails(IST_ERR_KIND, ist_send_on(stream, on_device, 100, IST_BYTE, 1, tag, comm()), words);
    together();
  }
}

}  // namespace
