// Ranks that die, leave, or whose driver fails, while streams wait for messages: nothing hangs, and the next call tells why. Once with
// two devices, where kernels wait, and once with one, where streams do.
#include <isthmus/layout_stream.h>

#include "broken_driver.hpp"
#include "waiting_streams.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kBytes = 3000;
constexpr int kTag = 4;

class StreamFailures : public WithSoManyDevices {};

// A buffer on the rank's own device, and the stream that came with it.
class Own : public Buffer {
 public:
  Own(const Here& here, int devices, std::size_t bytes = kBytes)
      : Buffer(here, bytes, IST_KIND_CUDA, here.rank % devices), here_(here) {}
  int send(int to, std::size_t bytes = kBytes) const {
    return ist_send_on(stream(), get(), count(bytes), IST_BYTE, to, kTag, here_.comm);
  }
  int receive(int from, std::size_t bytes = kBytes) const {
    return ist_recv_on(stream(), get(), count(bytes), IST_BYTE, from, kTag, here_.comm);
  }
  int prepare(int partner) const { return ist_prepare_on(stream(), partner, kTag, IST_SENDS + IST_RECEIVES, here_.comm); }
  // Until all that is in the stream is over.
  void wait() const { driver_call<CUresult (*)(CUstream)>("cuStreamSynchronize")(static_cast<CUstream>(stream())); }

 private:
  const Here& here_;
};

TEST_P(StreamFailures, AReceiveThatWaitsForARankThatDiesEndsAndTheNextCallNamesIt) {
  const int devices = GetParam();
  expect_all_but(run_ranks(3, "host,cuda",
                           [=](const Here& here) {
                             Checks check(here);
                             const Own buffer(here, devices);
                             if (here.rank < 2) check.ok(buffer.prepare(1 - here.rank), "prepare");
                             if (here.rank == 1) die_soon();
                             if (here.rank == 0) check.ok(buffer.receive(1), "a receive");
                             const auto start = Clock::now();
                             buffer.wait();
                             check.that(soon(start), "the stream went on");
                             if (here.rank == 2) std::this_thread::sleep_for(3 * kBefore);
                             check.fails(buffer.receive(1), IST_ERR_PEER_DEAD, {"rank 1 "}, "the next receive");
                             check.fails(buffer.send(1), IST_ERR_PEER_DEAD, {"rank 1 "}, "a send");
                             ist_world world = here.world;
                             const int ended = ist_world_destroy(&world);
                             if (here.rank == 0)
                               check.fails(ended, IST_ERR_PEER_DEAD, {"ist_world_destroy", "rank 1 ", "tag 4"}, "the end");
                             return check.wrong();
                           }),
                 1);
}

TEST_P(StreamFailures, ASendThatFindsAFullChannelToARankThatDiesEnds) {
  const int devices = GetParam();
  for (const std::size_t bytes : {kBytes, std::size_t{300000}})
    expect_all_but(run_ranks(2, "host,cuda",
                             [=](const Here& here) {
                               Checks check(here);
                               const Own buffer(here, devices, bytes);
                               check.ok(buffer.prepare(1 - here.rank), "prepare");
                               if (here.rank == 1) die_soon();
                               for (int n = 0; n < 100; ++n) check.ok(buffer.send(1, bytes), "send " + std::to_string(n));
                               const auto start = Clock::now();
                               buffer.wait();
                               check.that(soon(start), "the stream went on");
                               check.fails(buffer.send(1), IST_ERR_PEER_DEAD, {"ist_send_on", "rank 1 "}, "the next send");
                               return check.wrong();
                             }),
                   1);
}

// What rank 1 sends before it leaves.
int send_three(const Here& here, Own& buffer) {
  Checks check(here);
  for (unsigned char n = 0; n < 3; ++n) {
    buffer.fill(Data(kBytes, n));
    check.ok(buffer.send(0), "a send");
  }
  buffer.wait();
  return check.wrong();
}

