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
#include <cstring>
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

// Before the first fork, so that all ranks have the same.
const std::uint32_t kSalt = std::random_device{}();

std::string bytes_from(std::mt19937_64& engine, std::size_t length) {
  std::string bytes(length, '\0');
  for (std::size_t at = 0; at < length; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = engine();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, length - at));
  }
  return bytes;
}

int how_ended(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }

}  // namespace

std::vector<int> run_served(int size, const RankServer& server, const std::function<void(int, int)>& body) {
  std::vector<pid_t> children;
  std::vector<int> own_ends;
  std::fflush(nullptr);  // or every child prints it again
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    own_ends.push_back(ends[0]);
    const pid_t child = ::fork();
    if (child == 0) {
      for (const int own : own_ends) ::close(own);
      become(rank, [&](int) { body(rank, ends[1]); });
    }
    ::close(ends[1]);
    server.connected(rank, FileDescriptor{ends[0]});
    children.push_back(child);
  }
  std::vector<int> result(static_cast<std::size_t>(size), -1000);
  for (int running = size; running > 0;) {
    server.serve();
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
      int status = 0;
      if (result[rank] != -1000 || ::waitpid(children[rank], &status, WNOHANG) != children[rank]) continue;
      result[rank] = how_ended(status);
      server.ended(static_cast<int>(rank), result[rank]);
      --running;
    }
  }
  return result;
}

std::vector<int> run_launched(int size, const std::function<void(int)>& body) {
  GatherHub hub{size, "the test's launcher", 0};
  RankServer server;
  server.connected = [&](int rank, FileDescriptor socket) { hub.attach(Rank{rank}, FrameSocket{std::move(socket)}); };
  server.ended = [&](int rank, int end) { hub.lost(Rank{rank}, "ended with " + std::to_string(end)); };
  server.serve = [&] {
    std::vector<pollfd> entries;
    hub.watch(entries);
    ::poll(entries.data(), entries.size(), 2);
    hub.serve();
  };
  return run_served(size, server, [&](int rank, int socket) {
    struct stat info {};
    ::fstat(socket, &info);
    ::setenv(kBootDescriptor, std::to_string(socket).c_str(), 1);
    ::setenv(kBootInode, std::to_string(info.st_ino).c_str(), 1);
    ::setenv(kBootVersion, std::to_string(kFrameVersion).c_str(), 1);
    ::setenv(kRank, std::to_string(rank).c_str(), 1);
    ::setenv(kSize, std::to_string(size).c_str(), 1);
    body(rank);
  });
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

bool holds_in_forked_child(const std::function<bool()>& holds) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) std::exit(holds() ? 0 : 1);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status == 0;
}

std::string blob_of(int rank, int round, std::size_t length) {
  std::seed_seq seed{kSalt, static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(round),
                     static_cast<std::uint32_t>(length)};
  std::mt19937_64 engine{seed};
  return bytes_from(engine, length);
}

void exchange_and_compare(Boot& boot, int round, std::size_t length) {
  const auto blob = [&](int rank) { return blob_of(rank, round, length + static_cast<std::size_t>(rank)); };
  const auto all = boot.all_gather(blob(boot.rank().value));
  ASSERT_TRUE(all.ok()) << all.status().text();
  ASSERT_EQ(all->size(), static_cast<std::size_t>(boot.size()));
  for (int rank = 0; rank < boot.size(); ++rank)
    EXPECT_TRUE((*all)[static_cast<std::size_t>(rank)] == blob(rank)) << "blob of rank " << rank << " of " << length;
}

void exchange_in_several_worlds() {
  for (int world = 0; world < 5; ++world) {
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_and_compare(**boot, world, 100);
  }
  auto first = join_job(Settings{});
  auto second = join_job(Settings{});
  ASSERT_TRUE(first.ok() && second.ok());
  int round = 0;
  for (Boot* boot : {second->get(), first->get(), second->get(), first->get()}) exchange_and_compare(*boot, ++round, 10);
}

void expect_forked_child_refused() {
  auto boot = join_job(Settings{});
  ASSERT_TRUE(boot.ok()) << boot.status().text();
  exchange_and_compare(**boot, 0, 10);
  EXPECT_TRUE(holds_in_forked_child([&] {
    const auto refused = [](const Status& status) {
      return status.code() == IST_ERR_BOOT && status.text().find("forked from pid") != std::string::npos;
    };
    return refused(join_job(Settings{}).status()) && refused((*boot)->all_gather("x").status());
  }));
  exchange_and_compare(**boot, 1, 10);
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
  return bytes_from(engine, length);
}

}  // namespace ist::test
