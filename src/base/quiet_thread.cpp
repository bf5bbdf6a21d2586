#include "base/quiet_thread.hpp"

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

namespace ist {

Result<std::thread> quiet_thread(const std::string& purpose, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
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
