#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/json_file.hpp"

namespace pixels {

Report::Report(const Options& options, std::string memory, double copy_rate)
    : options_(options), memory_(std::move(memory)), copy_rate_(copy_rate) {
  std::printf("%lld x %lld pixels, %d steps, messages of %lld bytes, %s\n", static_cast<long long>(options.width),
              static_cast<long long>(options.height), options.steps,
              static_cast<long long>(options.width) * static_cast<long long>(sizeof(float)), memory_.c_str());
  if (copy_rate_ > 0) std::printf("rank 0 copies %.3f Gpix/s\n", copy_rate_);
  std::printf("%5s %10s %12s %16s %12s  %s\n", "ranks", "Gpix/s", "ms compute", "ms network, wait", "efficiency",
              "exchange");
  std::fflush(stdout);
}

double Report::rate(const Line& line) const {
  const double pixels = static_cast<double>(options_.width - 2) * static_cast<double>(options_.cut_rows());
  return pixels / line.times.seconds / 1e9;
}

double Report::efficiency(const Line& line) const {
  const auto one = std::find_if(lines_.begin(), lines_.end(), [&](const Line& other) { return other.way == line.way; });
  return one->times.seconds / line.times.seconds / line.ranks;
}

void Report::add(const Line& line) {
  lines_.push_back(line);
  std::printf("%5d %10.3f %12.3f %16.3f %10.0f %%  %s%s\n", line.ranks, rate(line), line.times.compute * 1e3,
              (line.times.seconds - line.times.compute) * 1e3, 100 * efficiency(line), line.way.c_str(),
              line.right ? "" : "  WRONG");
  std::fflush(stdout);
}

void Report::write_json(int ranks, bool right) const {
  if (options_.json.empty()) return;
  nlohmann::ordered_json json{{"program", "pixels"},
                              {"device", options_.device},
                              {"memory", memory_},
                              {"cells", {options_.width, options_.height}},
                              {"steps", options_.steps},
                              {"ranks", ranks},
                              {"bytes_of_message", options_.width * static_cast<std::int64_t>(sizeof(float))},
                              {"verified", right},
                              {"alone", nullptr}};  // each way's first line is
  if (copy_rate_ > 0) json["copy_rate_alone"] = copy_rate_;
  json["ways"] = nlohmann::ordered_json::array();
  for (const Line& line : lines_) {
    auto way = example::json_of<nlohmann::ordered_json>(
        {line.way, line.ranks, line.times.seconds, rate(line), "Gpix/s", line.right});
    way["efficiency"] = efficiency(line);
    way["seconds_of_computing"] = line.times.compute;
    json["ways"].push_back(way);
  }
  example::write_json(options_.json, json);
}

}  // namespace pixels
