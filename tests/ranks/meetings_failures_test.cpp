// Ranks that die, leave, make another call, or whose driver fails, while streams wait for all of a communicator: nothing hangs, and the next
// call tells why. Once with a device for each rank, where kernels meet, and once with one, where all goes through rank 0.
#include <isthmus/stream.h>

#include "broken_driver.hpp"
#include "waiting_streams.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kBytes = 4000;

class MeetingFailures : public WithSoManyDevices {};

class Own : public Buffer {
 public:
  Own(const Here& here, int devices) : Buffer(here, kBytes, IST_KIND_CUDA, here.rank % devices), here_(here) {}
  int sum(std::size_t bytes = kBytes) const {
    return ist_allreduce_on(stream(), IST_IN_PLACE, get(), count(bytes), IST_BYTE, IST_BXOR, here_.comm);
  }
  int hear(int root) const { return ist_bcast_on(stream(), get(), count(kBytes), IST_BYTE, root, here_.comm); }
  int meet() const { return ist_barrier_on(stream(), here_.comm); }
  int prepare() const { return ist_prepare_collectives_on(stream(), here_.comm); }
  // Until all that is in the stream is over.
  void wait() const { driver_call<CUresult (*)(CUstream)>("cuStreamSynchronize")(static_cast<CUstream>(stream())); }

 private:
  const Here& here_;
};

TEST_P(MeetingFailures, StreamsThatWaitForARankThatDiesGoOnAndTheNextCallNamesIt) {
  const int devices = GetParam();
  for (int which = 0; which < 3; ++which)
    expect_all_but(
        run_ranks(3, "host,cuda",
                  [=](const Here& here) {
                    Checks check(here);
                    const Own buffer(here, devices);
                    check.ok(buffer.sum(), "the first call");
                    buffer.wait();
                    check.ok(ist_barrier(here.comm), "barrier");
                    if (here.rank == 1) die_soon();
                    // Several, so that some come after the one that gives up.
                    for (int n = 0; n < 7; ++n)
                      check.ok(which == 0 ? buffer.sum() : which == 1 ? buffer.hear(1) : buffer.meet(), "a call");
                    const auto start = Clock::now();
                    buffer.wait();
                    check.that(soon(start), "the stream went on");
                    std::this_thread::sleep_for(3 * kBefore);
                    check.fails(buffer.sum(), IST_ERR_PEER_DEAD, {"ist_allreduce_on", "rank 1 "}, "the next call");
                    check.fails(buffer.meet(), IST_ERR_PEER_DEAD, {"ist_barrier_on", "rank 1 "}, "a barrier");
                    ist_world world = here.world;
                    check.fails(ist_world_destroy(&world), IST_ERR_PEER_DEAD, {"ist_world_destroy", "rank 1 "}, "the end");
                    return check.wrong();
                  }),
        1);
}

TEST_P(MeetingFailures, ARankThatLeftIsNamedAndWhatItHadTakenPartInIsWhole) {
  const int devices = GetParam();
  expect_all(run_ranks(3, "host,cuda", [=](const Here& here) {
    Checks check(here);
    Own buffer(here, devices);
    buffer.fill(Data(kBytes, static_cast<unsigned char>(here.rank + 1)));
    check.ok(buffer.sum(), "a call");
    buffer.wait();
    check.that(buffer.holds(Data(kBytes, 1 ^ 2 ^ 3)), "its result");
    if (here.rank == 1) {
      for (const int other : {0, 2}) here.wait_for(other, 1);
      return check.wrong();
    }
    check.ok(buffer.sum(), "a call too many");
    here.has_come_to(1);
    std::this_thread::sleep_for(3 * kBefore);
    const auto start = Clock::now();
    buffer.wait();
    check.that(soon(start), "the stream went on");
    check.fails(buffer.sum(), IST_ERR_PEER_LEFT, {here.rank == 0 ? "rank 1 " : "rank ", "left"}, "the next call");
    ist_world world = here.world;
    static_cast<void>(ist_world_destroy(&world));
    return check.wrong();
  }));
}

TEST_P(MeetingFailures, AWorldThatIsDestroyedUnderWaitingWorkEndsItAndSaysSo) {
  const int devices = GetParam();
  expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
    Checks check(here);
    const Own buffer(here, devices);
    check.ok(buffer.prepare(), "prepare");
    if (here.rank == 0) {
      check.ok(buffer.meet(), "a barrier that nobody comes to");
      std::this_thread::sleep_for(kBefore);
      ist_world world = here.world;
      const auto start = Clock::now();
      check.fails(ist_world_destroy(&world), IST_ERR_PENDING, {"ist_world_destroy", "\"world\""}, "the end of the world");
      check.that(soon(start), "the world ended");
      return check.wrong();
    }
    // The other one's world, where it has NCCL, waits a moment for this one's.
    char nothing = 0;
    check.fails(ist_recv(ist_host(&nothing), 1, IST_BYTE, 0, 7, here.comm, nullptr), IST_ERR_PEER_LEFT, {"rank 0 "},
                "a message of who left");
    check.fails(buffer.meet(), IST_ERR_PEER_LEFT, {"rank 0 "}, "a call");
    return check.wrong();
  }));
}

