// What NCCL carries in streams, where ranks die or leave, the world ends under it, communicators are freed, or NCCL cannot be made: nothing
// hangs, nothing is dropped in silence, and what was prepared waits for nobody.
#include <isthmus/stream.h>

#include <cstring>

#include "broken_driver.hpp"
#include "waiting_streams.hpp"

namespace {

using namespace forked_ranks;

// NCCL's kernel in a stream waits for a rank that is dead, until its communicator is aborted.
TEST(LongMeetings, ALongCallThatNcclCarriesEndsWhenARankDies) {
  NEEDS_FAKE_DRIVER();
  ::setenv("FAKE_CUDA_DEVICES", "3", 1);
  expect_all_but(
      run_ranks(3, "host,cuda",
                [=](const Here& here) {
                  Checks check(here);
                  constexpr std::int64_t kLong = 1 << 20;
                  const Buffer buffer(here, kLong * 4, IST_KIND_CUDA, here.rank);
                  const auto sum = [&] {
                    return ist_allreduce_on(buffer.stream(), IST_IN_PLACE, buffer.get(), kLong, IST_FLOAT, IST_SUM,
                                            here.comm);
                  };
                  const auto wait = [&] {
                    driver_call<CUresult (*)(CUstream)>("cuStreamSynchronize")(static_cast<CUstream>(buffer.stream()));
                  };
                  check.ok(sum(), "a call");
                  wait();
                  ist_traffic traffic{};
                  traffic.size = sizeof traffic;
                  check.ok(ist_world_traffic(here.world, IST_ALL_PEERS, IST_CARRIER_NCCL, &traffic), "traffic");
                  check.that(traffic.messages_sent == 1, "NCCL carried it");
                  check.ok(ist_barrier(here.comm), "barrier");
                  if (here.rank == 1) die_soon();
                  check.ok(sum(), "a call that one does not come to");
                  const auto start = Clock::now();
                  wait();
                  check.that(soon(start), "the stream went on");
                  std::this_thread::sleep_for(3 * kBefore);
                  check.fails(sum(), IST_ERR_PEER_DEAD, {"ist_allreduce_on", "rank 1 "}, "the next call");
                  ist_world world = here.world;
                  static_cast<void>(ist_world_destroy(&world));
                  return check.wrong();
                }),
      1);
  ::unsetenv("FAKE_CUDA_DEVICES");
}

// What NCCL carries, of 4 MiB.
class Long : public Buffer {
 public:
  static constexpr std::size_t kSize = std::size_t{4} << 20;
  explicit Long(const Here& here) : Buffer(here, kSize, IST_KIND_CUDA, here.rank), here_(here) {}
  int sum() const { return ist_allreduce_on(stream(), IST_IN_PLACE, get(), count(kSize), IST_UINT8, IST_SUM, here_.comm); }
  void wait() const { driver_call<CUresult (*)(CUstream)>("cuStreamSynchronize")(static_cast<CUstream>(stream())); }

