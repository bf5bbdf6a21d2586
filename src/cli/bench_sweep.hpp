// `isthmus bench sweep SETTING`: the same messages under several values of one setting, side by side.
//
// Who calls this : bench.
// Threads        : one; every value is measured by `isthmus bench` in processes of its own.
// Ownership      : values.
// Errors         : a Failure that names the value, with what its benchmark said.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench_options.hpp"

namespace ist::cli {

// "eager, cells, ...", for the help and for errors.
std::string sweep_names();
// Refuses a sweep that there is not; options.call is its name.
void must_be_sweep(const BenchOptions& options);
// Values are measured one after the other. What they are measured beside is the same for all, or the machine was not: a line that says so,
// or nothing.
std::string sweep_warning(const std::vector<nlohmann::ordered_json>& reports);
// Measures latency and bandwidth for each value, prints a table of each, and writes all reports as one list, where every one tells
// the sweep, its setting and the value.
void run_sweep(const BenchOptions& options);

}  // namespace ist::cli
