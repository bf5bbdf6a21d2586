#include "cli/bench_layout.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/bench_copy_limit.hpp"
#include "cli/bench_report.hpp"
#include "cli/bench_shapes.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/machine.hpp"
#include "cli/own_ranks.hpp"

namespace ist::cli {
namespace laid {
namespace {

using Json = nlohmann::ordered_json;
using Bytes = std::vector<unsigned char>;

// Of more blocks one message each would take seconds.
constexpr std::size_t kMostMessages = 4096;
constexpr std::size_t kWindow = 64;
// Behind what comes in one piece, and must stay.
constexpr std::size_t kGuard = 64;

enum class Way : std::uint8_t { layout, by_hand, each };
// Which side's bytes lie apart.
struct Route {
  bool from = false;
  bool into = false;
};

// One rank of the two.
struct Bench {
  const BenchOptions& options;
  isthmus::World world;
  isthmus::Kind kind;
  isthmus::Comm comm;
  CopyLimit* limit;  // null until what its places are is known
  std::vector<Json> rows;
  bool first() const { return comm.rank() == 0; }
  int other() const { return 1 - comm.rank(); }
};

// What the other rank sees, too: times and whether bytes were right.
double worst(const Bench& bench, double mine) {
  std::vector<double> found(1);
  bench.comm.allreduce(std::vector{mine}, found, isthmus::op::max);
  return found[0];
}

// The memory of one row: of what is laid out, of what is in one piece, and of what comes in one piece.
struct Places {
  Places(const Bench& bench, const Shaped& of)
      : shape(of),
        size(static_cast<std::size_t>(of.bytes())),
        span(static_cast<std::size_t>(of.span())),
        spread(bench.world.allocate(bench.kind, span)),
        packed(bench.world.allocate(bench.kind, size)),
        arrived(bench.world.allocate(bench.kind, size + kGuard)) {}
  const Shaped& shape;
  std::size_t size, span;
  isthmus::Memory spread, packed, arrived;
};

// In windows, as codes do that have no layouts.
template <class Start>
void each_block(const Shaped& shape, const Start& start) {
  std::vector<isthmus::Request> requests;
  for (std::size_t at = 0; const ShapeRun& run : shape.runs) {
    requests.push_back(start(run, at));
    at += static_cast<std::size_t>(run.bytes);
    if (requests.size() < kWindow) continue;
    isthmus::wait_all(requests);
    requests.clear();
  }
  isthmus::wait_all(requests);
}

void send(const Bench& bench, const Places& places, Way way, Route route) {
  const auto size = static_cast<std::int64_t>(places.size);
  if (way == Way::each)
    return each_block(places.shape, [&](const ShapeRun& run, std::size_t at) {
      const auto from = route.from ? places.spread.at(static_cast<std::size_t>(run.offset)) : places.packed.at(at);
      return bench.comm.isend(from, run.bytes, IST_BYTE, bench.other());
    });
  if (way == Way::layout && route.from) return places.shape.layout.send(bench.comm, places.spread.buffer(), bench.other());
  if (route.from) places.shape.layout.pack(bench.world, places.spread.buffer(), places.packed.buffer());
  bench.comm.send(places.packed.buffer(), size, IST_BYTE, bench.other());
}

// How its bytes travelled.
std::string receive(const Bench& bench, const Places& places, Way way, Route route) {
  const auto size = static_cast<std::int64_t>(places.size);
  if (way == Way::each) {
    each_block(places.shape, [&](const ShapeRun& run, std::size_t at) {
      const auto to = route.into ? places.spread.at(static_cast<std::size_t>(run.offset)) : places.arrived.at(at);
      return bench.comm.irecv(to, run.bytes, IST_BYTE, bench.other());
    });
    return "";
  }
  if (way == Way::layout && route.into)
    return places.shape.layout.recv(bench.comm, places.spread.buffer(), bench.other()).carrier();
  const isthmus::Status status = bench.comm.recv(places.arrived.buffer(), size, IST_BYTE, bench.other());
  if (route.into) places.shape.layout.unpack(bench.world, places.arrived.buffer(), places.spread.buffer());
  return status.carrier();
}

// ---- every byte ----

Bytes random_bytes(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  std::mt19937_64 random{seed};
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, std::min(size - at, sizeof word));
  }
  return bytes;
}

void set(const Bench& bench, const isthmus::Memory& memory, const Bytes& bytes) {
  bench.world.copy(memory.buffer(), isthmus::Buffer::host(bytes.data()), bytes.size());
}

bool is(const Bench& bench, const isthmus::Memory& memory, const Bytes& expected) {
  Bytes found(expected.size());
  bench.world.copy(isthmus::Buffer::host(found.data()), memory.buffer(), found.size());
  return found == expected;
}

// One message from `sender`: what was named has come, in its order, and everything else is as it was, also where it was sent from.
bool one_way_is_right(const Bench& bench, const Places& places, Way way, Route route, int sender) {
  const Bytes from =
      random_bytes(route.from ? places.span : places.size, places.size * 2 + static_cast<std::size_t>(sender));
  if (bench.comm.rank() == sender) {
    const isthmus::Memory& source = route.from ? places.spread : places.packed;
    set(bench, source, from);
    send(bench, places, way, route);
    return is(bench, source, from);
  }
  Bytes after = random_bytes(route.into ? places.span : places.size + kGuard, ~places.size);
  const isthmus::Memory& to = route.into ? places.spread : places.arrived;
  set(bench, to, after);
  receive(bench, places, way, route);
  for (std::size_t at = 0; const ShapeRun& run : places.shape.runs) {
    const auto offset = static_cast<std::size_t>(run.offset), bytes = static_cast<std::size_t>(run.bytes);
    std::memcpy(after.data() + (route.into ? offset : at), from.data() + (route.from ? offset : at), bytes);
    at += bytes;
  }
  return is(bench, to, after);
}

void must_be_right(const Bench& bench, const Places& places, Way way, Route route, const std::string& what) {
  for (const int sender : {0, 1})
    if (worst(bench, one_way_is_right(bench, places, way, route, sender) ? 0 : 1) != 0)
      throw Failure(
          1, !bench.first() ? "" : "bytes are wrong after a message from rank " + std::to_string(sender) + ": " + what);
}

// ---- times ----

struct Times {
  std::vector<double> us;  // sorted
  std::string path;
};

// What rank 0 says.
std::uint64_t agreed(const Bench& bench, std::uint64_t mine) {
  bench.comm.bcast(isthmus::Buffer::host(&mine), 1, IST_UINT64, 0);
  return mine;
}

// Half of there and back. Rank 0 says how often; before that as often as it takes to have memory opened and kernels loaded.
Times times_of(const Bench& bench, const Places& places, Way way, Route route) {
  constexpr double kWarm = 20e3;
  Times found;
  const auto repetition = [&] {
    if (bench.first()) send(bench, places, way, route);
    found.path = receive(bench, places, way, route);
    if (!bench.first()) send(bench, places, way, route);
  };
  const auto begin = Clock::now();
  std::uint64_t warm = 0;
  for (bool cold = true; cold;) {
    repetition();
    ++warm;
    cold = agreed(bench, warm < 3 || (warm < 100 && microseconds_since(begin) < kWarm) ? 1 : 0) != 0;
  }
  const double once = microseconds_since(begin) / static_cast<double>(warm);
  const std::uint64_t wanted = bench.options.iterations != 0 ? bench.options.iterations : bench.options.quick ? 20 : 300;
  const double most = bench.options.quick ? 50e3 : 300e3;
  const std::uint64_t fit = std::max<std::uint64_t>(static_cast<std::uint64_t>(most / once), 3);
  const std::uint64_t times = agreed(bench, std::min(wanted, fit));
  for (std::uint64_t i = 0; i < times; ++i) {
    const auto start = Clock::now();
    repetition();
    found.us.push_back(microseconds_since(start) / 2);
  }
  std::sort(found.us.begin(), found.us.end());
  return found;
}

void print(const Json& row) {
  std::array<char, 240> line{};
  std::array<char, 24> blocks{"-"};
  if (!row["blocks_us"].is_null()) std::snprintf(blocks.data(), blocks.size(), "%.2f", row["blocks_us"].get<double>());
  std::snprintf(line.data(), line.size(), "%9s %7lld %11lld  %-10s %-10s %10.2f %9.2f %10.2f %12s %10.2f %10.2f %8.2f  %s\n",
                row["shape"].get<std::string>().c_str(), row["block"].get<long long>(), row["bytes"].get<long long>(),
                row["source"].get<std::string>().c_str(), row["into"].get<std::string>().c_str(),
                row["median_us"].get<double>(), row["gbps"].get<double>(), row["by_hand_us"].get<double>(), blocks.data(),
                row["contiguous_us"].get<double>(), row["limit_us"].get<double>(), row["limit_ratio"].get<double>(),
                row["path"].get<std::string>().c_str());
  std::cout << line.data() << std::flush;
}

// As many bytes in one piece: as a message, and as a bare copy.
struct Straight {
  double message = 0;
  double copy = 0;
};

void bench_row(Bench& bench, const Places& places, Route route, const Straight& straight, Json row) {
  const std::string from = route.from ? "strided" : "contiguous", into = route.into ? "strided" : "contiguous";
  const std::string what = row["shape"].get<std::string>() + " of blocks of " +
                           std::to_string(row["block"].get<long long>()) + ", " + std::to_string(places.size) +
                           " bytes in all, " + from + " to " + into;
  must_be_right(bench, places, Way::layout, route, what);
  const Times laid = times_of(bench, places, Way::layout, route);
  // Once more: by now its way is the one that was timed.
  must_be_right(bench, places, Way::layout, route, what);
  must_be_right(bench, places, Way::by_hand, route, what + ", by hand");
  const Times by_hand = times_of(bench, places, Way::by_hand, route);
  const double median = worst(bench, median_of(laid.us));
  const std::int64_t unit = bench.kind == isthmus::Kind::cuda ? 32 : 64;
  const double share = static_cast<double>(touched(places.shape, unit)) / static_cast<double>(places.size);
  const double limit = route.into ? straight.copy * share : straight.copy;
  row.update({{"source", from},
              {"into", into},
              {"median_us", median},
              {"p10_us", worst(bench, percentile(laid.us, 0.1))},
              {"p90_us", worst(bench, percentile(laid.us, 0.9))},
              {"gbps", static_cast<double>(places.size) / (median * 1e3)},
              {"path", laid.path},
              {"iterations", laid.us.size()},
              {"by_hand_us", worst(bench, median_of(by_hand.us))},
              {"blocks_us", nullptr},
              {"contiguous_us", straight.message},
              {"limit_us", limit},
              {"limit_ratio", limit_ratio(median, limit)}});
  if (places.shape.runs.size() <= kMostMessages) {
    must_be_right(bench, places, Way::each, route, what + ", block by block");
    row["blocks_us"] = worst(bench, median_of(times_of(bench, places, Way::each, route).us));
  }
  if (bench.first()) print(row);
  bench.rows.push_back(std::move(row));
}

// The first row's limit would be that of a machine that has just begun, three times as long as later ones.
void warm_up(const Bench& bench, const Places& places) {
  constexpr double kLong = 300e3;
  const auto begin = Clock::now();
  do times_of(bench, places, Way::layout, {});
  while (agreed(bench, microseconds_since(begin) < kLong ? 1 : 0) != 0);
}

void bench_shape(Bench& bench, const std::string& name, std::int64_t block, std::int64_t total) {
  const Shaped shape = shaped(name, block, total);
  const Places places(bench, shape);
  set(bench, places.packed, Bytes(places.size));
  if (bench.rows.empty()) warm_up(bench, places);
  const Straight straight{worst(bench, median_of(times_of(bench, places, Way::layout, {}).us)),
                          bench.limit->us(places.size)};
  const Json row{{"shape", name}, {"block", block}, {"bytes", places.size}};
  for (const Route route : {Route{true, false}, {false, true}, {true, true}}) bench_row(bench, places, route, straight, row);
}

// Of each rank: "host", "cuda:1". Two ranks on one device have the same.
std::array<std::string, 2> places_of(const Bench& bench, int device, const std::string& kind) {
  std::vector<int> devices(2);
  bench.comm.allgather(std::vector{device}, devices);
  std::array<std::string, 2> places{kind, kind};
  for (std::size_t rank = 0; rank < 2; ++rank)
    if (devices[rank] >= 0) places[rank] += ":" + std::to_string(devices[rank]);
  return places;
}

std::string limit_of(const CopyLimit& limit) {
  return "a bare copy of as many bytes in one piece (" + limit.words() +
         "); into memory that is strided, that, times what writing whole lines of 64 bytes (sectors of 32 on CUDA devices) "
         "adds to it";
}

void measure(const BenchOptions& options, const std::string& kind) {
  isthmus::World world;
  const isthmus::Comm comm = world.comm();
  Bench bench{options, std::move(world), kind_named(kind), comm, nullptr, {}};
  if (comm.size() != 2)
    throw Failure(2, "layout is between two ranks, and was started on " + std::to_string(comm.size()) +
                         "; give isthmus run -n 2, or leave it out");
  if (!options.json_file.empty() && bench.first()) must_be_writable(options.json_file);
  const auto kinds = Kinds::load("all");
  const Kinds* const loaded = kinds.ok() ? kinds->get() : nullptr;
  const int device = device_of(bench.world, bench.kind, loaded);
  const auto places = places_of(bench, device, kind);
  const std::string machine = loaded != nullptr ? describe_machine(find_processors(), *loaded) : "unknown";
  CopyLimit limit(comm, kind, device, loaded);
  bench.limit = &limit;
  if (bench.first())
    std::cout << "isthmus bench layout, " << places[0] << " and " << places[1]
              << "; half of there and back in us, as the slower rank has it\n"
              << machine << "; commit " << commit_of_sources() << "\nlimit: " << limit_of(limit)
              << "\n\n    shape   block       bytes  from       into         a layout      GB/s    by hand   each block  "
                 "one piece     "
                 " limit    ratio  path\n";
  each_shape(options,
             [&](const char* shape, std::int64_t block, std::int64_t total) { bench_shape(bench, shape, block, total); });
  if (!bench.first()) return;
  std::cout << "every byte was right, both ways\n";
  if (options.json_file.empty()) return;
  const Json report{{"machine", machine},
                    {"commit", commit_of_sources()},
                    {"date", date_now()},
                    {"benchmark", "layout"},
                    {"from", places[0]},
                    {"to", places[1]},
                    {"ranks", 2},
                    {"quick", options.quick},
                    {"limit_is", limit_of(limit)},
                    {"rows", bench.rows}};
  write_json(options.json_file, report);
}

std::string listed(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (const std::uint64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

}  // namespace
}  // namespace laid

void run_layout(const BenchOptions& options, const std::string& kind) {
  must_be_shapes(options, kind);
  if (options.ranks != 0 && options.ranks != 2)
    throw Failure(2, "layout is between two ranks, but --ranks is " + std::to_string(options.ranks));
  if (inside_a_world()) {
    try {
      return laid::measure(options, kind);
    } catch (const isthmus::Error& error) {
      throw Failure(1, error.what());
    }
  }
  must_be_available({Place::read(kind)});
  std::vector<std::string> arguments{"bench", "layout"};
  if (!options.call.empty()) arguments.push_back(options.call);
  const auto add = [&](const char* word, const std::string& value) {
    arguments.emplace_back(word);
    arguments.push_back(value);
  };
  add("--kind", kind);
  if (!options.sizes.empty()) add("--sizes", laid::listed(options.sizes));
  if (!options.blocks.empty()) add("--blocks", laid::listed(options.blocks));
  if (options.iterations != 0) add("--iterations", std::to_string(options.iterations));
  if (!options.json_file.empty()) add("--json", options.json_file);
  if (options.quick) arguments.emplace_back("--quick");
  become_ranks(2, arguments);
}

}  // namespace ist::cli
