// What an example program is around its work: arguments, times, and an end that is the same on all ranks.
//
// Who calls this : jacobi, pixels, particles and lbm.
// Threads        : one.
// Ownership      : values; an Arguments refers to the variables that it fills.
// Errors         : Mistake: one rank tells of it, with the usage, and all end with status 2.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <isthmus/isthmus.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace example {

// Of the user's. Work throws it for what follows from arguments and number of ranks, so that no rank goes on without the others.
class Mistake : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Number>
std::string in_words(Number value) {
  if constexpr (std::is_integral_v<Number>) return std::to_string(value);
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

// Options, each with a value behind it.
class Arguments {
 public:
  Arguments(std::string program, std::string purpose) : program_(std::move(program)), purpose_(std::move(purpose)) {}

  // From `least` to `most`, both inclusive. An option without help is not shown.
  template <class Number>
  void number(const std::string& name, Number& value, Number least, Number most, const std::string& help) {
    const std::string range = in_words(least) + " to " + in_words(most);
    add(name, help, in_words(value), [=, &value](std::string_view text) {
      Number found{};
      const auto end = std::from_chars(text.data(), text.data() + text.size(), found);
      if (end.ec != std::errc() || end.ptr != text.data() + text.size() || !(found >= least && found <= most))
        throw Mistake(name + " is \"" + std::string(text) + "\", and has to be a number from " + range);
      value = found;
    });
  }
  void word(const std::string& name, std::string& value, const std::vector<std::string>& words, const std::string& help) {
    std::string list;
    for (const auto& each : words) list += (list.empty() ? "" : ", ") + each;
    add(name, help.empty() ? help : help + ": " + list, value, [=, &value](std::string_view text) {
      if (std::find(words.begin(), words.end(), text) == words.end())
        throw Mistake(name + " is \"" + std::string(text) + "\", and has to be one of " + list);
      value = text;
    });
  }
  // Of any other form; `take` throws what is wrong with it.
  void add(const std::string& name, const std::string& help, const std::string& preset,
           const std::function<void(std::string_view)>& take) {
    options_.push_back({name, help, preset, take});
  }
  // False: help is asked for.
  bool read(int argc, char** argv) const {
    for (int at = 1; at < argc; at += 2) {
      const std::string_view name = argv[at];
      if (name == "--help") return false;
      const auto option =
          std::find_if(options_.begin(), options_.end(), [&](const Option& each) { return each.name == name; });
      if (option == options_.end()) throw Mistake("there is no option \"" + std::string(name) + "\"");
      if (at + 1 == argc) throw Mistake(std::string(name) + " needs a value");
      option->take(argv[at + 1]);
    }
    return true;
  }
  std::string usage() const {
    std::string text = "usage: isthmus run -n RANKS " + program_ + " [OPTION VALUE]...\n" + purpose_ + "\n";
    for (const Option& option : options_)
      if (!option.help.empty())
        text += "  " + option.name + std::string(14 - std::min<std::size_t>(option.name.size(), 13), ' ') + option.help +
                " [" + option.preset + "]\n";
    return text;
  }
  const std::string& program() const { return program_; }

 private:
  struct Option {
    std::string name, help, preset;
    std::function<void(std::string_view)> take;
  };
  std::string program_, purpose_;
  std::vector<Option> options_;
};

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
inline int run(const Arguments& arguments, int argc, char** argv, const std::function<bool(const isthmus::World&)>& work) {
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
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: rank %d: %s\n", arguments.program().c_str(), rank, error.what());
    return 1;
  }
}

}  // namespace example
