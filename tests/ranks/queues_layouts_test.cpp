// Messages of layouts that OpenCL queues send and receive: packed when the queue has come to them, each byte in its place.
#include <isthmus/layout_stream.h>

#include "laid.hpp"
#include "queues_ranks.hpp"
// After gtest.
#include "held_kernels.hpp"

using namespace rank_test;
using queues::Event;
using queues::Queue;

namespace {

int right() { return (rank() + 1) % size(); }
int left() { return (rank() + size() - 1) % size(); }

int send(const Queue& queue, const ist_buffer& buffer, const Laid& laid, int to, Event* done = nullptr) {
  return ist_send_layout_on_queue(queue.get(), buffer, 1, laid.layout, to, kTag, comm(), 0, nullptr,
                                  done != nullptr ? done->place() : nullptr);
}
int receive(const Queue& queue, const ist_buffer& buffer, const Laid& laid, int from, Event* done = nullptr) {
  return ist_recv_layout_on_queue(queue.get(), buffer, 1, laid.layout, from, kTag, comm(), 0, nullptr,
                                  done != nullptr ? done->place() : nullptr);
}

TEST(QueueLayouts, GoIntoAnotherLayoutIntoARowAndOutOfOneFromBothKindsOfMemory) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  for (const std::int64_t ints : {4, 60, 4000, 80000})
    for (const ist_kind kind : {IST_KIND_OPENCL, IST_KIND_HOST}) {
      const auto vector = strided(ints), list = listed(ints), row = in_a_row(ints);
      for (const auto& [out, in] : {std::pair{vector.get(), list.get()},
                                    {list.get(), vector.get()},
                                    {row.get(), vector.get()},
                                    {list.get(), row.get()}}) {
        GuardedBuffer source(kind, out->reach), target(kind, in->reach);
        const Bytes sent = random_bytes(out->reach, static_cast<std::uint64_t>(ints));
        source.fill(sent);
        if (rank() == 0) ok(send(queue, source.get(), *out, 1));
        if (rank() == 1) ok(receive(queue, target.get(), *in, 0));
        queue.wait();
        if (rank() == 1) target.expect(unpacked(*in, packed(*out, sent)), std::to_string(ints) + " ints");
      }
    }
}

// What the queue writes before is sent, and what it reads behind is what came.
TEST(QueueLayouts, ArePackedBehindTheQueuesWorkAndUnpackedBeforeWhatFollows) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  const auto out = listed(4000), in = strided(4000);
  GuardedBuffer source(IST_KIND_OPENCL, out->reach), target(IST_KIND_OPENCL, in->reach);
  std::vector<Bytes> sent, seen(6, Bytes(in->reach, 0xee));
  for (std::uint64_t n = 0; n < seen.size(); ++n) sent.push_back(random_bytes(out->reach, n * 10 + at(rank())));
  for (std::size_t n = 0; n < seen.size(); ++n) {
    queue.write(source.get(), sent[n]);
    ok(ist_sendrecv_layout_on_queue(queue.get(), source.get(), 1, out->layout, right(), kTag, target.get(), 1, in->layout,
                                    left(), kTag, comm(), 0, nullptr, nullptr));
    queue.read(seen[n], target.get());
  }
  queue.wait();
  for (std::size_t n = 0; n < seen.size(); ++n)
    EXPECT_EQ(unpacked(*in, packed(*out, random_bytes(out->reach, n * 10 + at(left())))), seen[n]) << "round " << n;
  together();
}

