// Benchmarks that a benchmark runs, each in processes of its own.
//
// Who calls this : bench_sweep, bench_every_pair.
// Threads        : one.
// Ownership      : values.
// Errors         : a Failure with what the benchmark said.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ist::cli {

struct BenchTask {
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> variables;
  int ranks = 2;
};

// The benchmark's report; what it says else is told only where it fails.
nlohmann::ordered_json run_task(const BenchTask& task, const std::string& title);
// On a terminal, a line that renews itself.
void show_tasks(std::size_t done, std::size_t of, const std::string& title);

}  // namespace ist::cli
