// Copies of a symmetric heap that go on behind the calls that started them, and what follows each.
//
// Who calls this : collective_heap, for whoever puts and gets without waiting, and for whoever waits.
// Threads        : any. What follows a copy may wait for a device: it runs under no mutex, and is not over before it has returned.
// Ownership      : owns the transfers until they are over.
// Errors         : the first one is kept until settle() hands it out.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <optional>

#include "base/status.hpp"
#include "memory/transfer.hpp"

namespace ist {

class StartedCopies {
 public:
  // Called once the bytes are there, and not after an error, nor where the transfer has changed its word by itself.
  using Then = std::function<Status()>;
  StartedCopies() = default;
  ~StartedCopies() { give_up(); }
  StartedCopies(const StartedCopies&) = delete;
  StartedCopies& operator=(const StartedCopies&) = delete;

  void add(Transfer transfer, Then then);
  // Copies that nobody waited for touch the memory until they are over: waits for them. Nothing follows them.
  void give_up();
  // One is under way, or has failed.
  bool any() const { return any_.load(std::memory_order_acquire); }
  // Moves them on without waiting.
  void step();
  // All are over, and so is what follows them: the first error since the last time. None: not yet.
  std::optional<Status> settle();
  // That error, which stays.
  Status failed() const;

 private:
  struct Copy {
    Transfer transfer;
    Then then;
  };
  bool is_over() const { return copies_.empty() && copied_.empty() && ending_ == 0; }
  bool end_one();

  mutable std::mutex mutex_;
  std::list<Copy> copies_;
  std::list<Copy> copied_;  // and what follows has not begun
  std::size_t ending_ = 0;  // it has, and is not over
  Status failed_;
  std::atomic<bool> any_{false};
};

}  // namespace ist
