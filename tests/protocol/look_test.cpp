// When a call that only starts something looks at what else moves.
#include "request/look.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace ist {
namespace {

// How many of so many calls were due, one behind the other.
int due_of(LooksOfStarts& looks, int calls) {
  int due = 0;
  for (int i = 0; i < calls; ++i) due += looks.due() ? 1 : 0;
  return due;
}

TEST(LooksOfStarts, AreDueNowAndThen) {
  LooksOfStarts looks;
  EXPECT_TRUE(looks.due()) << "nobody has looked yet";
  const auto begun = std::chrono::steady_clock::now();
  int due = 0;
  while (std::chrono::steady_clock::now() - begun < std::chrono::milliseconds{20}) due += due_of(looks, 100);
  EXPECT_GE(due, 1);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
  EXPECT_LE(due, took.count() / 20 + 1) << "not before 20 us are over";
}

TEST(LooksOfStarts, AreDueWithEverySixteenthAnnouncement) {
  LooksOfStarts looks;
  looks.due();
  int due = 0;
  for (int i = 0; i < 64; ++i) {
    looks.announced();
    due += looks.due() ? 1 : 0;
  }
  // Others may have been due meanwhile, behind each of which it is counted anew.
  EXPECT_GE(due, 4);
  EXPECT_LE(due, 32) << "and not with each";
}

}  // namespace
}  // namespace ist
