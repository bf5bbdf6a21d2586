#include "path/shm/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace ist {

void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// FUTEX_WAIT and FUTEX_WAKE without the private flag: sleeper and ringer are different processes, each with its own mapping.
void Doorbell::wake() {
  if (word_.exchange(kAwake, std::memory_order_acq_rel) != kAsleep) return;
  ::syscall(SYS_futex, &word_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void Doorbell::wait(std::chrono::microseconds longest) {
  const auto count = std::max<std::chrono::microseconds::rep>(longest.count(), 0);
  timespec limit{};
  limit.tv_sec = static_cast<std::time_t>(count / 1000000);
  limit.tv_nsec = static_cast<long>(count % 1000000 * 1000);
  ::syscall(SYS_futex, &word_, FUTEX_WAIT, kAsleep, &limit, nullptr, 0);
}

}  // namespace ist
