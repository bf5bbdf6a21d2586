// Ranks without a launcher: forked here, they find each other through RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, so that
// a test may kill one, or break something in one, and see what the others are told.
//
// Who calls this : deaths_test.cpp, failures_test.cpp.
// Threads        : one; no driver may have been touched before a fork.
// Ownership      : each rank has its own world, which it destroys after its body.
// Errors         : a rank says on stderr what was not as it should be, and exits with the number of such things.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <isthmus/isthmus.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sanitized.hpp"

namespace forked_ranks {

using Clock = std::chrono::steady_clock;

inline int free_port() {
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

// Variables of the forked ranks, gone with the object.
class Variables {
 public:
  using Pair = std::pair<const char*, const char*>;
  Variables(std::initializer_list<Pair> all) {
    for (const auto& [name, value] : all) set(name, value);
  }
  ~Variables() {
    for (const char* name : names_) ::unsetenv(name);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 protected:
  void set(const char* name, const char* value) {
    ::setenv(name, value, 1);
    names_.push_back(name);
  }

 private:
  std::vector<const char*> names_;
};

struct Here {
  int rank;
  int size;
  ist_world world;
  ist_comm comm;
  std::atomic<int>* stages = nullptr;  // one for each rank, in memory that they share; none of a rank alone

  // How far this rank has come, for others to wait for it: a machine that is busy takes its time between two lines.
  void has_come_to(int stage) const { stages[rank] = stage; }
  void wait_for(int other, int stage) const {
    while (stages[other] < stage) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
};

// A body returns how many things were not as they should be.
using Body = std::function<int(const Here&)>;

// What a forked rank does; returns its exit status.
inline int be_rank(int rank, int size, int port, const char* kinds, const Body& body, std::atomic<int>* stages) {
  ::setenv("RANK", std::to_string(rank).c_str(), 1);
  ::setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  ::setenv("ISTHMUS_KINDS", kinds, 1);
  // A hang is a failure, not a stuck test; sanitized, a million operations take a minute, and workers that share two processors with
  // something else take as long.
  ::alarm(kSanitized ? 200 : 100);
  Here here{rank, size, IST_WORLD_NULL, IST_COMM_NULL, stages};
  if (ist_world_create(&here.world) != IST_OK || ist_world_comm(here.world, &here.comm) != IST_OK ||
      ist_barrier(here.comm) != IST_OK) {
    std::fprintf(stderr, "[%d] %s\n", rank, ist_error_text());
    return 99;
  }
  const int wrong = body(here);
  ist_world_destroy(&here.world);
  return wrong;
}

// Forks `size` ranks that run `body` with these kinds of memory. Gives back the wait statuses.
inline std::vector<int> run_ranks(int size, const char* kinds, const Body& body) {
  const int port = free_port();
  const std::size_t shared = static_cast<std::size_t>(size) * sizeof(std::atomic<int>);
  void* const page = ::mmap(nullptr, shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    ADD_FAILURE() << "no memory for " << size << " ranks to share";
    return {};
  }
  auto* const stages = static_cast<std::atomic<int>*>(page);  // zero, as the kernel gives it
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(be_rank(rank, size, port, kinds, body, stages));
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  ::munmap(page, shared);
  return statuses;
}

constexpr auto kBefore = std::chrono::milliseconds(100);

[[noreturn]] inline void die_soon() {
  std::this_thread::sleep_for(kBefore);
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

// Every rank found all as it should be; the victim, if there is one, was killed.
inline void expect_all_but(const std::vector<int>& statuses, int victim) {
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    if (static_cast<int>(rank) == victim) {
      EXPECT_TRUE(WIFSIGNALED(statuses[rank]) && WTERMSIG(statuses[rank]) == SIGKILL) << "the victim, rank " << rank;
    } else {
      EXPECT_TRUE(WIFEXITED(statuses[rank])) << "rank " << rank << " was ended by signal " << WTERMSIG(statuses[rank]);
      EXPECT_EQ(0, WEXITSTATUS(statuses[rank])) << "rank " << rank;
    }
  }
}
inline void expect_all(const std::vector<int>& statuses) { expect_all_but(statuses, -1); }

// Runs a call that must end with the death of `victim`, less than a second after it was noticed to be possible.
inline int expect_death(const char* what, const Here& here, int victim, Clock::time_point killed_after,
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

}  // namespace forked_ranks
