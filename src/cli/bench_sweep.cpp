#include "cli/bench_sweep.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/bench_report.hpp"
#include "cli/bench_tasks.hpp"
#include "cli/failure.hpp"
#include "cli/own_ranks.hpp"

namespace ist::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Sweep {
  const char* name;
  const char* between_hosts;  // the variable
  const char* with_devices;
  std::vector<const char*> host_values;
  std::vector<const char*> device_values;
  const char* meaning;
};

// Cells, slots and copies in flight as in figures 6 and 7 of the paper on MPIGPU, the name of a buffer as in its figure 4.
const std::array<Sweep, 6>& sweeps() {
  static const std::array<Sweep, 6> all{
      {{"eager",
        "ISTHMUS_EAGER_LIMIT",
        "ISTHMUS_EAGER_LIMIT",
        {"4KiB", "16KiB", "64KiB", "256KiB"},
        {"4KiB", "16KiB", "64KiB", "256KiB"},
        "longest message that is sent at once, and the size of a cell"},
       {"cells", "ISTHMUS_CELLS", "ISTHMUS_CELLS", {"4", "16", "64", "256"}, {"4", "16", "64", "256"}, "cells of a rank"},
       {"slot",
        "ISTHMUS_RING_SLOT_HOST",
        "ISTHMUS_RING_SLOT_DEVICE",
        {"16KiB", "32KiB", "64KiB", "128KiB", "256KiB"},
        {"128KiB", "256KiB", "512KiB", "1MiB", "2MiB"},
        "bytes of a slot of the ring"},
       {"slots",
        "ISTHMUS_RING_SLOTS",
        "ISTHMUS_RING_SLOTS",
        {"2", "4", "8", "16", "32"},
        {"2", "4", "8", "16", "32"},
        "slots of the ring"},
       {"flight",
        "ISTHMUS_RING_IN_FLIGHT",
        "ISTHMUS_RING_IN_FLIGHT",
        {"1", "2", "4", "8"},
        {"1", "2", "4", "8"},
        "device copies in flight in one ring"},
       {"naming",
        "",
        "",
        {"kind", "auto"},
        {"kind", "auto"},
        "buffers that name their kind, and such that the driver is asked about"}}};
  return all;
}

const Sweep* find(const std::string& name) {
  const auto& all = sweeps();
  const auto* found = std::find_if(all.begin(), all.end(), [&](const Sweep& one) { return name == one.name; });
  return found != all.end() ? found : nullptr;
}

