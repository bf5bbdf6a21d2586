#include "cli/bench_tasks.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "cli/failure.hpp"
#include "cli/own_ranks.hpp"

namespace ist::cli {
namespace {

// A file of our own, gone with the object.
class Scratch {
 public:
  Scratch()
      : name_((std::getenv("TMPDIR") ? std::string{std::getenv("TMPDIR")} : std::string{"/tmp"}) + "/isthmus-sweep-XXXXXX") {
    const int file = mkstemp(name_.data());
    if (file < 0) throw Failure(1, "cannot make a file in the folder for temporary files");
    close(file);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { unlink(name_.c_str()); }
  const std::string& name() const { return name_; }
  std::string text() const {
    std::ifstream in(name_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string name_;
};

}  // namespace

nlohmann::ordered_json run_task(const BenchTask& task, const std::string& title) {
  const Scratch report;
  const Scratch said;
  std::cout.flush();
  const pid_t child = fork();
  if (child < 0) throw Failure(1, "cannot start a process for " + title);
  if (child == 0) {
    for (const auto& [name, value] : task.variables) setenv(name.c_str(), value.c_str(), 1);
    if (std::freopen(said.name().c_str(), "w", stdout) == nullptr || dup2(fileno(stdout), STDERR_FILENO) < 0) _exit(1);
    std::vector<std::string> arguments = task.arguments;
    arguments.insert(arguments.end(), {"--json", report.name()});
    try {
      become_ranks(task.ranks, arguments);
    } catch (const Failure& failure) {
      std::fputs(failure.what(), stderr);
    }
    std::fflush(nullptr);
    _exit(1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  nlohmann::ordered_json found = nlohmann::ordered_json::parse(report.text(), nullptr, false);
  if (status != 0 || found.is_discarded()) throw Failure(1, title + " failed: " + said.text());
  return found;
}

// On a terminal, a line that renews itself.
void show_tasks(std::size_t done, std::size_t of, const std::string& title) {
  if (isatty(STDERR_FILENO) == 0) return;
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = done * kWidth / of;
  std::cerr << '\r' << '[' << std::string(filled, '#') << std::string(kWidth - filled, ' ') << "] " << done << " of " << of
            << "  " << title << std::string(20, ' ') << (done == of ? "\r" + std::string(kWidth + 70, ' ') + "\r" : "")
            << std::flush;
}

}  // namespace ist::cli