int receive_three_and_no_more(const Here& here, const Own& buffer) {
  Checks check(here);
  for (unsigned char n = 0; n < 3; ++n) {
    check.ok(buffer.receive(1), "receive " + std::to_string(n));
    check.that(buffer.holds(Data(kBytes, n)), "message " + std::to_string(n) + " is whole");
  }
  check.ok(buffer.receive(1), "a receive too many");
  const auto start = Clock::now();
  buffer.wait();
  check.that(soon(start), "the stream went on");
  check.fails(buffer.receive(1), IST_ERR_PEER_LEFT, {"rank 1 ", "left", "tag 4"}, "the next receive");
  check.fails(buffer.send(1), IST_ERR_PEER_LEFT, {"rank 1 "}, "a send");
  return check.wrong();
}

TEST_P(StreamFailures, WhatARankHadSentWhenItLeftIsReceivedAndNoMore) {
  const int devices = GetParam();
  expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
    Checks check(here);
    Own buffer(here, devices);
    check.ok(buffer.prepare(1 - here.rank), "prepare");
    if (here.rank == 1) return check.wrong() + send_three(here, buffer);
    std::this_thread::sleep_for(3 * kBefore);
    return check.wrong() + receive_three_and_no_more(here, buffer);
  }));
}

// The receiver's end was made when the sender asked for it, and the receiver itself comes to it when the sender is gone, or while it goes.
TEST_P(StreamFailures, WhatARankHadSentIsReceivedByOneThatHadNotPrepared) {
  const int devices = GetParam();
  for (const int looks : {300, 20, 5})
    expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
      Checks check(here);
      Own buffer(here, devices);
      if (here.rank == 1) return check.wrong() + send_three(here, buffer);
      const auto end = Clock::now() + std::chrono::milliseconds(looks);
      // Whether it is still there makes no difference.
      for (int found = 0; Clock::now() < end;) ist_iprobe(1, kTag, here.comm, &found, IST_STATUS_IGNORE);
      return check.wrong() + receive_three_and_no_more(here, buffer);
    }));
}

TEST_P(StreamFailures, AWorldThatIsDestroyedUnderWaitingWorkEndsItAndSaysSo) {
  const int devices = GetParam();
  expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
    Checks check(here);
    const Own buffer(here, devices);
    check.ok(buffer.prepare(1 - here.rank), "prepare");
    check.ok(buffer.receive(1 - here.rank), "a receive");
    here.has_come_to(1);
    if (here.rank == 0) {
      here.wait_for(1, 1);
      std::this_thread::sleep_for(kBefore);
      ist_world world = here.world;
      const auto start = Clock::now();
      check.fails(ist_world_destroy(&world), IST_ERR_PENDING, {"ist_world_destroy", "from rank 1", "tag 4", "\"world\""},
                  "the end of the world");
      check.that(soon(start), "the world ended");
      check.that(world == IST_WORLD_NULL, "it is gone");
      return check.wrong();
    }
    const auto start = Clock::now();
    buffer.wait();
    check.that(soon(start), "the stream went on");
    check.fails(buffer.receive(0), IST_ERR_PEER_LEFT, {"rank 0 "}, "the next receive");
    return check.wrong();
  }));
}

// Every third byte, so many of them.
ist_layout thirds(Checks& check, std::size_t bytes) {
  ist_layout layout = IST_LAYOUT_NULL;
  check.ok(ist_layout_hvector(count(bytes), 1, 3, ist_layout_of(IST_BYTE), &layout), "a layout");
  check.ok(ist_layout_commit(layout), "commit");
  return layout;
}

