// A rank that dies is an error that names it, within a second, whatever the others were doing. No launcher: the ranks are
// forked here, find each other through RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and one is killed with SIGKILL.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <isthmus/isthmus.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(0, ::bind(fd, reinterpret_cast<sockaddr*>(&address), length));
  EXPECT_EQ(0, ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length));
  ::close(fd);
  return ntohs(address.sin_port);
}

struct Here {
  int rank;
  int size;
  ist_comm comm;
};

// Forks `size` ranks that run `body`; a body returns 0 if all was as it should be. Gives back the wait statuses.
std::vector<int> run_ranks(int size, const std::function<int(const Here&)>& body) {
  const int port = free_port();
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
    ::setenv("ISTHMUS_KINDS", "host", 1);
    ::alarm(30);  // a hang is a failure, not a stuck test
    ist_world world = IST_WORLD_NULL;
    Here here{rank, size, IST_COMM_NULL};
    if (ist_world_create(&world) != IST_OK || ist_world_comm(world, &here.comm) != IST_OK ||
        ist_barrier(here.comm) != IST_OK) {
      std::fprintf(stderr, "[%d] %s\n", rank, ist_error_text());
      ::_exit(99);
    }
    const int result = body(here);
    ist_world_destroy(&world);
    ::_exit(result);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

// Runs a call that must end with the death of `victim`, less than a second after it was noticed to be possible.
int expect_death(const char* what, const Here& here, int victim, Clock::time_point killed_after,
                 const std::function<int()>& call) {
  const int code = call();
  const auto late = Clock::now() - killed_after;
  const std::string text = ist_error_text();
  const std::string name = "rank " + std::to_string(victim) + " ";
  if (code == IST_ERR_PEER_DEAD && text.find(name) != std::string::npos && late < std::chrono::seconds(1)) return 0;
  std::fprintf(stderr, "[%d] %s: %s after %lld ms: %s\n", here.rank, what, ist_code_name(code),
               static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(late).count()), text.c_str());
  return 1;
}

constexpr auto kBefore = std::chrono::milliseconds(100);

[[noreturn]] void die_soon() {
  std::this_thread::sleep_for(kBefore);
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

void expect_all_but(const std::vector<int>& statuses, int victim) {
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    if (static_cast<int>(rank) == victim) {
      EXPECT_TRUE(WIFSIGNALED(statuses[rank]) && WTERMSIG(statuses[rank]) == SIGKILL) << "the victim, rank " << rank;
    } else {
      EXPECT_TRUE(WIFEXITED(statuses[rank])) << "rank " << rank << " was ended by signal " << WTERMSIG(statuses[rank]);
      EXPECT_EQ(0, WEXITSTATUS(statuses[rank])) << "rank " << rank;
    }
  }
}

class Deaths : public testing::TestWithParam<int> {};

TEST_P(Deaths, InTheMiddleOfAReceiveFromItAndOfAWildcardReceive) {
  const int victim = GetParam();
  expect_all_but(run_ranks(4,
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
  expect_all_but(run_ranks(4,
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
  expect_all_but(run_ranks(5,
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
  expect_all_but(run_ranks(2,
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

INSTANTIATE_TEST_SUITE_P(Victims, Deaths, testing::Values(0, 1));

TEST(DeathsAfterwards, EveryLaterCallFailsAtOnceButWhatHadArrivedIsStillDelivered) {
  expect_all_but(
      run_ranks(2,
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
  expect_all_but(run_ranks(3,
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

}  // namespace
