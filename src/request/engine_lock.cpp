#include "request/engine_lock.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace ist {
namespace {

// Asks the kernel for it, once for the process; false: it cannot, and there are no favourites.
bool can_order_all_threads() {
  static const bool can = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return can;
}

// When it returns, every running thread of this process has passed a point at which all its loads and stores before are over, and
// none after has begun. It cannot fail where it was registered.
void order_all_threads() { static_cast<void>(::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)); }

}  // namespace

EngineLock::EngineLock(bool single_threaded) : off_(single_threaded), favours_(!single_threaded && can_order_all_threads()) {
  if (off_) holder_ = seats_.data();
}

// Null where more threads than seats were favourites.
EngineLock::Seat* EngineLock::seat_of(std::uintptr_t thread) {
  for (Seat& seat : seats_) {
    if (seat.thread == 0) seat.thread = thread;
    if (seat.thread == thread) return &seat;
  }
  return nullptr;
}

// Of the ordinary lock. Whoever has taken it so often in a row is the favourite from now on.
void EngineLock::give_back() {
  if (favours_) {
    const std::uintptr_t me = this_thread();
    if (last_ != me) {
      last_ = me;
      in_a_row_ = 0;
    } else if (++in_a_row_ >= row_wanted_) {
      in_a_row_ = 0;
      holder_ = seat_of(me);
      // Guard FAVOUR_FIRST: the release below keeps it before the lock is free, so that the next one finds it.
      favourite_.store(holder_, std::memory_order_release);
    }
  }
  taken_.store(false, std::memory_order_release);
}

void EngineLock::wait() {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  for (int tries = 1; taken_.exchange(true, std::memory_order_acquire);)
    while (taken_.load(std::memory_order_relaxed))
      if (++tries % 64 == 0) std::this_thread::yield();
  if (favourite_.load(std::memory_order_relaxed) != nullptr) withdraw();
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

// By the holder of the ordinary lock.
void EngineLock::withdraw() {
  Seat& seat = *favourite_.load(std::memory_order_relaxed);
  favourite_.store(nullptr, std::memory_order_relaxed);
  // Guard ORDER: of the favourite's store and its second look, and of ours and the next line.
  order_all_threads();
  // Guard WAIT_OUT. Acquire: what the favourite did inside is seen here.
  for (int tries = 1; seat.inside.load(std::memory_order_acquire); ++tries)
    if (tries % 64 == 0) std::this_thread::yield();
  holder_ = nullptr;
  row_wanted_ = std::min(4 * row_wanted_, kLongestRow);
}

}  // namespace ist
