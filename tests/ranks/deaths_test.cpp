// A rank that dies is an error that names it, within a second, whatever the others were doing. The ranks are forked, and
// one is killed with SIGKILL.
#include "forked_ranks.hpp"
#include "held_memory.hpp"

namespace {

using namespace forked_ranks;

class Deaths : public testing::TestWithParam<int> {};

TEST_P(Deaths, InTheMiddleOfAReceiveFromItAndOfAWildcardReceive) {
  const int victim = GetParam();
  expect_all_but(run_ranks(4, "host",
                           [=](const Here& here) {
                             if (here.rank == victim) die_soon();
                             char byte = 0;
                             const int source = here.rank % 2 == 0 ? victim : IST_ANY_SOURCE;
                             const auto killed = Clock::now() + kBefore;
                             return expect_death("receive", here, victim, killed, [&] {
                               return ist_recv(ist_host(&byte), 1, IST_BYTE, source, 0, here.comm, IST_STATUS_IGNORE);
                             });
                           }),
                 victim);
}

TEST_P(Deaths, InTheMiddleOfALargeSendToItAndOfAFloodOfSmallOnes) {
  const int victim = GetParam();
  expect_all_but(run_ranks(4, "host",
                           [=](const Here& here) {
                             if (here.rank == victim) die_soon();
                             std::vector<char> bytes(10 << 20, 'x');
                             const int64_t size = here.rank % 2 == 0 ? 10 << 20 : 100;
                             const auto killed = Clock::now() + kBefore;
                             return expect_death("send", here, victim, killed, [&] {
                               int code = IST_OK;
                               while (code == IST_OK)
                                 code = ist_send(ist_host(bytes.data()), size, IST_BYTE, victim, 0, here.comm);
                               return code;
                             });
                           }),
                 victim);
}

TEST_P(Deaths, InTheMiddleOfABarrier) {
  const int victim = GetParam();
  expect_all_but(run_ranks(5, "host",
                           [=](const Here& here) {
                             if (here.rank == victim) die_soon();
                             const auto killed = Clock::now() + kBefore;
                             return expect_death("barrier", here, victim, killed, [&] { return ist_barrier(here.comm); });
                           }),
                 victim);
}

TEST_P(Deaths, OfASenderWhoseLargeMessageIsHalfReceived) {
  const int victim = GetParam();
  const int other = victim == 0 ? 1 : 0;
  expect_all_but(run_ranks(2, "host",
                           [=](const Here& here) {
                             std::vector<char> bytes(64 << 20, 'y');
                             if (here.rank == victim) {
                               std::thread killer([] { die_soon(); });
                               for (;;) ist_send(ist_host(bytes.data()), 64 << 20, IST_BYTE, other, 0, here.comm);
                             }
                             // Receives until the sender is gone; the clock starts when it kills itself.
                             const auto killed = Clock::now() + kBefore + std::chrono::milliseconds(200);
                             return expect_death("large receive", here, victim, killed, [&] {
                               int code = IST_OK;
                               while (code == IST_OK)
                                 code = ist_recv(ist_host(bytes.data()), 64 << 20, IST_BYTE, victim, 0, here.comm,
                                                 IST_STATUS_IGNORE);
                               return code;
                             });
                           }),
                 victim);
}

// Its receiver has copied some of it already, and waits for the rest.
TEST_P(Deaths, OfAWriterInTheMiddleOfAMessage) {
  const int victim = GetParam();
  const int other = victim == 0 ? 1 : 0;
  expect_all_but(run_ranks(2, "host",
                           [=](const Here& here) {
                             constexpr int64_t kBytes = 65536;
                             std::vector<unsigned char> bytes(kBytes, 'z');
                             if (here.rank == victim) {
                               held_memory::HeldMemory memory(bytes);
                               memory.hold(5, std::chrono::milliseconds{kBefore}.count(), true);
                               ist_send(ist_host(memory.data()), kBytes, IST_BYTE, other, 0, here.comm);
                               return 1;
                             }
                             const auto killed = Clock::now() + kBefore;
                             return expect_death("receive", here, victim, killed, [&] {
                               return ist_recv(ist_host(bytes.data()), kBytes, IST_BYTE, victim, 0, here.comm,
                                               IST_STATUS_IGNORE);
                             });
                           }),
                 victim);
}

INSTANTIATE_TEST_SUITE_P(Victims, Deaths, testing::Values(0, 1));

TEST(DeathsAfterwards, EveryLaterCallFailsAtOnceButWhatHadArrivedIsStillDelivered) {
  expect_all_but(
      run_ranks(2, "host",
                [](const Here& here) {
                  if (here.rank == 1) {
                    const int value = 4711;
                    ist_send(ist_host(&value), 1, IST_INT, 0, 5, here.comm);
                    die_soon();
                  }
                  int value = 0;
                  const auto killed = Clock::now() + kBefore;
                  int failures = expect_death("barrier", here, 1, killed, [&] { return ist_barrier(here.comm); });
                  failures +=
                      ist_recv(ist_host(&value), 1, IST_INT, 1, 5, here.comm, IST_STATUS_IGNORE) == IST_OK && value == 4711
                          ? 0
                          : 1;
                  const auto now = Clock::now();
                  failures += expect_death("send", here, 1, now,
                                           [&] { return ist_send(ist_host(&value), 1, IST_INT, 1, 0, here.comm); });
                  failures += expect_death("receive", here, 1, now, [&] {
                    return ist_recv(ist_host(&value), 1, IST_INT, 1, 5, here.comm, IST_STATUS_IGNORE);
                  });
                  return failures;
                }),
      1);
}

TEST(DeathsAfterwards, APendingNonblockingReceiveCompletesWithTheError) {
  expect_all_but(run_ranks(3, "host",
                           [](const Here& here) {
                             if (here.rank == 2) die_soon();
                             int value = 0;
                             ist_request request = IST_REQUEST_NULL;
                             ist_status status{};
                             ist_irecv(ist_host(&value), 1, IST_INT, 2, 5, here.comm, &request);
                             int completed = 0;
                             const auto killed = Clock::now() + kBefore;
                             return expect_death("test", here, 2, killed, [&] {
                               int code = IST_OK;
                               while (completed == 0) code = ist_test(&request, &completed, &status);
                               return status.code == code ? code : IST_ERR_INTERNAL;
                             });
                           }),
                 2);
}

// The child's copy of the world is not the rank: neither its end nor what it destroys is anything to the others.
TEST(ForkedChild, ThatDestroysItsCopyOfTheWorldLeavesTheRankAsItIs) {
  expect_all_but(run_ranks(2, "host",
                           [](const Here& here) {
                             if (here.rank == 0) {
                               const pid_t child = ::fork();
                               if (child == 0) {
                                 ist_world copy = here.world;
                                 const bool as_it_should_be = ist_world_destroy(&copy) == IST_OK && copy == IST_WORLD_NULL;
                                 ::_exit(as_it_should_be ? 0 : 1);
                               }
                               int status = -1;
                               if (::waitpid(child, &status, 0) != child || status != 0) return 1;
                             }
                             if (ist_barrier(here.comm) != IST_OK) return 2;
                             if (here.rank == 1) die_soon();
                             char byte = 0;
                             return expect_death("receive", here, 1, Clock::now() + kBefore, [&] {
                               return ist_recv(ist_host(&byte), 1, IST_BYTE, 1, 0, here.comm, IST_STATUS_IGNORE);
                             });
                           }),
                 1);
}

}  // namespace
