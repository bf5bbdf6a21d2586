// An example program as a user runs it, under the launcher.
//
// Who calls this : programs_test.cpp, simulations.hpp.
// Threads        : one.
// Ownership      : a fixture's folder goes with it.
// Errors         : what a program says, and its status.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace programs {

namespace fs = std::filesystem;

struct Ended {
  int status = -1;
  std::string output;
  std::string errors;
  std::string last_line() const {
    const auto end = output.find_last_not_of('\n');
    return end == std::string::npos
               ? ""
               : output.substr(output.find_last_of('\n', end) + 1, end - output.find_last_of('\n', end));
  }
};

inline std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Programs : public testing::Test {
 protected:
  Programs() : folder_(fs::path(testing::TempDir()) / ("isthmus_programs_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Programs() override { fs::remove_all(folder_); }

  // Runs a shell command; 60 s are enough for every one of them on a busy machine.
  Ended shell(const std::string& command) const {
    const fs::path out = folder_ / "out", err = folder_ / "err";
    const int status = std::system(("timeout 60 " + command + " >" + out.string() + " 2>" + err.string()).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }
  Ended run(int ranks, const std::string& program) const {
    return shell(BUILD_DIR "/bin/isthmus run -n " + std::to_string(ranks) + " " BUILD_DIR "/bin/" + program);
  }
  Ended stencil(int ranks, const std::string& options) const { return run(ranks, "stencil2d " + options); }
  // Those of a kind that programs have to use, as the library lists them; no GPU where no CUDA compiler was there.
  int devices(const std::string& kind) const {
    const auto info = nlohmann::json::parse(shell(BUILD_DIR "/bin/isthmus info --json").output);
    if (kind == "cuda" && !info.at("cuda_compiled").get<bool>()) return 0;
    for (const nlohmann::json& one : info.at("kinds"))
      if (one.at("name") == kind) return static_cast<int>(one.at("devices").size());
    return 0;
  }
  int gpus() const { return devices("cuda"); }
  nlohmann::json results() const { return nlohmann::json::parse(contents(folder_ / "results.json")); }
  std::string json_option() const { return " --json " + (folder_ / "results.json").string(); }

  fs::path folder_;
};

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace programs
