#include "cli/run_processes.hpp"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>

#include "boot/deadline.hpp"

namespace ist::cli {
namespace {

// Whoever reads standard error may have stopped reading: what does not go out by then is not said.
constexpr int kSayMilliseconds = 1000;

// The fourth word of /proc/PID/stat; the second is the program's name in parentheses and may hold anything.
pid_t parent_of(pid_t process) {
  std::ifstream file{"/proc/" + std::to_string(process) + "/stat"};
  // A process may end between open and read, and then the file's buffer throws; getline() makes nothing of it.
  std::string line;
  std::getline(file, line, '\0');
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= line.size()) return -1;
  return static_cast<pid_t>(std::strtol(line.c_str() + name_end + 4, nullptr, 10));
}

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder{::opendir("/proc"), &::closedir};
  if (!folder) return children;
  while (const dirent* entry = ::readdir(folder.get())) {
    pid_t process = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, process).ptr != end) continue;
    children.emplace(parent_of(process), process);
  }
  return children;
}

}  // namespace

std::vector<pid_t> descendants(pid_t root, const std::set<pid_t>& except) {
  const auto children = children_by_parent();
  std::vector<pid_t> found;
  std::vector<pid_t> parents{root};
  while (!parents.empty()) {
    const auto [first, last] = children.equal_range(parents.back());
    parents.pop_back();
    for (auto child = first; child != last; ++child) {
      if (except.count(child->second) != 0) continue;
      found.push_back(child->second);
      parents.push_back(child->second);
    }
  }
  return found;
}

void signal_descendants(int signal, Among which) {
  for (const pid_t process : descendants(::getpid(), {}))
    if (which == Among::all || ::getpgid(process) != ::getpgrp()) ::kill(process, signal);
}

bool end_descendants(const std::set<pid_t>& except, double seconds) {
  // What a killed process had started becomes a child of this one, and what a process started while it was being looked for
  // is found the next time; so the rounds end when none is left.
  for (const Deadline deadline = Deadline::after(seconds);;) {
    const auto found = descendants(::getpid(), except);
    if (found.empty()) return true;
    if (deadline.over()) return false;
    for (const pid_t process : found) ::kill(process, SIGKILL);
    ::usleep(2000);
    for (const pid_t process : found) ::waitpid(process, nullptr, WNOHANG);
  }
}

std::string how_it_ended(int wait_status) {
  if (WIFEXITED(wait_status)) return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  const char* name = ::sigabbrev_np(signal);
  return "was ended by signal " + (name ? std::string{"SIG"} + name + " " : std::string{}) + "(" + std::to_string(signal) +
         ")";
}

int exit_status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

void say(const std::string& text) {
  const std::string line = "isthmus run: " + text + "\n";
  pollfd entry{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&entry, 1, kSayMilliseconds) == 0) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

int say_and_fail(const Status& status) {
  say(status.text());
  return 1;
}

}  // namespace ist::cli
