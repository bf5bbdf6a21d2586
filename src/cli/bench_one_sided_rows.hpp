// What the sides of `isthmus bench one-sided` share: two PEs, how often something is repeated, and the rows.
//
// Who calls this : bench_one_sided and its sides, on both ranks alike.
// Threads        : one.
// Ownership      : a world; the options are looked at.
// Errors         : a Failure; the library's own Error passes through.
#pragma once

#include <functional>
#include <isthmus/heap.hpp>
#include <isthmus/isthmus.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench_options.hpp"

namespace ist::cli {

struct OneSidedRow {
  std::string operation = {};
  std::uint64_t bytes = 0;
  std::string by = {};             // who does it: "a warp", "put_nbi in windows of 64, and quiet"
  unsigned blocks = 0;             // of kernels
  unsigned threads = 0;            // of each
  bool moves = false;              // its bytes in its time are a bandwidth
  bool counts = false;             // so many a second are of interest
  std::string limit_is = {};       // what limit_us is
  std::uint64_t iterations = 0;    // of one batch, or one launch
  std::vector<double> times = {};  // microseconds of one; of each batch, or launch
  std::vector<double> limit_times = {};
};

struct OneSidedBench {
  const BenchOptions& options;
  isthmus::World world;
  isthmus::Kind kind;
  std::vector<nlohmann::ordered_json> rows;
  std::vector<std::string> left_out;  // what could not be measured, and why

  bool first() const { return world.rank() == 0; }
  int other() const { return 1 - world.rank(); }
  bool wants(const char* operation) const { return options.call.empty() || options.call == operation; }
  // Those that were asked for and lie in that range, or from `least` on the `factor`-fold up to `most`.
  std::vector<std::uint64_t> sizes(std::uint64_t least, std::uint64_t most, std::uint64_t factor) const;
  isthmus::Buffer buffer(const void* address) const {
    return kind == isthmus::Kind::host ? isthmus::Buffer::host(address) : isthmus::Buffer::cuda(address);
  }
  void write(void* to, const std::vector<unsigned char>& bytes) const;
  // Whether just these bytes lie there.
  bool holds(const void* address, const std::vector<unsigned char>& wanted) const;
  std::uint64_t word_at(const std::uint64_t* address) const;

  // Collective, as what is below. What rank 0 gave.
  double from_first(double mine) const;
  // A Failure on both where one of them was wrong.
  void must_be_right(bool right, const std::string& what) const;
  // Microseconds of one, of each batch: `body` makes `share` of them. By the method for single ones, or for windows.
  std::vector<double> timed(OneSidedRow& row, bool window, double share, const std::function<void()>& body) const;
  void leave_out(const std::string& why);
  void add(OneSidedRow row);
};

// Bytes that both ranks can make, other ones for each rank and `salt`.
std::vector<unsigned char> bytes_of_rank(int rank, std::uint64_t salt, std::size_t count);

}  // namespace ist::cli
