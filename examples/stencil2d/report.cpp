#include "report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

namespace stencil {
namespace {

// SHOC counts eleven operations a point, whatever the machine does.
constexpr double operations_per_point = 11;

const char* name_of(Precision precision) { return precision == Precision::single_precision ? "float" : "double"; }

}  // namespace

Progress::Progress(bool shown, std::string name, int steps)
    : shown_(shown), terminal_(isatty(STDOUT_FILENO) == 1), name_(std::move(name)), steps_(steps) {}

void Progress::show(int step, double seconds) {
  if (!shown_) return;
  const double milliseconds = seconds / step * 1e3;
  if (terminal_) {
    constexpr int width = 30;
    const auto full = static_cast<std::size_t>(width * static_cast<double>(step) / steps_);
    const std::string bar = std::string(full, '#') + std::string(width - full, '.');
    std::printf("\r  %-8s [%s] %d/%d steps, %.3f ms each%s", name_.c_str(), bar.c_str(), step, steps_, milliseconds,
                step == steps_ ? "\n" : "");
  } else {
    const int quarter = static_cast<int>(4 * static_cast<std::int64_t>(step) / steps_);
    if (quarter == quarter_) return;
    quarter_ = quarter;
    std::printf("  %-8s %d/%d steps, %.3f ms each\n", name_.c_str(), step, steps_, milliseconds);
  }
  std::fflush(stdout);
}

double Report::points_per_second(double seconds) const {
  return static_cast<double>(job.field.points()) * job.options.iterations / seconds;
}

double Report::share_in_exchange(const Measured& run) const {
  return std::clamp(1 - bare_step_seconds * job.options.iterations / run.seconds, 0.0, 1.0);
}

std::string Report::conditions() const {
  return std::string(name_of(job.options.precision)) + ", " + std::to_string(job.options.iterations) + " steps, " +
         std::to_string(ranks) + (ranks == 1 ? " rank, " : " ranks, ") + job.backend.kind();
}

void Report::print_head() const {
  const Options& options = job.options;
  std::printf("stencil2d: %s of %s points, halo %d, %s weights\n", options.input.empty() ? "field" : options.input.c_str(),
              to_text(job.field).c_str(), options.halo, options.normalised ? "normalised" : "SHOC's");
  std::printf("%s, as %s tiles, on %s\n", conditions().c_str(), to_text(job.grid).c_str(), job.backend.device().c_str());
  std::fflush(stdout);
}

void Report::print_table() const {
  std::printf("\n%-9s %10s %10s %8s %9s %11s %12s\n", "exchange", "us/step", "Mpoints/s", "Gpix/s", "GFLOP/s", "with setup",
              "in exchange");
  for (const Measured& run : runs) {
    const double rate = points_per_second(run.seconds);
    const double with_setup = points_per_second(run.seconds + run.upload_seconds + allocation_seconds);
    std::printf("%-9s %10.1f %10.1f %8.3f %9.3f %11.3f %10.1f %%\n", run.exchange.c_str(),
                run.seconds / job.options.iterations * 1e6, rate / 1e6, rate / 1e9, rate * operations_per_point / 1e9,
                with_setup * operations_per_point / 1e9, share_in_exchange(run) * 100);
  }
  std::printf("a step without exchange takes %.1f us; 11 operations a point, as SHOC counts", bare_step_seconds * 1e6);
  for (std::size_t n = 1; n < runs.size(); ++n)
    std::printf("; %s takes %.2f times as long as %s", runs[n].exchange.c_str(), runs[n].seconds / runs[0].seconds,
                runs[0].exchange.c_str());
  std::printf("\n\n");
  std::fflush(stdout);
}

void Report::write_json(const std::string& path) const {
  const Options& options = job.options;
  nlohmann::ordered_json json{{"benchmark", "stencil2d"},
                              {"input", std::filesystem::path{options.input}.filename().string()},
                              {"field", {job.field.rows, job.field.columns}},
                              {"grid", {job.grid.rows, job.grid.columns}},
                              {"ranks", ranks},
                              {"halo", options.halo},
                              {"steps", options.iterations},
                              {"precision", name_of(options.precision)},
                              {"weights", options.normalised ? "normalised" : "shoc"},
                              {"kind", job.backend.kind()},
                              {"device", job.backend.device()},
                              {"us_per_step_without_exchange", bare_step_seconds * 1e6}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const Measured& run : runs) {
    const double rate = points_per_second(run.seconds);
    const double with_setup = points_per_second(run.seconds + run.upload_seconds + allocation_seconds);
    nlohmann::ordered_json row{{"exchange", run.exchange},
                               {"us_per_step", run.seconds / options.iterations * 1e6},
                               {"points_per_second", rate},
                               {"gpix_per_second", rate / 1e9},
                               {"gflops", rate * operations_per_point / 1e9},
                               {"gflops_with_setup", with_setup * operations_per_point / 1e9},
                               {"share_in_exchange", share_in_exchange(run)},
                               {"sum", std::accumulate(run.field.begin(), run.field.end(), 0.0)},
                               {"largest", *std::max_element(run.field.begin(), run.field.end())}};
    if (options.verify) {
      row["largest_error"] = run.comparison.largest_error;
      row["tolerance"] = run.comparison.tolerance;
      row["verified"] = run.comparison.within();
    }
    json["rows"].push_back(row);
  }
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write the results to " + path);
}

bool Report::print_verdict() const {
  if (!job.options.verify) {
    std::printf("not compared with a serial run: --no-verify\n");
    return true;
  }
  Comparison worst = runs.front().comparison;
  bool all_within = true;
  for (const Measured& run : runs) {
    if (!(run.comparison.largest_error <= worst.largest_error)) worst = run.comparison;
    if (run.comparison.within()) continue;
    all_within = false;
    std::fflush(stdout);
    std::fprintf(
        stderr,
        "stencil2d: WRONG RESULT with the %s exchange: largest error %.1e against a serial run, tolerance %.1e (%s)\n",
        run.exchange.c_str(), run.comparison.largest_error, run.comparison.tolerance, conditions().c_str());
  }
  if (all_within)
    std::printf("verified: largest error %.1e, tolerance %.1e (%s)\n", worst.largest_error, worst.tolerance,
                conditions().c_str());
  std::fflush(stdout);
  return all_within;
}

}  // namespace stencil
