// Every call from any thread at once, and messages that move without calls. Run on 2 and 3 ranks, and with the thread sanitizer.
#include <isthmus/collective.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string_view>
#include <thread>

#include "rank_test.hpp"

namespace {

using namespace rank_test;
using Clock = std::chrono::steady_clock;

constexpr int kThreads = 8;

int right() { return (rank() + 1) % size(); }
int left() { return (rank() + size() - 1) % size(); }

void on_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

// One thread's traffic in a communicator of its own: small, middle and large, in order, every byte compared.
void exchange_in(ist_comm comm, int thread, int rounds) {
  for (int round = 0; round < rounds; ++round)
    for (const std::size_t bytes : {std::size_t{7}, std::size_t{3001}, std::size_t{90001}}) {
      const auto seed = [&](int of) { return static_cast<std::uint64_t>((of * kThreads + thread) * 1000 + round) + bytes; };
      const auto mine = random_bytes(bytes, seed(rank()));
      std::vector<unsigned char> theirs(bytes, 0xa5);
      const auto count = static_cast<int64_t>(bytes);
      ist_request requests[2] = {IST_REQUEST_NULL, IST_REQUEST_NULL};
      ASSERT_EQ(IST_OK, ist_irecv(ist_host(theirs.data()), count, IST_BYTE, left(), thread, comm, &requests[0]));
      ASSERT_EQ(IST_OK, ist_isend(ist_host(mine.data()), count, IST_BYTE, right(), thread, comm, &requests[1]));
      if (round % 3 == 0) {
        ASSERT_EQ(IST_OK, ist_waitall(2, requests, IST_STATUSES_IGNORE)) << ist_error_text();
      } else if (round % 3 == 1) {
        for (int index = 0; index != IST_UNDEFINED;)
          ASSERT_EQ(IST_OK, ist_waitany(2, requests, &index, IST_STATUS_IGNORE)) << ist_error_text();
      } else {
        for (int completed = 0; completed == 0;) {
          ASSERT_EQ(IST_OK, ist_testall(2, requests, &completed, IST_STATUSES_IGNORE)) << ist_error_text();
          if (completed == 0) std::this_thread::yield();
        }
      }
      ASSERT_EQ(-1, first_difference(random_bytes(bytes, seed(left())), theirs)) << "thread " << thread;
    }
}

TEST(Threads, EightOfThemExchangeInCommunicatorsOfTheirOwn) {
  std::vector<ist_comm> comms(kThreads);
  for (ist_comm& one : comms) IST_OK_OR_FAIL(ist_comm_dup(comm(), &one));
  on_threads([&](int t) {
    exchange_in(comms[static_cast<std::size_t>(t)], t, 20);
    EXPECT_EQ(IST_OK, ist_barrier(comms[static_cast<std::size_t>(t)])) << ist_error_text();
  });
  for (ist_comm& one : comms) IST_OK_OR_FAIL(ist_comm_free(&one));
}

TEST(Threads, EightOfThemShareOneCommunicatorByTheirTags) {
  on_threads([&](int t) { exchange_in(comm(), t, 20); });
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// Whatever comes first: the message, or the word that nobody wants it.
TEST(Threads, OneCancelsWhatAnotherWaitsFor) {
  int received = 0;
  for (int round = 0; round < 300; ++round) {
    int found = -1;
    ist_request request = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_irecv(ist_host(&found), 1, IST_INT, rank(), 77, comm(), &request));
    std::thread canceller([request] {
      const int code = ist_cancel(request);
      EXPECT_TRUE(code == IST_OK || code == IST_ERR_HANDLE) << ist_error_text();
    });
    std::thread sender([&] { EXPECT_EQ(IST_OK, ist_send(ist_host(&round), 1, IST_INT, rank(), 77, comm())); });
    EXPECT_EQ(IST_OK, ist_wait(&request, IST_STATUS_IGNORE)) << ist_error_text();
    canceller.join();
    sender.join();
    if (found == round) {
      ++received;
      continue;
    }
    EXPECT_EQ(-1, found);
    IST_OK_OR_FAIL(ist_recv(ist_host(&found), 1, IST_INT, rank(), 77, comm(), IST_STATUS_IGNORE));
    EXPECT_EQ(round, found);
  }
  RecordProperty("received", received);
}

TEST(Threads, CommunicatorsAreMadeAndFreedAtTheSameTime) {
  std::vector<ist_comm> parents(kThreads);
  for (ist_comm& one : parents) IST_OK_OR_FAIL(ist_comm_dup(comm(), &one));
  on_threads([&](int t) {
    for (int round = 0; round < 20; ++round) {
      ist_comm part = IST_COMM_NULL;
      ASSERT_EQ(IST_OK, ist_comm_split(parents[static_cast<std::size_t>(t)], t, -rank(), &part)) << ist_error_text();
      int mine = 0;
      ASSERT_EQ(IST_OK, ist_comm_rank(part, &mine));
      const int value = t * 100 + round;
      int got = -1;
      ASSERT_EQ(IST_OK, ist_sendrecv(ist_host(&value), 1, IST_INT, (mine + 1) % size(), 0, ist_host(&got), 1, IST_INT,
                                     IST_ANY_SOURCE, IST_ANY_TAG, part, IST_STATUS_IGNORE));
      EXPECT_EQ(value, got);
      ASSERT_EQ(IST_OK, ist_comm_free(&part));
    }
  });
  for (ist_comm& one : parents) IST_OK_OR_FAIL(ist_comm_free(&one));
}

constexpr int kExchanges = 100;

// How long so many exchanges with the neighbours take, every one of them checked: the best of five times, since something else may
// have the processors now and then.
double seconds_of_exchanges() {
  double best = 1e9;
  for (int time = 0; time < 5; ++time) {
    const auto begin = Clock::now();
    for (int round = 0; round < kExchanges; ++round) {
      int got = -1;
      EXPECT_EQ(IST_OK, ist_sendrecv(ist_host(&round), 1, IST_INT, right(), 91, ist_host(&got), 1, IST_INT, left(), 91,
                                     comm(), IST_STATUS_IGNORE));
      EXPECT_EQ(round, got);
    }
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

// Ways to wait for a message with the value 17 from the left neighbour, or for everybody to come.
struct WayToWait {
  const char* name;
  void (*wait)(ist_comm comm, int& value);
};
std::vector<WayToWait> ways_to_wait() {
  return {{"a receive",
           [](ist_comm comm, int& value) {
             EXPECT_EQ(IST_OK, ist_recv(ist_host(&value), 1, IST_INT, left(), 90, comm, IST_STATUS_IGNORE));
           }},
          {"a probe",
           [](ist_comm comm, int& value) {
             EXPECT_EQ(IST_OK, ist_probe(left(), 90, comm, IST_STATUS_IGNORE));
             EXPECT_EQ(IST_OK, ist_recv(ist_host(&value), 1, IST_INT, left(), 90, comm, IST_STATUS_IGNORE));
           }},
          {"a wait for any of two",
           [](ist_comm comm, int& value) {
             int never = 0;
             ist_request requests[2] = {IST_REQUEST_NULL, IST_REQUEST_NULL};
             EXPECT_EQ(IST_OK, ist_irecv(ist_host(&never), 1, IST_INT, left(), 89, comm, &requests[0]));
             EXPECT_EQ(IST_OK, ist_irecv(ist_host(&value), 1, IST_INT, left(), 90, comm, &requests[1]));
             int index = -1;
             EXPECT_EQ(IST_OK, ist_waitany(2, requests, &index, IST_STATUS_IGNORE));
             EXPECT_EQ(1, index);
             EXPECT_EQ(IST_OK, ist_cancel(requests[0]));
             EXPECT_EQ(IST_OK, ist_wait(&requests[0], IST_STATUS_IGNORE));
           }},
          {"a barrier", [](ist_comm comm, int& value) {
             EXPECT_EQ(IST_OK, ist_barrier(comm));
             EXPECT_EQ(IST_OK, ist_recv(ist_host(&value), 1, IST_INT, left(), 90, comm, IST_STATUS_IGNORE));
           }}};
}

// What exchanges may take beside threads that wait: so many times what they take before or after, whichever is longer, and a tenth of a
// millisecond for each, where ranks share processors. Waiting for a thread that sleeps with the lock, or has the processor, takes several.
constexpr double kTimes = 10;
constexpr double kAllowance = 0.0001 * kExchanges;

// How long exchanges take while one thread waits in each of these ways. Rank 0's comes late to a barrier: by another one.
double seconds_beside(const std::vector<WayToWait>& ways) {
  std::vector<ist_comm> comms(ways.size());
  std::vector<int> late(ways.size(), 0);
  std::vector<std::thread> waiting;
  for (ist_comm& one : comms) EXPECT_EQ(IST_OK, ist_comm_dup(comm(), &one)) << ist_error_text();
  std::atomic<bool> go = false;
  for (std::size_t w = 0; w < ways.size(); ++w)
    waiting.emplace_back([&, w] {
      const bool last_to_come = std::string_view{ways[w].name} == "a barrier" && rank() == 0;
      while (last_to_come && !go) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ways[w].wait(comms[w], late[w]);
    });
  // They shall be waiting by then.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double seconds = seconds_of_exchanges();
  EXPECT_EQ(std::vector<int>(ways.size(), 0), late);
  EXPECT_EQ(IST_OK, ist_barrier(comm()));
  go = true;
  const int value = 17;
  for (const ist_comm one : comms) EXPECT_EQ(IST_OK, ist_send(ist_host(&value), 1, IST_INT, right(), 90, one));
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(std::vector<int>(ways.size(), 17), late);
  for (ist_comm& one : comms) EXPECT_EQ(IST_OK, ist_comm_free(&one)) << ist_error_text();
  return seconds;
}

TEST(Threads, OneThatWaitsDoesNotStarveAnother) {
  std::vector<std::vector<WayToWait>> cases;
  for (const WayToWait& way : ways_to_wait()) cases.push_back({way});
  cases.push_back(ways_to_wait());
  double before = seconds_of_exchanges();
  for (const auto& ways : cases) {
    const std::string what = ways.size() == 1 ? ways[0].name : "all of them";
    double beside = 0;
    double alone = 0;
    // Where others have the processors exchanges alone may have been lucky, and are measured once more.
    for (int again = 0, slow = 1; again < 2 && slow != 0; ++again) {
      beside = seconds_beside(ways);
      const double after = seconds_of_exchanges();
      alone = std::max(before, after);
      before = after;
      std::printf("%d exchanges: %.3f ms alone, %.3f ms beside %s\n", kExchanges, 1e3 * alone, 1e3 * beside, what.c_str());
      const int here = beside < kTimes * alone + kAllowance ? 0 : 1;
      ASSERT_EQ(IST_OK, ist_allreduce(ist_host(&here), ist_host(&slow), 1, IST_INT, IST_MAX, comm()));
    }
    EXPECT_LT(beside, kTimes * alone + kAllowance) << "beside " << what;
  }
}

// How long a receive of 4 MiB takes whose sender makes no call for half a second after it has started.
double seconds_beside_a_busy_sender(ist_world other) {
  ist_comm there = IST_COMM_NULL;
  EXPECT_EQ(IST_OK, ist_world_comm(other, &there));
  constexpr std::size_t kBytes = 4 << 20;
  const auto mine = random_bytes(kBytes, static_cast<std::uint64_t>(rank()) + 5);
  std::vector<unsigned char> theirs(kBytes, 0xa5);
  double seconds = 0;
  if (rank() == 0) {
    ist_request send = IST_REQUEST_NULL;
    EXPECT_EQ(IST_OK, ist_isend(ist_host(mine.data()), kBytes, IST_BYTE, 1, 0, there, &send));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_EQ(IST_OK, ist_wait(&send, IST_STATUS_IGNORE)) << ist_error_text();
  } else if (rank() == 1) {
    const auto begin = Clock::now();
    EXPECT_EQ(IST_OK, ist_recv(ist_host(theirs.data()), kBytes, IST_BYTE, 0, 0, there, IST_STATUS_IGNORE))
        << ist_error_text();
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    EXPECT_EQ(-1, first_difference(random_bytes(kBytes, 5), theirs));
  }
  return seconds;
}

// Of the threads of this process, those that leave SIGUSR1 open.
std::set<std::string> threads_open_to_signals() {
  std::set<std::string> open;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:") && (std::stoull(line.substr(7), nullptr, 16) & 1ULL << (SIGUSR1 - 1)) == 0)
        open.insert(task.path().filename());
  }
  return open;
}

TEST(Progress, TheLibrarysThreadsLeaveTheProgramsSignalsToTheProgram) {
  const auto before = threads_open_to_signals();
  ::setenv("ISTHMUS_PROGRESS_THREAD", "1", 1);
  ::setenv("ISTHMUS_KINDS", "host", 1);
  ist_world other = IST_WORLD_NULL;
  const int created = ist_world_create(&other);
  ::unsetenv("ISTHMUS_PROGRESS_THREAD");
  ::unsetenv("ISTHMUS_KINDS");
  ASSERT_EQ(IST_OK, created) << ist_error_text();
  EXPECT_EQ(before, threads_open_to_signals());
  IST_OK_OR_FAIL(ist_world_destroy(&other));
}

TEST(Progress, AThreadOfItsOwnMovesMessagesWhileTheProgramMakesNoCall) {
  for (const char* wanted : {"0", "1"}) {
    ::setenv("ISTHMUS_PROGRESS_THREAD", wanted, 1);
    ist_world other = IST_WORLD_NULL;
    const int created = ist_world_create(&other);
    ::unsetenv("ISTHMUS_PROGRESS_THREAD");
    ASSERT_EQ(IST_OK, created) << ist_error_text();
    const double seconds = seconds_beside_a_busy_sender(other);
    const bool alone = *wanted == '0';  // a message of this size then needs its sender's calls
    if (rank() == 1) {
      EXPECT_EQ(alone, seconds > 0.4) << seconds << " s with ISTHMUS_PROGRESS_THREAD=" << wanted;
    }
    IST_OK_OR_FAIL(ist_world_destroy(&other));
  }
}

// The progress thread then leaves all that is under way to that call.
TEST(Progress, WhoWaitsInACallMovesTheMessagesOfOtherThreadsOn) {
  ::setenv("ISTHMUS_PROGRESS_THREAD", "1", 1);
  ist_world other = IST_WORLD_NULL;
  const int created = ist_world_create(&other);
  ::unsetenv("ISTHMUS_PROGRESS_THREAD");
  ASSERT_EQ(IST_OK, created) << ist_error_text();
  ist_comm there = IST_COMM_NULL;
  ASSERT_EQ(IST_OK, ist_world_comm(other, &there));
  constexpr int kWord = 9;
  int word = 0;
  std::thread waits;
  if (rank() == 0)
    waits =
        std::thread{[&] { EXPECT_EQ(IST_OK, ist_recv(ist_host(&word), 1, IST_INT, 1, kWord, there, IST_STATUS_IGNORE)); }};
  const double seconds = seconds_beside_a_busy_sender(other);
  if (rank() == 1) {
    EXPECT_LT(seconds, 0.4);
    const int sent = 4711;
    EXPECT_EQ(IST_OK, ist_send(ist_host(&sent), 1, IST_INT, 0, kWord, there)) << ist_error_text();
  }
  if (waits.joinable()) {
    waits.join();
    EXPECT_EQ(4711, word);
  }
  IST_OK_OR_FAIL(ist_world_destroy(&other));
}

}  // namespace
