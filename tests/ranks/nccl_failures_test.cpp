// What goes wrong in or around NCCL is an error of the call on every rank, or a call by messages: nobody hangs, and what comes
// afterwards works. Ranks are forked, each with the fake CUDA driver and the fake NCCL.
#include <isthmus/collective.h>

#include <cstring>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

// Of whole numbers, which every order adds to the same bits: NCCL has a first call, too.
constexpr std::int64_t kLong = 131072;
constexpr std::size_t kBytes = kLong * sizeof(std::int32_t);

// With a device for each rank.
class DeviceVariables : public Variables {
 public:
  DeviceVariables(std::initializer_list<Pair> all) : Variables(all) { set("FAKE_CUDA_DEVICES", "4"); }
};

Data ones(std::int32_t value) {
  std::vector<std::int32_t> numbers(kLong, value);
  Data bytes(kBytes);
  std::memcpy(bytes.data(), numbers.data(), kBytes);
  return bytes;
}

// A sum over all ranks, on each one's own GPU.
struct Sum {
  Buffer send;
  Buffer recv;
  ist_status status{};
  explicit Sum(const Here& here)
      : send(here, kBytes, IST_KIND_CUDA, here.rank), recv(here, kBytes, IST_KIND_CUDA, here.rank) {
    send.fill(ones(here.rank + 1));
  }
  ist_request start(const Here& here, Checks& check) {
    ist_request request = IST_REQUEST_NULL;
    check.ok(ist_iallreduce(send.get(), recv.get(), kLong, IST_INT32, IST_SUM, here.comm, &request), "iallreduce");
    return request;
  }
  int call(const Here& here, Checks& check) {
    ist_request request = start(here, check);
    return ist_wait(&request, &status);
  }
  bool is_right(const Here& here) const { return recv.holds(ones(here.size * (here.size + 1) / 2)); }
  void works(const Here& here, Checks& check, const std::string& carrier, const std::string& what) {
    check.ok(call(here, check), what);
    check.that(is_right(here), what + ": the sum");
    check.that(ist_carrier_name(status.carrier) == carrier, what + " is carried by " + carrier);
  }
};

int calls_by(const Here& here, const char* carrier, int count) {
  Checks check(here);
  for (int call = 0; call < count; ++call) Sum(here).works(here, check, carrier, "call " + std::to_string(call));
  return check.wrong();
}

TEST(NcclFailures, WithoutAnyTheCallsAreNccls) {
  NEEDS_FAKE_DRIVER();
  const DeviceVariables with{{"ISTHMUS_NCCL", "auto"}};
  expect_all(run_ranks(3, "host,cuda", [](const Here& here) { return calls_by(here, "nccl", 3); }));
}

TEST(NcclFailures, NeverOnOneRankAnOldVersionOrNoLibraryMeansMessagesOnAll) {
  NEEDS_FAKE_DRIVER();
  {
    const DeviceVariables with{{"ISTHMUS_NCCL", "never"}};
    expect_all(run_ranks(3, "host,cuda", [](const Here& here) { return calls_by(here, "none", 2); }));
  }
  {
    const DeviceVariables with{{"FAKE_NCCL_VERSION", "21701"}};
    expect_all(run_ranks(3, "host,cuda", [](const Here& here) { return calls_by(here, "none", 2); }));
  }
  const DeviceVariables with{{"ISTHMUS_NCCL", "libnccl-that-is-not.so"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) { return calls_by(here, "none", 2); }));
}

TEST(NcclFailures, ARankThatCannotMakeItsCommunicatorMakesAllUseMessages) {
  NEEDS_FAKE_DRIVER();
  for (const char* what : {"FAKE_NCCL_INIT", "FAKE_NCCL_SPLIT"})
    for (const char* how : {"1:fail", "0:fail", "1:refuse", "fail", "0:refuse"}) {
      const DeviceVariables with{{what, how}};
      SCOPED_TRACE(std::string{what} + "=" + how);
      expect_all(run_ranks(3, "host,cuda", [](const Here& here) { return calls_by(here, "none", 3); }));
    }
}

