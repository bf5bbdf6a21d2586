#include "cli/bench_halo.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/bench_copy_limit.hpp"
#include "cli/bench_mapped.hpp"
#include "cli/bench_report.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/machine.hpp"
#include "cli/own_ranks.hpp"

namespace ist::cli {
namespace {

using Json = nlohmann::ordered_json;
using isthmus::Halo;
using isthmus::HaloField;
using isthmus::HaloPacking;
using isthmus::HaloRange;
using isthmus::HaloWay;

constexpr std::array<const char*, 4> kPackings{"auto", "calls", "layouts", "loops"};
constexpr int kFields = 3;
constexpr std::int64_t kWidth = 2;
// The case of the paper on cudaMPI.
constexpr std::int64_t kNodes = 1000000;
constexpr std::int64_t kBoundary = 20000;

// Of one rank, with its memory.
struct Bench {
  const BenchOptions& options;
  isthmus::World world;
  isthmus::Kind kind;
  const Kinds* kinds;  // for what the library has no call for; null: they did not load
  CopyLimit* limit;    // null until it is known what kinds there are
  std::vector<Json> rows;
  bool first() const { return world.rank() == 0; }
};

double worst_of_ranks(const Bench& bench, double mine) {
  std::vector<double> worst(1);
  bench.world.comm().allreduce(std::vector{mine}, worst, isthmus::op::max);
  return worst[0];
}

// Times of a step and of its three parts, as the slowest rank has them.
struct Times {
  std::vector<double> pack, exchange, unpack, whole;
};
// Its parts, each of them over when it returns.
struct Step {
  std::function<void()> pack, exchange, unpack;
};
Step step_of(const Halo& halo) {
  return {[&halo] { halo.pack(); }, [&halo] { halo.exchange(); }, [&halo] { halo.unpack(); }};
}
Times times_of(const Bench& bench, const Step& step) {
  const std::uint64_t wanted = bench.options.iterations != 0 ? bench.options.iterations : bench.options.quick ? 20 : 300;
  Times times;
  for (std::uint64_t i = 0; i < wanted + wanted / 10 + 2; ++i) {
    bench.world.comm().barrier();
    const auto begin = Clock::now();
    step.pack();
    const double packed = microseconds_since(begin);
    step.exchange();
    const double exchanged = microseconds_since(begin);
    step.unpack();
    const double whole = microseconds_since(begin);
    if (i < wanted / 10 + 2) continue;
    times.pack.push_back(packed), times.exchange.push_back(exchanged - packed);
    times.unpack.push_back(whole - exchanged), times.whole.push_back(whole);
  }
  return times;
}

// `moved`: bytes that this rank sends to others, or, by itself, to itself.
void add_row(Bench& bench, Json row, std::int64_t moved, const Step& step) {
  Times times = times_of(bench, step);
  std::sort(times.whole.begin(), times.whole.end());
  row["median_us"] = worst_of_ranks(bench, median_of(times.whole));
  row["p10_us"] = worst_of_ranks(bench, percentile(times.whole, 0.1));
  row["p90_us"] = worst_of_ranks(bench, percentile(times.whole, 0.9));
  row["pack_us"] = worst_of_ranks(bench, median_of(times.pack));
  row["exchange_us"] = worst_of_ranks(bench, median_of(times.exchange));
  row["unpack_us"] = worst_of_ranks(bench, median_of(times.unpack));
  row["iterations"] = times.whole.size();
  const double limit = bench.limit->us(static_cast<std::size_t>(moved));
  row["limit_bytes"] = moved;
  row["limit_us"] = limit;
  row["limit_ratio"] = limit_ratio(row["median_us"].get<double>(), limit);
  if (bench.first()) {
    std::array<char, 200> line{};
    std::snprintf(line.data(), line.size(), "%10s  %-10s %-10s %12lld %10.2f %10.2f %10.2f %10.2f %10.2f %8.2f\n",
                  row["case"].get<std::string>().c_str(), row["packing"].get<std::string>().c_str(),
                  row["way"].get<std::string>().c_str(), row["bytes"].get<long long>(), row["pack_us"].get<double>(),
                  row["exchange_us"].get<double>(), row["unpack_us"].get<double>(), row["median_us"].get<double>(), limit,
                  row["limit_ratio"].get<double>());
    std::cout << line.data() << std::flush;
  }
  bench.rows.push_back(std::move(row));
}

// Every cell says which one it is; those of others are wrong beforehand.
double coded(int field, std::int64_t i, std::int64_t j, std::int64_t k) {
  return static_cast<double>(((i * 4096 + j) * 4096 + k) * kFields + field);
}

struct Cube {
  std::array<std::int64_t, 3> first{};  // this rank's first cell of all
  std::array<std::int64_t, 3> all{};
  std::array<HaloRange, 3> ranges{};
  std::size_t cells() const {
    return static_cast<std::size_t>(ranges[0].total_length * ranges[1].total_length * ranges[2].total_length);
  }
};

std::vector<double> picture(const Cube& cube, int field, bool exchanged) {
  std::vector<double> values(cube.cells(), -1);
  std::size_t at = 0;
  const auto inside = [&](std::size_t d, std::int64_t index) {
    return index >= cube.ranges[d].begin && index <= cube.ranges[d].end;
  };
  const auto number = [&](std::size_t d, std::int64_t index) {
    return (cube.first[d] + index - kWidth + cube.all[d]) % cube.all[d];
  };
  for (std::int64_t i = 0; i < cube.ranges[0].total_length; ++i)
    for (std::int64_t j = 0; j < cube.ranges[1].total_length; ++j)
      for (std::int64_t k = 0; k < cube.ranges[2].total_length; ++k, ++at)
        if (exchanged || (inside(0, i) && inside(1, j) && inside(2, k)))
          values[at] = coded(field, number(0, i), number(1, j), number(2, k));
  return values;
}

void must_be_right(const Bench& bench, bool right, const std::string& what) {
  if (worst_of_ranks(bench, right ? 0 : 1) != 0)
    throw Failure(1, bench.first() ? "cells are wrong after an exchange: " + what : "");
}

std::vector<std::pair<HaloPacking, HaloWay>> variants(const Bench& bench) {
  std::vector<std::pair<HaloPacking, HaloWay>> all;
  for (const HaloPacking packing : {HaloPacking::calls, HaloPacking::layouts, HaloPacking::loops})
    all.emplace_back(packing, HaloWay::messages);
  all.emplace_back(HaloPacking::automatic, HaloWay::messages);
  if (bench.kind != isthmus::Kind::opencl) all.emplace_back(HaloPacking::automatic, HaloWay::one_sided);
  return all;
}

Json row_of(const std::string& name, HaloPacking packing, HaloWay way, std::int64_t bytes) {
  return {{"case", name},
          {"packing", kPackings[static_cast<std::size_t>(packing)]},
          {"way", way == HaloWay::messages ? "messages" : "one-sided"},
          {"bytes", bytes}};
}

// Of the cube's halo, what comes from other ranks, as much as goes there; all of it where there are none.
std::int64_t moved_cells(const isthmus::HaloGrid& grid, int rank, bool alone, std::int64_t inner) {
  std::int64_t cells = 0;
  std::array<int, 3> step{};
  for (step[0] = -1; step[0] <= 1; ++step[0])
    for (step[1] = -1; step[1] <= 1; ++step[1])
      for (step[2] = -1; step[2] <= 1; ++step[2]) {
        if (step == std::array{0, 0, 0} || (!alone && grid.neighbour(step) == rank)) continue;
        std::int64_t box = 1;
        for (const int along : step) box *= along == 0 ? inner : kWidth;
        cells += box;
      }
  return cells;
}

// Three fields of doubles, two cells wide, around in all dimensions, with edges and corners.
void bench_cube(Bench& bench, std::int64_t inner) {
  const isthmus::HaloGrid grid(bench.world.comm(), std::array{0, 0, 0}, std::array{1, 1, 1});
  Cube cube;
  for (std::size_t d = 0; d < 3; ++d) {
    cube.first[d] = inner * grid.coords()[d], cube.all[d] = inner * grid.dims()[d];
    cube.ranges[d] = {kWidth, kWidth, kWidth, kWidth + inner - 1, inner + 2 * kWidth};
  }
  std::vector<isthmus::Memory> memory;
  std::vector<HaloField> fields;
  for (int f = 0; f < kFields; ++f) {
    memory.push_back(bench.world.allocate(bench.kind, cube.cells() * sizeof(double)));
    fields.push_back(HaloField::of<double>(memory.back().buffer(), cube.ranges));
  }
  const std::int64_t outer = inner + 2 * kWidth;
  const std::int64_t bytes = (outer * outer * outer - inner * inner * inner) * kFields * std::int64_t{sizeof(double)};
  const std::int64_t moved =
      moved_cells(grid, bench.world.rank(), bench.world.size() == 1, inner) * kFields * std::int64_t{sizeof(double)};
  const std::string name = std::to_string(inner) + "^3";
  for (const auto& [packing, way] : variants(bench)) {
    const Halo halo(grid, fields, {0, packing, way});
    bool right = true;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const auto before = picture(cube, static_cast<int>(f), false);
      bench.world.copy(memory[f].buffer(), isthmus::Buffer::host(before.data()), before.size() * sizeof(double));
    }
    halo.update();
    for (std::size_t f = 0; f < fields.size(); ++f) {
      std::vector<double> found(cube.cells());
      bench.world.copy(isthmus::Buffer::host(found.data()), memory[f].buffer(), found.size() * sizeof(double));
      right = right && found == picture(cube, static_cast<int>(f), true);
    }
    must_be_right(bench, right, name + ", " + kPackings[static_cast<std::size_t>(packing)]);
    add_row(bench, row_of(name, packing, way, bytes), moved, step_of(halo));
    halo.destroy();
  }
}

// Each node of the boundary by a copy of its own, as a program does that has no kernel for them.
double node_by_node_us(const Bench& bench, const isthmus::Memory& nodes, const isthmus::HaloLists& lists) {
  std::vector<double> packed(lists.sends.size());
  return bare_median_us([&] {
    for (std::size_t i = 0; i < lists.sends.size(); ++i)
      bench.world.copy(isthmus::Buffer::host(&packed[i]),
                       nodes.at(static_cast<std::size_t>(lists.sends[i]) * sizeof(double)), sizeof(double));
  });
}

// The nodes of one rank: what goes to the next ranks and comes from them.
struct Nodes {
  isthmus::Memory memory;
  std::vector<double> values;
  std::vector<isthmus::HaloLists> lists;