// What the channel's memory still holds of the message before stays there.
TEST_P(StreamFailures, NothingIsUnpackedIntoALayoutWhoseMessageNeverComes) {
  const int devices = GetParam();
  for (const std::size_t bytes : {kBytes, std::size_t{300000}})
    expect_all_but(run_ranks(2, "host,cuda",
                             [=](const Here& here) {
                               Checks check(here);
                               Own buffer(here, devices, 3 * bytes);
                               const ist_layout layout = thirds(check, bytes);
                               check.ok(buffer.prepare(1 - here.rank), "prepare");
                               if (here.rank == 1) {
                                 buffer.fill(Data(3 * bytes, 7));
                                 check.ok(buffer.send(0, bytes), "a send");
                                 buffer.wait();
                                 die_soon();
                               }
                               const auto receive = [&] {
                                 return ist_recv_layout_on(buffer.stream(), buffer.get(), 1, layout, 1, kTag, here.comm);
                               };
                               const Data untouched(3 * bytes, 0xa5);
                               Data wanted = untouched;
                               for (std::size_t i = 0; i < bytes; ++i) wanted[3 * i] = 7;
                               if (here.rank == 0) check.ok(receive(), "a receive");
                               buffer.wait();
                               check.that(here.rank == 1 || buffer.holds(wanted), "the message was unpacked");
                               buffer.fill(untouched);
                               if (here.rank == 0) check.ok(receive(), "a receive whose sender dies");
                               const auto start = Clock::now();
                               buffer.wait();
                               check.that(soon(start), "the stream went on");
                               check.that(buffer.holds(untouched), "nothing was unpacked");
                               check.fails(receive(), IST_ERR_PEER_DEAD, {"ist_recv_layout_on", "rank 1 "}, "the next one");
                               return check.wrong();
                             }),
                   1);
}

TEST_P(StreamFailures, MemoryAndLaunchesForLayoutsThatAreRefusedAreToldAndLaterWorks) {
  const int devices = GetParam();
  expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
    Checks check(here);
    Own buffer(here, devices, 3 * kBytes);
    const ist_layout layout = thirds(check, kBytes);
    check.ok(buffer.prepare(1 - here.rank), "prepare");
    const auto send = [&] { return ist_send_layout_on(buffer.stream(), buffer.get(), 1, layout, 1, kTag, here.comm); };
    buffer.fill(Data(3 * kBytes, 9));
    if (here.rank == 0) {
      for (const char* call : {"cuMemAlloc_v2", "cuLaunchKernel"}) {
        break_call(call, 0);
        check.fails(send(), IST_ERR_DEVICE, {"ist_send_layout_on", std::string{call}.substr(0, 10)}, call);
        heal();
      }
      check.ok(send(), "a send after all that");
    } else {
      check.ok(buffer.receive(0), "its receive");
      check.ok(buffer.send(0), "a message back");
    }
    if (here.rank == 0) check.ok(buffer.receive(1), "the message back");
    check.that(buffer.holds(Data(3 * kBytes, 9)), "the bytes");
    check.ok(ist_barrier(here.comm), "barrier");
    return check.wrong();
  }));
}

TEST_P(StreamFailures, WhatTheDriverRefusesIsToldOnBothSidesAndLaterWorks) {
  const int devices = GetParam();
  const auto own = [devices](const Here& here) { return std::make_unique<Own>(here, devices); };
  // What the other rank needs for its end, here, the mapping, and a launch.
  expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
    Checks check(here);
    const auto buffer = own(here);
    if (here.rank == 1) break_call("cuIpcGetMemHandle", 0);
    check.ok(ist_barrier(here.comm), "barrier");
    if (here.rank == 0)
      check.fails(buffer->send(1), IST_ERR_DEVICE, {"ist_send_on", "to rank 1", "tag 4", "the other rank", "ist_send"},
                  "a send");
    check.ok(ist_barrier(here.comm), "barrier");
    return check.wrong();
  }));
  expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
    Checks check(here);
    const auto buffer = own(here);
    if (here.rank == 0) {
      for (const char* call :
           {"cuModuleLoadData", "cuMemHostAlloc", "cuMemAlloc_v2", "cuMemsetD8Async", "cuIpcOpenMemHandle_v2"}) {
        break_call(call, 0);
        check.fails(buffer->send(1), IST_ERR_DEVICE, {"ist_send_on", std::string{call}.substr(0, 9)}, call);
        heal();
      }
      check.ok(buffer->prepare(1), "prepare");
      for (const char* call : {"cuLaunchKernel", "cuPointerGetAttributes"}) {
        break_call(call, 0);
        check.fails(buffer->send(1), IST_ERR_DEVICE, {"ist_send_on", call}, call);
        heal();
      }
      check.ok(buffer->send(1), "a send after all that");
      check.ok(ist_barrier(here.comm), "barrier");
    } else {
      check.ok(ist_barrier(here.comm), "barrier");
      check.ok(buffer->receive(0), "its receive");
    }
    buffer->wait();
    check.ok(ist_barrier(here.comm), "barrier");
    return check.wrong();
  }));
}

