// Runs of `isthmus bench` whose result is a file of their own.
//
// Who calls this : tests/cli.
// Threads        : one.
// Ownership      : the fixture owns a folder and removes it.
// Errors         : a result that cannot be read is a discarded value.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace ist::test {

class Bench : public ::testing::Test {
 protected:
  Bench() : folder_(std::filesystem::temp_directory_path() / ("isthmus-bench-test-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Bench() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return (folder_ / "result.json").string(); }
  nlohmann::json result() const {
    std::ifstream in(file());
    return nlohmann::json::parse(in, nullptr, false);
  }

 private:
  std::filesystem::path folder_;
};

inline bool kind_is_here(const std::string& kind) {
  const auto facts = nlohmann::json::parse(run_program("info --json").output, nullptr, false);
  if (facts.is_discarded()) return false;
  for (const auto& entry : facts["kinds"])
    if (entry["name"] == kind) return true;
  return false;
}

// The invented driver, or the real one. Beside the first no process loads drivers of other kinds, which takes it longer than all else.
inline bool there_is_cuda(std::string& variables) {
  if (kind_is_here("cuda")) return true;
  variables = "ISTHMUS_KINDS=host,cuda LD_LIBRARY_PATH=" FAKE_CUDA;
  return std::filesystem::exists(FAKE_CUDA "/libcuda.so.1");
}

// Every row is beside a limit of the same run, as far as the digits in the file go, and the report says what it is.
inline void expect_limited(const nlohmann::json& found, const std::string& words = "") {
  ASSERT_TRUE(found.contains("limit_is")) << found.dump();
  const auto is = found["limit_is"].get<std::string>();
  EXPECT_EQ(is.find("not measured"), std::string::npos) << is;
  EXPECT_NE(is.find(words), std::string::npos) << is;
  for (const auto& row : found["rows"]) {
    ASSERT_TRUE(row["limit_us"].is_number() && row["limit_ratio"].is_number()) << row.dump();
    const auto limit = row["limit_us"].get<double>();
    EXPECT_GT(limit, 0) << row.dump();
    EXPECT_NEAR(row["limit_ratio"].get<double>() * limit / row["median_us"].get<double>(), 1, 0.02 + 1e-4 / limit)
        << row.dump();
  }
}

// Arguments that are wrong, and what the command says of them.
struct Refused {
  const char* arguments;
  const char* words;
};
inline void expect_refused(std::initializer_list<Refused> all, const std::string& environment = "") {
  for (const auto& [arguments, words] : all) {
    const Ran ran = run_program(arguments, environment);
    EXPECT_EQ(ran.status, 2) << arguments << '\n' << ran.output;
    EXPECT_TRUE(says(ran, words)) << arguments << '\n' << ran.output;
  }
}

}  // namespace ist::test
