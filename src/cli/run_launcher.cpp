// Three generations: the launcher (this process), its guardian, the ranks. The guardian is the ranks' parent and adopts what
// they leave behind; it outlives a launcher that is killed, and ends everything. A guardian that is killed takes the ranks
// with it (they ask the kernel for that), and the launcher adopts and ends the rest. So neither can go and leave processes.
//
// All of them stay in the launcher's process group: a terminal then stops, continues and interrupts the job as it does any
// program, and rank 0 may read from it.
#include "cli/run_launcher.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file_descriptor.hpp"
#include "cli/run_binding.hpp"
#include "cli/run_guardian.hpp"
#include "cli/run_processes.hpp"
#include "cli/run_signals.hpp"

namespace ist::cli {
namespace {

constexpr double kSweepSeconds = 1.5;

// A standard descriptor that is closed would become one of ours, and what is printed would go there.
void open_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDWR);  // the lowest number that is free
}

// As this process would have, had it not asked to be told: the system then knows why it stopped, and does not stop a job
// that nobody could continue.
void stop_until_continued() {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

// Returns how the guardian ended.
int pass_signals_until_end(pid_t guardian, const sigset_t& awaited) {
  for (;;) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&awaited, &info);
    if (signal < 0) continue;
    int status = 0;
    if (signal == SIGCHLD) {
      if (::waitpid(guardian, &status, WNOHANG) == guardian) return status;
      continue;
    }
    // A terminal sends its signals to the whole group, so that the ranks already have them.
    // By whom: where that one has sent it to all processes of the job, the guardian knows.
    if (sent_by_a_process(info.si_code)) ::sigqueue(guardian, signal, {.sival_int = info.si_pid});
    if (signal == SIGTSTP) stop_until_continued();
  }
}

}  // namespace

int launch(const RunOptions& options) {
  open_standard_descriptors();
  const auto shares = processor_shares(options.ranks, options.binding);
  std::fflush(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return say_and_fail(system_error("pipe"));
  FileDescriptor lifeline{ends[0]};
  FileDescriptor alive{ends[1]};  // closes when this process ends, however it ends

  ::signal(SIGCHLD, SIG_DFL);  // a caller may have ignored it, and then nothing could be waited for
  const sigset_t awaited = job_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &awaited, &before);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const auto not_ours = descendants(::getpid(), {});  // a shell may have started children before it became this program
  const pid_t launcher = ::getpid();
  const pid_t guardian = ::fork();
  if (guardian < 0) return say_and_fail(system_error("fork"));
  if (guardian == 0) {
    alive.close();
    ::_exit(guard(options, shares, lifeline, launcher, before));
  }
  lifeline.close();
  const int status = pass_signals_until_end(guardian, awaited);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  say("the guardian process (pid " + std::to_string(guardian) + ") " + how_it_ended(status) + "; all ranks were ended");
  end_descendants({not_ours.begin(), not_ours.end()}, kSweepSeconds);
  return exit_status_of(status);
}

}  // namespace ist::cli
