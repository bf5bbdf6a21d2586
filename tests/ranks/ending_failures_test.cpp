// Ends that once never came: of a world whose messages nobody reads any more, of sends behind one that failed, of copies behind streams.
#include <isthmus/stream.h>

#include <array>
#include <cstdlib>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr int kTag = 4;

// The kept message goes into a device, so that its receiver asks its sender for something, for which the pair has no slot any more.
TEST(EndingFailures, AWorldEndsWhateverItHasToTellARankThatLeft) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    constexpr std::size_t kBytes = 32 << 10;
    Checks check(here);
    const Data data = random_bytes(kBytes, 7);
    if (here.rank == 1) {
      check.ok(ist_send(ist_host(data.data()), count(kBytes), IST_BYTE, 0, kTag, here.comm), "the send");
      here.wait_for(0, 1);
      return check.wrong();
    }
    std::this_thread::sleep_for(kBefore);
    const std::int64_t small = 1;
    std::vector<ist_request> requests(3000, IST_REQUEST_NULL);
    for (ist_request& request : requests)
      check.ok(ist_isend(ist_host(&small), 1, IST_INT64, 1, kTag, here.comm, &request), "a send that is not read");
    here.has_come_to(1);
    int code = IST_OK;
    for (ist_request& request : requests)
      if (const int ended = ist_wait(&request, IST_STATUS_IGNORE); ended != IST_OK) code = ended;
    check.that(code == IST_ERR_PEER_LEFT, std::string{"the last of them says "} + ist_code_name(code));
    const Buffer buffer(here, kBytes);
    check.ok(ist_recv(buffer.get(), count(kBytes), IST_BYTE, 1, kTag, here.comm, IST_STATUS_IGNORE), "the kept message");
    check.that(buffer.holds(data), "its bytes");
    return check.wrong();
  }));
}

// Ends its world behind main(), when the main thread's own variables are gone.
struct LeftOpen {
  ist_world world;
  ~LeftOpen() { ::_exit(ist_world_destroy(&world) == IST_OK ? 0 : 3); }
};

TEST(EndingFailures, AWorldThatAStaticObjectEndsWithAllThatIsOpenInIt) {
  NEEDS_FAKE_DRIVER();
  for (const char* const progress : {"0", "1"}) {
    const Variables variables{{"ISTHMUS_PROGRESS_THREAD", progress}};
    expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
      constexpr std::size_t kBytes = 300001;
      static Data onto_host(kBytes);
      static Buffer& from = *new Buffer(here, kBytes, IST_KIND_CUDA, here.rank);
      static Buffer& into = *new Buffer(here, kBytes, IST_KIND_CUDA, here.rank);
      const int other = 1 - here.rank;
      for (int n = 0; n < 4; ++n)
        ist_sendrecv(from.get(), kBytes, IST_BYTE, other, kTag, into.get(), kBytes, IST_BYTE, other, kTag, here.comm,
                     IST_STATUS_IGNORE);
      std::array<ist_request, 3> requests{};
      ist_irecv(into.get(), kBytes, IST_BYTE, other, kTag + 1, here.comm, &requests[0]);
      ist_irecv(ist_host(onto_host.data()), kBytes, IST_BYTE, other, kTag + 1, here.comm, &requests[1]);
      ist_isend(from.get(), kBytes, IST_BYTE, other, kTag + 2, here.comm, &requests[2]);
      static LeftOpen left{here.world};
      std::exit(4);
      return 0;
    }));
  }
}

// Later ones have all the cells, and their receiver keeps them until the place of the failed one is filled.
TEST(EndingFailures, ASendThatFailsWhileOthersWaitForCellsFailsAlone) {
  NEEDS_FAKE_DRIVER();
  const Variables variables{{"ISTHMUS_CELLS", "4"}, {"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    constexpr std::size_t kBytes = 5000;
    constexpr std::size_t kMessages = 64;
    Checks check(here);
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<ist_request> requests(kMessages, IST_REQUEST_NULL);
    for (std::size_t n = 0; n < kMessages; ++n) buffers.push_back(std::make_unique<Buffer>(here, kBytes));
    std::size_t failed = 0;
    if (here.rank == 0) {
      here.wait_for(1, 1);  // or what it still does for its world takes messages in
      for (std::size_t n = 0; n < kMessages; ++n) {
        buffers[n]->fill(random_bytes(kBytes, n));
        check.ok(ist_isend(buffers[n]->get(), kBytes, IST_BYTE, 1, kTag, here.comm, &requests[n]), "isend");
      }
      break_call("cuMemcpyAsync", 0);
      here.has_come_to(1);
      for (ist_request& request : requests) failed += ist_wait(&request, IST_STATUS_IGNORE) == IST_OK ? 0 : 1;
      heal();
    } else {
      here.has_come_to(1);
      here.wait_for(0, 1);
      for (std::size_t n = 0; n < kMessages; ++n) {
        ist_status status{};
        const int code = ist_recv(buffers[n]->get(), kBytes, IST_BYTE, 0, kTag, here.comm, &status);
        failed += code == IST_OK ? 0 : 1;
        if (code == IST_OK) check.that(buffers[n]->holds(random_bytes(kBytes, n)), "the bytes of another one");
      }
    }
    check.that(failed == 1, std::to_string(failed) + " failed");
    return check.wrong();
  }));
}