TEST(NcclFailures, OneThatWaitsForEverIsGivenUpAfterTheTimeToStart) {
  NEEDS_FAKE_DRIVER();
  for (const char* what : {"FAKE_NCCL_INIT", "FAKE_NCCL_SPLIT"}) {
    const DeviceVariables with{{what, "1:hang"}, {"ISTHMUS_BOOT_TIMEOUT", "2"}};
    SCOPED_TRACE(what);
    expect_all(run_ranks(3, "host,cuda", [](const Here& here) { return calls_by(here, "none", 2); }));
  }
}

// NCCL connects what a call goes through when the first of its shape comes, and waits for the other ranks: messages go on meanwhile.
TEST(NcclFailures, WhatNcclHasToConnectFirstHoldsUpNoMessage) {
  NEEDS_FAKE_DRIVER();
  const DeviceVariables with{{"FAKE_NCCL_CONNECT_MS", "1:1500"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Sum sum(here);
    ist_request request = sum.start(here, check);
    const auto start = Clock::now();
    auto longest = Clock::duration::zero();
    int both_over = 0;
    for (int turns = 0; both_over == 0; ++turns) {
      const auto turn = Clock::now();
      int over = request == IST_REQUEST_NULL ? 1 : 0;
      if (over == 0) check.ok(ist_test(&request, &over, &sum.status), "test");
      check.ok(ist_allreduce(ist_host(&over), ist_host(&both_over), 1, IST_INT, IST_MIN, here.comm), "what both say");
      longest = std::max(longest, Clock::now() - turn);
    }
    check.that(sum.is_right(here), "the sum");
    check.that(Clock::now() - start > std::chrono::milliseconds(1400), "that it took a while");
    check.that(longest < std::chrono::milliseconds(700), "that messages went on");
    check.that(std::string{ist_carrier_name(sum.status.carrier)} == "nccl", "that NCCL carried it");
    return check.wrong();
  }));
}

// The call fails on all ranks, on the one with NCCL's own words; the next one goes by messages.
int one_call_fails(const Here& here, int culprit) {
  Checks check(here);
  Sum(here).works(here, check, "nccl", "the first call");
  Sum second(here);
  const std::string words = here.rank == culprit ? "the fake's" : "rank " + std::to_string(culprit) + " ";
  check.fails(second.call(here, check), IST_ERR_DEVICE, {words}, "the second call");
  Sum(here).works(here, check, "none", "the third call");
  Sum(here).works(here, check, "none", "the fourth call");
  return check.wrong();
}

TEST(NcclFailures, ACallThatOneRankCannotStartFailsOnAll) {
  NEEDS_FAKE_DRIVER();
  for (const char* variable : {"FAKE_NCCL_LAUNCH", "FAKE_NCCL_LATE"})
    for (const int culprit : {0, 2}) {
      const std::string value = std::to_string(culprit) + ":2";
      const DeviceVariables with{{variable, value.c_str()}};
      SCOPED_TRACE(std::string{variable} + "=" + value);
      expect_all(run_ranks(3, "host,cuda", [=](const Here& here) { return one_call_fails(here, culprit); }));
    }
}

TEST(NcclFailures, ACountThatIsWrongOnOneRankFailsOnAll) {
  NEEDS_FAKE_DRIVER();
  const DeviceVariables with{{"ISTHMUS_NCCL", "auto"}};
  expect_all(run_ranks(3, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Buffer send(here, 3 * kBytes, IST_KIND_CUDA, here.rank);
    const Buffer recv(here, 3 * kBytes, IST_KIND_CUDA, here.rank);
    const std::int64_t count = here.rank == 1 ? -1 : kLong;
    check.that(ist_alltoall(send.get(), recv.get(), count, IST_INT32, here.comm) != IST_OK, "alltoall fails");
    Sum sum(here);
    check.ok(sum.call(here, check), "the next call");
    check.that(sum.is_right(here), "its sum");
    return check.wrong();
  }));
}

