// Copies of host memory made by several threads: one alone fills neither the memory's bandwidth nor that of a device's bus
// (13 GB/s where page-locked memory has 54: one H200, 4 to 16 MiB, 2026-11-22).
//
// Who calls this : host_kind.cpp.
// Threads        : every call from any thread. Helpers are made by the first copy, sleep when nothing is to do, and end with
//                  the crew. Whoever asks after a copy helps with it.
// Ownership      : views of both ends, which stay until the copy is over.
// Errors         : none; where no thread can be made, those that ask do it all.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/units.hpp"

namespace ist {

class CopyCrew {
 public:
  CopyCrew() = default;
  ~CopyCrew();
  CopyCrew(const CopyCrew&) = delete;
  CopyCrew& operator=(const CopyCrew&) = delete;

  // So many threads beside those that ask; none, as from the start: takes() says no.
  void set_helpers(int helpers);
  // Is that a copy which several threads do sooner?
  bool takes(Bytes size) const;
  // Begins a copy between two places that do not overlap, and returns its number; 0, and nothing was begun, while as many are
  // under way as there can be.
  std::uint64_t start(std::byte* to, const std::byte* from, Bytes size);
  // Copies a share, if one is left to take. True: all of it has arrived, and the number is no longer in use.
  bool finish(std::uint64_t id);
  // Returns when it has arrived; the number stays in use.
  void wait(std::uint64_t id);
  // Nobody will ask: the number is free when all of it has arrived.
  void drop(std::uint64_t id);

 private:
  static constexpr std::size_t kMost = 64;  // copies under way
  struct Job {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t size = 0;
    std::size_t taken = 0;                // bytes whose copying somebody has begun
    std::atomic<std::size_t> arrived{0};  // release: whoever sees all of them sees their bytes
    std::uint64_t id = 0;                 // 0: free
    bool dropped = false;
  };
  struct Share {
    Job* job = nullptr;
    std::size_t at = 0;
    std::size_t size = 0;
  };
  Job& job(std::uint64_t id) { return jobs_[id % kMost]; }
  bool take_share(Share& share);
  void copy(const Share& share);
  void hire();
  void work();

  std::mutex mutex_;  // guards all but `arrived`, and what is atomic
  std::array<Job, kMost> jobs_;
  std::uint64_t next_id_ = kMost;     // of the next copy, in whose place of jobs_ it goes
  std::uint64_t oldest_ = kMost;      // nothing is left to take of those before
  std::atomic<std::size_t> open_{0};  // bytes left to take
  std::atomic<int> wanted_{0};
  std::vector<std::thread> helpers_;
  int asleep_ = 0;
  bool ends_ = false;
  std::condition_variable wake_;
};

}  // namespace ist
