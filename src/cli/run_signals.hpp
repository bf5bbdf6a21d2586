// The signals that a job passes on.
//
// Who calls this : run_launcher and run_guardian, who block them and take them one by one.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <signal.h>

#include <array>

namespace ist::cli {

inline constexpr std::array kPassedOn{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

inline sigset_t job_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kPassedOn) ::sigaddset(&set, signal);
  ::sigaddset(&set, SIGCHLD);
  return set;
}

// kill(), sigqueue() and tgkill(), not the kernel.
inline bool sent_by_a_process(int code) { return code <= 0; }

}  // namespace ist::cli
