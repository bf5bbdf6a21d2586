// With the setting check, a receive in an OpenCL queue of other types than its message's is told of by the next call on its channel; and one
// of the same types never is.
#include <isthmus/layout_stream.h>

#include "laid.hpp"
#include "queues_ranks.hpp"

using namespace rank_test;
using queues::Queue;

namespace {

class QueueTypes : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_QUEUES();
    ok(ist_world_create_configured(rank() == size() - 1 ? "check=1" : "", &world_));
    ok(ist_world_comm(world_, &comm_));
    for (ist_buffer* buffer : {&source_, &target_})
      ok(ist_memory_alloc(world_, IST_KIND_OPENCL, rank() % opencl_devices(), kBytes, buffer));
  }
  void TearDown() override {
    if (world_ == IST_WORLD_NULL) return;
    for (const ist_buffer& buffer : {source_, target_}) ok(ist_memory_free(world_, buffer));
    ok(ist_world_destroy(&world_));
  }
  static int right() { return (rank() + 1) % size(); }
  static int left() { return (rank() + size() - 1) % size(); }
  struct Side {
    std::int64_t count;
    ist_layout layout;
  };
  // To the right, and from the left.
  int exchange(const Queue& queue, const Side& out, const Side& in) const {
    return ist_sendrecv_layout_on_queue(queue.get(), source_, out.count, out.layout, right(), kTag, target_, in.count,
                                        in.layout, left(), kTag, comm_, 0, nullptr, nullptr);
  }
  static Side basic(std::int64_t count, ist_type type) { return {count, ist_layout_of(type)}; }

  ist_world world_ = IST_WORLD_NULL;
  ist_comm comm_ = IST_COMM_NULL;
  static constexpr std::size_t kBytes = 1 << 20;
  ist_buffer source_{}, target_{};
};

TEST_F(QueueTypes, ThatAreTheSameAreNoError) {
  const Queue queue(source_);
  for (const std::int64_t ints : {4, 400, 40000}) {
    const auto vector = strided(ints), list = listed(ints);
    for (const Side& out : {basic(ints, IST_INT32), Side{1, vector->layout}, Side{1, list->layout}})
      for (const Side& in :
           {basic(ints, IST_INT), Side{1, vector->layout}, Side{1, list->layout}, basic(ints * 4, IST_BYTE)})
        ok(exchange(queue, out, in));
    ok(exchange(queue, basic(ints * 4, IST_BYTE), {1, vector->layout}));
    ok(exchange(queue, basic(ints - 1, IST_INT32), {1, vector->layout}));
    queue.wait();
  }
}

TEST_F(QueueTypes, ThatDifferAreToldByTheNextCallWithBothAndTheFirstElement) {
  const Queue queue(source_);
  for (const std::int64_t ints : {4, 400, 40000}) {
    const auto vector = strided(ints);
    const std::string count = std::to_string(ints);
    ok(exchange(queue, basic(ints, IST_FLOAT), {1, vector->layout}));
    queue.wait();
    fails(IST_ERR_ARGUMENT, exchange(queue, basic(ints, IST_FLOAT), basic(ints, IST_FLOAT)),
          {"the channel from rank " + std::to_string(left()),
           "element 0 is IST_FLOAT in the message and IST_INT32 in the receive", "the message: " + count + " IST_FLOAT",
           "the receive: " + count + " IST_INT32", "put nothing into the queue", "ISTHMUS_CHECK"});
    ok(exchange(queue, {1, vector->layout}, basic(ints, IST_INT32)));
    queue.wait();
  }
}

TEST_F(QueueTypes, OfPlainCallsAreComparedToo) {
  const Queue queue(source_);
  const auto carry = [&](ist_type out, ist_type in) {
    const int code = rank() == 0   ? ist_send_on_queue(queue.get(), source_, 500, out, 1, kTag, comm_, 0, nullptr, nullptr)
                     : rank() == 1 ? ist_recv_on_queue(queue.get(), target_, 500, in, 0, kTag, comm_, 0, nullptr, nullptr)
                                   : IST_OK;
    queue.wait();
    return code;
  };
  ok(carry(IST_DOUBLE, IST_DOUBLE));
  ok(carry(IST_DOUBLE, IST_INT64));
  if (rank() == 1)
    fails(IST_ERR_ARGUMENT, ist_recv_on_queue(queue.get(), target_, 500, IST_DOUBLE, 0, kTag, comm_, 0, nullptr, nullptr),
          {"element 0 is IST_DOUBLE in the message and IST_INT64 in the receive"});
  ok(carry(IST_DOUBLE, IST_DOUBLE));
}

}  // namespace
