#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include "bench_program.hpp"

namespace ist::test {
namespace {

void expect_sound(const nlohmann::json& result, const std::string& benchmark) {
  ASSERT_TRUE(result.is_object());
  for (const char* name : {"machine", "commit", "date"}) {
    ASSERT_TRUE(result[name].is_string()) << name;
    EXPECT_FALSE(result[name].get<std::string>().empty()) << name;
  }
  EXPECT_EQ(result["benchmark"], benchmark);
  ASSERT_TRUE(result["rows"].is_array());
  for (const auto& row : result["rows"]) {
    EXPECT_GT(row["median_us"].get<double>(), 0);
    EXPECT_LE(row["p10_us"].get<double>(), row["median_us"].get<double>());
    EXPECT_LE(row["median_us"].get<double>(), row["p90_us"].get<double>());
    EXPECT_GE(row["gbps"].get<double>(), 0);
    EXPECT_NE(row["path"].get<std::string>().find("shm/"), std::string::npos) << row;
  }
}

// As far as the digits in the file go.
void expect_near(const nlohmann::json& ratio, double wanted) {
  ASSERT_TRUE(ratio.is_number()) << ratio;
  EXPECT_NEAR(ratio.get<double>() / wanted, 1, 0.02) << ratio << " and " << wanted;
}

TEST_F(Bench, LatencyBetweenHostBuffersStartsItsOwnRanksChecksTheBytesAndWritesARowForEachPowerOfTwo) {
  const Ran ran = run_program("bench latency --iterations 20 --max 128KiB --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(says(ran, "checking every byte: ")) << ran.output;
  EXPECT_TRUE(says(ran, "all right")) << ran.output;
  EXPECT_TRUE(says(ran, "median us")) << ran.output;
  const auto found = result();
  expect_sound(found, "latency");
  ASSERT_EQ(found["rows"].size(), 18U);
  for (std::size_t n = 0; n < found["rows"].size(); ++n) EXPECT_EQ(found["rows"][n]["bytes"], 1 << n);
  EXPECT_EQ(found["from"], "host");
  EXPECT_EQ(found["to"], "host");
  EXPECT_GT(found["limits"]["memcpy_gbps"].get<double>(), 0);
  EXPECT_EQ(found["limits"]["processors"].size(), 2U);
  // Of few bytes the cache line is the limit, of many a copy, of each row the slower one.
  const auto& cache_line = found["limits"]["cache_line_us"];
  for (const auto& row : found["rows"]) {
    EXPECT_GT(row["limit_gbs"].get<double>(), 0) << row;
    const double copy = row["bytes"].get<double>() / row["limit_gbs"].get<double>() / 1e3;
    expect_near(row["limit_ratio"],
                row["median_us"].get<double>() / std::max(copy, cache_line.is_null() ? 0 : cache_line.get<double>()));
  }
  EXPECT_TRUE(says(ran, "limit_gbs is memcpy of that size")) << ran.output;
  EXPECT_TRUE(says(ran, "limit_ratio  path")) << ran.output;
  EXPECT_TRUE(says(ran, "or of a cache line, whichever is longer")) << ran.output;
}

TEST_F(Bench, BandwidthBetweenHostBuffersMovesAWindowOfEverySize) {
  const Ran ran = run_program("bench bandwidth --iterations 3 --min 1KiB --max 128KiB --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  expect_sound(found, "bandwidth");
  EXPECT_EQ(found["window"], 64);
  EXPECT_EQ(found["rows"].size(), 8U);
  for (const auto& row : found["rows"]) {
    EXPECT_GT(row["limit_gbs"].get<double>(), 0) << row;
    expect_near(row["limit_ratio"], row["limit_gbs"].get<double>() / row["gbps"].get<double>());
    // Not where both ranks ran on one processor; and a system may forbid the call that reads another process.
    for (const char* bare : {"two_copies_gbs", "read_gbs", "one_copy_gbs"})
      EXPECT_TRUE(row[bare].is_null() || row[bare].get<double>() > 0) << row;
    EXPECT_EQ(row["two_copies_gbs"].is_null(), row["one_copy_gbs"].is_null()) << row;
  }
}

TEST_F(Bench, MessagesOfAWindowMayHaveBytesOfTheirOwnJustWritten) {
  const Ran ran = run_program("bench bandwidth --fresh --iterations 3 --min 4KiB --max 128KiB --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(says(ran, "host to host, each message just written")) << ran.output;
  const auto found = result();
  expect_sound(found, "bandwidth");
  EXPECT_EQ(found["fresh"], true);
  EXPECT_EQ(found["rows"].size(), 6U);
  for (const auto& row : found["rows"]) EXPECT_GT(row["limit_us"].get<double>(), 0) << row;
}

// Small thresholds let short messages take every way: slot, cell, ring with many turns.
constexpr const char* kSmallThresholds =
    "ISTHMUS_EAGER_LIMIT=2KiB ISTHMUS_RING_SLOT_DEVICE=4KiB ISTHMUS_RING_SLOT_HOST=4KiB";

class BenchBetweenKinds : public Bench, public ::testing::WithParamInterface<const char*> {
 protected:
  void expect_measured(const std::string& environment) {
    const std::string options = GetParam();
    const Ran ran = run_program("bench " + options + " --iterations 3 --min 64 --max 16KiB --json " + file(),
                                kSmallThresholds + (" " + environment));
    ASSERT_EQ(ran.status, 0) << options << '\n' << ran.output;
    const auto found = result();
    expect_sound(found, options.substr(0, options.find(' ')));
    const bool staged = options.find("--staged") != std::string::npos;
    EXPECT_EQ(found["staged"], staged);
    // A memcpy is a limit of what lies in the memory of the host alone.
    const bool host = options.find("opencl") == std::string::npos && options.find("cuda") == std::string::npos;
    for (const auto& row : found["rows"]) {
      EXPECT_EQ(row["path"].get<std::string>().starts_with("staged+"), staged) << row;
      EXPECT_EQ(row.contains("limit_gbs"), host) << row;
      EXPECT_GT(row["limit_ratio"].get<double>(), 0) << row;
    }
    if (host) return;
    EXPECT_TRUE(says(ran, "limit_us is one ")) << ran.output;
    const bool cuda = options.find("cuda") != std::string::npos;
    expect_limited(found, !cuda                            ? "clEnqueue"
                          : options.starts_with("latency") ? "one copy of that size by the CUDA driver"
                                                           : "one of 64 copies of that size");
  }
};

class OpenclBench : public BenchBetweenKinds {};
TEST_P(OpenclBench, EveryByteArrivesAndEveryRowIsSound) {
  if (!kind_is_here("opencl")) GTEST_SKIP() << "no OpenCL device on this machine";
  expect_measured("");
}
INSTANTIATE_TEST_SUITE_P(Pairs, OpenclBench,
                         ::testing::Values("latency --from host --to opencl", "latency --from opencl:0 --to host --staged",
                                           "bandwidth --from opencl --to opencl", "bidirectional --from opencl --to host",
                                           "bandwidth --from host --to opencl --staged"));

class CudaBench : public BenchBetweenKinds {};
TEST_P(CudaBench, EveryByteArrivesAndEveryRowIsSoundOnAnyDriver) {
  if (kind_is_here("cuda")) return expect_measured("");
  if (!std::filesystem::exists(FAKE_CUDA "/libcuda.so.1")) GTEST_SKIP() << "neither a GPU nor the driver of the tests";
  expect_measured("LD_LIBRARY_PATH=" FAKE_CUDA);
}
INSTANTIATE_TEST_SUITE_P(Pairs, CudaBench,
                         ::testing::Values("latency --from cuda --to cuda", "latency --from vmm --to cuda",
                                           "bidirectional --from cuda --to pinned",
                                           "latency --from cuda:0 --to cuda:0 --staged", "bandwidth --from host --to cuda",
                                           "bandwidth --from cuda --to pinned", "latency --from pinned --to host"));

// A device that the two ranks call by different numbers is the same device; one that a rank does not see is no limit of it, and is told.
TEST_F(Bench, LimitsAreThoseOfTheDeviceThatTheOtherRankUses) {
  if (kind_is_here("cuda") || !std::filesystem::exists(FAKE_CUDA "/libcuda.so.1"))
    GTEST_SKIP() << "not covered here: ranks that see other devices; that is tried with the driver of the tests";
  const std::string variables = "LD_LIBRARY_PATH=" FAKE_CUDA " FAKE_CUDA_DEVICES=2 FAKE_CUDA_VISIBLE=1";
  for (const bool seen : {true, false}) {
    const std::string list = seen ? "$ISTHMUS_RANK,$((1-ISTHMUS_RANK))" : "$ISTHMUS_RANK";
    const Ran ran = run_program("run -n 2 sh -c 'CUDA_VISIBLE_DEVICES=" + list +
                                    " exec " PROGRAM
                                    " bench latency --from cuda:0 --to cuda:0 --quick --iterations 2 --sizes 4KiB --json " +
                                    file() + "'",
                                variables);
    ASSERT_EQ(ran.status, 0) << ran.output;
    const auto found = result();
    if (seen) {
      expect_limited(found, "cuda:0 to cuda:1");
      continue;
    }
    EXPECT_TRUE(found["rows"][0]["limit_us"].is_null()) << found.dump();
    EXPECT_TRUE(says(ran, "not measured: the other rank's device is none that this rank sees")) << ran.output;
  }
}

TEST_F(Bench, InsideAWorldOfTwoItUsesThoseRanks) {
  const Ran ran = run_program("run -n 2 " PROGRAM " bench latency --quick --iterations 5 --min 8 --max 8 --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  expect_sound(result(), "latency");
}

TEST_F(Bench, OfNamedSizesThoseAloneAreInTheTable) {
  for (const char* what : {"latency", "bandwidth", "collective allreduce"}) {
    const Ran ran = run_program("bench " + std::string{what} + " --iterations 3 --sizes 12KiB,8,1000 --json " + file());
    ASSERT_EQ(ran.status, 0) << ran.output;
    const auto found = result();
    std::vector<std::uint64_t> sizes;
    for (const auto& row : found["rows"]) sizes.push_back(row["bytes"]);
    EXPECT_EQ(sizes, (std::vector<std::uint64_t>{8, 1000, 12288})) << what;
  }
}

TEST_F(Bench, AnotherNumberOfRanksThanTwoIsRefusedOnce) {
  for (const char* ranks : {"1", "3"}) {
    const Ran ran = run_program("run -n " + std::string{ranks} + " " PROGRAM " bench latency --quick");
    EXPECT_NE(ran.status, 0);
    const std::string words = "a benchmark takes 2 ranks and found " + std::string{ranks};
    EXPECT_TRUE(says(ran, words)) << ran.output;
    EXPECT_EQ(ran.output.find(words), ran.output.rfind(words)) << ran.output;
  }
}

TEST_F(Bench, WhatCannotBeMeasuredIsToldBeforeAnyRankStarts) {
  expect_refused({{"bench latency --from tape", "unknown kind of memory \"tape\": expected host"},
                  {"bench latency --from cuda:one", "names no device"},
                  {"bench latency --to host:3", "has no device but 0"},
                  {"bench latency --to opencl:777", "opencl"},
                  {"bench latency --min 5 --max 7", "no power of two lies between"},
                  {"bench latency --min many", "--min"},
                  {"bench latency --sizes 8,0", "a message of 0 bytes"},
                  {"bench latency --sizes 8,many", "--sizes: \"many\" is no size up to 1024 TiB: a whole number of bytes"},
                  {"bench latency --sizes 256KB8", "\"256KB8\" is no size"},
                  {"bench latency --max -3", "--max: \"-3\" is no size"},
                  {"bench overlap --max 1025TiB", "--max: \"1025TiB\" is no size up to 1024 TiB"},
                  {"bench limits --max 99999999999999999999", "is no size"},
                  {"bench latency --sizes 8 --max 64", "--max excludes --sizes"},
                  {"bench collective allreduce --sizes 8,10", "10 bytes, which are no whole elements of 4 bytes"},
                  {"bench latency --iterations 0", "--iterations"},
                  {"bench latency --json /nowhere/at/all.json", "cannot write the file /nowhere/at/all.json"}});
}

TEST_F(Bench, ASweepHasEveryValueOfItsSettingSideBySide) {
  for (const auto& [name, setting, values] : {std::tuple{"slots", "ISTHMUS_RING_SLOTS", 5U}, {"naming", "", 2U}}) {
    const Ran ran =
        run_program("bench sweep " + std::string{name} + " --iterations 2 --min 32KiB --max 64KiB --json " + file(),
                    "ISTHMUS_LOG=off ISTHMUS_KINDS=host");
    ASSERT_EQ(ran.status, 0) << ran.output;
    const auto found = result();
    ASSERT_EQ(found.size(), 2 * values) << name;
    std::set<std::string> seen;
    for (const auto& one : found) {
      EXPECT_EQ(one["sweep"], name);
      EXPECT_EQ(one["setting"], setting);
      EXPECT_EQ(one["rows"].size(), 2U);
      seen.insert(one["value"].get<std::string>());
    }
    EXPECT_EQ(seen.size(), values);
    EXPECT_TRUE(says(ran, "latency in us")) << ran.output;
    EXPECT_TRUE(says(ran, "bandwidth in GB/s")) << ran.output;
    EXPECT_TRUE(says(ran, "       limit  best to it")) << ran.output;
  }
}

TEST_F(Bench, ASweepThatCannotBeMadeIsNamed) {
  expect_refused({{"bench sweep", "sweep needs the name of a setting: expected one of eager"},
                  {"bench sweep tides", "sweep knows no setting \"tides\""},
                  {"bench sweep naming --to opencl", "a buffer of opencl has none: say host or cuda"},
                  {"bench sweep slot --staged", "leave out --ranks, --staged and --auto"}});
  const Ran inside = run_program("run -n 2 " PROGRAM " bench sweep slots");
  EXPECT_EQ(inside.status, 2) << inside.output;
  EXPECT_TRUE(says(inside, "starts ranks of its own")) << inside.output;
  // What one value says is told, with the value.
  const Ran failed = run_program("bench sweep cells --from cuda:99 --max 64KiB", "ISTHMUS_KINDS=host");
  EXPECT_EQ(failed.status, 1) << failed.output;
  EXPECT_TRUE(says(failed, "latency with ISTHMUS_CELLS=4 failed: ")) << failed.output;
}

TEST_F(Bench, BuffersThatDoNotNameTheirKindAreCheckedAlike) {
  const Ran ran = run_program("bench latency --auto --quick --max 64KiB --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(result()["sizes_checked"].get<int>(), 10);
}

TEST_F(Bench, BuffersThatPromiseToBeReadyAreCheckedAlikeAndTheReportSaysSo) {
  const Ran ran = run_program("bench bandwidth --ready --quick --max 64KiB --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(says(ran, ", ready")) << ran.output;
  EXPECT_EQ(result()["ready"], true);
  expect_refused({{"bench sweep slots --ready", "leave out --ready"},
                  {"bench limits --ready", "leave out --ready"},
                  {"bench stream-latency --ready", "leave out --ready"}});
}

// Once, and before any rank is started.
TEST_F(Bench, AKindThatIsNotLoadedIsNamedWithTheReason) {
  for (const std::string words : {"latency --from cuda", "latency --from opencl", "pack --kind cuda", "layout --kind opencl",
                                  "halo --kind opencl", "one-sided --kind cuda", "one-sided --side kernel"}) {
    const Ran ran = run_program("bench " + words, "ISTHMUS_KINDS=host");
    EXPECT_EQ(ran.status, 2) << words << ran.output;
    const std::string said = std::string{"memory of kind "} + (words.ends_with("opencl") ? "opencl" : "cuda");
    EXPECT_EQ(ran.output.find(said + " cannot be used here"), ran.output.rfind(said)) << words << ran.output;
    EXPECT_TRUE(says(ran, said + " cannot be used here")) << words << ran.output;
    EXPECT_TRUE(says(ran, "ISTHMUS_KINDS")) << words << ran.output;
  }
}

}  // namespace
}  // namespace ist::test
