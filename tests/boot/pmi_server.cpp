#include "pmi_server.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "ranks.hpp"

namespace ist::test {
namespace {

constexpr std::size_t kLongestLine = 1024;  // of version 1.1, and the longest value of both
constexpr std::size_t kLongestKey = 64;

class Server {
 public:
  Server(int size, PmiManner manner) : manner_(manner), tasks_(static_cast<std::size_t>(size)) {}
  void add(int rank, FileDescriptor socket) { tasks_[static_cast<std::size_t>(rank)].socket = std::move(socket); }
  void serve(int milliseconds);
  PmiRun result;

 private:
  struct Task {
    FileDescriptor socket;
    std::string incoming;
    bool greeted = false;
    bool at_fence = false;
  };
  using Pairs = std::map<std::string, std::string>;
  void read_from(Task& task);
  bool take_request(Task& task);
  void greet(Task& task, const std::string& line);
  void handle(Task& task, const std::string& text);
  void put(Task& task, const Pairs& pairs);
  void get(Task& task, Pairs& pairs);
  void fence(Task& task);
  // Version 2: with a length in front, aligned to the left.
  void answer(Task& task, const std::string& command, const std::string& rest);
  static void send(Task& task, const std::string& text) {
    EXPECT_EQ(::send(task.socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  PmiManner manner_;
  std::vector<Task> tasks_;
  std::map<std::string, std::string> arriving_;  // put, but not shown before the next fence
  std::map<std::string, std::string> store_;
};

std::map<std::string, std::string> split(const std::string& text, char separator) {
  std::map<std::string, std::string> pairs;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find(separator, at);
    const std::string pair = text.substr(at, end - at);
    const auto equals = pair.find('=');
    // A second '=' would be taken for another pair by some servers.
    EXPECT_EQ(pair.find('=', equals + 1), std::string::npos) << pair;
    // MPICH's servers from 4.2 on end the job at a value of no letters.
    EXPECT_LT(equals + 1, pair.size()) << pair;
    if (equals != std::string::npos) pairs[pair.substr(0, equals)] = pair.substr(equals + 1);
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return pairs;
}

void Server::serve(int milliseconds) {
  std::vector<pollfd> entries;
  for (const Task& task : tasks_) entries.push_back({task.socket.get(), POLLIN, 0});
  if (::poll(entries.data(), entries.size(), milliseconds) <= 0) return;
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    if (entries[i].revents != 0) read_from(tasks_[i]);
}

void Server::read_from(Task& task) {
  char piece[700];  // requests arrive in parts
  const ssize_t got = ::recv(task.socket.get(), piece, sizeof piece, MSG_DONTWAIT);
  if (got <= 0) return task.socket.close();
  task.incoming.append(piece, static_cast<std::size_t>(got));
  while (task.socket.valid() && take_request(task)) {
  }
}

bool Server::take_request(Task& task) {
  if (!task.greeted || result.version == 1) {
    const auto end = task.incoming.find('\n');
    if (end == std::string::npos) return false;
    const std::string line = task.incoming.substr(0, end);
    task.incoming.erase(0, end + 1);
    EXPECT_LT(line.size(), kLongestLine);
    if (task.greeted) {
      handle(task, line);
    } else {
      greet(task, line);
    }
    return true;
  }
  if (task.incoming.size() < 6) return false;
  const auto length = static_cast<std::size_t>(std::atoi(task.incoming.substr(0, 6).c_str()));
  if (task.incoming.size() < 6 + length) return false;
  const std::string text = task.incoming.substr(6, length);
  task.incoming.erase(0, 6 + length);
  EXPECT_TRUE(text.ends_with(";")) << text;
  handle(task, text);
  return true;
}

void Server::greet(Task& task, const std::string& line) {
  if (manner_ == PmiManner::foreign) return send(task, "220 mail.example.org ESMTP\n");
  const auto pairs = split(line, ' ');
  EXPECT_EQ(pairs.at("cmd"), "init");
  const int asked = std::atoi(pairs.at("pmi_version").c_str());
  const bool known = manner_ == PmiManner::old ? asked == 1 : asked == 1 || asked == 2;
  if (!known || (result.version != 0 && result.version != asked))
    return send(task, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
  result.version = asked;
  task.greeted = true;
  send(task, "cmd=response_to_init pmi_version=" + pairs.at("pmi_version") +
                 " pmi_subversion=" + pairs.at("pmi_subversion") + " rc=0\n");
  if (manner_ == PmiManner::hangs_up) task.socket.close();
}

void Server::handle(Task& task, const std::string& text) {
  if (manner_ == PmiManner::no_length) return send(task, "cmd=fullinit-response;rc=0;");
  Pairs pairs = split(text, result.version == 2 ? ';' : ' ');
  const std::string command = pairs["cmd"];
  const auto rank = &task - tasks_.data();
  if (command == "fullinit") {
    // The real server insists on all three.
    const bool whole = pairs.count("pmijobid") && pairs.count("pmirank") && pairs.count("threaded");
    result.refused += whole ? 0 : 1;
    return answer(task, "fullinit-response",
                  std::string{"rc="} + (whole ? "0" : "3") + ";pmi-version=2;pmi-subversion=0;rank=" + std::to_string(rank) +
                      ";size=" + std::to_string(tasks_.size()) + ";appnum=-1;debugged=FALSE;");
  }
  if (command == "get_my_kvsname") return answer(task, "my_kvsname", "kvsname=4711.0");
  if (command == "kvs-put" || command == "put") return put(task, pairs);
  if (command == "kvs-get" || command == "get") return get(task, pairs);
  if (command == "kvs-fence" || command == "barrier_in") return fence(task);
  EXPECT_EQ(command, "finalize");
  ++result.finalized;
  answer(task, result.version == 2 ? "finalize-response" : "finalize_ack",
         "rc=0" + std::string{result.version == 2 ? ";" : ""});
  task.socket.close();
}

void Server::put(Task& task, const Pairs& pairs) {
  const bool fits =
      pairs.at("key").size() < kLongestKey && pairs.at("value").size() < kLongestLine && manner_ != PmiManner::refuses_puts;
  result.refused += fits ? 0 : 1;
  arriving_[pairs.at("key")] = pairs.at("value");
  if (result.version == 2) return answer(task, "kvs-put-response", fits ? "rc=0;" : "rc=7;errmsg=no room;");
  answer(task, "put_result", fits ? "rc=0 msg=success" : "rc=-1 msg=no_room");
}

void Server::get(Task& task, Pairs& pairs) {
  const auto found = store_.find(pairs["key"]);
  if (found != store_.end()) {
    if (result.version == 2) return answer(task, "kvs-get-response", "rc=0;found=TRUE;value=" + found->second + ";");
    return answer(task, "get_result", "rc=0 msg=success value=" + found->second);
  }
  if (result.version == 2 && manner_ == PmiManner::mpich) return answer(task, "kvs-get-response", "rc=1;");
  if (result.version == 2) return answer(task, "kvs-get-response", "rc=0;found=FALSE;");
  answer(task, "get_result", "rc=-1 msg=key_not_found value=unknown");
}

void Server::fence(Task& task) {
  if (manner_ == PmiManner::deaf) return;
  task.at_fence = true;
  for (const Task& one : tasks_)
    if (!one.at_fence) return;
  store_.insert(arriving_.begin(), arriving_.end());
  arriving_.clear();
  for (Task& one : tasks_) {
    one.at_fence = false;
    if (one.socket.valid())
      answer(one, result.version == 2 ? "kvs-fence-response" : "barrier_out", result.version == 2 ? "rc=0;" : "rc=0");
  }
}

void Server::answer(Task& task, const std::string& command, const std::string& rest) {
  if (result.version == 1) return send(task, "cmd=" + command + " " + rest + "\n");
  const std::string text = "cmd=" + command + ";" + rest;
  char length[7];
  std::snprintf(length, sizeof length, "%-6zu", text.size());
  // In two parts, as a server may.
  send(task, length);
  send(task, text);
}

}  // namespace

PmiRun run_with_pmi(int size, PmiManner manner, const std::function<void(int)>& body) {
  Server server{size, manner};
  RankServer around;
  around.connected = [&](int rank, FileDescriptor socket) { server.add(rank, std::move(socket)); };
  around.serve = [&] { server.serve(2); };
  server.result.ends = run_served(size, around, [&](int rank, int socket) {
    ::setenv("PMI_FD", std::to_string(socket).c_str(), 1);
    ::setenv("PMI_JOBID", "4711.0", 1);
    ::setenv("PMI_RANK", std::to_string(rank).c_str(), 1);
    ::setenv("PMI_SIZE", std::to_string(size).c_str(), 1);
    body(rank);
    // With the handlers of exit(), which take leave of the server; gtest has none.
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  });
  return server.result;
}

}  // namespace ist::test
