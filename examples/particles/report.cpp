#include "report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/json_file.hpp"

namespace particles {

Report::Report(const Options& options, std::string memory, const std::array<int, 3>& parts)
    : options_(options), memory_(std::move(memory)), parts_(parts) {
  std::printf("%lld particles, %d steps of up to %g, %d x %d x %d parts, %s\n", static_cast<long long>(options.count),
              options.steps, options.speed, parts[0], parts[1], parts[2], memory_.c_str());
  std::printf("%-8s %12s %12s %12s %10s %12s %11s %14s\n", "store", "M/s, 1 rank", "M/s, all", "efficiency", "ms moving",
              "ms migrating", "migrate", "bytes sent");
  std::fflush(stdout);
}

double Report::rate(double seconds) const { return static_cast<double>(options_.count) * options_.steps / seconds / 1e6; }
double Report::share(const Line& line) const {
  return static_cast<double>(line.left) / options_.steps / static_cast<double>(options_.count);
}
double Report::bytes(const Line& line) const {
  return static_cast<double>(line.left * kParticleBytes) / options_.steps / ranks();
}

void Report::add(const Line& line) {
  lines_.push_back(line);
  std::printf("%-8s %12.3f %12.3f %10.0f %% %10.3f %12.3f %9.3f %% %14.0f\n", line.store.c_str(), rate(line.seconds_alone),
              rate(line.seconds), 100 * efficiency(line), line.times.moving * 1e3, line.times.migrating * 1e3,
              100 * share(line), bytes(line));
  const auto tell = [](const Faults& faults, const char* of) {
    if (faults.count() == 0) return;
    std::printf("WRONG%s: %lld lost, %lld twice, %lld that nobody knows, %lld elsewhere\n", of,
                static_cast<long long>(faults.lost), static_cast<long long>(faults.twice),
                static_cast<long long>(faults.unknown), static_cast<long long>(faults.elsewhere));
  };
  tell(line.faults_alone, ", one rank alone");
  tell(line.faults, "");
  std::fflush(stdout);
}

void Report::write_json(bool right) const {
  if (options_.json.empty()) return;
  nlohmann::ordered_json json{
      {"program", "particles"},  {"device", options_.device}, {"memory", memory_}, {"particles", options_.count},
      {"steps", options_.steps}, {"speed", options_.speed},   {"ranks", ranks()},  {"grid", parts_},
      {"verified", right},       {"alone", nullptr}};  // each way has one rank's by itself
  json["ways"] = nlohmann::ordered_json::array();
  for (const Line& line : lines_) {
    auto way =
        example::json_of<nlohmann::ordered_json>({line.store, ranks(), line.seconds / options_.steps, rate(line.seconds),
                                                  "M particles/s", line.faults.count() + line.faults_alone.count() == 0});
    way["efficiency"] = efficiency(line);
    way["seconds_alone"] = line.seconds_alone / options_.steps;
    way["rate_alone"] = rate(line.seconds_alone);
    way["seconds_of_moving"] = line.times.moving;
    way["seconds_of_migrating"] = line.times.migrating;
    way["share_that_migrates"] = share(line);
    way["bytes_sent"] = bytes(line);
    json["ways"].push_back(way);
  }
  example::write_json(options_.json, json);
}

}  // namespace particles