 private:
  const Here& here_;
};

// The grace that NCCL's work has, and what a busy machine adds.
bool after_the_grace(Clock::time_point since) { return Clock::now() - since < std::chrono::seconds(5); }

// Nobody comes to the call: the world ends nevertheless, and says so; also where the other rank dies meanwhile.
TEST(LongMeetings, AWorldThatIsDestroyedUnderALongCallEndsItAndSaysSo) {
  NEEDS_FAKE_DRIVER();
  const Variables devices{{"FAKE_CUDA_DEVICES", "2"}};
  for (const bool dies : {false, true}) {
    const auto statuses = run_ranks(2, "host,cuda", [=](const Here& here) {
      Checks check(here);
      const Long buffer(here);
      check.ok(buffer.sum(), "a call");
      buffer.wait();
      check.ok(ist_barrier(here.comm), "barrier");
      if (here.rank == 0) {
        // Behind a kernel that waits as well: neither may keep the other's end from coming.
        if (dies) check.ok(ist_barrier_on(buffer.stream(), here.comm), "a barrier that nobody comes to");
        check.ok(buffer.sum(), "a call that nobody comes to");
        std::this_thread::sleep_for(kBefore);
        ist_world world = here.world;
        const auto start = Clock::now();
        if (dies)
          check.fails(ist_world_destroy(&world), IST_ERR_PEER_DEAD, {"ist_world_destroy", "rank 1 "},
                      "the end of the world");
        else
          check.fails(ist_world_destroy(&world), IST_ERR_PENDING, {"ist_world_destroy", "\"world\""},
                      "the end of the world");
        check.that(after_the_grace(start), "the world ended");
        return check.wrong();
      }
      if (dies) {
        std::this_thread::sleep_for(4 * kBefore);
        die_soon();
      }
      char nothing = 0;
      check.fails(ist_recv(ist_host(&nothing), 1, IST_BYTE, 0, 7, here.comm, nullptr), IST_ERR_PEER_LEFT, {"rank 0 "},
                  "a message of who left");
      check.fails(buffer.sum(), IST_ERR_PEER_LEFT, {"rank 0 "}, "a call");
      return check.wrong();
    });
    expect_all_but(statuses, dies ? 1 : -1);
  }
}

// What is still to come in a stream when its world is destroyed is carried out, if it comes soon, or is told of; never dropped in silence.
TEST(LongMeetings, ALongCallThatIsNotOverWhenTheWorldIsDestroyedIsFinishedOrToldOf) {
  NEEDS_FAKE_DRIVER();
  const Variables devices{{"FAKE_CUDA_DEVICES", "2"}};
  for (const unsigned before_us : {400000U, 3000000U})
    expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
      Checks check(here);
      Long buffer(here);
      check.ok(buffer.sum(), "a call");
      buffer.wait();
      buffer.fill(Data(Long::kSize, static_cast<unsigned char>(here.rank + 1)));
      check.ok(ist_barrier(here.comm), "barrier");
      static unsigned pause = 0;
      pause = before_us;
      const auto in_stream = [&](CUhostFn function) {
        driver_call<CUresult (*)(CUstream, CUhostFn, void*)>("cuLaunchHostFunc")(static_cast<CUstream>(buffer.stream()),
                                                                                 function, nullptr);
      };
      if (here.rank == 1) in_stream([](void*) { ::usleep(pause); });
      check.ok(buffer.sum(), "a call");
      // What later work of the stream finds.
      static Data result;
      static std::uint64_t address = 0;
      result.resize(Long::kSize);
      address = buffer.get().object + buffer.get().offset;
      in_stream([](void*) {
        const auto bytes_at = driver_call<void* (*)(std::uint64_t)>("fake_cuda_bytes");
        std::memcpy(result.data(), bytes_at(address), Long::kSize);
      });
      ist_world world = here.world;
      const int code = ist_world_destroy(&world);
      if (before_us < 1000000U) {
        check.ok(code, "the end of the world");
        check.that(result == Data(Long::kSize, 3), "the sum");
      } else if (here.rank == 0) {
        check.fails(code, IST_ERR_PENDING, {"ist_world_destroy", "\"world\""}, "the end of the world");
      } else {
        check.that(code == IST_ERR_PENDING || code == IST_ERR_PEER_LEFT, "the end of the world tells");
      }
      return check.wrong();
    }));
}