std::vector<BenchTask> tasks_of(const BenchOptions& options, const Sweep& sweep, bool hosts, const std::string& value) {
  std::vector<BenchTask> tasks;
  for (const char* benchmark : {"latency", "bandwidth"}) {
    BenchTask task{{"bench", benchmark, "--from", options.from.text(), "--to", options.to.text()}, {}};
    for (std::string& word : size_arguments(options)) task.arguments.push_back(std::move(word));
    if (options.iterations != 0)
      task.arguments.insert(task.arguments.end(), {"--iterations", std::to_string(options.iterations)});
    if (options.quick) task.arguments.emplace_back("--quick");
    const std::string variable = hosts ? sweep.between_hosts : sweep.with_devices;
    if (variable.empty()) {
      if (value == "auto") task.arguments.emplace_back("--auto");
    } else {
      // What would carry the bytes past the cells and the ring is off, or the setting changed nothing.
      task.variables = {{variable, value}, {"ISTHMUS_DEVICE_IPC", "never"}, {"ISTHMUS_SINGLE_COPY", "never"}};
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

// What a size has under each value, and what it is measured beside each time, which no value changes.
struct PlotLine {
  std::vector<double> figures;
  std::vector<double> limits;
};

std::map<std::uint64_t, PlotLine> lines_of(const std::vector<Json>& reports, const std::string& benchmark) {
  const bool latency = benchmark == "latency";
  std::map<std::uint64_t, PlotLine> lines;
  for (const Json& report : reports) {
    if (report["benchmark"] != benchmark) continue;
    for (const Json& row : report["rows"]) {
      PlotLine& line = lines[row["bytes"].get<std::uint64_t>()];
      const double figure = row[latency ? "median_us" : "gbps"].get<double>();
      line.figures.push_back(figure);
      if (!row["limit_ratio"].is_number()) continue;
      const double ratio = row["limit_ratio"].get<double>();
      line.limits.push_back(latency ? figure / ratio : figure * ratio);
    }
  }
  return lines;
}

// One line for each size, one column for each value; the best of a line has a star, and stands beside the limit.
std::string table(const std::vector<Json>& reports, const std::string& benchmark) {
  const bool latency = benchmark == "latency";
  std::string text =
      benchmark + (latency ? " in us, half a round trip\n" : " in GB/s, windows of 64 messages\n") + "       bytes";
  std::array<char, 64> cell{};
  const auto add = [&](const char* format, auto... values) {
    std::snprintf(cell.data(), cell.size(), format, values...);
    text += cell.data();
  };
  for (const Json& report : reports)
    if (report["benchmark"] == benchmark) add(" %11s", report["value"].get<std::string>().c_str());
  text += "       limit  best to it\n";
  for (const auto& [bytes, line] : lines_of(reports, benchmark)) {
    const auto& figures = line.figures;
    const auto best =
        latency ? std::min_element(figures.begin(), figures.end()) : std::max_element(figures.begin(), figures.end());
    add("%12llu", static_cast<unsigned long long>(bytes));
    for (const double& one : figures) add(" %10.3f%c", one, &one == &*best ? '*' : ' ');
    const double limit = median_of(line.limits);
    if (std::isnan(limit))
      text += "           -           -\n";
    else
      add(" %11.3f %10.2fx\n", limit, latency ? *best / limit : limit / *best);
  }
  return text;
}

}  // namespace

std::string sweep_names() {
  std::string names;
  for (const Sweep& sweep : sweeps())
    names += std::string{names.empty() ? "" : ", "} + sweep.name + " (" + sweep.meaning + ")";
  return names;
}

std::string sweep_warning(const std::vector<Json>& reports) {
  constexpr double kSteady = 2;
  double worst = kSteady;
  std::string warning;
  for (const char* benchmark : {"latency", "bandwidth"})
    for (const auto& [bytes, line] : lines_of(reports, benchmark)) {
      if (line.limits.empty()) continue;
      const auto [least, most] = std::minmax_element(line.limits.begin(), line.limits.end());
      if (*most <= worst * *least) continue;
      worst = *most / *least;
      std::array<char, 200> text{};
      std::snprintf(
          text.data(), text.size(),
          "the limit of %s at %llu bytes was %.1f times as high under one value as under another: the machine was not the "
          "same for all; run it again\n",
          benchmark, static_cast<unsigned long long>(bytes), worst);
      warning = text.data();
    }
  return warning;
}

void must_be_sweep(const BenchOptions& options) {
  if (options.staged || options.ranks != 0 || options.automatic)
    throw Failure(2, "sweep is of messages between two ranks: leave out --ranks, --staged and --auto");
  if (options.ready) throw Failure(2, "sweep measures what programs do that promise nothing: leave out --ready");
  if (find(options.call) == nullptr)
    throw Failure(
        2, (options.call.empty() ? "sweep needs the name of a setting" : "sweep knows no setting \"" + options.call + "\"") +
               ": expected one of " + sweep_names());
  const bool unnamed = options.call == "naming";
  for (const Place& place : {options.from, options.to})
    if (unnamed && place.kind == IST_KIND_OPENCL)
      throw Failure(2, "sweep naming asks whose an address is, and a buffer of opencl has none: say host or cuda");
}

void run_sweep(const BenchOptions& options) {
  if (inside_a_world())
    throw Failure(2, "bench sweep starts ranks of its own: run it outside of isthmus run and other launchers");
  if (!options.json_file.empty()) must_be_writable(options.json_file);
  const Sweep& sweep = *find(options.call);
  const bool hosts = !options.from.on_device() && !options.to.on_device();
  const std::string variable = hosts ? sweep.between_hosts : sweep.with_devices;
  const auto& values = hosts ? sweep.host_values : sweep.device_values;
  std::vector<Json> reports;
  for (const char* const value : values) {
    for (const BenchTask& task : tasks_of(options, sweep, hosts, value)) {
      std::string title = task.arguments[1] + " with ";
      if (!variable.empty()) title.append(variable).append("=");
      title += value;
      show_tasks(reports.size(), 2 * values.size(), title);
      Json report = run_task(task, title);
      report["sweep"] = sweep.name;
      report["setting"] = variable;
      report["value"] = value;
      reports.push_back(std::move(report));
    }
  }
  show_tasks(reports.size(), 2 * values.size(), "");
  std::cout << "isthmus bench sweep " << sweep.name << ", " << options.from.text() << " to " << options.to.text() << ": "
            << sweep.meaning;
  if (!variable.empty()) std::cout << " (" << variable << "), through cells and ring alone";
  std::cout << "; * the best\n"
            << reports.front()["machine"].get<std::string>() << "; commit " << reports.front()["commit"].get<std::string>()
            << "\n\n"
            << table(reports, "latency") << '\n'
            << table(reports, "bandwidth")
            << "\nlimit: as each report says in limit_is, or memcpy of that size; the median of all values\n"
            << sweep_warning(reports);
  if (options.json_file.empty()) return;
  write_json(options.json_file, Json(reports));
}

}  // namespace ist::cli
