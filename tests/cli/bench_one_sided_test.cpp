// One-sided calls as `isthmus bench one-sided` checks and times them: by the host and inside kernels, each row beside a limit of its run.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bench_program.hpp"

namespace ist::test {
namespace {

// Rows by operation; every one is a time beside a limit.
std::map<std::string, std::vector<nlohmann::json>> rows_of(const nlohmann::json& found) {
  std::map<std::string, std::vector<nlohmann::json>> rows;
  for (const auto& row : found["rows"]) {
    EXPECT_GT(row["median_us"].get<double>(), 0) << row.dump();
    EXPECT_LE(row["p10_us"], row["p90_us"]) << row.dump();
    EXPECT_FALSE(row["path"].get<std::string>().empty()) << row.dump();
    EXPECT_FALSE(row["limit_is"].get<std::string>().empty()) << row.dump();
    EXPECT_TRUE(row["limit_us"].is_number() && row["limit_us"] > 0) << row.dump();
    EXPECT_TRUE(row["limit_ratio"].is_number() && row["limit_ratio"] > 0) << row.dump();
    rows[row["operation"].get<std::string>()].push_back(row);
  }
  return rows;
}

std::map<std::string, std::size_t> counts_of(const nlohmann::json& found) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [operation, rows] : rows_of(found)) counts[operation] = rows.size();
  return counts;
}

const std::map<std::string, std::size_t> kHostRows{{"ping-pong", 2},     {"put and quiet", 2}, {"put bandwidth", 2},
                                                   {"get bandwidth", 2}, {"rate of puts", 1},  {"fetch_add", 1},
                                                   {"add", 1},           {"barrier", 1}};

TEST_F(Bench, OneSidedCallsOfTheHostAreCheckedAndTimedBesideBareLoops) {
  const Ran ran = run_program("bench one-sided --sizes 24,65536 --iterations 5 --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  EXPECT_EQ(found["benchmark"], "one-sided");
  EXPECT_EQ(found["side"], "host");
  EXPECT_EQ(found["from"], "host");
  EXPECT_FALSE(found.contains("left_out"));
  EXPECT_EQ(counts_of(found), kHostRows);
  for (const auto& row : found["rows"]) {
    EXPECT_EQ(row.contains("per_s"),
              row["operation"] == "rate of puts" || row["operation"] == "fetch_add" || row["operation"] == "add")
        << row.dump();
    EXPECT_EQ(row["gbps"].get<double>() > 0, row["operation"].get<std::string>().find("put b") == 0 ||
                                                 row["operation"].get<std::string>().find("get b") == 0 ||
                                                 row["operation"] == "rate of puts")
        << row.dump();
  }
}

TEST_F(Bench, OneSidedCallsOfTheHostOnCudaHeapsAreTimedBesideTheDriver) {
  std::string variables;
  if (!there_is_cuda(variables)) GTEST_SKIP() << "not covered here: there is neither a GPU nor the driver of the tests";
  const Ran ran = run_program("bench one-sided --kind cuda --sizes 8,4096 --iterations 3 --json " + file(), variables);
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(result()["from"], "cuda");
  EXPECT_EQ(counts_of(result()), kHostRows);
}

TEST_F(Bench, OneOperationOfOneSidedAlone) {
  for (const std::string operation : {"ping-pong", "bandwidth", "rate", "atomics", "barrier"}) {
    const Ran ran = run_program("bench one-sided " + operation + " --sizes 8 --iterations 3 --json " + file());
    ASSERT_EQ(ran.status, 0) << ran.output;
    // A ping-pong comes with a put that is waited for, of which the other PE learns nothing.
    EXPECT_EQ(result()["rows"].size(), operation == "rate" || operation == "barrier" ? 1U : 2U) << operation;
  }
}

// On the invented driver, so that there are as many devices as a test asks for.
class OneSidedKernels : public Bench {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(FAKE_CUDA "/libcuda.so.1"))
      GTEST_SKIP() << "not covered here: one-sided calls in kernels; the driver of the tests was not built";
  }
  Ran bench(const std::string& arguments, const std::string& variables = "") const {
    return run_program("bench one-sided --side kernel " + arguments + " --json " + file(),
                       "LD_LIBRARY_PATH=" FAKE_CUDA " " + variables);
  }
};

