// What a benchmark leaves: a table for people, JSON for the model, the tuner and the speed check.
//
// Who calls this : bench, on rank 0.
// Threads        : one.
// Ownership      : values.
// Errors         : a Failure if the file cannot be written.
//
// The names machine, commit, date, benchmark, from, to, rows, and in each row bytes, median_us, p10_us, p90_us, gbps and
// path are frozen: names are added, never renamed. Between host buffers each row of latency and bandwidth has limit_gbs. Where a run
// of windows has shorter ones in some rows, since their messages are long, those have window, too. Where a run
// has a limit of its rows they have limit_ratio, how many times as long as it they take, and but for those limit_us, which limit_is says
// what it is; null where one row has none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench_limits.hpp"
#include "cli/bench_timing.hpp"

namespace ist::cli {

struct BenchReport {
  std::string machine;
  std::string commit;
  std::string date;
  std::string benchmark;
  std::string from;
  std::string to;
  std::string into;  // where results go that are not in the memory of from and to
  std::vector<Row> rows;
  std::vector<std::string> added;  // names of what the rows have besides
  int ranks = 2;
  bool progress_thread = false;
  std::string threads = "multiple";
  bool staged = false;
  bool fresh = false;
  bool ready = false;
  bool quick = false;
  std::size_t sizes_checked = 0;
  Limits limits;
  std::string limit_is;               // what limit_us is; empty: rows have none
  std::vector<std::string> left_out;  // of limits: what could not be measured, and why; only there it is in the JSON
};

nlohmann::ordered_json to_json(const BenchReport& report);
std::string table_header(const BenchReport& report);
std::string table_row(const Row& row);
std::string table_footer(const BenchReport& report);
// "2026-11-21T09:30:00Z"
std::string date_now();
// Fails at once if the file could not be written later.
void must_be_writable(const std::string& file);
void write_json(const std::string& file, const nlohmann::ordered_json& json);

}  // namespace ist::cli