// Once prepared, a long call waits for nobody: what a rank does after it may be what the others wait for. Prepared by all with that call;
// by some with it, and by others with the first short call; or by short calls first.
TEST(LongMeetings, ALongCallReturnsAtOnceWhereItWasPrepared) {
  NEEDS_FAKE_DRIVER();
  const Variables devices{{"FAKE_CUDA_DEVICES", "2"}};
  for (int which = 0; which < 3; ++which)
    expect_all(run_ranks(2, "host,cuda", [=](const Here& here) {
      Checks check(here);
      Long buffer(here);
      buffer.fill(Data(Long::kSize, static_cast<unsigned char>(here.rank + 1)));
      const auto meet = [&] { check.ok(ist_barrier_on(buffer.stream(), here.comm), "a short call"); };
      const auto prepare = [&] { check.ok(ist_prepare_collectives_on(buffer.stream(), here.comm), "prepare"); };
      if (which == 1 && here.rank == 0) prepare();
      if (which > 0) meet();
      if (which != 1) prepare();
      check.ok(ist_barrier(here.comm), "barrier");
      char word = 0;
      if (here.rank == 0) {
        const auto start = Clock::now();
        check.ok(buffer.sum(), "a call");
        check.that(soon(start), "it returned at once");
        check.ok(ist_send(ist_host(&word), 1, IST_BYTE, 1, 7, here.comm), "a word that the other rank waits for");
      } else {
        ist_request request = IST_REQUEST_NULL;
        check.ok(ist_irecv(ist_host(&word), 1, IST_BYTE, 0, 7, here.comm, &request), "waiting for a word");
        int came = 0;
        for (const auto start = Clock::now(); came == 0 && after_the_grace(start);)
          check.ok(ist_test(&request, &came, nullptr), "looking for it");
        check.that(came != 0, "it came");
        check.ok(buffer.sum(), "a call");
      }
      buffer.wait();
      check.that(buffer.holds(Data(Long::kSize, 3)), "the sum");
      ist_traffic traffic{};
      traffic.size = sizeof traffic;
      check.ok(ist_world_traffic(here.world, IST_ALL_PEERS, IST_CARRIER_NCCL, &traffic), "traffic");
      check.that(traffic.messages_sent == 1, "NCCL carried it");
      check.ok(ist_barrier(here.comm), "barrier");
      return check.wrong();
    }));
}

// NCCL's communicators end with those that they were made for, however many these are.
TEST(LongMeetings, NcclIsGivenUpWhenACommunicatorIsFreed) {
  NEEDS_FAKE_DRIVER();
  const Variables devices{{"FAKE_CUDA_DEVICES", "2"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Long buffer(here);
    void* const nccl = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    const auto living = reinterpret_cast<std::uint64_t (*)()>(::dlsym(nccl, "fake_nccl_living"));
    constexpr int kTimes = 12;
    for (int n = 0; n < kTimes; ++n) {
      ist_comm dup = IST_COMM_NULL;
      check.ok(ist_comm_dup(here.comm, &dup), "dup");
      check.ok(ist_allreduce_on(buffer.stream(), IST_IN_PLACE, buffer.get(), count(Long::kSize), IST_UINT8, IST_SUM, dup),
               "a call");
      check.that(living() >= 1, "NCCL has a communicator");
      buffer.wait();
      check.ok(ist_comm_free(&dup), "freeing it");
    }
    // Each ends in the background, once the other rank has freed it, too.
    for (const auto start = Clock::now(); living() > 0 && after_the_grace(start);) {
      int there = 0;
      check.ok(ist_iprobe(1 - here.rank, 7, here.comm, &there, nullptr), "moving on");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    check.that(living() == 0, "all are over");
    check.ok(ist_barrier(here.comm), "barrier");
    return check.wrong();
  }));
}

// One rank cannot make NCCL's communicator: all go by kernels.
TEST(LongMeetings, WhereNcclCannotBeOnOneRankKernelsCarryLongCallsOnAll) {
  NEEDS_FAKE_DRIVER();
  for (const char* how : {"1:refuse", "2:fail"}) {
    const Variables variables{{"FAKE_CUDA_DEVICES", "3"}, {"FAKE_NCCL_INIT", how}, {"ISTHMUS_BOOT_TIMEOUT", "2"}};
    expect_all(run_ranks(3, "host,cuda", [=](const Here& here) {
      Checks check(here);
      constexpr std::size_t kLong = 4 << 20;
      Buffer buffer(here, kLong, IST_KIND_CUDA, here.rank);
      for (int n = 0; n < 2; ++n) {
        buffer.fill(Data(kLong, static_cast<unsigned char>(here.rank + 1)));
        check.ok(ist_allreduce_on(buffer.stream(), IST_IN_PLACE, buffer.get(), kLong, IST_UINT8, IST_SUM, here.comm),
                 "a call");
        driver_call<CUresult (*)(CUstream)>("cuStreamSynchronize")(static_cast<CUstream>(buffer.stream()));
        check.that(buffer.holds(Data(kLong, 6)), "its result");
      }
      return check.wrong();
    }));
  }
}

}  // namespace
