// Messages both ways at once, and what the machine does without the library, as `isthmus bench` measures them.
#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "bench_program.hpp"

namespace ist::test {
namespace {

TEST_F(Bench, BothWaysAtOnceAreCheckedAndCountedTogether) {
  for (const char* way : {"", " --staged"}) {
    const Ran ran =
        run_program("bench bidirectional" + std::string{way} + " --iterations 4 --min 1KiB --max 64KiB --json " + file(),
                    "ISTHMUS_EAGER_LIMIT=4KiB");
    ASSERT_EQ(ran.status, 0) << ran.output;
    const auto found = result();
    EXPECT_EQ(found["benchmark"], "bidirectional");
    EXPECT_EQ(found["window"], 64);
    EXPECT_GT(found["sizes_checked"].get<int>(), 7);
    ASSERT_EQ(found["rows"].size(), 7U);
    expect_limited(found, "one thread of each rank at once");
    for (const auto& row : found["rows"])
      EXPECT_NEAR(row["gbps"].get<double>() * row["median_us"].get<double>() * 1e3, 2 * row["bytes"].get<double>(),
                  0.02 * row["bytes"].get<double>())
          << row.dump();
  }
}

TEST_F(Bench, BothWaysAtOnceAlsoBetweenDeviceMemoryAndByHand) {
  std::string variables;
  if (!there_is_cuda(variables))
    GTEST_SKIP() << "not covered here: messages both ways at once with device memory; there is neither a GPU nor the driver "
                    "of the tests";
  for (const char* way : {"", " --staged"}) {
    const Ran ran = run_program("bench bidirectional --from cuda --to host" + std::string{way} +
                                    " --iterations 2 --min 1KiB --max 32KiB --json " + file(),
                                variables);
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(result()["rows"].size(), 6U);
    expect_limited(result(), "and 64 back at the same time");
  }
}

TEST_F(Bench, SeveralPairsAtOnceAreCheckedAndCountedTogether) {
  for (const int ranks : {2, 4}) {
    const Ran ran = run_program("bench multi-pair --ranks " + std::to_string(ranks) +
                                " --iterations 4 --min 8 --max 64KiB --json " + file());
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_TRUE(says(ran, "multi-pair, " + std::to_string(ranks) + " ranks, host to host")) << ran.output;
    const auto found = result();
    EXPECT_EQ(found["window"], 64);
    EXPECT_EQ(found["ranks"], ranks);
    ASSERT_EQ(found["rows"].size(), 14U);
    expect_limited(found, "one thread of each pair at once");
    for (const auto& row : found["rows"]) {
      EXPECT_EQ(row["pairs"].get<double>(), ranks / 2) << row.dump();
      EXPECT_NEAR(row["messages_per_s"].get<double>() * row["median_us"].get<double>(), 1e6, 2e4) << row.dump();
      EXPECT_TRUE(row["path"].get<std::string>().starts_with("shm/")) << row.dump();
    }
  }
  const Ran few = run_program("run -n 3 " PROGRAM " bench multi-pair --quick");
  EXPECT_EQ(few.status, 2) << few.output;
  EXPECT_TRUE(says(few, "takes 2 ranks and found 3")) << few.output;
  expect_refused(
      {{"bench multi-pair --ranks 3", "an even number of ranks, not 3"}, {"bench multi-pair allreduce", "takes no call"}});
}

TEST_F(Bench, EveryPairOfMemoryIsMeasuredInRanksOfItsOwn) {
  // With CUDA there are 49 pairs, which take a minute where other tests run beside, and more with a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool patient = false;
#else
  const bool patient = std::getenv("ISTHMUS_TEST_LONG") != nullptr;
#endif
  std::string variables;
  const bool cuda = patient && there_is_cuda(variables);
  const bool opencl = !cuda && kind_is_here("opencl");
  const std::string kinds = cuda ? "cuda" : opencl ? "opencl" : "host";
  const Ran ran = run_program("bench latency --every-pair --iterations 2 --min 64KiB --max 64KiB --json " + file(),
                              variables + (variables.empty() ? "" : " ") + "ISTHMUS_KINDS=" + kinds);
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  // Of OpenCL host memory and its own, and page-locked memory where the driver has any.
  ASSERT_TRUE(cuda ? found.size() == 49 : opencl ? found.size() == 4 || found.size() == 9 : found.size() == 1) << ran.output;
  std::set<std::string> pairs;
  for (const auto& report : found) {
    EXPECT_TRUE(report["from"].get<std::string>().starts_with(report["pair"][0].get<std::string>())) << report.dump();
    EXPECT_TRUE(report["to"].get<std::string>().starts_with(report["pair"][1].get<std::string>())) << report.dump();
    EXPECT_EQ(report["rows"].size(), 1U);
    pairs.insert(report["pair"].dump());
  }
  EXPECT_EQ(pairs.size(), found.size());
  EXPECT_TRUE(says(ran, "65536 bytes, us; x: times as long as the limit")) << ran.output;
  expect_refused({{"bench latency --every-pair --from cuda", "leave out --from, --to, --kind and --into"},
                  {"bench collective barrier --every-pair", "barrier moves no bytes out of any memory"},
                  {"bench collective allreduce --every-pair --into host", "leave out --from, --to, --kind and --into"},
                  {"bench latency --every-pair --auto", "leave out --auto"}});
}

TEST_F(Bench, EveryClassOfCudaMemorySendsAndReceives) {
  std::string variables;
  if (!there_is_cuda(variables))
    GTEST_SKIP() << "not covered here: the classes of CUDA memory; there is neither a GPU nor the driver of the tests";
  for (const std::string& name : std::vector<std::string>{"managed", "pool", "shared-pool", "vmm"}) {
    for (const std::string& pair : std::vector<std::string>{"--from cuda --to " + name, "--from " + name + " --to cuda",
                                                            "--from " + name + " --to host"}) {
      const Ran ran =
          run_program("bench latency " + pair + " --iterations 2 --min 32KiB --max 128KiB --json " + file(), variables);
      ASSERT_EQ(ran.status, 0) << pair << '\n' << ran.output;
      EXPECT_GT(result()["sizes_checked"].get<int>(), 7) << pair;
      EXPECT_EQ(result()["rows"].size(), 3U) << pair;
    }
  }
  expect_refused({{"bench latency --from vmm:99 --to host", "vmm:99 is not there: this machine has"},
                  {"bench limits --from vmm --to cuda", "limits are of host, pinned and cuda memory, not of vmm"},
                  {"bench latency --from mapped --to host", "or of cuda memory managed, pool, shared-pool or vmm"}},
                 variables);
}

TEST_F(Bench, MessagesInStreamsAreCheckedAndTimedBesideABarePairOfKernels) {
  std::string variables;
  if (!there_is_cuda(variables))
    GTEST_SKIP() << "not covered here: messages in streams; there is neither a GPU nor the driver of the tests";
  const Ran ran =
      run_program("bench stream-latency --quick --iterations 2 --sizes 8,1000,8KiB,16KiB --json " + file(), variables);
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  EXPECT_EQ(found["benchmark"], "stream-latency");
  EXPECT_GT(found["sizes_checked"].get<int>(), 20);
  ASSERT_EQ(found["rows"].size(), 4U);
  for (const auto& row : found["rows"]) {
    EXPECT_GT(row["median_us"].get<double>(), 0) << row.dump();
    EXPECT_GT(row["graph_us"].get<double>(), 0) << row.dump();
    // Two ranks on one device, and what is longer than packets, have no such limit.
    const bool none = found["from"] == found["to"] || row["bytes"].get<int>() > 8192;
    EXPECT_EQ(none, row["limit_us"].is_null()) << row.dump();
    EXPECT_EQ(none, row["limit_graph_us"].is_null()) << row.dump();
    for (const auto& [ratio, time, limit] :
         {std::array{"limit_ratio", "median_us", "limit_us"}, {"limit_graph_ratio", "graph_us", "limit_graph_us"}}) {
      ASSERT_EQ(none, row[ratio].is_null()) << row.dump();
      if (none) continue;
      EXPECT_NEAR(row[ratio].get<double>() * row[limit].get<double>() / row[time].get<double>(), 1, 0.02) << row.dump();
    }
  }
  EXPECT_NE(ran.output.find("limit_ratio limit_graph_ratio"), std::string::npos) << ran.output;
  // A bare copy there is of every size.
  for (const auto& row : found["rows"]) {
    EXPECT_GT(row["copy_us"].get<double>(), 0) << row.dump();
    EXPECT_NEAR(row["copy_ratio"].get<double>() * row["copy_us"].get<double>() / row["median_us"].get<double>(), 1, 0.02);
  }
  EXPECT_TRUE(says(ran, "limit_us is half a round trip of a bare pair of kernels")) << ran.output;
}
TEST_F(Bench, CallsInStreamsAreCheckedAndTimed) {
  std::string variables;
  if (!there_is_cuda(variables))
    GTEST_SKIP() << "not covered here: calls in streams; there is neither a GPU nor the driver of the tests";
  for (const std::string call : {"barrier_on", "bcast_on", "reduce_on", "allreduce_on"}) {
    const Ran ran = run_program(
        "bench collective " + call + " --kind cuda --quick --iterations 2 --sizes 8,5000,32KiB --json " + file(), variables);
    ASSERT_EQ(ran.status, 0) << ran.output;
    const auto found = result();
    EXPECT_EQ(found["benchmark"], call);
    ASSERT_EQ(found["rows"].size(), call == "barrier_on" ? 1U : 3U);
    expect_limited(found, "one copy of that size by the CUDA driver");
    for (const auto& row : found["rows"]) {
      EXPECT_GT(row["median_us"].get<double>(), 0) << row.dump();
      EXPECT_EQ(row["path"], "stream") << row.dump();
      EXPECT_GT(row["ahead_us"].get<double>(), 0) << row.dump();
      EXPECT_GT(row["graph_us"].get<double>(), 0) << row.dump();
    }
  }
  expect_refused({{"bench collective allreduce_on --kind host", "allreduce_on is put into the stream of CUDA memory"},
                  {"bench collective bcast_on --kind cuda --auto", "leave out --auto"}});
}
// What NCCL carries is called so, and is not captured.
TEST_F(Bench, CallsInStreamsThatAreNcclsAreNamedAfterIt) {
  if (!std::filesystem::exists(FAKE_CUDA "/libnccl.so.2"))
    GTEST_SKIP() << "not covered here: calls in streams by NCCL; this build has none of the tests' own";
  const Ran ran =
      run_program("bench collective allreduce_on --kind cuda --quick --iterations 2 --min 2MiB --max 4MiB --json " + file(),
                  "LD_LIBRARY_PATH=" FAKE_CUDA " FAKE_CUDA_DEVICES=2 ISTHMUS_PROFILE=builtin");
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  ASSERT_EQ(found["rows"].size(), 2U);
  EXPECT_EQ(found["rows"][0]["path"], "stream");
  EXPECT_GT(found["rows"][0]["graph_us"].get<double>(), 0);
  EXPECT_EQ(found["rows"][1]["path"], "nccl");
  EXPECT_GT(found["rows"][1]["ahead_us"].get<double>(), 0);
  EXPECT_TRUE(found["rows"][1]["graph_us"].is_null());
}
TEST_F(Bench, MessagesInStreamsAreBetweenCudaMemory) {
  for (const char* wrong : {" --kind host", " --from cuda --to pinned", " --staged"}) {
    const Ran ran = run_program("bench stream-latency" + std::string{wrong});
    EXPECT_EQ(ran.status, 2) << ran.output;
    EXPECT_NE(ran.output.find("stream-latency is between CUDA memory"), std::string::npos) << ran.output;
  }
}
TEST_F(Bench, LimitsOfHostMemoryAreThoseOfMemcpyAndTheCacheLine) {
  const Ran ran = run_program("bench limits --from host --to host --quick --max 64KiB --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]["benchmark"], "limit-bandwidth");
  EXPECT_EQ(found[0]["rows"].size(), 14U);
  EXPECT_GT(found[0]["limits"]["memcpy_gbps"].get<double>(), 0);
  for (const auto& row : found[0]["rows"]) EXPECT_GT(row["gbps"].get<double>(), 0) << row.dump();
}

TEST_F(Bench, LimitsOfDeviceMemoryAreTheDriversOwnCopiesAndCalls) {
  std::string variables;
  if (!there_is_cuda(variables))
    GTEST_SKIP() << "not covered here: limits of device memory; there is neither a GPU nor the driver of the tests";
  const Ran ran = run_program("bench limits --iterations 3 --min 4KiB --max 8KiB --json " + file(), variables);
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  // Host memory, five tables of each of five pairs, and one more between devices.
  ASSERT_EQ(found.size(), 27U);
  EXPECT_EQ(found[0]["from"], "host");
  std::set<std::string> pairs;
  for (std::size_t at = 1; at < found.size(); ++at) {
    const auto& one = found[at];
    const auto from = one["from"].get<std::string>();
    const auto to = one["to"].get<std::string>();
    pairs.insert(from.substr(0, from.find(':')) + " to " + to.substr(0, to.find(':')));
    EXPECT_TRUE(one["machine"].is_string() && one["commit"].is_string() && one["date"].is_string());
    // Two sizes: single copies in three ways and by a kernel, windows in one stream and in several, and between devices by calls of several
    // copies and by three store kernels. What kernels do beside that has tests of its own.
    const auto name = one["benchmark"].get<std::string>();
    if (name == "limit-kernels" || name == "limit-residents" || name == "limit-calls") continue;
    const bool pageable = from == "host" || to == "host";
    const bool between = from.starts_with("cuda") && to.starts_with("cuda");
    const std::size_t ways = name == "limit-latency" ? (pageable ? 3 : 4) : between ? 6 : 2;
    EXPECT_EQ(one["rows"].size(), 2 * ways) << one.dump();
    for (const auto& row : one["rows"]) {
      EXPECT_GT(row["median_us"].get<double>(), 0) << row.dump();
      if (one["benchmark"] != "limit-calls") {
        EXPECT_GT(row["gbps"].get<double>(), 0) << row.dump();
      }
    }
  }
  EXPECT_EQ(pairs,
            (std::set<std::string>{"cuda to cuda", "pinned to cuda", "cuda to pinned", "host to cuda", "cuda to host"}));
}

TEST_F(Bench, LimitsOfOnePairAreOfItsDevices) {
  std::string variables;
  if (!there_is_cuda(variables))
    GTEST_SKIP() << "not covered here: limits of device memory; there is neither a GPU nor the driver of the tests";
  const Ran ran =
      run_program("bench limits --from cuda:0 --to cuda:0 --iterations 3 --min 4KiB --max 4KiB --json " + file(), variables);
  ASSERT_EQ(ran.status, 0) << ran.output;
  for (const auto& one : result()) EXPECT_EQ(one["to"], "cuda:0");
}

TEST_F(Bench, LimitsThatCannotBeMeasuredAreNamed) {
  expect_refused({{"bench limits allreduce", "limits takes no call"},
                  {"bench limits --ranks 2", "limits are measured by one process"},
                  {"bench limits --staged", "limits are measured by one process"},
                  {"bench limits --from opencl --to host", "limits are of host, pinned and cuda memory"},
                  {"bench limits --from host --to pinned", "limits between host memory are those of host to host"},
                  {"bench limits --from cuda:99 --to host", "cuda:99 is not there"}},
                 "LD_LIBRARY_PATH=" FAKE_CUDA);
  if (kind_is_here("cuda")) return;
  const Ran ran = run_program("bench limits --quick --max 4KiB");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(says(ran, "no limits of device memory: ")) << ran.output;
  expect_refused({{"bench limits --from cuda --to cuda", "limits of device memory cannot be measured here: "},
                  {"bench limits --from pinned --to host", "limits between host memory are those of host to host"}});
}

}  // namespace
}  // namespace ist::test