// Between devices 0 and 1 nothing can be believed, or opened. No kernel stores over that link: both ranks are told, at every call, and
// messages that are not in streams arrive. Rank 2, on a device of its own, is as well reached as ever.
TEST(StreamLinks, OverALinkThatIsOffNothingIsSentInStreams) {
  NEEDS_FAKE_DRIVER();
  for (const char* how : {"0-1:spoiled", "0-1:refused"}) {
    const Variables links{{"FAKE_CUDA_LINKS", how}, {"FAKE_CUDA_DEVICES", "3"}};
    testing::internal::CaptureStderr();
    const auto ended = run_ranks(3, "host,cuda", [](const Here& here) {
      Checks check(here);
      Own buffer(here, 3);
      const int other = 1 - here.rank;
      const auto launches = [] { return driver_call<decltype(&::fake_cuda_calls)>("fake_cuda_calls")("cuLaunchKernel"); };
      std::uint64_t before = 0;
      for (int round = 0; here.rank < 2 && round < 3; ++round) {
        const std::vector<std::string> words{"rank " + std::to_string(other), "tag 4", "the link between", "is off",
                                             "use ist_send and ist_recv"};
        check.fails(here.rank == 0 ? buffer.send(1) : buffer.receive(0), IST_ERR_DEVICE, words, "a call");
        check.fails(buffer.prepare(other), IST_ERR_DEVICE, words, "preparing");
        if (round == 0) before = launches();
      }
      if (here.rank < 2) check.that(launches() == before, "no kernel is launched");
      check.ok(ist_barrier(here.comm), "barrier");
      const Data data = random_bytes(kBytes, 1);
      if (here.rank == 0) buffer.fill(data);
      if (here.rank == 0) check.ok(ist_send(buffer.get(), count(kBytes), IST_BYTE, 1, kTag, here.comm), "ist_send");
      if (here.rank == 1)
        check.ok(ist_recv(buffer.get(), count(kBytes), IST_BYTE, 0, kTag, here.comm, IST_STATUS_IGNORE), "ist_recv");
      if (here.rank == 0) check.ok(buffer.send(2), "a send to rank 2");
      if (here.rank == 2) check.ok(buffer.receive(0), "its receive");
      buffer.wait();
      check.that(buffer.holds(data), "the bytes");
      check.ok(ist_barrier(here.comm), "barrier");
      return check.wrong();
    });
    const std::string said = testing::internal::GetCapturedStderr();
    expect_all(ended);
    for (const char* words :
         {"the link between cuda device 0 and the GPU whose UUID begins with fafafafa, of rank 1, is off",
          "the link between cuda device 1 and the GPU whose UUID begins with fafafafa, of rank 0, is off"})
      EXPECT_EQ(said.find(words), said.rfind(words)) << words << " is said once at most:\n" << said;
    EXPECT_NE(std::string::npos, said.find("is off, and messages go through host memory")) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamFailures, testing::Values(2, 1));

}  // namespace
