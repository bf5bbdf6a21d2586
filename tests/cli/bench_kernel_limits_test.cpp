// What bare kernels reach, as `isthmus bench limits` measures it, and that what a machine has no way for is said.
#include <set>
#include <string>
#include <vector>

#include "bench_program.hpp"

namespace ist::test {
namespace {

using Sizes = std::vector<std::pair<std::string, int>>;

// The table of that name; the first, where there are several.
nlohmann::json table(const nlohmann::json& all, const std::string& benchmark) {
  for (const auto& one : all)
    if (one["benchmark"] == benchmark) return one;
  return {};
}

Sizes ways_of(const nlohmann::json& report) {
  Sizes found;
  for (const auto& row : report["rows"]) {
    EXPECT_GT(row["median_us"].get<double>(), 0) << row.dump();
    EXPECT_LE(row["p10_us"], row["p90_us"]) << row.dump();
    found.emplace_back(row["path"].get<std::string>(), row["bytes"].get<int>());
  }
  return found;
}

bool leaves_out(const nlohmann::json& report, const std::string& words) {
  if (!report.contains("left_out")) return false;
  for (const auto& sentence : report["left_out"])
    if (sentence.get<std::string>().find(words) != std::string::npos) return true;
  return false;
}

// On the invented driver, so that there are as many devices as a test asks for.
class KernelLimits : public Bench {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(FAKE_CUDA "/libcuda.so.1"))
      GTEST_SKIP() << "not covered here: limits of kernels; the driver of the tests was not built";
  }
  nlohmann::json limits(const std::string& arguments, const std::string& variables = "") {
    ran = run_program("bench limits " + arguments + " --iterations 3 --json " + file(),
                      "LD_LIBRARY_PATH=" FAKE_CUDA " " + variables);
    EXPECT_EQ(ran.status, 0) << ran.output;
    return result();
  }
  Ran ran;
};

const std::string kPackets = "packets with their flags between two kernels, one way";
const std::string kCopy = "copy by a resident kernel of one block, command to done";
const std::string kThrough = "through two resident kernels, one way";

TEST_F(KernelLimits, BetweenTwoDevicesNoneIsLeftOut) {
  const auto found = limits("--from cuda:0 --to cuda:1 --sizes 24,4099");
  for (const auto& one : found) EXPECT_FALSE(one.contains("left_out")) << one.dump();
  EXPECT_EQ(ways_of(table(found, "limit-kernels")), (Sizes{{"a flag between two kernels, one way", 8},
                                                           {kPackets, 8},
                                                           {kPackets, 512},
                                                           {kPackets, 4096},
                                                           {kPackets, 16384},
                                                           {"push barrier of two kernels", 0}}));
  EXPECT_EQ(ways_of(table(found, "limit-residents")), (Sizes{{"a word to a resident kernel and one back, round trip", 8},
                                                             {kCopy, 8},
                                                             {kCopy, 512},
                                                             {kCopy, 4096},
                                                             {kCopy, 8192},
                                                             {kThrough, 4},
                                                             {kThrough, 8},
                                                             {kThrough, 64},
                                                             {kThrough, 512}}));
  for (const std::string benchmark : {"limit-bandwidth", "limit-bidirectional"}) {
    std::set<std::pair<std::string, int>> stores;
    for (const auto& way : ways_of(table(found, benchmark)))
      if (way.first.find("store kernel") != std::string::npos) stores.insert(way);
    std::set<std::pair<std::string, int>> wanted;
    for (const int bytes : {24, 4099})
      for (const char* name : {"store kernel of 8 blocks, a launch a copy", "store kernel of 64 blocks, a launch a copy",
                               "batched store kernel of 64 blocks, 64 copies by a launch"})
        wanted.emplace(name, bytes);
    EXPECT_EQ(stores, wanted) << benchmark;
  }
  std::set<int> sizes;
  for (const auto& [name, bytes] : ways_of(table(found, "limit-latency")))
    if (name == "copy by a kernel, and its word") sizes.insert(bytes);
  EXPECT_EQ(sizes, (std::set<int>{24, 4099}));
  std::set<std::string> calls;
  for (const auto& way : ways_of(table(found, "limit-calls"))) calls.insert(way.first);
  for (const char* name :
       {"launch of an empty kernel", "launch of an empty kernel, waited for",
        "launch of a graph of an empty kernel, waited for", "a word through a stream that waits for it, and one back",
        "cuMemAlloc and cuMemFree of 1 MiB", "cuMemHostRegister and cuMemHostUnregister of 1 MiB",
        "cuMemHostAlloc and cuMemFreeHost of 1 MiB"})
    EXPECT_TRUE(calls.contains(name)) << name;
}

