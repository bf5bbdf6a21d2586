#include "report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/json_file.hpp"

namespace jacobi {

void Report::copies(double seconds, double seconds_alone) {
  copied_ = problem_.gigapixels(seconds);
  copied_alone_ = problem_.gigapixels(seconds_alone);
  std::printf("%lld x %lld cells, norm every %d iterations, %s; %d ranks copy %.3f Gpix/s\n",
              static_cast<long long>(problem_.nx), static_cast<long long>(problem_.ny), problem_.nccheck, memory_.c_str(),
              ranks_, copied_);
  std::fflush(stdout);
}

void Report::alone(const Solved& solved, const std::string& fault) {
  alone_ = solved;
  std::printf("one rank: %.3f Gpix/s, %d iterations of %.2f us, %.0f %% of the %.3f Gpix/s that it copies%s\n", rate(solved),
              solved.iterations, solved.seconds * 1e6, 100 * rate(solved) / copied_alone_, copied_alone_, fault.c_str());
  std::printf("%-15s %8s %8s %11s %14s %10s %12s  %s\n", "exchange", "Gpix/s", "speedup", "efficiency", "copy bandwidth",
              "iterations", "us/iteration", "norm");
  std::fflush(stdout);
}

void Report::add(const Row& row) {
  rows_.push_back(row);
  if (!row.refusal.empty()) {
    std::printf("%-15s not here: %s\n", row.exchange.c_str(), row.refusal.c_str());
  } else {
    const double speedup = rate(row.solved) / rate(alone_);
    std::printf("%-15s %8.3f %8.2f %9.1f %% %12.1f %% %10d %12.2f  %s%s\n", row.exchange.c_str(), rate(row.solved), speedup,
                100 * speedup / ranks_, 100 * rate(row.solved) / copied_, row.solved.iterations, row.solved.seconds * 1e6,
                norm_of(row.solved).c_str(), row.fault.c_str());
  }
  std::fflush(stdout);
}

std::string Report::norm_of(const Solved& solved) const {
  if (solved.iterations < problem_.nccheck) return "not asked for";
  char text[32];
  std::snprintf(text, sizeof text, "%.6e", static_cast<double>(solved.norm));
  return text;
}

void Report::write_json(bool right) const {
  if (problem_.json.empty()) return;
  nlohmann::ordered_json json{
      {"benchmark", "jacobi"},
      {"cells", {problem_.nx, problem_.ny}},
      {"ranks", ranks_},
      {"memory", memory_},
      {"iterations", problem_.iterations},
      {"iterations_between_norms", problem_.nccheck},
      {"iterations_compared_with_serial", problem_.compares_all() ? problem_.iterations : problem_.compare},
      {"bytes_per_point", 8},
      {"gpix_per_second_of_copying", copied_},
      {"gpix_per_second_of_copying_alone", copied_alone_},
      {"gpix_per_second_alone", rate(alone_)},
      {"us_per_iteration_alone", alone_.seconds * 1e6},
      {"share_of_copying_alone", rate(alone_) / copied_alone_},
      {"verified", right}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows_) {
    nlohmann::ordered_json entry{{"exchange", row.exchange}};
    if (!row.refusal.empty()) {
      entry["not_here"] = row.refusal;
    } else {
      const double speedup = rate(row.solved) / rate(alone_);
      entry["gpix_per_second"] = rate(row.solved);
      entry["us_per_iteration"] = row.solved.seconds * 1e6;
      entry["iterations"] = row.solved.iterations;
      entry["speedup"] = speedup;
      entry["efficiency"] = speedup / ranks_;
      entry["share_of_copying"] = rate(row.solved) / copied_;
      entry["norm"] = row.solved.norm;
      entry["first_norm"] = row.solved.first_norm;
      entry["verified"] = row.fault.empty();
    }
    json["rows"].push_back(entry);
  }
  example::write_json(problem_.json, json);
}

}  // namespace jacobi