TEST(NcclFailures, CallsBehindTheOneThatFailsFailToo) {
  NEEDS_FAKE_DRIVER();
  const DeviceVariables with{{"FAKE_NCCL_LAUNCH", "1:2"}};
  expect_all(run_ranks(3, "host,cuda", [](const Here& here) {
    Checks check(here);
    Sum first(here);
    Sum second(here);
    Sum third(here);
    ist_request one = first.start(here, check);
    ist_request two = second.start(here, check);
    ist_request three = third.start(here, check);
    // The first may have ended, or been cut off on the way.
    static_cast<void>(ist_wait(&one, IST_STATUS_IGNORE));
    check.that(ist_wait(&two, IST_STATUS_IGNORE) == IST_ERR_DEVICE, "the second call fails");
    check.that(ist_wait(&three, IST_STATUS_IGNORE) == IST_ERR_DEVICE, "the third call fails");
    Sum(here).works(here, check, "none", "the next call");
    return check.wrong();
  }));
}

// The rank that gives a call up may have agreed to NCCL already, and its buffers die at once.
TEST(NcclFailures, ACallThatOneRankCancelsIsAnErrorThatNamesItOnTheOthers) {
  NEEDS_FAKE_DRIVER();
  const DeviceVariables with{{"ISTHMUS_NCCL", "auto"}};
  for (const bool opened : {false, true})
    expect_all(run_ranks(3, "host,cuda", [=](const Here& here) {
      Checks check(here);
      if (opened) Sum(here).works(here, check, "nccl", "the first call");
      int word = 0;
      if (here.rank == 2) {
        {
          Sum sum(here);
          ist_request request = sum.start(here, check);
          check.ok(ist_cancel(request), "cancel");
          check.ok(ist_wait(&request, &sum.status), "the wait for what is cancelled");
          check.that(sum.status.code == IST_CANCELLED, "it is cancelled");
        }
        for (int rank = 0; rank < 2; ++rank) check.ok(ist_send(ist_host(&word), 1, IST_INT, rank, 5, here.comm), "send");
      } else {
        check.ok(ist_recv(ist_host(&word), 1, IST_INT, 2, 5, here.comm, IST_STATUS_IGNORE), "receive");
        check.that(Sum(here).call(here, check) == IST_ERR_PENDING, "the call fails");
        const std::string text = ist_error_text();
        check.that(
            text.find("rank 2 (process") != std::string::npos && text.find("cancelled this call") != std::string::npos,
            text);
      }
      Sum next(here);
      check.ok(next.call(here, check), "the next call");
      check.that(next.is_right(here), "its sum");
      return check.wrong();
    }));
}

TEST(NcclFailures, WhatIsPendingInABuffersStreamComesFirst) {
  NEEDS_FAKE_DRIVER();
  const DeviceVariables with{{"ISTHMUS_NCCL", "auto"}};
  for (const char* carrier : {"nccl", "none"})
    expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
      Checks check(here);
      Buffer send(here, kBytes, IST_KIND_CUDA, here.rank);
      Buffer recv(here, kBytes, std::string{carrier} == "none" && here.rank == 0 ? IST_KIND_HOST : IST_KIND_CUDA,
                  std::string{carrier} == "none" && here.rank == 0 ? 0 : here.rank);
      Gate gate;
      if (here.rank == 1) fill_behind(gate, send, kBytes, 2);
      if (here.rank == 0) send.fill(Data(kBytes, 1));
      ist_request request = IST_REQUEST_NULL;
      ist_status status{};
      check.ok(ist_iallreduce(send.get(), recv.get(), kBytes, IST_UINT8, IST_SUM, here.comm, &request), "iallreduce");
      // Other messages go on meanwhile.
      for (int n = 0; n < 20; ++n) check.ok(ist_barrier(here.comm), "a barrier meanwhile");
      int done = 0;
      check.ok(ist_test(&request, &done, &status), "test");
      check.that(done == 0, "the call waits for the kernel of rank 1");
      check.ok(ist_barrier(here.comm), "seen by all");
      gate.open();
      check.ok(ist_wait(&request, &status), "wait");
      check.that(recv.holds(Data(kBytes, 3)), "the sum has what the kernel wrote");
      check.that(std::string{ist_carrier_name(status.carrier)} == carrier, std::string{"carried by "} + carrier);
      check.that(!gate.opened_itself(), "nobody waited for the gate");
      return check.wrong();
    }));
}