TEST_P(MeetingFailures, WhatTheDriverRefusesIsToldOnAllRanksAndLaterWorks) {
  const int devices = GetParam();
  expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
    Checks check(here);
    const Own buffer(here, devices);
    for (const char* call : {"cuModuleLoadData", "cuMemHostAlloc", "cuMemAlloc_v2", "cuIpcGetMemHandle"}) {
      if (here.rank == 0) break_call(call, 0);
      if (here.rank == 0)
        check.fails(buffer.prepare(), IST_ERR_DEVICE, {"ist_prepare_collectives_on", std::string{call}.substr(0, 9)}, call);
      else
        check.fails(buffer.prepare(), IST_ERR_DEVICE, {"ist_prepare_collectives_on", "rank 0 ", "_on"}, call);
      heal();
      check.ok(ist_barrier(here.comm), "barrier");
    }
    check.ok(buffer.prepare(), "prepare");
    if (here.rank == 0) {
      break_call("cuLaunchKernel", 0);
      check.fails(buffer.meet(), IST_ERR_DEVICE, {"ist_barrier_on", "cuLaunchKernel"}, "a launch");
      heal();
    }
    check.ok(buffer.sum(), "a call after all that");
    buffer.wait();
    check.ok(ist_barrier(here.comm), "barrier");
    return check.wrong();
  }));
}

// Ranks 0 and 1 cannot believe the link between their devices, which no kernel then stores over: all ranks are told, at every call, and
// the calls that are not in streams work. A communicator without one of the two works in streams.
TEST(MeetingLinks, OverALinkThatIsOffNobodyMeets) {
  NEEDS_FAKE_DRIVER();
  for (const char* how : {"0-1:spoiled", "0-1:refused"}) {
    const Variables links{{"FAKE_CUDA_LINKS", how}, {"FAKE_CUDA_DEVICES", "3"}};
    expect_all(run_ranks(3, "host,cuda", [](const Here& here) {
      Checks check(here);
      Own buffer(here, 3);
      std::vector<std::string> words{"cannot be prepared", "\"world\"", "use the calls without _on"};
      if (here.rank < 2) words.push_back("the link between cuda device " + std::to_string(here.rank));
      if (here.rank < 2) words.push_back("of rank " + std::to_string(1 - here.rank) + ", is off");
      if (here.rank == 2) words.push_back("rank 0 could not open");
      for (int round = 0; round < 2; ++round) {
        check.fails(buffer.sum(), IST_ERR_DEVICE, words, "a call");
        check.fails(buffer.meet(), IST_ERR_DEVICE, words, "a barrier");
        check.fails(buffer.prepare(), IST_ERR_DEVICE, words, "preparing");
      }
      buffer.fill(Data(kBytes, static_cast<unsigned char>(1 << here.rank)));
      check.ok(ist_allreduce(IST_IN_PLACE, buffer.get(), count(kBytes), IST_BYTE, IST_BXOR, here.comm), "ist_allreduce");
      check.that(buffer.holds(Data(kBytes, 7)), "its result");
      ist_comm two = IST_COMM_NULL;
      check.ok(ist_comm_split(here.comm, here.rank == 1 ? 1 : 0, here.rank, &two), "a communicator of 0 and 2");
      buffer.fill(Data(kBytes, static_cast<unsigned char>(1 << here.rank)));
      if (here.rank != 1)
        check.ok(ist_allreduce_on(buffer.stream(), IST_IN_PLACE, buffer.get(), count(kBytes), IST_BYTE, IST_BXOR, two),
                 "theirs");
      buffer.wait();
      check.that(buffer.holds(Data(kBytes, here.rank == 1 ? 2 : 5)), "its result");
      check.ok(ist_barrier(here.comm), "barrier");
      check.ok(ist_comm_free(&two), "freeing it");
      return check.wrong();
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MeetingFailures, testing::Values(3, 1));

// Of kernels that meet: the one that waits for more than comes notices, and the others hear of it.
TEST(MeetingFailures, RanksThatMakeDifferentCallsAreTold) {
  NEEDS_FAKE_DRIVER();
  ::setenv("FAKE_CUDA_DEVICES", "3", 1);
  for (int which = 0; which < 3; ++which)
    expect_all(run_ranks(3, "host,cuda", [=](const Here& here) {
      Checks check(here);
      const Own buffer(here, 3);
      check.ok(buffer.sum(), "the first call");
      if (here.rank != 2)
        check.ok(buffer.sum(), "a call");
      else
        check.ok(which == 0 ? buffer.sum(kBytes - 100) : which == 1 ? buffer.meet() : buffer.hear(0), "another call");
      buffer.wait();
      check.ok(ist_barrier(here.comm), "barrier");
      // Whoever looks first sees whose call is another one; who is behind may hear only that the first has given up.
      std::int32_t knows = 0;
      std::int32_t some_know = 0;
      if (here.rank != 2) {
        const int code = buffer.sum();
        const std::string text = ist_error_text();
        knows = code == IST_ERR_ARGUMENT ? 1 : 0;
        const bool tells =
            text.find(knows == 1 ? "rank 2 made another call" : "were given up, since another rank") != std::string::npos;
        check.that((knows == 1 || code == IST_ERR_PENDING) && tells && text.find("ist_allreduce_on") != std::string::npos,
                   "the next call: " + text);
      } else {
        // Nobody comes to it; the others may have given up already, and then it says so.
        const int code = buffer.sum();
        check.that(
            code == IST_OK || (code == IST_ERR_PENDING &&
                               std::string{ist_error_text()}.find("were given up, since another rank") != std::string::npos),
            std::string{"what nobody comes to: "} + ist_error_text());
      }
      check.ok(ist_allreduce(ist_host(&knows), ist_host(&some_know), 1, IST_INT32, IST_MAX, here.comm), "who knows");
      check.that(some_know == 1, "some rank knows whose call it was");
      buffer.wait();
      check.ok(ist_barrier(here.comm), "barrier");
      if (here.rank == 2) check.that(buffer.sum() != IST_OK, "given up here, too");
      ist_world world = here.world;
      check.that(ist_world_destroy(&world) != IST_OK, "the end of the world tells, too");
      return check.wrong();
    }));
  ::unsetenv("FAKE_CUDA_DEVICES");
}

}  // namespace
