#include "cli/run_rank.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "boot/frame.hpp"
#include "boot/launcher_boot.hpp"
#include "cli/run_binding.hpp"

namespace ist::cli {
namespace {

// Out of the way of the small numbers that shell scripts use for themselves.
constexpr int kLowestBootDescriptor = 40;

void set_variable(const char* name, long value) { ::setenv(name, std::to_string(value).c_str(), 1); }

// False: errno says why.
bool hand_over_boot_socket(const RunOptions& options, const RankStart& start) {
  struct stat info {};
  const int inherited = ::fcntl(start.boot, F_DUPFD, kLowestBootDescriptor);  // without close-on-exec
  if (inherited < 0 && errno == EINVAL) errno = EMFILE;                       // the limit of open files is below that number
  if (inherited < 0 || ::fstat(inherited, &info) != 0) return false;
  set_variable(kBootDescriptor, inherited);
  set_variable(kBootInode, static_cast<long>(info.st_ino));
  set_variable(kBootVersion, kFrameVersion);
  set_variable(kRank, start.rank);
  set_variable(kSize, options.ranks);
  set_variable("ISTHMUS_LOCAL_RANK", start.rank);
  set_variable("ISTHMUS_LOCAL_SIZE", options.ranks);
  return true;
}

bool redirect(const RankStart& start) {
  if (start.rank != 0) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0) return false;
  }
  if (start.output >= 0 && ::dup2(start.output, STDOUT_FILENO) < 0) return false;
  return start.errors < 0 || ::dup2(start.errors, STDERR_FILENO) >= 0;
}

// In the child. Returns only if the program could not be started, with the reason in errno.
void become_program(const RunOptions& options, const RankStart& start, pid_t guardian) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != guardian) ::_exit(1);  // it was killed before the request above could take effect
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (!hand_over_boot_socket(options, start) || !redirect(start)) return;
  bind_to(start.processors);
  std::vector<char*> arguments;
  for (const std::string& word : options.program) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::sigprocmask(SIG_SETMASK, &start.signals, nullptr);
  ::execvp(arguments[0], arguments.data());
}

// The error number that the child sent; 0 once its end of the pipe was closed by a successful exec.
int exec_error(int report, int lifeline) {
  pollfd entries[2] = {{report, POLLIN, 0}, {lifeline, POLLIN, 0}};
  while (::poll(entries, 2, -1) < 0 && errno == EINTR) {
  }
  int error = 0;
  if (entries[0].revents == 0 || ::read(report, &error, sizeof error) != sizeof error) return 0;
  return error;
}

}  // namespace

Result<StartedRank> start_rank(const RunOptions& options, const RankStart& start) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe");
  const FileDescriptor report{ends[0]};
  FileDescriptor reporter{ends[1]};
  const pid_t guardian = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return system_error("fork of rank " + std::to_string(start.rank));
  if (child == 0) {
    become_program(options, start, guardian);
    const int error = errno;
    [[maybe_unused]] const ssize_t sent = ::write(reporter.get(), &error, sizeof error);
    ::_exit(127);
  }
  reporter.close();
  return StartedRank{child, exec_error(report.get(), start.lifeline)};
}

}  // namespace ist::cli
