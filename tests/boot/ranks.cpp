#include "ranks.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "boot/gather_hub.hpp"
#include "boot/launcher_boot.hpp"

namespace ist::test {
namespace {

[[noreturn]] void become(int rank, const std::function<void(int)>& body) {
  ::alarm(60);  // a rank that hangs fails
  body(rank);
  std::fflush(nullptr);
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

int how_ended(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }

}  // namespace

std::vector<int> run_launched(int size, const std::function<void(int)>& body) {
  GatherHub hub{size, "the test's launcher", 0};
  std::vector<pid_t> children;
  std::fflush(nullptr);  // or every child prints it again
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    struct stat info {};
    ::fstat(ends[1], &info);
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv(kBootDescriptor, std::to_string(ends[1]).c_str(), 1);
      ::setenv(kBootInode, std::to_string(info.st_ino).c_str(), 1);
      ::setenv(kRank, std::to_string(rank).c_str(), 1);
      ::setenv(kSize, std::to_string(size).c_str(), 1);
      std::vector<pollfd> others;
      hub.watch(others);
      for (const pollfd& other : others) ::close(other.fd);
      ::close(ends[0]);
      become(rank, body);
    }
    ::close(ends[1]);
    hub.attach(Rank{rank}, FrameSocket{FileDescriptor{ends[0]}});
    children.push_back(child);
  }
  std::vector<int> result(static_cast<std::size_t>(size), -1000);
  for (int running = size; running > 0;) {
    std::vector<pollfd> entries;
    hub.watch(entries);
    ::poll(entries.data(), entries.size(), 2);
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
      int status = 0;
      if (result[rank] != -1000 || ::waitpid(children[rank], &status, WNOHANG) != children[rank]) continue;
      result[rank] = how_ended(status);
      hub.lost(Rank{static_cast<std::int32_t>(rank)}, "ended with " + std::to_string(result[rank]));
      --running;
    }
    hub.serve();
  }
  return result;
}

std::vector<int> run_with_environment(int size, const std::function<void(int)>& body) {
  const std::string port = std::to_string(free_port());
  std::vector<pid_t> children;
  std::fflush(nullptr);  // or every child prints it again
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      ::setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
      ::setenv("MASTER_ADDR", "127.0.0.1", 1);
      ::setenv("MASTER_PORT", port.c_str(), 1);
      become(rank, body);
    }
    children.push_back(child);
  }
  std::vector<int> result;
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    result.push_back(how_ended(status));
  }
  return result;
}

int failures(const std::vector<int>& ends) {
  return static_cast<int>(std::count_if(ends.begin(), ends.end(), [](int end) { return end != 0; }));
}

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string random_bytes(std::size_t length) {
  thread_local std::mt19937_64 engine{std::random_device{}() + static_cast<unsigned>(::getpid())};
  std::string bytes(length, '\0');
  for (char& byte : bytes) byte = static_cast<char>(engine());
  return bytes;
}

}  // namespace ist::test
