// Halo exchanges as `isthmus bench halo` checks and times them: every packing and way has a row, of boxes and of lists; and `isthmus bench pack`.
#include <set>
#include <string>

#include "bench_program.hpp"

namespace ist::test {
namespace {

void expect_variants(const nlohmann::json& found, const std::string& name, const std::set<std::string>& more = {}) {
  std::set<std::string> variants;
  for (const auto& row : found["rows"]) {
    if (row["case"] != name || row["way"] == "none") continue;
    variants.insert(row["packing"].get<std::string>() + " " + row["way"].get<std::string>());
    EXPECT_GT(row["median_us"].get<double>(), 0) << row.dump();
    EXPECT_LE(row["p10_us"].get<double>(), row["p90_us"].get<double>()) << row.dump();
    EXPECT_GE(row["pack_us"].get<double>(), 0) << row.dump();
    EXPECT_EQ(row["iterations"], 5) << row.dump();
    EXPECT_GT(row["limit_us"].get<double>(), 0) << row.dump();
    EXPECT_NEAR(row["limit_ratio"].get<double>() * row["limit_us"].get<double>(), row["median_us"].get<double>(), 1e-3);
  }
  EXPECT_TRUE(found["limit_is"].get<std::string>().starts_with("a bare copy in one piece")) << found["limit_is"];
  std::set<std::string> wanted{"auto messages", "calls messages", "layouts messages", "loops messages"};
  if (found["from"] != "opencl") wanted.insert("auto one-sided");
  wanted.insert(more.begin(), more.end());
  EXPECT_EQ(variants, wanted) << name;
}

TEST_F(Bench, HalosAreCheckedAndTimedUnderEveryPacking) {
  for (const int ranks : {1, 2, 4}) {
    const Ran ran =
        run_program("bench halo --iterations 5 --sizes 4,9 --ranks " + std::to_string(ranks) + " --json " + file());
    ASSERT_EQ(ran.status, 0) << ran.output;
    const auto found = result();
    EXPECT_EQ(found["benchmark"], "halo");
    EXPECT_EQ(found["ranks"], ranks);
    ASSERT_EQ(found["rows"].size(), 10U);
    expect_variants(found, "4^3");
    expect_variants(found, "9^3");
    EXPECT_EQ(found["rows"][0]["bytes"], (8 * 8 * 8 - 4 * 4 * 4) * 3 * 8);
    // Two ranks are neighbours in one dimension, four in two; what lies in the others alone stays with the rank.
    const int cells = ranks == 1 ? 8 * 8 * 8 - 4 * 4 * 4 : ranks == 2 ? 4 * 8 * 8 : (8 * 8 - 4 * 4) * 8;
    EXPECT_EQ(found["rows"][0]["limit_bytes"], cells * 3 * 8);
  }
}

TEST_F(Bench, ListedHalosAreTimedAsTheyAreNumberedAndRenumbered) {
  const Ran ran = run_program("bench halo lists --iterations 5 --ranks 2 --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  EXPECT_EQ(found["benchmark"], "halo lists");
  ASSERT_EQ(found["rows"].size(), 11U);
  expect_variants(found, "nodes");
  expect_variants(found, "renumbered");
  EXPECT_EQ(found["rows"][0]["bytes"], 160000);
  EXPECT_EQ(found["rows"][0]["limit_bytes"], 160000);
}

TEST_F(Bench, HalosOfCudaMemoryAreTimedToo) {
  std::string variables;
  if (!there_is_cuda(variables)) GTEST_SKIP() << "not covered here: there is neither a GPU nor the driver of the tests";
  const Ran ran = run_program("bench halo --kind cuda --iterations 5 --sizes 6 --json " + file(), variables);
  ASSERT_EQ(ran.status, 0) << ran.output;
  expect_variants(result(), "6^3");
}

// Beside the others: kernels gather in host memory that the device has mapped, and scatter from there. The program compares every node.
TEST_F(Bench, ListedHalosOfDevicesAreTimedThroughMappedHostMemory) {
  std::string variables;
  const bool cuda = there_is_cuda(variables);
  for (const std::string kind : {"cuda", "opencl"}) {
    if (kind == "cuda" ? !cuda : !kind_is_here(kind)) continue;
    for (const std::string ranks : {"2", "3"}) {
      if (kind == "cuda" && ranks == "3") continue;  // as many as there are devices
      const Ran ran =
          run_program("bench halo lists --iterations 5 --kind " + kind + " --ranks " + ranks + " --json " + file(),
                      kind == "cuda" ? variables : "");
      ASSERT_EQ(ran.status, 0) << ran.output;
      for (const char* name : {"nodes", "renumbered"}) expect_variants(result(), name, {"mapped messages"});
      EXPECT_EQ(result()["rows"].size(), kind == "cuda" ? 13U : 11U);
    }
  }
}

TEST_F(Bench, HalosThatCannotBeTimedAreRefused) {
  for (const auto& [words, answer] : {std::pair{"bench halo planes", "was given \"planes\""},
                                      {"bench halo --sizes 1", "but one is 1"},
                                      {"bench halo --from cuda --to cuda", "give it by --kind"},
                                      {"bench halo --kind pinned", "memory of kind host, cuda or opencl"}}) {
    const Ran ran = run_program(words);
    EXPECT_EQ(ran.status, 2) << ran.output;
    EXPECT_TRUE(says(ran, answer)) << ran.output;
  }
}

TEST_F(Bench, PackingIsCheckedAndTimedBesideCopies) {
  const Ran ran = run_program("bench pack --iterations 5 --sizes 4,5000 --json " + file());
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto found = result();
  EXPECT_EQ(found["benchmark"], "pack");
  ASSERT_EQ(found["rows"].size(), 5 * (1U + 6U));
  std::set<std::string> shapes;
  for (const auto& row : found["rows"]) {
    shapes.insert(row["shape"].get<std::string>());
    for (const char* time : {"pack_us", "unpack_us", "blocks_us", "copy_us", "limit_us", "limit_ratio"})
      EXPECT_GT(row[time].get<double>(), 0) << time << ": " << row.dump();
    EXPECT_LE(row["p10_us"].get<double>(), row["p90_us"].get<double>()) << row.dump();
    EXPECT_GE(row["limit_us"].get<double>() * (1 + 1e-9), row["copy_us"].get<double>())
        << "what is read is no less: " << row.dump();
    EXPECT_EQ(row["iterations"], 5) << row.dump();
  }
  EXPECT_EQ(shapes, (std::set<std::string>{"hvector", "indexed", "struct", "subarray", "vector"}));
}

TEST_F(Bench, PackingOfDeviceMemoryIsTimedToo) {
  std::string variables;
  const bool cuda = there_is_cuda(variables);
  for (const std::string kind : {"cuda", "opencl"}) {
    if (kind == "cuda" ? !cuda : !kind_is_here(kind)) continue;
    for (const std::string shape : {"indexed", "vector", "subarray"}) {
      const Ran ran =
          run_program("bench pack " + shape + " --kind " + kind + " --iterations 3 --sizes 5000 --json " + file(),
                      kind == "cuda" ? variables : "");
      ASSERT_EQ(ran.status, 0) << ran.output;
      const auto found = result();
      EXPECT_EQ(found["from"], kind);
      ASSERT_EQ(found["rows"].size(), 6U);
      // One copy of rows, whose bytes the program compares, is beside what has rows.
      int of_rows = 0;
      for (const auto& row : found["rows"]) of_rows += row["rows_us"].is_null() ? 0 : 1;
      const bool rows = shape != "indexed";
      for (const auto& row : found["rows"])
        for (const char* time : {"to_host_us", "from_host_us"}) EXPECT_GT(row[time].get<double>(), 0) << row.dump();
      EXPECT_TRUE(rows ? of_rows >= 4 : of_rows <= 2) << "two or three blocks of a list may be rows: " << ran.output;
    }
  }
}

TEST_F(Bench, PackingThatCannotBeTimedIsRefused) {
  expect_refused({{"bench pack planes", "was given \"planes\""},
                  {"bench pack --sizes 3", "but one is 3"},
                  {"bench pack --sizes 2GiB", "from 4 to 1GiB"},
                  {"bench pack --max 1MiB", "pack takes --sizes"},
                  {"bench pack --to cuda", "give it by --kind"},
                  {"bench pack --ranks 2", "pack is by one rank"},
                  {"run -n 2 " PROGRAM " bench pack", "leave out isthmus run"},
                  {"bench pack --kind pinned", "memory of kind host, cuda or opencl"}});
}

}  // namespace
}  // namespace ist::test
