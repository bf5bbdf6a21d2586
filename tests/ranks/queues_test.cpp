// Messages that OpenCL queues send and receive: every byte of every size, in the order that queues and events give.
#include <chrono>
#include <thread>

#include "queues_ranks.hpp"

using namespace rank_test;
using queues::Event;
using queues::Queue;

namespace {

using Data = std::vector<unsigned char>;

// From rank 0 to rank 1.
void carry(const Queue& queue, std::size_t bytes, std::size_t room, std::uint64_t seed, ist_kind kind = IST_KIND_OPENCL) {
  GuardedBuffer buffer(kind, std::max(bytes, room));
  auto wanted = random_bytes(bytes, seed);
  if (rank() == 0) {
    buffer.fill(wanted);
    ok(queues::send(queue, buffer.get(), bytes, 1, kTag, comm()));
  } else if (rank() == 1) {
    ok(queues::receive(queue, buffer.get(), room, 0, kTag, comm()));
  }
  queue.wait();
  if (rank() != 1) return;
  wanted.resize(std::min(bytes, room));
  buffer.expect(wanted, std::to_string(bytes) + " bytes into " + std::to_string(room));
}

TEST(Queues, MessagesOfEverySizeArriveInQueuesWithAndWithoutOrder) {
  NEEDS_QUEUES();
  for (const bool ordered : {true, false}) {
    const Queue queue(anchor(), ordered);
    for (const std::size_t bytes : border_sizes()) carry(queue, bytes, bytes, bytes + ordered);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{13}, std::size_t{70001}})
      carry(queue, bytes, bytes, bytes, IST_KIND_HOST);
  }
}

TEST(Queues, AReceiveOfMoreTakesWhatCameAndLeavesTheRest) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{65537}, std::size_t{300001}})
    for (const std::size_t room : {bytes + 1, std::size_t{600000}}) carry(queue, bytes, room, bytes + room);
}

TEST(Queues, AMessageThatIsTooLongIsToldOfByTheNextCallAndTheChannelGoesOn) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  for (const std::size_t bytes : {std::size_t{2}, std::size_t{5001}, std::size_t{65537}, std::size_t{300001}}) {
    for (const std::size_t room : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{270000}}) {
      if (room >= bytes) continue;
      carry(queue, bytes, room, bytes * 3 + room);
      if (rank() == 1) {
        GuardedBuffer buffer(IST_KIND_OPENCL, 8);
        fails(IST_ERR_TRUNCATE, queues::receive(queue, buffer.get(), 8, 0, kTag, comm()),
              {"ist_recv_on_queue", "from rank 0", "tag 5", std::to_string(bytes) + " bytes",
               "receive of " + std::to_string(room)});
        queue.wait();
        buffer.expect({}, "nothing was received");
      }
      carry(queue, 1000 + room, 1000 + room, room);
    }
  }
}

// No processor waits between the commands: what the queue writes is sent, what comes after may write again, and what is received
// is read by the next command.
TEST(Queues, AQueueWithOrderRunsMessagesBetweenItsOtherCommands) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  for (const std::size_t bytes : {std::size_t{1001}, std::size_t{200003}}) {
    constexpr std::uint64_t kRounds = 8;
    GuardedBuffer buffer(IST_KIND_OPENCL, bytes);
    std::vector<Data> sent;
    std::vector<Data> seen(kRounds, Data(bytes, 0xee));
    for (std::uint64_t n = 0; n < kRounds; ++n) sent.push_back(random_bytes(bytes, bytes + n));
    for (std::uint64_t n = 0; n < kRounds; ++n) {
      if (rank() == 0) {
        queue.write(buffer.get(), sent[n]);
        ok(queues::send(queue, buffer.get(), bytes, 1, kTag, comm()));
      } else if (rank() == 1) {
        ok(queues::receive(queue, buffer.get(), bytes, 0, kTag, comm()));
        queue.read(seen[n], buffer.get());
      }
    }
    queue.wait();
    for (std::uint64_t n = 0; rank() == 1 && n < kRounds; ++n) EXPECT_EQ(-1, first_difference(sent[n], seen[n])) << n;
    together();
  }
}

// Without order it is the events that order: the writes of all rounds are there before the first message goes.
TEST(Queues, AQueueWithoutOrderFollowsTheEvents) {
  NEEDS_QUEUES();
  const Queue queue(anchor(), false);
  constexpr std::size_t kBytes = 30001;
  GuardedBuffer buffer(IST_KIND_OPENCL, kBytes);
  std::vector<Data> sent;
  std::vector<Data> seen(6, Data(kBytes, 0xee));
  for (std::uint64_t n = 0; n < seen.size(); ++n) sent.push_back(random_bytes(kBytes, 77 + n));
  Event last;
  for (std::size_t n = 0; n < seen.size(); ++n) {
    Event done;
    if (rank() == 0) {
      const Event written = queue.write(buffer.get(), sent[n], last);
      ok(queues::send(queue, buffer.get(), kBytes, 1, kTag, comm(), {&written, &done}));
    } else if (rank() == 1) {
      ok(queues::receive(queue, buffer.get(), kBytes, 0, kTag, comm(), {&last, &done}));
      done = queue.read(seen[n], buffer.get(), done);
    }
    last = std::move(done);
  }
  queue.wait();
  for (std::size_t n = 0; rank() == 1 && n < seen.size(); ++n) EXPECT_EQ(-1, first_difference(sent[n], seen[n])) << n;
  together();
}

