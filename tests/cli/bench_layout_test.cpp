// Messages with layouts as `isthmus bench layout` checks and times them: every shape into one piece and into its own kind, beside others.
#include <set>
#include <string>

#include "bench_program.hpp"

namespace ist::test {
namespace {

TEST_F(Bench, LayoutsAreSentCheckedAndTimedBesideOtherWays) {
  const Ran ran = run_program("bench layout --iterations 5 --sizes 1KiB,100000 --blocks 4,4096 --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(says(ran, "every byte was right, both ways")) << ran.output;
  const auto found = result();
  EXPECT_EQ(found["benchmark"], "layout");
  EXPECT_EQ(found["ranks"], 2);
  // Blocks that are longer than the total are left out.
  ASSERT_EQ(found["rows"].size(), 5 * (1 + 2) * 3U);
  std::set<std::string> rows;
  double bare = 0;
  for (const auto& row : found["rows"]) {
    rows.insert(row["shape"].get<std::string>() + " " + row["source"].get<std::string>() + " " +
                row["into"].get<std::string>());
    for (const char* time : {"median_us", "gbps", "by_hand_us", "contiguous_us"})
      EXPECT_GT(row[time].get<double>(), 0) << time << ": " << row.dump();
    EXPECT_LE(row["p10_us"].get<double>(), row["p90_us"].get<double>()) << row.dump();
    EXPECT_EQ(row["iterations"], 5) << row.dump();
    EXPECT_EQ(row["blocks_us"].is_null(), row["bytes"].get<int>() / row["block"].get<int>() > 4096) << row.dump();
    // The bare copy of the same row into one piece, which is written first, and at least that into lines that lie apart.
    if (row["into"] == "contiguous") bare = row["limit_us"].get<double>();
    EXPECT_GE(row["limit_us"].get<double>(), bare * (1 - 1e-9)) << row.dump();
    EXPECT_FALSE(row["path"].get<std::string>().empty()) << row.dump();
  }
  EXPECT_EQ(rows.size(), 15U) << "five shapes, each out of its own, into it, and both";
  expect_limited(found, "a bare copy of as many bytes in one piece (memcpy of that size, again and again, one thread)");
}

TEST_F(Bench, LayoutsOfDeviceMemoryAreSentToo) {
  std::string variables;
  const bool cuda = there_is_cuda(variables);
  for (const std::string kind : {"cuda", "opencl"}) {
    if (kind == "cuda" ? !cuda : !kind_is_here(kind)) continue;
    const Ran ran = run_program(
        "bench layout struct --quick --kind " + kind + " --iterations 3 --sizes 5000 --blocks 64 --json " + file(),
        kind == "cuda" ? variables : "");
    ASSERT_EQ(ran.status, 0) << ran.output;
    // One device may be there, or two.
    EXPECT_EQ(result()["from"], kind == "cuda" ? "cuda:0" : kind);
    EXPECT_EQ(result()["to"].get<std::string>().substr(0, kind.size()), kind);
    EXPECT_EQ(result()["quick"], true);
    EXPECT_EQ(result()["rows"].size(), 3U);
    expect_limited(result(), kind == "cuda" ? "one copy of that size by the CUDA driver, cuda:0 to cuda:" : "bare copy");
  }
}

TEST_F(Bench, LayoutsThatCannotBeSentAreRefused) {
  expect_refused({{"bench layout planes", "was given \"planes\""},
                  {"bench layout --sizes 2GiB", "--sizes of layout are bytes in all blocks, from 4 to 1GiB"},
                  {"bench layout --blocks 6", "multiples of 4 from 4 to 1MiB, but one is 6"},
                  {"bench layout --min 8", "layout takes --sizes"},
                  {"bench layout --from cuda", "give it by --kind"},
                  {"bench layout --ranks 3", "layout is between two ranks"},
                  {"run -n 3 " PROGRAM " bench layout", "layout is between two ranks"},
                  {"bench latency --blocks 8", "--blocks is of pack and layout"},
                  {"bench layout --kind pinned", "memory of kind host, cuda or opencl"}});
}

}  // namespace
}  // namespace ist::test
