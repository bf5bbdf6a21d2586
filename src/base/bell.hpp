// A thread that waits for what other threads of its process do, and is told.
//
// Who calls this : request/waiters.cpp, for drivers that tell of ends (rings); request/wait.cpp (waits).
// Threads        : any.
// Ownership      : a value; outlives its ringers and waiters.
// Errors         : none.
//
// Whoever waits reads the count before he looks whether what he waits for has happened, and sleeps only as long as the count is still
// that: a ring between look and sleep is not lost. The ringer adds to the count, then looks whether somebody sleeps; the sleeper says that he
// does, then has the kernel compare the count: each writes first and reads second, in one order for all, so that one of the two sees the other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ist {

class Bell {
 public:
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  // After what is told of.
  void ring();
  // Returns once the count is another one, after `longest`, or early.
  void wait(std::uint32_t count, std::chrono::microseconds longest);

 private:
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> waiting_{0};
};

}  // namespace ist
