// What the machine itself allows, measured in the same run and without the library in the way.
//
// Who calls this : bench, on rank 0, while rank 1 sleeps, and bench_row_limit.
// Threads        : starts one and joins it.
// Ownership      : none.
// Errors         : none; what cannot be measured is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

namespace ist::cli {

double median(std::vector<double> values);  // of one at least

// Runs `partner` on that processor, by a thread of its own, and `measure` here meanwhile, which ends it. False: it may not go there, and
// nothing was run.
bool beside_partner(int other_processor, const std::function<void()>& partner, const std::function<void()>& measure);

// Page-aligned, as the buffers of the benchmark, and touched; null where there is no memory.
struct FreePages {
  void operator()(std::byte* pages) const { std::free(pages); }
};
using Pages = std::unique_ptr<std::byte, FreePages>;
Pages take_pages(std::size_t bytes);

struct Limits {
  double cache_line_us = 0;  // half a round trip of one cache line between two processors; 0: they are one
  double memcpy_gbps = 0;    // one thread, memory to memory
  std::uint64_t memcpy_bytes = 0;
  int processor = -1;        // where rank 0 ran, and
  int other_processor = -1;  // where rank 1 did; -1: not known
};

// `other_processor`: the one rank 1 ran on. Briefly: by few repetitions, where the rows have few.
Limits measure_limits(int other_processor, bool briefly = false);

// Microseconds of one of 64 cache lines that this thread writes one after the other, and the other processor reads and answers with one:
// what a window of short messages can reach at most. 0: not known, as of one processor.
double cache_lines_us(int other_processor);

// GB/s of memcpy between two buffers of `bytes`, copied again and again by this thread as the timed loops do: in cache where they
// fit. What a message of that size can reach at most if its bytes are copied once.
double warm_memcpy_gbps(std::size_t bytes);

}  // namespace ist::cli
