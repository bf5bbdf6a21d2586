#include "cli/bench_report.hpp"

#include <isthmus/isthmus.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include "cli/bench_session.hpp"
#include "cli/failure.hpp"

namespace ist::cli {
namespace {

// Digits beyond what a clock can tell are noise, and make files harder to compare.
double rounded(double value, double parts) { return std::round(value * parts) / parts; }
constexpr double kMicroseconds = 1e4;
constexpr double kGigabytes = 1e6;

bool windowed(const std::string& benchmark) {
  return benchmark.ends_with("bandwidth") || benchmark == "multi-pair" || benchmark == "rate" ||
         benchmark.ends_with("bidirectional");
}

// Of what is put into streams or queues.
std::string ordered_meaning(const std::string& benchmark) {
  const std::string where = benchmark.starts_with("stream-") ? "streams" : "queues";
  const std::string graphs = where == "streams" ? "; graph_us is that of a window as a graph" : "";
  if (benchmark == "queue-latency")
    return "times are half a round trip of what queues do by themselves, many in them at once";
  if (benchmark.ends_with("bidirectional"))
    return "times are those of a window of 64 messages each way at once, put into " + where +
           " and waited for, divided by the messages of one; GB/s counts both ways" + graphs;
  return "times are those of a window of 64 messages and its answer, put into " + where +
         " and waited for, divided by its messages" + graphs;
}

// What a time of the table is.
std::string meaning_of_times(const BenchReport& report) {
  const bool limited = std::find(report.added.begin(), report.added.end(), "limit_gbs") != report.added.end();
  const std::string limit =
      !limited
          ? ""
          : std::string{"; limit_gbs is memcpy of that size, again and again, one thread; limit_ratio is the time beside "} +
                (report.benchmark == "latency"
                     ? "that of such a copy or of a cache line, whichever is longer"
                     : "that of such a copy; two_copies_gbs, read_gbs and one_copy_gbs are bare "
                       "windows between the ranks' processors: copies into slots and out of them, one "
                       "process_vm_readv of each message, one copy");
  if (report.benchmark == "latency") return "times are half a round trip" + limit;
  if (report.benchmark == "stream-latency")
    return "times are half a round trip of what streams do by themselves, calls and graph";
  if (report.benchmark.starts_with("stream-") || report.benchmark.starts_with("queue-"))
    return ordered_meaning(report.benchmark);
  if (report.benchmark == "limit-latency")
    return "times are those of one copy by the driver, or by a kernel where the path says so, waited for";
  if (report.benchmark == "limit-calls") return "times are those of the driver's call";
  if (report.benchmark == "limit-kernels")
    return "times are those of one way between two kernels, of a barrier those of all of it, each the mean of a launch; the "
           "kernels' own clock";
  if (report.benchmark == "limit-residents")
    return "times are from the processor's word to a kernel that is running to the word that the processor gets back";
  if (report.benchmark == "limit-bandwidth" && report.from == "host" && report.to == "host")
    return "times are those of memcpy of that size, again and again, one thread";
  if (report.benchmark.starts_with("limit-"))
    return std::string{"times are those of 64 copies by the driver, or by a kernel where the path says so, "} +
           (report.benchmark == "limit-bidirectional" ? "each way at once, divided by 64; GB/s counts both ways"
                                                      : "in flight together, divided by 64");
  if (report.benchmark == "bidirectional")
    return "times are those of two windows at once, one each way, divided by their 64 messages; GB/s counts both ways";
  if (report.benchmark == "multi-pair")
    return "times are those of a message of all pairs together, by the slowest pair; GB/s counts all pairs";
  if (windowed(report.benchmark)) return "times are those of a window divided by its 64 messages" + limit;
  if (report.benchmark.starts_with("overlap"))
    return std::string{"times are from start to end with the computation between; "} +
           (report.progress_thread ? "with" : "without") + " progress thread";
  std::string of_call = "times are those of a call, averaged over ranks";
  if (std::find(report.added.begin(), report.added.end(), "ahead_us") == report.added.end()) return of_call;
  return of_call +
         ", each waited for; ahead_us: of many that are put there, and then waited for; graph_us: of those as a graph, "
         "where they can be captured";
}

std::string meaning(const BenchReport& report) {
  const bool limited = std::find(report.added.begin(), report.added.end(), "limit_us") != report.added.end();
  if (!limited || report.limit_is.empty()) return meaning_of_times(report);
  return meaning_of_times(report) + "\nlimit_us is " + report.limit_is +
         (report.benchmark == "stream-latency" ? "; the ratios are the times beside them"
                                               : "; limit_ratio is the time beside it");
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

}  // namespace

nlohmann::ordered_json to_json(const BenchReport& report) {
  auto rows = nlohmann::ordered_json::array();
  for (const Row& row : report.rows) {
    rows.push_back({{"bytes", row.bytes},
                    {"median_us", rounded(row.median_us, kMicroseconds)},
                    {"p10_us", rounded(row.p10_us, kMicroseconds)},
                    {"p90_us", rounded(row.p90_us, kMicroseconds)},
                    {"gbps", rounded(row.gbps, kGigabytes)},
                    {"path", row.path},
                    {"iterations", row.iterations}});
    if (row.window != 0 && row.window != Session::kWindow) rows.back()["window"] = row.window;
    for (std::size_t n = 0; n < row.added.size(); ++n) rows.back()[report.added[n]] = rounded(row.added[n], kMicroseconds);
  }
  nlohmann::ordered_json cache_line;  // null: not measured
  if (report.limits.cache_line_us > 0) cache_line = rounded(report.limits.cache_line_us, kMicroseconds);
  auto processors = nlohmann::ordered_json::array();  // empty: not known
  if (report.limits.processor >= 0 && report.limits.other_processor >= 0)
    processors = {report.limits.processor, report.limits.other_processor};
  nlohmann::ordered_json all = {{"machine", report.machine},
                                {"commit", report.commit},
                                {"date", report.date},
                                {"benchmark", report.benchmark},
                                {"from", report.from},
                                {"to", report.to},
                                {"rows", std::move(rows)},
                                {"version", ist_version()},
                                {"staged", report.staged},
                                {"ready", report.ready},
                                {"quick", report.quick},
                                {"window", windowed(report.benchmark) ? Session::kWindow : 1},
                                {"ranks", report.ranks},
                                {"progress_thread", report.progress_thread},
                                {"threads", report.threads},
                                {"sizes_checked", report.sizes_checked},
                                {"limits",
                                 {{"cache_line_us", cache_line},
                                  {"memcpy_gbps", rounded(report.limits.memcpy_gbps, kGigabytes)},
                                  {"memcpy_bytes", report.limits.memcpy_bytes},
                                  {"processors", std::move(processors)}}}};
  if (report.fresh) all["fresh"] = true;
  if (!report.into.empty()) all["into"] = report.into;
  if (!report.limit_is.empty()) all["limit_is"] = report.limit_is;
  if (!report.left_out.empty()) all["left_out"] = report.left_out;
  return all;
}

std::string table_header(const BenchReport& report) {
  std::string names;
  for (const std::string& name : report.added) names += formatted(" %16s", name.c_str());
  return "isthmus bench " + report.benchmark + ", " +
         (report.ranks == 1 ? "one process" : std::to_string(report.ranks) + " ranks") + ", " + report.from + " to " +
         report.to + (report.into.empty() ? "" : ", results into " + report.into) +
         (report.staged ? ", staged by hand through the host" : "") + (report.ready ? ", ready" : "") +
         (report.fresh ? ", each message just written, in the time" : "") + "\n" + report.machine + "; commit " +
         report.commit + "\n" + meaning(report) + "\n" +
         formatted("%12s %12s %12s %12s %10s%s  %s\n", "bytes", "median us", "p10 us", "p90 us", "GB/s", names.c_str(),
                   "path");
}

std::string table_row(const Row& row) {
  std::string added;
  for (const double value : row.added) added += std::isnan(value) ? formatted(" %16s", "-") : formatted(" %16.3f", value);
  std::string path = row.path;
  if (row.window != 0 && row.window != Session::kWindow) path += ", windows of " + std::to_string(row.window);
  return formatted("%12llu %12.3f %12.3f %12.3f %10.3f%s  %s\n", static_cast<unsigned long long>(row.bytes), row.median_us,
                   row.p10_us, row.p90_us, row.gbps, added.c_str(), path.c_str());
}

std::string table_footer(const BenchReport& report) {
  const std::string cache_line = report.limits.cache_line_us > 0
                                     ? formatted("%.3f us half round trip", report.limits.cache_line_us)
                                     : "not measured (no processor of its own for each rank)";
  return formatted("limits in this run: cache line %s, memcpy %.1f GB/s (one thread, %llu MiB)\n", cache_line.c_str(),
                   report.limits.memcpy_gbps, static_cast<unsigned long long>(report.limits.memcpy_bytes >> 20U));
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

void must_be_writable(const std::string& file) {
  if (const std::ofstream out(file, std::ios::app); !out)
    throw Failure(2, "cannot write the file " + file + ": " + std::strerror(errno));
}

void write_json(const std::string& file, const nlohmann::ordered_json& json) {
  std::ofstream out(file);
  out << json.dump(2) << '\n';
  out.close();
  if (!out) throw Failure(1, "cannot write the file " + file + ": " + std::strerror(errno));
}

}  // namespace ist::cli
