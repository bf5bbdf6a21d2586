// What an example program is around its work: times, and an end that is the same on all ranks.
//
// Who calls this : jacobi, pixels, particles, lbm and himeno.
// Threads        : one.
// Ownership      : values.
// Errors         : Mistake: one rank tells of it, with the usage, and all end with status 2. Failure: one rank tells of it, and all end with
//                  status 1. Of any other each rank tells by itself.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <isthmus/isthmus.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments.hpp"

namespace example {

// Of the machine's. Work throws it on all ranks alike, so that it is told once.
class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Number>
std::string in_words(Number value) {
  if constexpr (std::is_integral_v<Number>) return std::to_string(value);
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

template <class T>
T largest(const isthmus::Comm& comm, T value) {
  std::vector<T> mine{value}, all(1);
  comm.allreduce(mine, all, isthmus::op::max);
  return all[0];
}
template <class T>
T sum(const isthmus::Comm& comm, T value) {
  std::vector<T> mine{value}, all(1);
  comm.allreduce(mine, all, isthmus::op::sum);
  return all[0];
}

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// From when the first rank begins to when the last one has ended.
template <class Action>
double slowest_seconds(const isthmus::Comm& comm, const Action& action) {
  comm.barrier();
  const Clock clock;
  action();
  comm.barrier();
  return largest(comm, clock.seconds());
}

// The middle one of three runs by their `seconds`, which are the same on all ranks.
template <class Run>
auto median_of_three(const Run& run) {
  std::array results{run(), run(), run()};
  std::sort(results.begin(), results.end(), [](const auto& one, const auto& other) { return one.seconds < other.seconds; });
  return results[1];
}

template <class T>
std::vector<T> zeros(std::int64_t count) try {
  return std::vector<T>(static_cast<std::size_t>(count));
} catch (const std::bad_alloc&) {
  throw std::runtime_error("wanted are " + std::to_string(count * static_cast<std::int64_t>(sizeof(T))) +
                           " bytes of memory at once, which there are not");
}

// Ranks whose arguments differ would wait for messages that nobody sends.
inline void must_be_alike(const isthmus::Comm& comm, int argc, char** argv) {
  std::string all;
  for (int at = 1; at < argc; ++at) all += std::string(argv[at]) + '\0';
  const auto mine = static_cast<std::uint64_t>(std::hash<std::string>()(all));
  if (largest(comm, mine) != ~largest(comm, ~mine)) throw Mistake("ranks were given different arguments");
}

// `work` says whether its result was right.
inline int run(Arguments& arguments, int argc, char** argv, const std::function<bool(const isthmus::World&)>& work) {
  int rank = 0;
  try {
    const isthmus::World world;
    rank = world.rank();
    bool asked = false;
    std::string wrong;
    try {
      asked = arguments.read(argc, argv);
    } catch (const Mistake& mistake) {
      wrong = mistake.what();
    }
    // The first rank whose arguments are wrong, or as many as there are.
    const int first = world.size() - largest(world.comm(), wrong.empty() ? 0 : world.size() - rank);
    try {
      if (first < world.size()) throw Mistake(wrong);
      must_be_alike(world.comm(), argc, argv);
      if (asked) return work(world) ? 0 : 1;
      if (rank == 0) std::fputs(arguments.usage().c_str(), stdout);
      return 0;
    } catch (const Mistake& mistake) {
      if (rank == first % world.size())
        std::fprintf(stderr, "%s: %s\n%s", arguments.program().c_str(), mistake.what(), arguments.usage().c_str());
      return 2;
    } catch (const Failure& failure) {
      if (rank == 0) std::fprintf(stderr, "%s: %s\n", arguments.program().c_str(), failure.what());
      return 1;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: rank %d: %s\n", arguments.program().c_str(), rank, error.what());
    return 1;
  }
}

}  // namespace example
