#include "cli/bench_one_sided.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <random>

#include "cli/bench_one_sided_device.hpp"
#include "cli/bench_one_sided_host.hpp"
#include "cli/bench_one_sided_rows.hpp"
#include "cli/bench_report.hpp"
#include "cli/bench_timing.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/machine.hpp"
#include "cli/own_ranks.hpp"

namespace ist::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 6> kOneSidedOperations{"ping-pong", "words", "bandwidth", "rate", "atomics", "barrier"};
constexpr std::uint64_t kMostOneSided = 64 << 20;
// Up to here the method repeats ten times as often, and five times of windows.
constexpr std::uint64_t kSmallCalls = 8192;
constexpr std::uint64_t kFirstCalls = 3;
// Microseconds of a row, or of --quick.
constexpr double kLongestSideRow = 1e6;
constexpr double kQuickSideRow = 0.1e6;

std::string line_of(const Json& row) {
  std::array<char, 320> line{};
  const auto number = [&](const char* name, double scale) {
    std::array<char, 32> text{};
    if (!row.contains(name) || row[name].is_null()) return std::string{"-"};
    std::snprintf(text.data(), text.size(), "%.3f", row[name].get<double>() * scale);
    return std::string{text.data()};
  };
  std::snprintf(line.data(), line.size(), "%-22s %9s  %-38s %11s %11s %11s %9s %10s %11s %7s  %s\n",
                row["operation"].get<std::string>().c_str(), in_words(Bytes{row["bytes"].get<std::uint64_t>()}).c_str(),
                row["path"].get<std::string>().c_str(), number("median_us", 1).c_str(), number("p10_us", 1).c_str(),
                number("p90_us", 1).c_str(), number("gbps", 1).c_str(), number("per_s", 1e-6).c_str(),
                number("limit_us", 1).c_str(), number("limit_ratio", 1).c_str(), row["limit_is"].get<std::string>().c_str());
  return line.data();
}

std::string header(const OneSidedBench& bench, const std::string& machine) {
  std::array<char, 320> names{};
  std::snprintf(names.data(), names.size(), "%-22s %9s  %-38s %11s %11s %11s %9s %10s %11s %7s  %s\n", "operation", "bytes",
                "by", "median us", "p10 us", "p90 us", "GB/s", "M/s", "limit us", "ratio", "limit");
  const std::string kind = bench.kind == isthmus::Kind::host ? "host" : "cuda";
  return "isthmus bench one-sided, --side " + bench.options.side + ", 2 PEs, heaps of " + kind + " memory\n" + machine +
         "; commit " + commit_of_sources() +
         "\ntimes are of one way of a ping-pong, of one copy, store or atomic of many, or of one barrier; limits are of "
         "the same run\n\n" +
         names.data();
}

void measure_side(const BenchOptions& options, const std::string& kind) {
  OneSidedBench bench{options, {}, kind == "host" ? isthmus::Kind::host : isthmus::Kind::cuda, {}, {}};
  if (bench.world.size() != 2)
    throw Failure(
        2, bench.first() ? "one-sided is between 2 ranks, and this world has " + std::to_string(bench.world.size()) : "");
  if (!options.json_file.empty() && bench.first()) must_be_writable(options.json_file);
  const auto kinds = Kinds::load("all");
  const std::string machine = kinds.ok() ? describe_machine(find_processors(), **kinds) : "unknown";
  if (bench.first()) std::cout << header(bench, machine) << std::flush;
  if (options.side == "host")
    measure_host_side(bench);
  else if (options.side == "stream")
    measure_stream_side(bench);
  else
    measure_kernel_side(bench);
  if (!bench.first() || options.json_file.empty()) return;
  Json report{{"machine", machine},     {"commit", commit_of_sources()},
              {"date", date_now()},     {"benchmark", "one-sided"},
              {"from", kind},           {"to", kind},
              {"side", options.side},   {"ranks", 2},
              {"quick", options.quick}, {"rows", bench.rows}};
  if (!bench.left_out.empty()) report["left_out"] = bench.left_out;
  write_json(options.json_file, report);
}

void must_make_sense(const BenchOptions& options, const std::string& kind) {
  if (!options.call.empty() &&
      std::find(kOneSidedOperations.begin(), kOneSidedOperations.end(), options.call) == kOneSidedOperations.end())
    throw Failure(
        2, "one-sided is of ping-pong, words, bandwidth, rate, atomics or barrier, but was given \"" + options.call + "\"");
  if (kind != "host" && kind != "cuda")
    throw Failure(2, "heaps are of memory of kind host or cuda on both ranks (--kind), but was given \"" + kind + "\"");
  if (options.side != "host" && kind == "host")
    throw Failure(2, options.side + "s reach heaps of CUDA memory: say --kind cuda, or --side host");
  if (options.call == "words" && options.side != "kernel")
    throw Failure(2, "words are traded by the threads of kernels: say --side kernel");
  if (options.ranks != 0 && options.ranks != 2)
    throw Failure(2, "one-sided is between 2 ranks: leave out --ranks " + std::to_string(options.ranks));
  for (const std::uint64_t bytes : options.sizes)
    if (bytes < 8 || bytes > kMostOneSided || bytes % 8 != 0)
      throw Failure(2, "--sizes of one-sided are multiples of 8 from 8 to 64MiB, but one is " + std::to_string(bytes));
}

}  // namespace

std::vector<unsigned char> bytes_of_rank(int rank, std::uint64_t salt, std::size_t count) {
  std::mt19937_64 random(salt * 2 + static_cast<std::uint64_t>(rank));
  std::vector<unsigned char> bytes(count);
  for (std::size_t at = 0; at < count; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(&bytes[at], &word, std::min<std::size_t>(sizeof word, count - at));
  }
  return bytes;
}

