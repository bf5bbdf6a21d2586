// Memory that is opened ahead where something goes wrong: a rank that is gone is an error that names it, and what cannot be opened is
// none.
#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kBytes = 300001;

TEST(PreparingFailures, ARankThatDiesIsAnErrorThatNamesIt) {
  NEEDS_FAKE_DRIVER();
  for (const bool called : {false, true}) {
    const auto ended = run_ranks(3, "host,cuda", [&](const Here& here) {
      Checks check(here);
      const Buffer memory(here, kBytes, IST_KIND_CUDA, here.rank % 2);
      if (here.rank == 1) {
        // It has said what it lends, or nothing at all.
        ist_request request = IST_REQUEST_NULL;
        if (called) check.ok(ist_iprepare(memory.get(), count(kBytes), IST_BYTE, 0, here.comm, &request), "iprepare");
        die_soon();
      }
      const auto killed = Clock::now() + kBefore;
      const int partner = here.rank == 0 ? 1 : 0;  // rank 2 waits for one that does not come to the call
      const int wrong = expect_death("ist_prepare", here, 1, killed,
                                     [&] { return ist_prepare(memory.get(), count(kBytes), IST_BYTE, partner, here.comm); });
      return wrong + check.wrong();
    });
    expect_all_but(ended, 1);
  }
}

TEST(PreparingFailures, ARankThatLeavesIsAnErrorThatNamesIt) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    if (here.rank == 1) return 0;
    const Buffer memory(here, kBytes, IST_KIND_CUDA, 0);
    check.fails(ist_prepare(memory.get(), count(kBytes), IST_BYTE, 1, here.comm), IST_ERR_PEER_LEFT,
                {"ist_prepare", "rank 1"}, "prepare with a rank that has left");
    return check.wrong();
  }));
}

TEST(PreparingFailures, WhatCannotBeOpenedIsNoErrorAndTheMessageArrives) {
  NEEDS_FAKE_DRIVER();
  for (const char* call : {"cuIpcOpenMemHandle_v2", "cuIpcGetMemHandle", "cuMemcpyAsync"})
    expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
      Checks check(here);
      Buffer memory(here, kBytes, IST_KIND_CUDA, here.rank);
      const Data data = random_bytes(kBytes, 3);
      if (here.rank == 0) memory.fill(data);
      for (int i = 0; i < 4; ++i) break_call(call, i);
      check.ok(ist_prepare(memory.get(), count(kBytes), IST_BYTE, 1 - here.rank, here.comm), "prepare");
      heal();
      check.ok(ist_barrier(here.comm), "barrier");
      ist_status status{};
      check.ok(here.rank == 0 ? ist_send(memory.get(), count(kBytes), IST_BYTE, 1, 7, here.comm)
                              : ist_recv(memory.get(), count(kBytes), IST_BYTE, 0, 7, here.comm, &status),
               "message");
      check.that(memory.holds(data), "the bytes");
      if (here.rank == 1) check.that(status.carrier == IST_CARRIER_RING, ist_carrier_name(status.carrier));
      return check.wrong();
    }));
}

// Neither what the other rank's device memory needs, nor a message from it.
TEST(PreparingFailures, ARankThatHasHostMemoryAloneMakesNoContext) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Data data = random_bytes(kBytes, 3);
    Data bytes(kBytes);
    std::unique_ptr<Buffer> memory;
    if (here.rank == 0) {
      memory = std::make_unique<Buffer>(here, kBytes);
      memory->fill(data);
    }
    const ist_buffer place = memory ? memory->get() : ist_host(bytes.data());
    check.ok(ist_prepare(place, count(kBytes), IST_BYTE, 1 - here.rank, here.comm), "prepare");
    for (int n = 0; n < 3; ++n)
      check.ok(here.rank == 0 ? ist_send(place, count(kBytes), IST_BYTE, 1, 7, here.comm)
                              : ist_recv(place, count(kBytes), IST_BYTE, 0, 7, here.comm, IST_STATUS_IGNORE),
               "message");
    if (here.rank == 0) return check.wrong();
    check.that(bytes == data, "the bytes");
    check.that(driver_call<decltype(&::fake_cuda_count)>("fake_cuda_count")("contexts") == 0, "no context");
    return check.wrong();
  }));
}

// The world goes while the other rank's memory is still being opened.
TEST(PreparingFailures, AWorldThatIsDestroyedMeanwhileWaitsForNobody) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Buffer memory(here, kBytes, IST_KIND_CUDA, here.rank);
    ist_request request = IST_REQUEST_NULL;
    const int code = ist_iprepare(memory.get(), count(kBytes), IST_BYTE, 1 - here.rank, here.comm, &request);
    check.that(code == IST_OK || code == IST_ERR_PEER_LEFT, ist_code_name(code));  // the other one may have left by now
    return check.wrong();
  }));
}

}  // namespace