// The calls come back although nothing may begin, and what is behind another event, or on another channel, is not held up.
TEST(Queues, TheWaitListHoldsUpTheMessageAndNotTheCaller) {
  NEEDS_QUEUES();
  const Queue first(anchor());
  const Queue second(anchor(), false);
  const Event gate = first.user_event();
  GuardedBuffer one(IST_KIND_OPENCL, 500);
  GuardedBuffer other(IST_KIND_OPENCL, 500);
  Event late;
  Event soon;
  if (rank() == 0) {
    one.fill(random_bytes(500, 1));
    other.fill(random_bytes(500, 2));
    ok(queues::send(first, one.get(), 500, 1, kTag, comm(), {&gate, &late}));
    ok(queues::send(second, other.get(), 500, 1, kTag + 1, comm(), {nullptr, &soon}));
  } else if (rank() == 1) {
    ok(queues::receive(first, one.get(), 500, 0, kTag, comm(), {nullptr, &late}));
    ok(queues::receive(second, other.get(), 500, 0, kTag + 1, comm(), {nullptr, &soon}));
  }
  if (rank() < 2) {
    EXPECT_EQ(CL_SUCCESS, soon.wait());
  }
  together();
  if (rank() < 2) {
    EXPECT_GT(late.status(), CL_COMPLETE);
  }
  together();
  queues::ok(queues::api().clSetUserEventStatus(gate.get(), CL_COMPLETE));
  if (rank() < 2) {
    EXPECT_EQ(CL_SUCCESS, late.wait());
  }
  if (rank() == 1) {
    one.expect(random_bytes(500, 1), "behind the gate");
    other.expect(random_bytes(500, 2), "beside the gate");
  }
  together();
}

// The n-th that is executed, not the n-th that was called.
TEST(Queues, WithoutOrderMessagesMeetInTheOrderOfTheirExecution) {
  NEEDS_QUEUES();
  const Queue queue(anchor(), false);
  GuardedBuffer buffer(IST_KIND_OPENCL, 200);
  const Event gate = queue.user_event();
  if (rank() == 0) {
    Event late;
    Event soon;
    buffer.fill(random_bytes(200, 3));
    ok(queues::send(queue, buffer.get(), 100, 1, kTag, comm(), {&gate, &late}));
    ok(queues::send(queue, ist_buffer_at(buffer.get(), 100), 100, 1, kTag, comm(), {nullptr, &soon}));
    EXPECT_EQ(CL_SUCCESS, soon.wait());
    queues::ok(queues::api().clSetUserEventStatus(gate.get(), CL_COMPLETE));
    EXPECT_EQ(CL_SUCCESS, late.wait());
  } else if (rank() == 1) {
    Event done;
    ok(queues::receive(queue, ist_buffer_at(buffer.get(), 100), 100, 0, kTag, comm(), {nullptr, &done}));
    EXPECT_EQ(CL_SUCCESS, done.wait());
    ok(queues::receive(queue, buffer.get(), 100, 0, kTag, comm()));
    queue.wait();
    buffer.expect(random_bytes(200, 3), "two messages");
  }
  queues::ok(queues::api().clSetUserEventStatus(gate.get(), CL_COMPLETE) == CL_SUCCESS || rank() == 0 ? CL_SUCCESS : -1);
  together();
}

TEST(Queues, ManyMessagesAreInAQueueBeforeTheFirstReceive) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  for (const std::size_t bytes : {std::size_t{24}, std::size_t{5000}, std::size_t{150000}}) {
    constexpr std::size_t kMessages = 90;
    GuardedBuffer buffer(IST_KIND_OPENCL, bytes * kMessages);
    const auto wanted = random_bytes(bytes * kMessages, bytes);
    if (rank() == 0) {
      buffer.fill(wanted);
      for (std::size_t n = 0; n < kMessages; ++n)
        ok(queues::send(queue, ist_buffer_at(buffer.get(), n * bytes), bytes, 1, kTag, comm()));
    }
    together();  // rank 0 comes here although nobody has received anything
    if (rank() == 1)
      for (std::size_t n = 0; n < kMessages; ++n)
        ok(queues::receive(queue, ist_buffer_at(buffer.get(), n * bytes), bytes, 0, kTag, comm()));
    queue.wait();
    if (rank() == 1) buffer.expect(wanted, "messages of " + std::to_string(bytes) + " bytes");
    together();
  }
}

