#include "base/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace ist {

void Bell::ring() {
  count_.fetch_add(1);
  if (waiting_.load() != 0) ::syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Bell::wait(std::uint32_t count, std::chrono::microseconds longest) {
  timespec limit{};
  limit.tv_sec = static_cast<std::time_t>(longest.count() / 1000000);
  limit.tv_nsec = static_cast<long>(longest.count() % 1000000 * 1000);
  waiting_.fetch_add(1);
  // The kernel compares the count and queues the waiter in one step.
  ::syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, count, &limit, nullptr, 0);
  waiting_.fetch_sub(1);
}

}  // namespace ist