// The kernel may wait for the very rank that is gone.
TEST(EndingFailures, ASendBehindAKernelThatItsReceiverWantedNothingOfEndsWhenThatRankIsGone) {
  NEEDS_FAKE_DRIVER();
  const Variables variables{{"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    constexpr std::size_t kBytes = 5000;
    Checks check(here);
    if (here.rank == 1) {
      check.fails(ist_recv(ist_host(nullptr), 0, IST_BYTE, 0, kTag, here.comm, IST_STATUS_IGNORE), IST_ERR_TRUNCATE,
                  {"5000"}, "a receive of nothing");
      here.wait_for(0, 1);
      return check.wrong();
    }
    Gate gate;
    const Buffer late(here, kBytes);
    fill_behind(gate, late, kBytes, 0x42);
    ist_request request = IST_REQUEST_NULL;
    check.ok(ist_isend(late.get(), kBytes, IST_BYTE, 1, kTag, here.comm, &request), "a send behind a kernel");
    here.has_come_to(1);
    const int ended = ist_wait(&request, IST_STATUS_IGNORE);
    check.that(ended == IST_ERR_PEER_LEFT, std::string{"it says "} + ist_code_name(ended));
    check.that(!gate.opened_itself(), "the kernel was not waited for");
    gate.open();
    // Before it is freed, all of the device is waited for: the copy behind the kernel reads it.
    ist_world world = here.world;
    check.ok(ist_world_destroy(&world), "the end, which waits for that copy");
    return check.wrong();
  }));
}

// Each stream waits for a message that never comes, and a copy of another message stands behind that.
TEST(EndingFailures, AWorldLetsItsStreamsGoBeforeItWaitsForCopiesBehindThem) {
  NEEDS_FAKE_DRIVER();
  const Variables variables{{"FAKE_CUDA_DEVICES", "1"}};  // where what is short goes by cells
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    constexpr std::size_t kBytes = 3000;
    Checks check(here);
    const int other = 1 - here.rank;
    const Buffer comes(here, kBytes, IST_KIND_CUDA, 0);
    Buffer goes(here, kBytes, IST_KIND_CUDA, 0);
    goes.fill(random_bytes(kBytes, 1));
    check.ok(ist_prepare_on(comes.stream(), other, kTag, IST_SENDS + IST_RECEIVES, here.comm), "prepare");
    for (int n = 0; n < 4; ++n) {  // the first ones ask whether the receiver lends
      ist_request sent = IST_REQUEST_NULL;
      check.ok(ist_isend(goes.get(), kBytes, IST_BYTE, other, kTag, here.comm, &sent), "a send before");
      check.ok(ist_recv(comes.get(), kBytes, IST_BYTE, other, kTag, here.comm, IST_STATUS_IGNORE), "a receive before");
      check.ok(ist_wait(&sent, IST_STATUS_IGNORE), "the send before");
    }
    check.ok(ist_recv_on(comes.stream(), comes.get(), kBytes, IST_BYTE, other, kTag, here.comm), "a receive in the stream");
    ist_buffer behind = goes.get();
    behind.queue = comes.get().queue;
    ist_request request = IST_REQUEST_NULL;
    check.ok(ist_isend(behind, kBytes, IST_BYTE, other, kTag + 1, here.comm, &request), "a send behind it");
    int done = 0;
    for (const auto start = Clock::now(); Clock::now() - start < kBefore;)
      check.ok(ist_test(&request, &done, IST_STATUS_IGNORE), "test");
    check.that(done == 0, "it waits");
    here.has_come_to(1);
    here.wait_for(other, 1);
    ist_world world = here.world;
    const auto start = Clock::now();
    const int ended = ist_world_destroy(&world);
    check.that(Clock::now() - start < std::chrono::seconds{5}, "the world ended soon");
    check.that(ended == IST_ERR_PENDING || ended == IST_ERR_PEER_LEFT, "the end says that something was given up");
    check.fails(ended, ended, {"ist_world_destroy", "rank " + std::to_string(other), "given up"}, "the end");
    return check.wrong();
  }));
}

}  // namespace
