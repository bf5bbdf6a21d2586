// The layouts that benchmarks pack and send: blocks of one length with gaps as long between them, in five shapes.
//
// Who calls this : bench_pack, bench_layout.
// Threads        : values.
// Ownership      : values.
// Errors         : none of its own.
#pragma once

#include <array>
#include <cstdint>
#include <isthmus/isthmus.hpp>
#include <isthmus/layout.hpp>
#include <string>
#include <vector>

#include "cli/bench_options.hpp"

namespace ist::cli {

inline constexpr std::array<const char*, 5> kShapes{"vector", "hvector", "subarray", "indexed", "struct"};

// Bytes next to each other.
struct ShapeRun {
  std::int64_t offset;
  std::int64_t bytes;
};

struct Shaped {
  isthmus::Layout layout;
  std::vector<ShapeRun> runs;  // what it names, worked out beside it
  std::int64_t span() const { return runs.back().offset + runs.back().bytes; }
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const ShapeRun& run : runs) sum += run.bytes;
    return sum;
  }
};

// Blocks of `block` bytes, `total` in all of them, of as many elements as fit; irregular gaps between those of a list.
Shaped shaped(const std::string& name, std::int64_t block, std::int64_t total);
// Bytes of whole units of `unit` that its blocks lie in: what lies between blocks within one comes along.
std::int64_t touched(const Shaped& shape, std::int64_t unit);

// What was asked for, or what all such benchmarks do: blocks of 4 bytes to 4 KiB, 1 KiB to 16 MiB in all.
std::vector<std::int64_t> blocks_of(const BenchOptions& options);
std::vector<std::uint64_t> totals_of(const BenchOptions& options);
// Calls `each(shape, block, total)` of every row that was asked for.
template <class Each>
void each_shape(const BenchOptions& options, const Each& each) {
  for (const char* shape : kShapes)
    for (const std::uint64_t total : totals_of(options))
      for (const std::int64_t block : blocks_of(options))
        if ((options.call.empty() || options.call == shape) && static_cast<std::uint64_t>(block) <= total)
          each(shape, block, static_cast<std::int64_t>(total));
}
// Refuses shapes, kinds of memory and sizes that such a benchmark is not of.
void must_be_shapes(const BenchOptions& options, const std::string& kind);
// Kinds by these words; `kind` is one of host, cuda and opencl.
isthmus::Kind kind_named(const std::string& kind);

}  // namespace ist::cli
