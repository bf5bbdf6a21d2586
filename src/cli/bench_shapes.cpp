#include "cli/bench_shapes.hpp"

#include <algorithm>
#include <random>

#include "cli/failure.hpp"

namespace ist::cli {
namespace {

using isthmus::Layout;

constexpr std::array<std::int64_t, 6> kBlocks{4, 16, 64, 256, 1024, 4096};
constexpr std::array<std::uint64_t, 4> kTotals{1 << 10, 64 << 10, 1 << 20, 16 << 20};
constexpr std::uint64_t kMostOfShape = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostBlock = 1 << 20;

// A block of one type and a number behind a gap, as a struct of C has them.
Shaped structs(const isthmus::Type& type, std::int64_t block, std::int64_t length, std::int64_t total) {
  const std::int64_t behind = (block + 7) / 8 * 8 + 8, extent = 2 * behind,
                     count = std::max<std::int64_t>(total / (block + 8), 1);
  const std::array<Layout, 2> olds{type, isthmus::type_of<double>};
  Shaped made{Layout::contiguous(count, Layout::structure(std::array<std::int64_t, 2>{length, 1},
                                                          std::array<std::int64_t, 2>{0, behind}, olds)
                                            .resized(0, extent)),
              {}};
  for (std::int64_t i = 0; i < count; ++i)
    made.runs.insert(made.runs.end(), {{i * extent, block}, {i * extent + behind, 8}});
  return made;
}

}  // namespace

Shaped shaped(const std::string& name, std::int64_t block, std::int64_t total) {
  const isthmus::Type type = block % 8 == 0 ? isthmus::type_of<double> : isthmus::type_of<float>;
  const std::int64_t element = block % 8 == 0 ? 8 : 4, length = block / element;
  if (name == "struct") return structs(type, block, length, total);
  const std::int64_t count = std::max<std::int64_t>(total / block, 1);
  std::int64_t first = 0, stride = 2 * block;
  Layout layout = type;
  std::vector<std::int64_t> places;
  if (name == "vector") {
    layout = Layout::vector(count, length, 2 * length, type);
  } else if (name == "hvector") {
    stride = 2 * block + element;
    layout = Layout::hvector(count, length, stride, type);
  } else if (name == "subarray") {
    first = length / 2 * element;
    layout = Layout::subarray(std::array{count, 2 * length}, std::array{count, length},
                              std::array{std::int64_t{0}, length / 2}, type);
  } else {
    std::mt19937_64 random{static_cast<std::uint64_t>(block)};
    for (std::int64_t i = 0; i < count; ++i) places.push_back((4 * i + static_cast<std::int64_t>(random() % 3)) * length);
    layout = Layout::indexed_block(length, places, type);
  }
  Shaped made{layout, {}};
  for (std::int64_t i = 0; i < count; ++i)
    made.runs.push_back({places.empty() ? first + i * stride : places[static_cast<std::size_t>(i)] * element, block});
  return made;
}

std::int64_t touched(const Shaped& shape, std::int64_t unit) {
  std::int64_t units = 0, last = -1;
  for (const ShapeRun& run : shape.runs) {
    const std::int64_t from = std::max(run.offset / unit, last + 1), to = (run.offset + run.bytes - 1) / unit;
    if (to >= from) units += to - from + 1;
    last = std::max(last, to);
  }
  return units * unit;
}

std::vector<std::int64_t> blocks_of(const BenchOptions& options) {
  if (options.blocks.empty()) return {kBlocks.begin(), kBlocks.end()};
  return {options.blocks.begin(), options.blocks.end()};
}

std::vector<std::uint64_t> totals_of(const BenchOptions& options) {
  return options.sizes.empty() ? std::vector<std::uint64_t>(kTotals.begin(), kTotals.end()) : options.sizes;
}

void must_be_shapes(const BenchOptions& options, const std::string& kind) {
  const std::string& name = options.benchmark;
  if (!options.call.empty() && std::find(kShapes.begin(), kShapes.end(), options.call) == kShapes.end())
    throw Failure(2, name + " is of vector, hvector, subarray, indexed or struct, or of all of them, but was given \"" +
                         options.call + "\"");
  if (kind != "host" && kind != "cuda" && kind != "opencl")
    throw Failure(2, name + " is of memory of kind host, cuda or opencl (--kind), but was given \"" + kind + "\"");
  for (const std::uint64_t size : options.sizes)
    if (size < 4 || size > kMostOfShape)
      throw Failure(2,
                    "--sizes of " + name + " are bytes in all blocks, from 4 to 1GiB, but one is " + std::to_string(size));
  for (const std::uint64_t block : options.blocks)
    if (block < 4 || block > kMostBlock || block % 4 != 0)
      throw Failure(2,
                    "--blocks are bytes of each block, multiples of 4 from 4 to 1MiB, but one is " + std::to_string(block));
}

isthmus::Kind kind_named(const std::string& kind) {
  constexpr std::array<const char*, 4> kKinds{"auto", "host", "cuda", "opencl"};
  return static_cast<isthmus::Kind>(std::find(kKinds.begin() + 1, kKinds.end(), kind) - kKinds.begin());
}

}  // namespace ist::cli
