// One buffer of a rank: memory of the kind, class and device that a Place names.
//
// Who calls this : bench_session.
// Threads        : one.
// Ownership      : owns the memory, and its page lock; the world and the kinds outlive it.
// Errors         : a Failure.
#pragma once

#include <isthmus/isthmus.h>

#include <cstddef>
#include <memory>

#include "cli/bench_memory.hpp"
#include "cli/bench_options.hpp"
#include "memory/kinds.hpp"

namespace ist::cli {

// Throws what the library said unless `code` is IST_OK.
[[noreturn]] void fail(int code, const char* call);
inline void must(int code, const char* call) {
  if (code != IST_OK) [[unlikely]]
    fail(code, call);
}

class RankBuffer {
 public:
  // Page-locked memory is that of the device whose number the rank has on its host.
  RankBuffer(ist_world world, Kinds& kinds, const Place& place, std::size_t bytes, int local_rank);
  RankBuffer(const RankBuffer&) = delete;
  RankBuffer& operator=(const RankBuffer&) = delete;
  ~RankBuffer();

  const ist_buffer& buffer() const { return buffer_; }
  // As calls are given it: perhaps without its kind, or with the promise that nothing is pending.
  ist_buffer named(const BenchOptions& options) const;
  // While the world lives still. What is not of its allocating goes with the object, when no rank has it open any more.
  void give_back();

 private:
  void pin(Kinds& kinds, std::size_t bytes, int local_rank);

  const ist_world world_;
  const Place place_;
  ist_buffer buffer_{};
  bool taken_ = false;
  std::unique_ptr<ClassedMemory> classed_;  // whose the buffer is, where the library did not allocate it
  Pins* pins_ = nullptr;                    // whoever page-locked it
};

}  // namespace ist::cli