  std::int64_t moved() const { return static_cast<std::int64_t>(lists.size()) * kBoundary * std::int64_t{sizeof(double)}; }
  void reset(const Bench& bench) const {
    bench.world.copy(memory.buffer(), isthmus::Buffer::host(values.data()), values.size() * sizeof(double));
  }
  // What each of them is after an exchange.
  void must_be_exchanged(const Bench& bench, const std::string& what) const {
    auto expected = values, found = values;
    bench.world.copy(isthmus::Buffer::host(found.data()), memory.buffer(), found.size() * sizeof(double));
    for (std::size_t o = 0; o < lists.size(); ++o)
      for (std::size_t i = 0; i < lists[o].receives.size(); ++i)
        expected[static_cast<std::size_t>(lists[o].receives[i])] =
            lists[o].rank * 1e7 + static_cast<double>(lists[lists.size() - 1 - o].sends[i]);
    must_be_right(bench, found == expected, what);
  }
};

// A kernel gathers the nodes in page-locked host memory, from where they are sent, and one scatters from there what came.
void bench_mapped(Bench& bench, const Nodes& nodes, const std::string& name) {
  if (bench.kind == isthmus::Kind::host || bench.kinds == nullptr) return;
  MappedNodes::Lists all{nodes.memory.buffer().c(), kNodes, {}, {}};
  for (const isthmus::HaloLists& each : nodes.lists) {
    all.sends.insert(all.sends.end(), each.sends.begin(), each.sends.end());
    all.receives.insert(all.receives.end(), each.receives.begin(), each.receives.end());
  }
  const auto mapped = MappedNodes::open(*bench.kinds, all);
  const isthmus::Comm comm = bench.world.comm();
  const double* packed = nullptr;
  const Step step{[&] { packed = mapped->pack(); },
                  [&] {
                    double* const room = mapped->room();
                    std::vector<isthmus::Request> requests;
                    for (std::size_t o = 0; o < nodes.lists.size(); ++o) {
                      const std::size_t at = o * static_cast<std::size_t>(kBoundary);
                      requests.push_back(comm.irecv(std::span{room + at, kBoundary}, nodes.lists[o].rank));
                      requests.push_back(comm.isend(std::span{packed + at, kBoundary}, nodes.lists[o].rank));
                    }
                    for (isthmus::Request& request : requests) request.wait();
                  },
                  [&] { mapped->unpack(); }};
  nodes.reset(bench);
  step.pack(), step.exchange(), step.unpack();
  nodes.must_be_exchanged(bench, name + ", mapped");
  Json row = row_of(name, HaloPacking::automatic, HaloWay::messages, kBoundary * std::int64_t{sizeof(double)});
  row["packing"] = "mapped";
  add_row(bench, std::move(row), nodes.moved(), step);
}

// Of a million nodes, 20000 at the boundary to each of two other ranks, of which as many come: as they happen to be numbered, and renumbered so
// that they lie side by side.
void bench_lists(Bench& bench) {
  const int ranks = bench.world.size(), me = bench.world.rank();
  Nodes nodes{bench.world.allocate(bench.kind, static_cast<std::size_t>(kNodes) * sizeof(double)),
              std::vector<double>(static_cast<std::size_t>(kNodes)),
              {}};
  for (std::size_t i = 0; i < nodes.values.size(); ++i) nodes.values[i] = me * 1e7 + static_cast<double>(i);
  std::vector<std::int64_t> shuffled(static_cast<std::size_t>(kNodes));
  for (std::size_t i = 0; i < shuffled.size(); ++i) shuffled[i] = static_cast<std::int64_t>(i);
  // The same on all ranks.
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64{static_cast<std::uint64_t>(ranks)});
  std::vector<int> others{(me + 1) % ranks, (me + ranks - 1) % ranks};
  if (others[0] == others[1]) others.pop_back();
  for (const bool renumbered : {false, true}) {
    const auto number = [&](std::int64_t i) { return renumbered ? i : shuffled[static_cast<std::size_t>(i)]; };
    auto& lists = nodes.lists;
    lists.clear();
    for (std::size_t o = 0; o < others.size(); ++o) {
      lists.push_back({others[o], {}, {}});
      // What goes to the next rank is the second stretch of what comes from the one before there; with two ranks all is one.
      for (std::int64_t i = 0; i < kBoundary; ++i) {
        const auto stretch = static_cast<std::int64_t>(o) * 2 * kBoundary;
        lists[o].sends.push_back(number(stretch + i)), lists[o].receives.push_back(number(stretch + kBoundary + i));
      }
    }
    const std::array fields{HaloField::of<double>(nodes.memory.buffer(), {})};
    const std::string name = renumbered ? "renumbered" : "nodes";
    for (const auto& [packing, way] : variants(bench)) {
      nodes.reset(bench);
      const Halo halo(bench.world.comm(), lists, fields, {0, packing, way});
      halo.update();
      nodes.must_be_exchanged(bench, name);
      add_row(bench, row_of(name, packing, way, kBoundary * std::int64_t{sizeof(double)}), nodes.moved(), step_of(halo));
      halo.destroy();
    }
    bench_mapped(bench, nodes, name);
    if (renumbered) continue;
    const double took = worst_of_ranks(bench, node_by_node_us(bench, nodes.memory, lists[0]));
    bench.rows.push_back(
        {{"case", name}, {"packing", "a copy for each"}, {"way", "none"}, {"bytes", kBoundary * 8}, {"pack_us", took}});
    if (bench.first())
      std::printf("%10s  a copy for each node %12s %10.2f\n", name.c_str(), std::to_string(kBoundary * 8).c_str(), took);
  }
}

