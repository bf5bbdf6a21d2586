// Moves a world's operations on while the program makes no call: overlap of messages and computing, for a thread of its own.
//
// Who calls this : face/, which starts one per world where the setting asks for it.
// Threads        : this is one; it takes the engine's lock for each look, as every other call does.
// Ownership      : owns the thread, which is over when the destructor returns; looks at the engine, which outlives it.
// Errors         : a thread that cannot be started is IST_ERR_SYSTEM.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "request/engine.hpp"

namespace ist {

class ProgressThread {
 public:
  static Result<std::unique_ptr<ProgressThread>> start(Engine& engine);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

 private:
  explicit ProgressThread(Engine& engine) : engine_(engine) {}
  void run();
  Engine& engine_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace ist
