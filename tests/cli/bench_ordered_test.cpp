// Messages in CUDA streams and OpenCL queues, and messages of many sizes, as `isthmus bench` checks and times them.
#include <array>
#include <set>
#include <string>
#include <vector>

#include "bench_program.hpp"

namespace ist::test {
namespace {

// Small thresholds let short messages take every way.
constexpr const char* kSmallEager = "ISTHMUS_EAGER_LIMIT=2KiB ISTHMUS_RING_SLOT_DEVICE=4KiB ISTHMUS_RING_SLOT_HOST=4KiB";

// The invented driver with so many devices, or the real one, which has as many as it has.
bool cuda_with(int devices, std::string& variables) {
  if (kind_is_here("cuda")) return true;
  variables = "ISTHMUS_KINDS=host,cuda ISTHMUS_PROFILE=builtin LD_LIBRARY_PATH=" FAKE_CUDA " FAKE_CUDA_DEVICES=" +
              std::to_string(devices);
  return std::filesystem::exists(FAKE_CUDA "/libcuda.so.1");
}

// Of a table whose windows are all of 64 messages.
void expect_rows(const nlohmann::json& found, const std::string& benchmark, std::size_t rows, const std::string& path) {
  EXPECT_EQ(found["benchmark"], benchmark);
  EXPECT_GT(found["sizes_checked"].get<int>(), 20);
  EXPECT_EQ(found["window"], benchmark.ends_with("latency") ? 1 : 64);
  const double ways = benchmark.ends_with("bidirectional") ? 2 : 1;
  ASSERT_EQ(found["rows"].size(), rows);
  expect_limited(found, path == "queue" ? "clEnqueue" : "copies of that size by the CUDA driver");
  for (const auto& row : found["rows"]) {
    EXPECT_GT(row["median_us"].get<double>(), 0) << row.dump();
    EXPECT_LE(row["p10_us"].get<double>(), row["p90_us"].get<double>()) << row.dump();
    EXPECT_EQ(row["path"], path) << row.dump();
    EXPECT_FALSE(row.contains("window")) << row.dump();
    EXPECT_NEAR(row["gbps"].get<double>() * row["median_us"].get<double>() * 1e3, ways * row["bytes"].get<double>(),
                0.05 * row["bytes"].get<double>())
        << row.dump();
  }
}

TEST_F(Bench, WindowsInStreamsAreCheckedAndTimedOnOneDeviceAndBetweenTwo) {
  for (const int devices : {1, 2}) {
    std::string variables;
    if (!cuda_with(devices, variables))
      GTEST_SKIP() << "not covered here: windows in streams; there is neither a GPU nor the driver of the tests";
    for (const std::string name : {"stream-bandwidth", "stream-bidirectional"}) {
      const Ran ran =
          run_program("bench " + name + " --iterations 3 --sizes 4KiB,100001,512KiB --json " + file(), variables);
      ASSERT_EQ(ran.status, 0) << ran.output;
      const auto found = result();
      expect_rows(found, name, 3, "stream");
      for (const auto& row : found["rows"]) EXPECT_GT(row["graph_us"].get<double>(), 0) << row.dump();
      EXPECT_TRUE(says(ran, "graph_us is that of a window as a graph")) << ran.output;
      EXPECT_EQ(says(ran, "GB/s counts both ways"), name == "stream-bidirectional") << ran.output;
      // A driver of the machine has as many devices as it has.
      if (!kind_is_here("cuda")) {
        EXPECT_EQ(found["from"] == found["to"], devices == 1) << ran.output;
      }
    }
  }
}

// More is sent than a channel holds, and more at once: what is full holds up a stream, and no processor.
TEST_F(Bench, LongMessagesInStreamsHoldUpNobody) {
  std::string variables;
  if (!cuda_with(2, variables))
    GTEST_SKIP() << "not covered here: long messages in streams; there is neither a GPU nor the driver of the tests";
  for (const std::string name : {"stream-latency", "stream-bandwidth", "stream-bidirectional"}) {
    const Ran ran = run_program("bench " + name + " --quick --iterations 2 --sizes 9MiB --json " + file(), variables);
    ASSERT_EQ(ran.status, 0) << ran.output;
    const auto found = result();
    ASSERT_EQ(found["rows"].size(), 1U);
    // A graph of messages beyond 4 MiB tells nothing.
    EXPECT_EQ(found["rows"][0]["graph_us"].is_null(), name != "stream-latency") << found.dump();
  }
}

TEST_F(Bench, StreamsOfEveryClassOfCudaMemoryAreMeasuredByOneCommand) {
  std::string variables;
  if (!cuda_with(1, variables))
    GTEST_SKIP() << "not covered here: classes of memory in streams; there is neither a GPU nor the driver of the tests";
  // 25 jobs one after the other: half a minute, and six times that beside 15 other tests on the same GPUs.
  const Ran ran = run_program("bench stream-bandwidth --every-pair --quick --iterations 1 --sizes 1000 --json " + file(),
                              variables, 400);
  ASSERT_EQ(ran.status, 0) << ran.output;
  std::set<std::string> words;
  for (const auto& one : result()) words.insert(one["pair"][0].get<std::string>());
  EXPECT_EQ(words, (std::set<std::string>{"cuda", "managed", "pool", "shared-pool", "vmm"}));
  EXPECT_EQ(result().size(), 25U);
}

TEST_F(Bench, MessagesInQueuesAreCheckedAndTimed) {
  if (!kind_is_here("opencl")) GTEST_SKIP() << "not covered here: messages in OpenCL queues; there is no OpenCL device";
  for (const std::string name : {"queue-latency", "queue-bandwidth", "queue-bidirectional"}) {
    const Ran ran = run_program("bench " + name + " --iterations 3 --sizes 64,5000,64KiB --json " + file(), kSmallEager);
    ASSERT_EQ(ran.status, 0) << ran.output;
    const auto found = result();
    expect_rows(found, name, 3, "queue");
    // Without a word about memory it is OpenCL's.
    EXPECT_TRUE(found["from"].get<std::string>().starts_with("opencl")) << found["from"];
    EXPECT_TRUE(found["to"].get<std::string>().starts_with("opencl")) << found["to"];
  }
}

TEST_F(Bench, QueuesMoveMemoryOfTheHostAsWell) {
  if (!kind_is_here("opencl")) GTEST_SKIP() << "not covered here: messages in OpenCL queues; there is no OpenCL device";
  const Ran ran =
      run_program("bench queue-latency --every-pair --quick --iterations 2 --sizes 8,5000 --json " + file(), kSmallEager);
  ASSERT_EQ(ran.status, 0) << ran.output;
  std::set<std::string> pairs;
  for (const auto& one : result()) {
    pairs.insert(one["pair"][0].get<std::string>() + " " + one["pair"][1].get<std::string>());
    EXPECT_EQ(one["rows"][0]["path"], "queue") << one.dump();
  }
  for (const char* pair : {"host host", "host opencl", "opencl host", "opencl opencl"})
    EXPECT_EQ(pairs.count(pair), 1U) << pair;
  EXPECT_TRUE(says(ran, "5000 bytes, us")) << ran.output;
}

TEST_F(Bench, WhatCannotBePutIntoAStreamOrAQueueIsToldBeforeAnyRankStarts) {
  expect_refused({{"bench stream-bandwidth --kind host", "stream-bandwidth is between CUDA memory"},
                  {"bench stream-bidirectional --from cuda --to pinned", "stream-bidirectional is between CUDA memory"},
                  {"bench queue-latency --from cuda", "queue-latency is between memory of OpenCL and of the host"},
                  {"bench queue-bandwidth --kind host --staged", "leave out --staged"},
                  {"bench queue-latency --kind host --ready", "what is put into a queue is in its order"},
                  {"bench queue-latency bcast", "queue-latency is between two ranks and takes no call"},
                  {"bench queue-latency --ranks 4", "queue-latency is between 2 ranks"},
                  {"bench limits --every-pair", "--every-pair is for messages between ranks, also in streams and queues"}});
  expect_refused({{"bench queue-latency --kind host", "memory of kind opencl cannot be used here"},
                  {"bench queue-bandwidth --every-pair", "needs OpenCL, and this machine has none"},
                  {"bench stream-latency --every-pair", "needs CUDA memory, and this machine has none"}},
                 "ISTHMUS_KINDS=host");
}

TEST_F(Bench, LongMessagesHaveShorterWindowsAndAreChecked) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "not covered here: windows of messages beyond 64 MiB; some 10 GB are copied, for which ThreadSanitizer "
                  "takes minutes";
#endif
  const Ran ran = run_program("bench bandwidth --quick --iterations 1 --sizes 1MiB,80MiB --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  ASSERT_EQ(found["rows"].size(), 2U);
  EXPECT_EQ(found["window"], 64);
  EXPECT_FALSE(found["rows"][0].contains("window")) << found.dump();
  EXPECT_EQ(found["rows"][1]["window"], 51) << found.dump();
  EXPECT_TRUE(says(ran, ", windows of 51")) << ran.output;
}

// By hand a window of these takes more than the staging memory has: places are used again.
TEST_F(Bench, WindowsByHandThatAreLongerThanTheirStagingAreChecked) {
  if (!kind_is_here("opencl")) GTEST_SKIP() << "not covered here: messages in OpenCL queues; there is no OpenCL device";
  for (const std::string name : {"bandwidth", "bidirectional"}) {
    const Ran ran = run_program("bench " + name +
                                " --from opencl --to opencl --staged --quick --iterations 1 --sizes 5MiB --json " + file());
    ASSERT_EQ(ran.status, 0) << ran.output;
    EXPECT_TRUE(result()["rows"][0]["path"].get<std::string>().starts_with("staged+")) << ran.output;
  }
}

TEST_F(Bench, MemoryThatTheMachineHasNotIsToldAndNobodyIsKilled) {
  for (const char* what : {"latency", "bandwidth", "multi-pair", "collective allgather", "limits --from host --to host"}) {
    const Ran ran = run_program("bench " + std::string{what} + " --sizes 256TiB");
    EXPECT_EQ(ran.status, 1) << ran.output;
    EXPECT_TRUE(says(ran, " of host memory")) << ran.output;
    EXPECT_TRUE(says(ran, "give a smaller --max or --sizes")) << ran.output;
    EXPECT_FALSE(says(ran, "signal")) << ran.output;
  }
}

}  // namespace
}  // namespace ist::test