std::string limit_of(const CopyLimit& limit) {
  return "a bare copy in one piece of what a rank sends to others, or by itself to itself (" + limit.words() + ")";
}

void measure(const BenchOptions& options, const std::string& kind) {
  constexpr std::array<const char*, 4> kKinds{"auto", "host", "cuda", "opencl"};
  const auto found = std::find(kKinds.begin() + 1, kKinds.end(), kind);
  Bench bench{options, {}, static_cast<isthmus::Kind>(found - kKinds.begin()), nullptr, nullptr, {}};
  if (!options.json_file.empty() && bench.first()) must_be_writable(options.json_file);
  const auto kinds = Kinds::load("all");  // behind the world, which tells drivers what it wants before they start
  if (kinds.ok()) bench.kinds = kinds->get();
  CopyLimit limit(bench.world.comm(), kind, device_of(bench.world, bench.kind, bench.kinds), bench.kinds);
  bench.limit = &limit;
  const std::string machine = kinds.ok() ? describe_machine(find_processors(), **kinds) : "unknown";
  if (bench.first())
    std::cout << "isthmus bench halo, " << bench.world.size() << " ranks, " << kind
              << "; in us, as the slowest rank has it\n"
              << machine << "; commit " << commit_of_sources() << "\nlimit: " << limit_of(limit)
              << "\n\n      case  packing    way               bytes       pack "
              << "  exchange     unpack      whole      limit    ratio\n";
  if (options.call == "lists")
    bench_lists(bench);
  else
    for (const std::uint64_t inner : options.sizes.empty() ? std::vector<std::uint64_t>{8, 16, 32, 64, 128} : options.sizes)
      bench_cube(bench, static_cast<std::int64_t>(inner));
  if (!bench.first() || options.json_file.empty()) return;
  const Json report{{"machine", machine},
                    {"commit", commit_of_sources()},
                    {"date", date_now()},
                    {"benchmark", options.call == "lists" ? "halo lists" : "halo"},
                    {"from", kind},
                    {"to", kind},
                    {"ranks", bench.world.size()},
                    {"quick", options.quick},
                    {"limit_is", limit_of(limit)},
                    {"rows", bench.rows}};
  write_json(options.json_file, report);
}

}  // namespace