TEST(NcclFailures, ARankThatDiesInTheMiddleIsAnErrorThatNamesIt) {
  NEEDS_FAKE_DRIVER();
  const DeviceVariables with{{"ISTHMUS_NCCL", "auto"}};
  for (const int victim : {0, 1})
    expect_all_but(run_ranks(3, "host,cuda",
                             [=](const Here& here) {
                               Checks check(here);
                               Sum(here).works(here, check, "nccl", "the first call");
                               Sum second(here);
                               Gate gate;
                               if (here.rank == victim) {
                                 // It has agreed, and the others' kernels wait for its own.
                                 gate.close(second.send.stream());
                                 static_cast<void>(second.start(here, check));
                                 die_soon();
                               }
                               const auto killed = Clock::now() + kBefore;
                               return check.wrong() + expect_death("allreduce", here, victim, killed,
                                                                   [&] { return second.call(here, check); });
                             }),
                   victim);
}

// While communicators are made, and while NCCL connects what the first call goes through.
TEST(NcclFailures, ARankThatDiesInTheFirstCallIsAnErrorThatNamesIt) {
  NEEDS_FAKE_DRIVER();
  for (const auto& [what, how] : {std::pair{"FAKE_NCCL_INIT", "1:hang"}, {"FAKE_NCCL_CONNECT_MS", "2:100000"}}) {
    const DeviceVariables with{{what, how}};
    SCOPED_TRACE(what);
    expect_all_but(run_ranks(3, "host,cuda",
                             [](const Here& here) {
                               Checks check(here);
                               Sum first(here);
                               if (here.rank == 2) {
                                 static_cast<void>(first.start(here, check));
                                 die_soon();
                               }
                               const auto killed = Clock::now() + kBefore;
                               return expect_death("allreduce", here, 2, killed, [&] { return first.call(here, check); });
                             }),
                   2);
  }
}

TEST(NcclFailures, ARankThatLeavesWithACallUnderWayIsAnErrorOfTheOthers) {
  NEEDS_FAKE_DRIVER();
  const DeviceVariables with{{"ISTHMUS_NCCL", "auto"}};
  expect_all(run_ranks(3, "host,cuda", [](const Here& here) {
    Checks check(here);
    Sum(here).works(here, check, "nccl", "the first call");
    Sum second(here);
    Gate gate;
    if (here.rank == 1) {
      gate.close(second.send.stream());
      static_cast<void>(second.start(here, check));
      std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        gate.open();
      });
      ist_world world = here.world;
      check.ok(ist_world_destroy(&world), "destroy");
      opener.join();
      ::_exit(check.wrong());
    }
    check.fails(second.call(here, check), IST_ERR_PEER_LEFT, {"rank 1 "}, "the second call");
    return check.wrong();
  }));
}

TEST(NcclFailures, CommunicatorsAreFreedWhileTheirCallsAreUnderWay) {
  NEEDS_FAKE_DRIVER();
  const DeviceVariables with{{"ISTHMUS_NCCL", "auto"}};
  expect_all(run_ranks(3, "host,cuda", [](const Here& here) {
    Checks check(here);
    for (int round = 0; round < 3; ++round) {
      Here there = here;
      check.ok(ist_comm_dup(here.comm, &there.comm), "dup");
      Sum sum(here);
      ist_request request = sum.start(there, check);
      check.ok(ist_comm_free(&there.comm), "free");
      check.ok(ist_wait(&request, &sum.status), "wait");
      check.that(sum.is_right(here), "the sum");
      check.that(sum.status.carrier == IST_CARRIER_NCCL, "NCCL carried it");
    }
    return check.wrong();
  }));
}

}  // namespace
