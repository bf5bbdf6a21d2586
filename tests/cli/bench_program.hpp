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

// The invented driver, or the real one.
inline bool there_is_cuda(std::string& variables) {
  if (kind_is_here("cuda")) return true;
  variables = "LD_LIBRARY_PATH=" FAKE_CUDA;
  return std::filesystem::exists(FAKE_CUDA "/libcuda.so.1");
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
