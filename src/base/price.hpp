// What something costs: named terms in seconds, written down once and used twice, to choose by and to show to people.
//
// Who calls this : protocol/choose and collective/choose, whose prices are templates over where the terms go; cli/explain.
// Threads        : values.
// Ownership      : names are literals.
// Errors         : what is impossible is a price with a reason, and costs infinitely much.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>

namespace ist {

struct Term {
  const char* name = "";
  double seconds = 0;
};

// Keeps the sum alone: for choosing, on the way of every message.
class Sum {
 public:
  void add(const char* /*name*/, double seconds) { seconds_ += seconds; }
  void refuse(const char* /*why*/) { seconds_ = std::numeric_limits<double>::infinity(); }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = 0;
};

// Keeps every term: for people.
class Bill {
 public:
  static constexpr std::size_t kMost = 8;
  void add(const char* name, double seconds) {
    sum_.add(name, seconds);
    if (count_ < kMost) terms_[count_++] = {name, seconds};
  }
  void refuse(const char* why) {
    sum_.refuse(why);
    refused_ = why;
  }
  std::span<const Term> terms() const { return {terms_.data(), count_}; }
  double seconds() const { return sum_.seconds(); }
  // Why it cannot be done; null if it can.
  const char* refused() const { return refused_; }

 private:
  Sum sum_;
  std::array<Term, kMost> terms_{};
  std::size_t count_ = 0;
  const char* refused_ = nullptr;
};

}  // namespace ist