void run_halo(const BenchOptions& options, const std::string& kind) {
  if (!options.call.empty() && options.call != "lists")
    throw Failure(2, "halo is of boxes, or of lists, but was given \"" + options.call + "\"");
  if (kind != "host" && kind != "cuda" && kind != "opencl")
    throw Failure(2,
                  "halo is of memory of kind host, cuda or opencl on every rank (--kind), but was given \"" + kind + "\"");
  for (const std::uint64_t inner : options.sizes)
    if (inner < static_cast<std::uint64_t>(kWidth) || inner > 1024)
      throw Failure(2, "--sizes of halo are cells in each direction, from 2 to 1024, but one is " + std::to_string(inner));
  if (inside_a_world()) {
    try {
      return measure(options, kind);
    } catch (const isthmus::Error& error) {
      throw Failure(1, error.what());
    }
  }
  must_be_available({Place::read(kind)});
  std::vector<std::string> arguments{"bench", "halo"};
  if (!options.call.empty()) arguments.push_back(options.call);
  arguments.insert(arguments.end(), {"--kind", kind});
  if (!options.sizes.empty())
    for (std::string& word : size_arguments(options)) arguments.push_back(std::move(word));
  if (options.iterations != 0) arguments.insert(arguments.end(), {"--iterations", std::to_string(options.iterations)});
  if (!options.json_file.empty()) arguments.insert(arguments.end(), {"--json", options.json_file});
  if (options.quick) arguments.emplace_back("--quick");
  become_ranks(options.ranks == 0 ? 2 : options.ranks, arguments);
}

}  // namespace ist::cli
