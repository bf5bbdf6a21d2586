// How many threads wait in calls: each of them looks until what it waits for is there, and moves everything else on meanwhile.
//
// Who calls this : wait.hpp, around waits; the progress thread, which stays away then; the engine.
// Threads        : any, without the lock: the number is a hint, since a wait may begin or end at any time.
// Ownership      : the engine owns it.
// Errors         : none.
#pragma once

#include <atomic>

#include "base/bell.hpp"

namespace ist {

class MemoryKind;
class Path;

class Waiters {
 public:
  Waiters() = default;
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;
  ~Waiters();
  // While no wait is under way. Where nobody asks, waits are not counted, and cost nothing for it.
  void count() { counted_ = true; }
  void enter() {
    if (counted_) number_.fetch_add(1, std::memory_order_relaxed);
  }
  void leave() {
    if (counted_) number_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool any() const { return number_.load(std::memory_order_relaxed) > 0; }
  // Does what is waited for take threads of this process, such as a driver's whose device is the processor? Who waits then gives way to them.
  // Told after each look, under the engine's lock.
  // `alone`: and nothing else that somebody has to look for?
  void on_threads(bool works, bool alone) {
    if (works != on_threads()) on_threads_.store(works, std::memory_order_relaxed);
    if (alone != on_threads_alone()) on_threads_alone_.store(alone, std::memory_order_relaxed);
  }
  bool on_threads() const { return on_threads_.load(std::memory_order_relaxed); }
  bool on_threads_alone() const { return on_threads_alone_.load(std::memory_order_relaxed); }

  // From now on who waits for those threads sleeps until the kind of memory, which outlives this, tells of an end; if there is one that
  // does. The path on which waits sleep is woken, too; null: none does.
  void sleep_for_threads(MemoryKind* kind, Path* sleeping);
  // Rung then; null: he looks.
  Bell* bell() { return tells_ != nullptr ? &bell_ : nullptr; }

 private:
  Bell bell_;
  MemoryKind* tells_ = nullptr;
  std::atomic<bool> on_threads_{false}, on_threads_alone_{false};
  bool counted_ = false;
  std::atomic<int> number_{0};
};

}  // namespace ist
