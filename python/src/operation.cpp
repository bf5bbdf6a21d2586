#include "operation.hpp"

namespace isthmus_python {

bool Operation::advance() {
  if (complete()) return true;
  // Somebody else is looking at it: as good as a look of one's own.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (complete()) return true;
  if (!step(outcome_)) return false;
  complete_.store(true, std::memory_order_release);
  return true;
}

void Operation::await() {
  const std::lock_guard lock(mutex_);
  awaited();
}

void Operation::cancel() {
  const std::lock_guard lock(mutex_);
  if (!complete()) give_up();
}

bool Flight::look(Outcome& outcome) {
  int done = 0;
  looked_at_ = request_;
  const int code = ist_test(&request_, &done, &outcome.status);
  if (code == IST_OK) return done != 0;
  outcome.code = code;
  outcome.text = ist_error_text();
  return true;
}

bool Message::step(Outcome& outcome) {
  if (!flight_.look(outcome)) return false;
  outcome.item_size = region_.item_size;
  return true;
}

}  // namespace isthmus_python
