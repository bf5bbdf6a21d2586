#include "report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/json_file.hpp"

namespace lbm {
namespace {

double glups(const Report& report, double seconds) { return report.updates() / seconds / 1e9; }
double rate(const Report& report, double seconds) { return report.updates() * kBytesOfUpdate / seconds; }

void print_device(const Report& report) {
  std::printf("%s, tiles of %s: %.1f GB/s, %.3f of a copy's %.1f GB/s by %d rank%s\n", report.device.c_str(),
              report.tile.c_str(), rate(report, report.seconds) / 1e9, rate(report, report.seconds) / report.copy_rate,
              report.copy_rate / 1e9, report.size(), report.size() == 1 ? "" : "s");
  const Compared& alone = report.alone;
  if (report.size() == 1) return;
  if (!alone.done) {
    std::printf("not compared with one device alone: %s\n", alone.text.c_str());
    return;
  }
  std::printf("%s one device alone%s%s\n", alone.same ? "the same to the last bit as by" : "NOT THE SAME as by",
              alone.same ? "" : ", ", alone.text.c_str());
  std::printf("one device alone %.4f GLUPS, %.3f s, %.3f of its copy's %.1f GB/s; speedup %.3f, efficiency %.4f\n",
              glups(report, alone.seconds), alone.seconds, rate(report, alone.seconds) / report.copy_rate_alone,
              report.copy_rate_alone / 1e9, alone.seconds / report.seconds, alone.seconds / report.seconds / report.size());
}

}  // namespace

void print(const Report& report) {
  const auto cells = [&](std::size_t d) { return static_cast<long long>(report.cells[d]); };
  std::printf("%s: %s, %lld x %lld x %lld cells, %lld steps, %d x %d x %d ranks, %s\n", report.verdict.c_str(),
              report.flow.c_str(), cells(0), cells(1), cells(2), static_cast<long long>(report.steps), report.ranks[0],
              report.ranks[1], report.ranks[2], report.exchange.c_str());
  std::printf("%s\n%.2e of the mass lost; %s%s\n", report.text.c_str(), report.lost,
              !report.host.done  ? "too many updates to repeat by one rank"
              : report.host.same ? "the same to the last bit as of one rank alone"
                                 : "NOT THE SAME as of one rank alone",
              report.device.empty() ? "" : " on the host");
  std::printf("%.4f GLUPS, %.3f s", glups(report, report.seconds), report.seconds);
  if (report.host.done && report.device.empty())
    std::printf(", one rank alone %.4f GLUPS, efficiency %.2f", glups(report, report.host.seconds),
                report.host.seconds / report.seconds / report.size());
  std::printf("\n");
  if (!report.device.empty()) print_device(report);
  std::fputs(report.halos.c_str(), stdout);
}

namespace {

using Json = nlohmann::ordered_json;

// What the run was compared with, and whether that was the same.
Json json_of(const Compared& compared) {
  Json found{{"done", compared.done}};
  if (!compared.text.empty()) found["text"] = compared.text;
  if (compared.done) found["same_bits"] = compared.same;
  return found;
}

}  // namespace

void write_json(const Report& report, const std::string& path) {
  const bool host = report.device.empty();
  const auto figures = [&](const std::string& name, int ranks, double seconds, bool verified) {
    return example::json_of<Json>(
        {name, ranks, seconds / static_cast<double>(report.steps), glups(report, seconds), "GLUPS", verified});
  };
  const bool verified = report.verdict == "verified";
  Json made{{"program", "lbm"},
            {"verdict", report.verdict},
            {"verified", verified},
            {"text", report.text},
            {"flow", report.flow},
            {"device", host ? "host" : "cuda"},
            {"memory", host ? "host memory" : report.device},
            {"cells", report.cells},
            {"steps", report.steps},
            {"ranks", report.size()},
            {"grid", report.ranks},
            {"bytes_per_update", kBytesOfUpdate},
            {"mass_lost", report.lost},
            {"compared_with_host", json_of(report.host)},
            {"alone", nullptr},
            {"ways", Json::array()}};
  Json way = figures(report.exchange, report.size(), report.seconds, verified);
  const Compared& alone = host ? report.host : report.alone;
  if (alone.done) {
    made["alone"] = figures("one rank alone", 1, alone.seconds, alone.same);
    way["speedup"] = alone.seconds / report.seconds;
    way["efficiency"] = alone.seconds / report.seconds / report.size();
  }
  if (!host) {
    made["tile"] = report.tile;
    // Beside the rates of updates: as many as such a copy would allow.
    made["copy_rate"] = report.copy_rate / kBytesOfUpdate / 1e9;
    made["copy_rate_alone"] = report.copy_rate_alone / kBytesOfUpdate / 1e9;
    way["share_of_copying"] = rate(report, report.seconds) / report.copy_rate;
    if (report.size() > 1) made["compared_with_one_device"] = json_of(report.alone);
  }
  made["ways"].push_back(way);
  example::write_json(path, made);
}

}  // namespace lbm