// As one that the driver compiles first, or for which a busy device has no room: the receive stands behind the send in one queue, and
// must come to its turn.
TEST(QueueLayouts, ThatFitAreSentWithoutTheirReceivesHoweverLateTheyArePacked) {
  NEEDS_QUEUES();
  constexpr std::chrono::milliseconds kLongerThanPatience{20};
  const auto out = listed(300), in = strided(300);
  queues::HeldKernels kernels(anchor());
  const ist_buffer source = kernels.buffer(out->reach), target = kernels.buffer(in->reach);
  const Queue queue(source);
  // To itself, and round the ring.
  for (const int step : {0, 1}) {
    const int to = (rank() + step) % size(), from = (rank() + size() - step) % size();
    const auto sent_by = [&](int who) { return random_bytes(out->reach, static_cast<std::uint64_t>(step * 100 + who)); };
    const Bytes sent = sent_by(rank()), poison(in->reach, 0xa5);
    Bytes seen(in->reach);
    queue.write(source, sent);
    queue.write(target, poison);
    queue.wait();
    kernels.hold();
    Event went, came;
    ok(send(queue, source, *out, to, &went));
    ok(receive(queue, target, *in, from, &came));
    EXPECT_TRUE(queues::soon([&] { return kernels.waiting() > 0; })) << "no kernel packs";
    std::this_thread::sleep_for(kLongerThanPatience);
    EXPECT_NE(CL_COMPLETE, went.status());
    kernels.let_go();
    if (!queues::soon([&] { return came.status() == CL_COMPLETE; })) {
      ADD_FAILURE() << "the " << (went.status() == CL_COMPLETE ? "receive" : "send") << " with rank " << to
                    << " does not end";
      // Another queue ends both, so that the others' tests can begin.
      const Queue helper(source);
      ok(receive(helper, target, *in, from));
      ok(send(helper, source, *out, to));
      helper.wait();
    }
    queue.read(seen, target);
    queue.wait();
    EXPECT_EQ(unpacked(*in, packed(*out, sent_by(from))), seen) << "from rank " << from;
    together();
  }
}

TEST(QueueLayouts, TellOfALongerMessageByTheNextCallAndTakeAShorterOneAsItIs) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  const auto in = listed(1000);
  GuardedBuffer source(IST_KIND_OPENCL, 5000), target(IST_KIND_OPENCL, in->reach);
  Bytes sent = random_bytes(5000, 3);
  source.fill(sent);
  if (rank() == 0) ok(queues::send(queue, source.get(), 5000, 1, kTag, comm()));
  if (rank() == 1) ok(receive(queue, target.get(), *in, 0));
  queue.wait();
  sent.resize(4000);
  if (rank() == 1) {
    target.expect(unpacked(*in, sent), "the layout");
    fails(IST_ERR_TRUNCATE, receive(queue, target.get(), *in, 0), {"ist_recv_layout_on_queue", "from rank 0", "5000 bytes"});
  }
  target.poison();
  if (rank() == 0) ok(queues::send(queue, source.get(), 3001, 1, kTag, comm()));
  if (rank() == 1) ok(receive(queue, target.get(), *in, 0));
  queue.wait();
  sent.resize(3001);
  if (rank() == 1) target.expect(unpacked(*in, sent), "the first bytes");
  together();
}

TEST(QueueLayouts, MistakesAreToldAndNobodyIsSentNothingWithItsEvent) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  const auto good = strided(100);
  GuardedBuffer buffer(IST_KIND_OPENCL, good->reach);
  ist_layout raw = IST_LAYOUT_NULL, twice = IST_LAYOUT_NULL;
  IST_OK_OR_FAIL(ist_layout_vector(4, 1, 2, ist_layout_of(IST_INT), &raw));
  IST_OK_OR_FAIL(ist_layout_vector(4, 2, 1, ist_layout_of(IST_INT), &twice));
  IST_OK_OR_FAIL(ist_layout_commit(twice));
  fails(IST_ERR_ARGUMENT,
        ist_send_layout_on_queue(queue.get(), buffer.get(), 1, raw, right(), kTag, comm(), 0, nullptr, nullptr),
        {"ist_send_layout_on_queue: the layout, vector("});
  fails(IST_ERR_ARGUMENT,
        ist_recv_layout_on_queue(queue.get(), buffer.get(), 1, twice, left(), kTag, comm(), 0, nullptr, nullptr),
        {"ist_recv_layout_on_queue", "twice"});
  int cuda = 0;
  if (ist_kind_devices(world(), IST_KIND_CUDA, &cuda) == IST_OK && cuda > 0) {
    GuardedBuffer other(IST_KIND_CUDA, good->reach);
    fails(IST_ERR_KIND, send(queue, other.get(), *good, right()), {"ist_send_layout_on_queue"});
  }
  Event done;
  ok(send(queue, buffer.get(), *good, IST_PROC_NULL, &done));
  EXPECT_EQ(CL_SUCCESS, done.wait());
  buffer.expect({}, "nothing came");
  for (ist_layout* layout : {&raw, &twice}) IST_OK_OR_FAIL(ist_layout_free(layout));
  together();
}

}  // namespace
