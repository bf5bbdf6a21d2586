#include "base/quiet_thread.hpp"

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

namespace ist {

Result<std::thread> quiet_thread(const std::string& purpose, std::function<void()> body) {
  sigset_t sent;
  sigset_t before;
  ::sigfillset(&sent);
  // What a thread does wrong itself it has to hear of at once: blocked, these end the process whatever handler there is.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::sigdelset(&sent, fault);
  ::pthread_sigmask(SIG_SETMASK, &sent, &before);
  std::thread thread;
  Status status;
  try {
    thread = std::thread{std::move(body)};
  } catch (const std::system_error& error) {
    status = Status{IST_ERR_SYSTEM, "no thread for " + purpose + ": " + error.what()};
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) return status;
  return thread;
}

}  // namespace ist
