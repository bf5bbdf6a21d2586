#include "face/heap/started_copies.hpp"

#include <thread>
#include <utility>

#include "base/outcome.hpp"

namespace ist {

void StartedCopies::give_up() {
  const std::lock_guard lock(mutex_);
  for (Copy& each : copies_)
    for (auto done = each.transfer.step(); done.ok() && !*done; done = each.transfer.step()) std::this_thread::yield();
  copies_.clear();
}

void StartedCopies::add(Transfer transfer, Then then) {
  const std::lock_guard lock(mutex_);
  copies_.push_back({std::move(transfer), std::move(then)});
  any_.store(true, std::memory_order_release);
}

void StartedCopies::step() {
  {
    const std::lock_guard lock(mutex_);
    for (auto each = copies_.begin(); each != copies_.end();) {
      const auto at = each++;
      const auto done = at->transfer.step();
      if (done.ok() && !*done) continue;
      if (!done.ok() && failed_.ok()) failed_ = done.status();
      if (done.ok() && at->then && !at->transfer.has_changed())
        copied_.splice(copied_.end(), copies_, at);
      else
        copies_.erase(at);
    }
  }
  while (end_one()) {
  }
}

// False: there is none.
bool StartedCopies::end_one() {
  std::list<Copy> one;
  {
    const std::lock_guard lock(mutex_);
    if (is_over() && failed_.ok()) any_.store(false, std::memory_order_release);
    if (copied_.empty()) return false;
    one.splice(one.end(), copied_, copied_.begin());
    ++ending_;
  }
  // The next call that waits hands it out: nothing may be thrown out of one that only happened to move the copy on.
  Status last = outcome_of(one.front().then);
  const std::lock_guard lock(mutex_);
  --ending_;
  if (!last.ok() && failed_.ok()) failed_ = std::move(last);
  return true;
}

std::optional<Status> StartedCopies::settle() {
  const std::lock_guard lock(mutex_);
  if (!is_over()) return std::nullopt;
  any_.store(false, std::memory_order_release);
  return std::exchange(failed_, Status{});
}

Status StartedCopies::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

}  // namespace ist
