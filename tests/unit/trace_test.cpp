#include "base/trace.hpp"

#include <gtest/gtest.h>

namespace ist {
namespace {

TEST(TraceFileName, has_the_rank_where_it_is_asked_for_or_before_the_last_ending) {
  const auto name = [](const char* pattern, int rank, int nth) { return Trace::file_name(pattern, Rank{rank}, nth); };
  EXPECT_EQ("trace.3.json", name("trace.json", 3, 0));
  EXPECT_EQ("a.b/trace.3", name("a.b/trace", 3, 0));
  EXPECT_EQ("/tmp/run.7/t.12.json", name("/tmp/run.7/t.json", 12, 0));
  EXPECT_EQ(".hidden.0", name(".hidden", 0, 0));
  EXPECT_EQ("a/.hidden.0", name("a/.hidden", 0, 0));
  EXPECT_EQ("x-4", name("x-%r", 4, 0));
  EXPECT_EQ("4/4", name("%r/%r", 4, 0));
  EXPECT_EQ("100%.4", name("100%", 4, 0));
  EXPECT_EQ("trace.3-2.json", name("trace.json", 3, 1));
  EXPECT_EQ("3-11/t", name("%r/t", 3, 10));
}

}  // namespace
}  // namespace ist