TEST(Queues, BothWaysInOneCall) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{8}, std::size_t{5003}, std::size_t{65537}, std::size_t{3000001}}) {
    GuardedBuffer out(IST_KIND_OPENCL, bytes);
    GuardedBuffer in(IST_KIND_OPENCL, bytes + 9);
    out.fill(random_bytes(bytes, bytes + at(rank())));
    for (int round = 0; round < 3; ++round) {
      in.poison();
      Event done;
      ok(ist_sendrecv_on_queue(queue.get(), out.get(), queues::count(bytes), IST_BYTE, right, 9, in.get(),
                               queues::count(bytes) + 9, IST_BYTE, left, 9, comm(), 0, nullptr, done.place()));
      EXPECT_EQ(CL_SUCCESS, done.wait());
      in.expect(random_bytes(bytes, bytes + at(left)), std::to_string(bytes) + " bytes from the left");
      together();
    }
  }
}

TEST(Queues, MessagesToOneselfAndOfSeveralCommunicatorsAndTagsStayApart) {
  NEEDS_QUEUES();
  const Queue queue(anchor());
  const Queue more(anchor());
  GuardedBuffer out(IST_KIND_OPENCL, 700);
  GuardedBuffer in(IST_KIND_OPENCL, 700);
  out.fill(random_bytes(700, at(rank())));
  ok(ist_prepare_on_queue(queue.get(), rank(), 1, IST_SENDS + IST_RECEIVES, comm()));
  ok(queues::send(queue, out.get(), 700, rank(), 1, comm()));
  ok(queues::receive(more, in.get(), 700, rank(), 1, comm()));
  more.wait();
  queue.wait();
  in.expect(random_bytes(700, at(rank())), "from oneself");
  ist_comm other = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(comm(), &other));
  if (rank() == 0) {
    ok(ist_prepare_on_queue(queue.get(), 1, 1, IST_SENDS, comm()));
    ok(queues::send(queue, out.get(), 10, 1, 1, comm()));
    ok(queues::send(queue, ist_buffer_at(out.get(), 10), 20, 1, 2, comm()));
    ok(queues::send(queue, ist_buffer_at(out.get(), 30), 30, 1, 1, other));
    queue.wait();
    IST_OK_OR_FAIL(ist_send(ist_buffer_at(out.get(), 60), 40, IST_BYTE, 1, 1, comm()));
  } else if (rank() == 1) {
    in.poison();
    ist_status status{};
    IST_OK_OR_FAIL(ist_recv(ist_buffer_at(in.get(), 60), 640, IST_BYTE, IST_ANY_SOURCE, IST_ANY_TAG, comm(), &status));
    EXPECT_EQ(40, status.bytes);
    ok(queues::receive(queue, ist_buffer_at(in.get(), 30), 30, 0, 1, other));
    ok(queues::receive(queue, ist_buffer_at(in.get(), 10), 20, 0, 2, comm()));
    ok(queues::receive(queue, in.get(), 10, 0, 1, comm()));
    queue.wait();
    auto wanted = random_bytes(700, 0);
    wanted.resize(100);
    in.expect(wanted, "of three channels and a message");
  }
  together();
  IST_OK_OR_FAIL(ist_comm_free(&other));
}

TEST(Queues, ToAndFromNobodyTheEventStillFollowsTheWaitList) {
  NEEDS_QUEUES();
  for (const bool ordered : {true, false}) {
    const Queue queue(anchor(), ordered);
    const Event gate = queue.user_event();
    GuardedBuffer buffer(IST_KIND_OPENCL, 100);
    Event done;
    ok(queues::send(queue, buffer.get(), 100, IST_PROC_NULL, kTag, comm(), {&gate, &done}));
    EXPECT_GT(done.status(), CL_COMPLETE);
    queues::ok(queues::api().clSetUserEventStatus(gate.get(), CL_COMPLETE));
    EXPECT_EQ(CL_SUCCESS, done.wait());
    Event again;
    ok(queues::receive(queue, buffer.get(), 100, IST_PROC_NULL, kTag, comm(), {nullptr, &again}));
    EXPECT_EQ(CL_SUCCESS, again.wait());
    buffer.expect({}, "nothing came");
  }
}

// The message does not go; its event, and what waits for it, ends with an error, and the channel goes on.
TEST(Queues, WhereTheWorkBeforeItFailsAMessageIsGivenUpAndTheNextCallSaysSo) {
  NEEDS_QUEUES();
  const Queue queue(anchor(), false);
  if (rank() == 0) {
    GuardedBuffer buffer(IST_KIND_OPENCL, 100);
    const Event gate = queue.user_event();
    Event done;
    ok(queues::send(queue, buffer.get(), 100, 1, kTag, comm(), {&gate, &done}));
    queues::ok(queues::api().clSetUserEventStatus(gate.get(), -7));
    EXPECT_NE(CL_SUCCESS, done.wait());
    EXPECT_LT(done.status(), 0);
    int code = IST_OK;
    // The event may end before the thread has seen it, by the driver itself.
    for (int tries = 0; tries < 2000 && code == IST_OK; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      code = ist_prepare_on_queue(queue.get(), 1, kTag, IST_SENDS, comm());
    }
    fails(IST_ERR_DEVICE, code, {"to rank 1", "tag 5", "what it waits for in its queue"});
  }
  together();
  carry(queue, 1000, 1000, 6);
}

}  // namespace