std::vector<std::uint64_t> OneSidedBench::sizes(std::uint64_t least, std::uint64_t most, std::uint64_t factor) const {
  std::vector<std::uint64_t> found;
  if (options.sizes.empty())
    for (std::uint64_t bytes = least; bytes <= most; bytes *= factor) found.push_back(bytes);
  else
    std::copy_if(options.sizes.begin(), options.sizes.end(), std::back_inserter(found),
                 [&](std::uint64_t bytes) { return bytes >= least && bytes <= most; });
  return found;
}

void OneSidedBench::write(void* to, const std::vector<unsigned char>& bytes) const {
  world.copy(buffer(to), isthmus::Buffer::host(bytes.data()), bytes.size());
}
bool OneSidedBench::holds(const void* address, const std::vector<unsigned char>& wanted) const {
  std::vector<unsigned char> found(wanted.size());
  world.copy(isthmus::Buffer::host(found.data()), buffer(address), found.size());
  return found == wanted;
}
std::uint64_t OneSidedBench::word_at(const std::uint64_t* address) const {
  std::uint64_t found = 0;
  world.copy(isthmus::Buffer::host(&found), buffer(address), sizeof found);
  return found;
}

double OneSidedBench::from_first(double mine) const {
  std::vector<double> given(1);
  world.comm().allreduce(std::vector{first() ? mine : 0.0}, given, isthmus::op::max);
  return given[0];
}

void OneSidedBench::must_be_right(bool right, const std::string& what) const {
  std::vector<double> wrong(1);
  world.comm().allreduce(std::vector{right ? 0.0 : 1.0}, wrong, isthmus::op::max);
  if (wrong[0] != 0) throw Failure(1, first() ? "bytes are wrong: " + what : "");
}

std::vector<double> OneSidedBench::timed(OneSidedRow& row, bool window, double share,
                                         const std::function<void()>& body) const {
  const bool small = row.bytes <= kSmallCalls;
  std::uint64_t wanted = window ? small ? 100 : 20 : small ? 10000 : 1000;
  if (options.quick) wanted = std::max<std::uint64_t>(wanted / 20, 5);
  if (options.iterations != 0) wanted = options.iterations;
  world.comm().barrier();
  const auto begin = Clock::now();
  for (std::uint64_t n = 0; n < kFirstCalls; ++n) body();
  const double one = from_first(microseconds_since(begin) / static_cast<double>(kFirstCalls));
  const double affordable = (options.quick ? kQuickSideRow : kLongestSideRow) / std::max(one, 0.01);
  if (options.iterations == 0) wanted = std::min(wanted, std::max<std::uint64_t>(static_cast<std::uint64_t>(affordable), 5));
  const Plan plan = make_plan(options, wanted, one, window);
  for (std::uint64_t n = 0; n < plan.iterations() / 10; ++n) body();
  world.comm().barrier();
  std::vector<double> times;
  for (std::uint64_t batch = 0; batch < plan.batches; ++batch) {
    const auto start = Clock::now();
    for (std::uint64_t n = 0; n < plan.per_batch; ++n) body();
    times.push_back(microseconds_since(start) / share / static_cast<double>(plan.per_batch));
  }
  row.iterations = plan.iterations();
  world.comm().barrier();
  return times;
}

void OneSidedBench::leave_out(const std::string& why) {
  if (first()) std::cout << "left out: " << why << '\n' << std::flush;
  left_out.push_back(why);
}

void OneSidedBench::add(OneSidedRow row) {
  if (!first()) return;
  std::sort(row.times.begin(), row.times.end());
  const double median = percentile(row.times, 0.5);
  Json json{{"operation", row.operation},
            {"bytes", row.bytes},
            {"path", row.by},
            {"median_us", median},
            {"p10_us", percentile(row.times, 0.1)},
            {"p90_us", percentile(row.times, 0.9)},
            {"gbps", row.moves ? static_cast<double>(row.bytes) / median / 1e3 : 0},
            {"iterations", row.iterations},
            {"limit_is", row.limit_is}};
  if (row.blocks != 0) json["blocks"] = row.blocks, json["threads"] = row.threads;
  if (row.counts) json["per_s"] = 1e6 / median;
  json["limit_us"] = nullptr, json["limit_ratio"] = nullptr;
  if (!row.limit_times.empty()) {
    const double limit = median_of(row.limit_times);
    json["limit_us"] = limit, json["limit_ratio"] = limit_ratio(median, limit);
  }
  std::cout << line_of(json) << std::flush;
  rows.push_back(std::move(json));
}

void run_one_sided(const BenchOptions& options, const std::string& kind) {
  const std::string memory = !kind.empty() ? kind : options.side == "host" ? "host" : "cuda";
  must_make_sense(options, memory);
  if (inside_a_world()) {
    try {
      return measure_side(options, memory);
    } catch (const isthmus::Error& error) {
      throw Failure(1, error.what());
    }
  }
  must_be_available({Place::read(memory)});
  std::vector<std::string> arguments{"bench", "one-sided"};
  if (!options.call.empty()) arguments.push_back(options.call);
  arguments.insert(arguments.end(), {"--side", options.side, "--kind", memory});
  if (!options.sizes.empty())
    for (std::string& word : size_arguments(options)) arguments.push_back(std::move(word));
  if (options.iterations != 0) arguments.insert(arguments.end(), {"--iterations", std::to_string(options.iterations)});
  if (!options.json_file.empty()) arguments.insert(arguments.end(), {"--json", options.json_file});
  if (options.quick) arguments.emplace_back("--quick");
  become_ranks(2, arguments);
}

}  // namespace ist::cli
