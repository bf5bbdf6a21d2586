// Kernels of both PEs at once, timed in turns with bare ones, and the memory that they work on.
//
// Who calls this : bench_one_sided_kernel and bench_one_sided_stream, on both ranks.
// Threads        : one.
// Ownership      : the heap, which its heir destroys together with the other rank, a module and a stream.
// Errors         : a Failure that says which block of which kernel gave up, and why.
#pragma once

#include "cli/bench_one_sided_kernels.hpp"
#include "cli/bench_one_sided_rows.hpp"

namespace ist::cli {

// Words in the heap of one use, and how many of its numbers were used.
struct OneSidedNumbers {
  std::uint64_t* words = nullptr;
  std::uint64_t used = 0;
};

// One way to do something.
struct OneSidedForm {
  OneSidedKernel kernel;
  unsigned blocks;
  unsigned threads;
  OneSidedNumbers* numbers;
  std::uint64_t bytes = 0;
  std::uint64_t count = 1;
  std::uint64_t places = 1;

  std::string text() const {
    const std::string each = threads == 1 ? "a thread" : std::to_string(threads) + " threads";
    return blocks == 1 ? each : std::to_string(blocks) + " x " + each;
  }
};

class OneSidedRuns {
 protected:
  // `room`: bytes of source and destination. Two ranks on one device are refused.
  OneSidedRuns(OneSidedBench& bench, std::uint64_t room);

  std::uint64_t trips(std::uint64_t usual) const;
  // This rank's bytes into its source, and none of the other one's into its destination; then that just those have come.
  void prepare(std::uint64_t salt, std::uint64_t bytes);
  void must_have_come(std::uint64_t salt, std::uint64_t bytes, const std::string& what);
  // Words of one use in every part of the heap.
  OneSidedNumbers numbers(std::uint64_t count) const { return {heap_.calloc<std::uint64_t>(count)}; }
  // Both PEs at once. Microseconds of a trip by PE 0's clock.
  double run(const OneSidedForm& form, std::uint64_t trips);
  // The best of each by the median, `share` of which a trip is; so many trips as the row has iterations.
  void race(OneSidedRow row, const std::vector<OneSidedForm>& ours, const std::vector<OneSidedForm>& bare, double share);

  OneSidedBench& bench_;
  OneSidedKernels kernels_;
  unsigned multiprocessors_;
  std::uint64_t room_;
  isthmus::Heap heap_;
  unsigned char* source_;
  unsigned char* dest_;

 private:
  void must_have_a_device_each() const;
  double told_by_blocks(const OneSidedForm& form, std::uint64_t trips) const;
};

}  // namespace ist::cli
