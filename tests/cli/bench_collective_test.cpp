// Calls of all ranks, message rate and overlap, as `isthmus bench` measures them; and one thread at a time.
#include <set>
#include <string>
#include <vector>

#include "bench_program.hpp"
#include "cli/bench_calls.hpp"
#include "cli/bench_overlap.hpp"
#include "cli/bench_uneven_calls.hpp"

namespace ist::test {
namespace {

// Small thresholds let short messages take every way.
constexpr const char* kSmallThresholds =
    "ISTHMUS_EAGER_LIMIT=2KiB ISTHMUS_RING_SLOT_DEVICE=4KiB ISTHMUS_RING_SLOT_HOST=4KiB";

class BenchCall : public Bench, public ::testing::WithParamInterface<const char*> {};

TEST_P(BenchCall, EveryByteOnThreeRanksIsRightAndTheRowsAreSound) {
  const std::string call = GetParam();
  const Ran ran = run_program(
      "bench collective " + call + " --ranks 3 --iterations 3 --min 2KiB --max 8KiB --json " + file(), kSmallThresholds);
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  ASSERT_TRUE(found.is_object()) << ran.output;
  EXPECT_EQ(found["benchmark"], call);
  EXPECT_EQ(found["ranks"], 3);
  EXPECT_EQ(found["from"], "host");
  const bool barrier = call == "barrier";
  if (!barrier) expect_limited(found, "which the busiest of N ranks has to send or receive");
  EXPECT_EQ(says(ran, "all right"), !barrier) << ran.output;
  ASSERT_EQ(found["rows"].size(), barrier ? 1U : 3U);
  for (const auto& row : found["rows"]) {
    EXPECT_GT(row["min_us"].get<double>(), 0);
    EXPECT_LE(row["min_us"].get<double>(), row["average_us"].get<double>());
    EXPECT_LE(row["average_us"].get<double>(), row["max_us"].get<double>());
    EXPECT_LE(row["p10_us"].get<double>(), row["median_us"].get<double>());
    EXPECT_LE(row["median_us"].get<double>(), row["p90_us"].get<double>());
  }
}
INSTANTIATE_TEST_SUITE_P(Calls, BenchCall,
                         ::testing::Values("barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "allgather",
                                           "alltoall", "gather", "scatter", "scan", "exscan", "gatherv", "scatterv",
                                           "allgatherv", "alltoallv", "exchange"));

TEST_F(Bench, ACallOfOneRankAloneIsMeasuredToo) {
  const Ran ran = run_program("bench collective alltoall --ranks 1 --iterations 3 --max 8 --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(result()["rows"].size(), 4U);
  EXPECT_TRUE(result()["rows"][0]["limit_ratio"].is_null());
  EXPECT_TRUE(says(ran, "limit_us is not measured: one rank by itself has nobody to send to")) << ran.output;
}

TEST_F(Bench, InsideAWorldACallTakesAllItsRanksAndOfAReductionOnlyWholeElements) {
  const Ran ran = run_program("run -n 4 " PROGRAM " bench collective allreduce --iterations 3 --max 16 --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  EXPECT_EQ(found["ranks"], 4);
  ASSERT_EQ(found["rows"].size(), 3U);
  EXPECT_EQ(found["rows"][0]["bytes"], 4);
}

TEST_F(Bench, AWorldOfAnotherSizeThanAskedForIsRefusedOnce) {
  const Ran ran = run_program("run -n 3 " PROGRAM " bench collective bcast --ranks 2");
  EXPECT_NE(ran.status, 0);
  EXPECT_TRUE(says(ran, "a benchmark takes 2 ranks and found 3")) << ran.output;
}

TEST_F(Bench, CallsOnCudaMemoryAreCheckedAndMeasuredOnAnyDriver) {
  const bool real = kind_is_here("cuda");
  if (!real && !std::filesystem::exists(FAKE_CUDA "/libcuda.so.1"))
    GTEST_SKIP() << "neither a GPU nor the driver of the tests";
  for (const char* call : {"allreduce", "alltoall"}) {
    const Ran ran = run_program(
        "bench collective " + std::string{call} + " --kind cuda --iterations 2 --min 1KiB --max 4KiB --json " + file(),
        real ? "" : "LD_LIBRARY_PATH=" FAKE_CUDA);
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_TRUE(result()["from"].get<std::string>().starts_with("cuda:")) << ran.output;
    expect_limited(result(), "one copy of that size by the CUDA driver");
  }
}

// Input and result lie in memory of two kinds on every rank, and every byte of both is looked at.
TEST_F(Bench, ResultsGoIntoMemoryOfAnotherKind) {
  std::string variables;
  const bool cuda = there_is_cuda(variables);
  const bool opencl = kind_is_here("opencl");
  if (!cuda && !opencl)
    GTEST_SKIP() << "not covered here: results in other memory than inputs; there is no device of any kind";
  std::vector<std::string> all;
  for (const char* call : {"allreduce", "alltoallv", "scatterv", "exscan"}) {
    if (opencl) all.push_back(std::string{call} + " --kind host --into opencl");
    if (cuda) all.push_back(std::string{call} + " --kind cuda --into host");
  }
  if (cuda)
    all.insert(all.end(), {"allgather --kind vmm --into pinned", "overlap reduce --kind host --into cuda:0",
                           "allreduce_on --into pool"});
  for (const std::string& one : all) {
    const std::string words = (one.starts_with("overlap") ? "" : "collective ") + one;
    const Ran ran = run_program("bench " + words + " --quick --iterations 2 --sizes 8,12KiB --json " + file(),
                                std::string{kSmallThresholds} + (one.ends_with("opencl") ? "" : " " + variables));
    ASSERT_EQ(ran.status, 0) << words << '\n' << ran.output;
    const auto found = result();
    const std::string into = one.substr(one.rfind(' ') + 1);
    EXPECT_TRUE(found["into"].get<std::string>().starts_with(into.substr(0, into.find(':')))) << found["into"];
    EXPECT_TRUE(says(ran, ", results into " + found["into"].get<std::string>())) << ran.output;
    EXPECT_GT(found["sizes_checked"].get<int>(), 10);
    expect_limited(found);
  }
  expect_refused(
      {{"bench collective bcast --into host", "bcast works on one buffer: leave out --into host"},
       {"bench collective barrier --into host", "barrier moves no bytes: leave out --into host"},
       {"bench latency --into host", "--into is for what calls leave, of collective and overlap, not for latency"},
       {"bench limits --into host", "not for limits"},
       {"bench collective allreduce --into tape", "unknown kind of memory \"tape\""},
       {"bench collective allreduce_on --into host", "allreduce_on is put into the stream of CUDA memory"}},
      variables);
}

TEST_F(Bench, CallsAreMeasuredOutOfEveryMemoryAndIntoEveryMemory) {
  // With CUDA there are 49 pairs, which are tried with messages.
  const bool opencl = kind_is_here("opencl");
  const std::string variables = std::string{"ISTHMUS_KINDS="} + (opencl ? "opencl" : "host");
  // Those of one buffer have it in every memory.
  for (const std::string call : {"alltoallv", "bcast"}) {
    const Ran ran = run_program(
        "bench collective " + call + " --every-pair --ranks 3 --quick --iterations 2 --sizes 64,4KiB --json " + file(),
        variables);
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_TRUE(says(ran, "4096 bytes, us")) << ran.output;
    std::set<std::string> kinds;
    std::set<std::string> pairs;
    for (const auto& report : result()) {
      const std::string from = report["pair"][0];
      const std::string into = report["pair"][1];
      pairs.insert(from + " " + into);
      kinds.insert(from);
      EXPECT_EQ(report["benchmark"], call);
      EXPECT_EQ(report["ranks"], 3);
      EXPECT_TRUE(report["from"].get<std::string>().starts_with(from)) << report.dump();
      EXPECT_EQ(report.contains("into"), from != into) << report.dump();
      EXPECT_EQ(report["rows"].size(), 2U);
    }
    EXPECT_GT(kinds.size(), opencl ? 1U : 0U) << ran.output;
    EXPECT_EQ(pairs.size(), call == "bcast" ? kinds.size() : kinds.size() * kinds.size());
    EXPECT_EQ(pairs.size(), result().size());
  }
}

TEST_F(Bench, TheRateIsThatOfWindowsOfEightBytes) {
  const Ran ran = run_program("bench rate --iterations 20 --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  EXPECT_EQ(found["window"], 64);
  ASSERT_EQ(found["rows"].size(), 1U);
  const auto& row = found["rows"][0];
  EXPECT_EQ(row["bytes"], 8);
  expect_limited(found, "memcpy of that size");
  EXPECT_NEAR(row["messages_per_s"].get<double>() * row["median_us"].get<double>(), 1e6, 1e4);
}

TEST_F(Bench, OverlapOfMessagesAndOfReductionsIsMeasuredWithAndWithoutTheProgressThread) {
  for (const char* call : {"exchange", "allreduce", "alltoallv"})
    for (const bool thread : {false, true}) {
      const Ran ran =
          run_program("bench overlap " + std::string{call} + " --iterations 5 --min 4KiB --max 8KiB --json " + file(),
                      std::string{kSmallThresholds} + " ISTHMUS_PROGRESS_THREAD=" + (thread ? "1" : "0"));
      ASSERT_EQ(ran.status, 0) << ran.output;
      const auto found = result();
      EXPECT_EQ(found["benchmark"], "overlap-" + std::string{call});
      EXPECT_EQ(found["progress_thread"], thread);
      ASSERT_EQ(found["rows"].size(), 2U);
      expect_limited(found, "the longer of the computation alone");
      for (const auto& row : found["rows"]) {
        EXPECT_GT(row["alone_us"].get<double>(), 0);
        EXPECT_GT(row["compute_us"].get<double>(), 0);
        EXPECT_GE(row["overlap_percent"].get<double>(), 0);
        EXPECT_LE(row["overlap_percent"].get<double>(), 100);
      }
    }
}

TEST(BenchOverlap, TheShareThatIsHiddenFollowsFromThreeTimes) {
  EXPECT_DOUBLE_EQ(cli::overlap_percent(20, 10, 10), 0);
  EXPECT_DOUBLE_EQ(cli::overlap_percent(15, 10, 10), 50);
  EXPECT_DOUBLE_EQ(cli::overlap_percent(10, 10, 10), 100);
  EXPECT_DOUBLE_EQ(cli::overlap_percent(30, 10, 10), 0) << "slower together than one after the other";
  EXPECT_DOUBLE_EQ(cli::overlap_percent(9, 10, 10), 100) << "noise";
}

TEST(BenchCalls, EveryCallIsFoundByItsNameAndSomeCanBeStarted) {
  for (const cli::CollectiveCall& one : cli::collective_calls()) EXPECT_EQ(cli::find_call(one.name), &one);
  EXPECT_EQ(cli::find_call("allreduc"), nullptr);
  EXPECT_EQ(
      cli::call_names(true),
      "bcast, reduce, allreduce, reduce_scatter, allgather, alltoall, gather, scatter, scan, exscan, gatherv, scatterv, "
      "allgatherv, alltoallv, exchange");
}

TEST(BenchCalls, UnequalPartsDifferAndAreTogetherNoMoreThanEqualOnes) {
  for (const int ranks : {1, 2, 3, 8, 1024})
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{1} << 40}) {
      std::size_t all = 0;
      for (int r = 0; r < ranks; ++r) {
        all += cli::uneven_part(bytes, r, ranks);
        EXPECT_LE(cli::uneven_part(bytes, r, ranks), 2 * bytes);
        if (r == 0 || bytes < 4096) continue;
        EXPECT_GT(cli::uneven_part(bytes, r, ranks), cli::uneven_part(bytes, r - 1, ranks));
      }
      EXPECT_LE(all, bytes * static_cast<std::size_t>(ranks));
      EXPECT_GE(all + static_cast<std::size_t>(ranks), bytes * static_cast<std::size_t>(ranks)) << "each is rounded down";
    }
}

// What the busiest rank must send or receive: nobody has an algorithm that takes less.
TEST(BenchCalls, TheLeastThatACallMovesIsKnown) {
  const auto moved = [](const char* name, std::size_t bytes, int ranks) {
    return cli::find_call(name)->moved.bytes(bytes, ranks);
  };
  for (const cli::CollectiveCall& one : cli::collective_calls()) EXPECT_EQ(one.moved.bytes(4096, 1), 0U) << one.name;
  EXPECT_EQ(moved("barrier", 0, 4), 0U);
  EXPECT_EQ(moved("bcast", 4096, 4), 4096U);
  EXPECT_EQ(moved("allreduce", 4096, 4), 2 * 3072U);
  EXPECT_EQ(moved("reduce_scatter", 4096, 4), 3072U);
  EXPECT_EQ(moved("alltoall", 4096, 4), 3 * 4096U);
  EXPECT_EQ(moved("gatherv", 3000, 2), 4000U) << "of 2000 and 4000 bytes the root has the first";
}

TEST_F(Bench, WhatDoesNotGoTogetherIsToldBeforeAnyRankStarts) {
  expect_refused({{"bench collective", "collective needs the name of a call: expected one of barrier, bcast"},
                  {"bench allgatherv", "allgatherv is a call: isthmus bench collective allgatherv"},
                  {"bench collective allredcue", "collective has no call \"allredcue\""},
                  {"bench overlap barrier", "overlap has no call \"barrier\": expected one of bcast, reduce, allreduce"},
                  {"bench latency allreduce", "latency is between two ranks and takes no call"},
                  {"bench rate --ranks 3", "rate is between 2 ranks"},
                  {"bench collective bcast --ranks 0", "--ranks"},
                  {"bench collective bcast --staged", "--staged is for latency"},
                  {"bench latency --fresh", "--fresh is for bandwidth between host memory"},
                  {"bench bandwidth --fresh --to opencl", "--fresh is for bandwidth between host memory"},
                  {"bench collective bcast --kind tape", "unknown kind of memory \"tape\""},
                  {"bench collective bcast --kind host --from host", "--kind"},
                  {"bench collective scan --min 1 --max 2", "no power of two lies between"}});
}

TEST_F(Bench, OneThreadAtATimeNeedsNoLockForMessagesNorForCalls) {
  for (const char* what : {"latency", "bandwidth", "collective allreduce --ranks 3"}) {
    const Ran ran = run_program("bench " + std::string{what} + " --iterations 3 --min 8 --max 16KiB --json " + file(),
                                std::string{kSmallThresholds} + " ISTHMUS_THREADS=single");
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(result()["threads"], "single");
  }
}

TEST_F(Bench, OneThreadAtATimeIsRefusedBesideTheProgressThread) {
  const Ran ran = run_program("bench latency --quick --max 8", "ISTHMUS_THREADS=single ISTHMUS_PROGRESS_THREAD=1");
  EXPECT_EQ(ran.status, 2) << ran.output;
  EXPECT_TRUE(says(ran, "threads=\"single\" (ISTHMUS_THREADS) cannot be used with progress_thread=\"1\"")) << ran.output;
}

}  // namespace
}  // namespace ist::test
