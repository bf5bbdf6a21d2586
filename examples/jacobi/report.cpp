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
  alone_is_right_ = fault.empty();
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
  using Json = nlohmann::ordered_json;
  const auto figures = [&](const std::string& name, int ranks, const Solved& solved, bool verified) {
    return example::json_of<Json>({name, ranks, solved.seconds, rate(solved), "Gpix/s", verified});
  };
  Json json{{"program", "jacobi"},
            {"cells", {problem_.nx, problem_.ny}},
            {"ranks", ranks_},
            {"memory", memory_},
            {"iterations", problem_.iterations},
            {"iterations_between_norms", problem_.nccheck},
            {"iterations_compared_with_serial", problem_.compares_all() ? problem_.iterations : problem_.compare},
            {"bytes_per_point", 8},
            {"copy_rate", copied_},
            {"copy_rate_alone", copied_alone_},
            {"verified", right},
            {"alone", figures("one rank alone", 1, alone_, alone_is_right_)},
            {"ways", Json::array()}};
  json["alone"]["share_of_copying"] = rate(alone_) / copied_alone_;
  for (const Row& row : rows_) {
    if (!row.refusal.empty()) {
      json["ways"].push_back({{"name", row.exchange}, {"ranks", ranks_}, {"not_here", row.refusal}});
      continue;
    }
    Json way = figures(row.exchange, ranks_, row.solved, row.fault.empty());
    const double speedup = rate(row.solved) / rate(alone_);
    way["efficiency"] = speedup / ranks_;
    way["iterations"] = row.solved.iterations;
    way["speedup"] = speedup;
    way["share_of_copying"] = rate(row.solved) / copied_;
    way["norm"] = row.solved.norm;
    way["first_norm"] = row.solved.first_norm;
    json["ways"].push_back(way);
  }
  example::write_json(problem_.json, json);
}

}  // namespace jacobi
