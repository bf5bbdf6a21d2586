// Moves a world's operations on while the program makes no call: overlap of messages and computing, for a thread of its own.
//
// Who calls this : face/, which starts one per world where the setting asks for it.
// Threads        : this is one; it takes the engine's lock for each look, as every other call does.
// Ownership      : owns the thread, which is over when the destructor returns; looks at the engine, which outlives it.
// Errors         : a thread that cannot be started is IST_ERR_SYSTEM.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "request/engine.hpp"

namespace ist {

class ProgressThread {
 public:
  // `processors`: how many this rank has to itself. No call may wait yet.
  static Result<std::unique_ptr<ProgressThread>> start(Engine& engine, int processors);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

 private:
  struct Look {
    bool moved = false;
    bool must_poll = false;
  };
  ProgressThread(Engine& engine, bool shares) : engine_(engine), shares_(shares) {}
  void run();
  Look look();
  void nap(bool must_poll);
  Engine& engine_;
  const bool shares_;  // the processor on which the program computes
  std::chrono::microseconds rest_{};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace ist