// Two kernels that wait for each other are never put onto one device.
TEST_F(KernelLimits, OnOneDeviceNoneWaitsForAnotherAndThatIsSaid) {
  const auto found = limits("--from cuda:0 --to cuda:0 --sizes 4096", "FAKE_CUDA_DEVICES=1");
  const auto kernels = table(found, "limit-kernels");
  EXPECT_TRUE(kernels["rows"].empty()) << kernels.dump();
  EXPECT_TRUE(leaves_out(kernels, "each needs a device of its own, and both places are on cuda:0")) << kernels.dump();
  const auto residents = table(found, "limit-residents");
  EXPECT_EQ(residents["rows"].size(), 5U) << residents.dump();
  EXPECT_TRUE(leaves_out(residents, "bytes through two resident kernels: each needs")) << residents.dump();
  EXPECT_TRUE(says(ran, "left out: kernels that wait for each other")) << ran.output;
  EXPECT_FALSE(table(found, "limit-bandwidth").contains("left_out"));
}

TEST_F(KernelLimits, DevicesOutOfReachOfEachOtherHaveTheDriversCopiesAndTheRestIsSaid) {
  const auto found = limits("--from cuda:0 --to cuda:1 --sizes 4096", "FAKE_CUDA_PEER=0");
  for (const std::string benchmark :
       {"limit-latency", "limit-bandwidth", "limit-bidirectional", "limit-kernels", "limit-residents"})
    EXPECT_TRUE(leaves_out(table(found, benchmark), "cuda:0 and cuda:1 do not reach each other's memory")) << benchmark;
  for (const std::string benchmark : {"limit-bandwidth", "limit-bidirectional"})
    EXPECT_EQ(table(found, benchmark)["rows"].size(), 3U) << benchmark;
  EXPECT_TRUE(table(found, "limit-kernels")["rows"].empty());
  EXPECT_EQ(table(found, "limit-residents")["rows"].size(), 1U);
}

// Words and packets come to the processor and from it whatever its memory; copies do not.
TEST_F(KernelLimits, KernelsCopyToAndFromPageLockedMemoryAlone) {
  for (const auto& [pair, packets] : {std::pair<std::string, std::string>{"--from pinned --to cuda:0", "into"},
                                      {"--from cuda:0 --to pinned", "out of"},
                                      {"--from host --to cuda:0", "into"},
                                      {"--from cuda:0 --to host", "out of"}}) {
    const bool pageable = pair.find("host") != std::string::npos;
    const auto found = limits(pair + " --sizes 4096");
    EXPECT_TRUE(table(found, "limit-kernels").is_null()) << pair;
    const auto residents = table(found, "limit-residents");
    Sizes wanted{{"a word to a resident kernel and one back, round trip", 8}};
    for (const int bytes : {8, 512, 4096, 8192})
      if (!pageable) wanted.emplace_back(kCopy, bytes);
    for (const int bytes : {4, 8, 64, 512})
      wanted.emplace_back("packets " + packets + " a device by a resident kernel", bytes);
    EXPECT_EQ(ways_of(residents), wanted) << pair;
    EXPECT_EQ(leaves_out(residents, "copies by a resident kernel: kernels reach no pageable memory"), pageable) << pair;
    const auto single = table(found, "limit-latency");
    EXPECT_EQ(single["rows"].size(), pageable ? 3U : 4U) << pair;
    EXPECT_EQ(leaves_out(single, "copies by a kernel: kernels reach no pageable memory"), pageable) << pair;
  }
}

TEST_F(KernelLimits, WhatADriverLoadsLazilyIsThereBeforeAKernelStays) {
  const auto found = limits("--from cuda:0 --to cuda:1 --sizes 4096", "FAKE_CUDA_LAZY=1");
  EXPECT_EQ(table(found, "limit-kernels")["rows"].size(), 6U);
  EXPECT_EQ(table(found, "limit-residents")["rows"].size(), 9U);
}

}  // namespace
}  // namespace ist::test