TEST_F(OneSidedKernels, EveryCallIsCheckedAndTimedBesideABareLoop) {
  const Ran ran = bench("--sizes 8,512 --iterations 3");
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  EXPECT_EQ(found["side"], "kernel");
  EXPECT_EQ(found["from"], "cuda");
  EXPECT_FALSE(found.contains("left_out")) << found["left_out"].dump();
  auto rows = rows_of(found);
  std::vector<int> threads;
  for (const auto& row : rows["ping-pong of words"]) threads.push_back(row["blocks"].get<int>() * row["threads"].get<int>());
  EXPECT_EQ(threads, (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}));
  std::set<std::string> messages;
  for (const auto& row : rows["ping-pong"]) {
    const auto by = row["path"].get<std::string>();
    messages.insert(by.substr(0, by.find(',')) + " of " + std::to_string(row["bytes"].get<int>()));
  }
  EXPECT_EQ(messages, (std::set<std::string>{"packets of 512", "packets of 8", "put_signal of 512", "put_signal of 8"}));
  // By 1, 8, 32 and all blocks: their threads, and one thread of each with its copy unit.
  for (const char* operation : {"put bandwidth", "get bandwidth"}) {
    std::map<bool, std::vector<int>> blocks;
    for (const auto& row : rows[operation])
      if (row["bytes"] == 512) {
        const bool bulk = row["path"].get<std::string>().starts_with("the copy unit, ");
        EXPECT_EQ(row["threads"].get<int>() == 1, bulk) << row.dump();
        blocks[bulk].push_back(row["blocks"].get<int>());
      }
    for (const bool bulk : {false, true}) EXPECT_EQ(blocks[bulk], (std::vector<int>{1, 8, 32, 64})) << operation;
  }
  // Words by 1, 32 and more threads, and puts of 8 to 512 B by a thread, a warp and a block.
  for (const auto& [operation, count] :
       std::map<std::string, std::size_t>{{"rate of puts", 19}, {"fetch_add", 4}, {"add", 4}}) {
    EXPECT_EQ(rows[operation].size(), count) << operation;
    for (const auto& row : rows[operation]) EXPECT_GT(row["per_s"].get<double>(), 0) << row.dump();
  }
  EXPECT_EQ(rows["barrier"].size(), 4U);
}

TEST_F(OneSidedKernels, InStreamsCallsAreCheckedAndTimedBesideCopiesAndBareKernels) {
  const Ran ran = run_program("bench one-sided --side stream --sizes 8,4096 --iterations 3 --json " + file(),
                              "LD_LIBRARY_PATH=" FAKE_CUDA);
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(result()["side"], "stream");
  EXPECT_EQ(counts_of(result()), (std::map<std::string, std::size_t>{{"exchange", 2},
                                                                     {"ping-pong", 2},
                                                                     {"put bandwidth", 2},
                                                                     {"get bandwidth", 2},
                                                                     {"rate of puts", 1},
                                                                     {"add", 1},
                                                                     {"barrier", 2}}));
  EXPECT_EQ(result()["left_out"].size(), 1U) << result()["left_out"];  // fetching atomics
}

TEST_F(OneSidedKernels, TwoRanksOnOneDeviceAreRefused) {
  const Ran ran = bench("barrier --iterations 3", "FAKE_CUDA_DEVICES=1");
  EXPECT_EQ(ran.status, 2) << ran.output;
  EXPECT_TRUE(says(ran, "need a GPU each, and both ranks are on cuda:0")) << ran.output;
}

TEST_F(Bench, OneSidedThatCannotBeTimedIsRefused) {
  expect_refused({{"bench one-sided planes", "was given \"planes\""},
                  {"bench one-sided --sizes 12", "but one is 12"},
                  {"bench one-sided --sizes 128MiB", "from 8 to 64MiB"},
                  {"bench one-sided --kind opencl", "of kind host or cuda"},
                  {"bench one-sided --side kernel --kind host", "kernels reach heaps of CUDA memory"},
                  {"bench one-sided words", "say --side kernel"},
                  {"bench one-sided --side stream --kind host", "streams reach heaps of CUDA memory"},
                  {"bench one-sided words --side stream --kind cuda", "say --side kernel"},
                  {"bench one-sided --ranks 3", "leave out --ranks 3"},
                  {"bench one-sided --from cuda --to cuda", "give it by --kind"},
                  {"bench one-sided --max 1MiB", "one-sided takes --sizes"},
                  {"bench latency --side kernel", "--side is of one-sided"},
                  {"run -n 3 " PROGRAM " bench one-sided barrier", "this world has 3"}});
}

}  // namespace
}  // namespace ist::test
