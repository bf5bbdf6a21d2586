#include "cli/bench_pack.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <isthmus/isthmus.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <span>

#include "cli/bench_report.hpp"
#include "cli/bench_rows.hpp"
#include "cli/bench_shapes.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/machine.hpp"
#include "cli/own_ranks.hpp"

namespace ist::cli {
namespace packs {
namespace {

using Json = nlohmann::ordered_json;

// A copy for each block is a call of the library's where memory is a device's: of more blocks it would take minutes.
constexpr std::size_t kMostCopies = 20000;

struct Bench {
  const BenchOptions& options;
  isthmus::World world;
  isthmus::Kind kind;
  const Kinds* kinds;  // for what the library has no call for; null: they did not load
  std::vector<Json> rows;
};

// Sorted; the first repetition is not among them.
std::vector<double> times_of(const BenchOptions& options, const std::function<void()>& repetition) {
  const std::uint64_t wanted = options.iterations != 0 ? options.iterations : options.quick ? 20 : 300;
  const double most = options.quick ? 50e3 : 300e3;
  repetition();
  std::vector<double> times;
  double sum = 0;
  while (times.size() < wanted && (sum < most || times.size() < 3)) {
    const auto begin = Clock::now();
    repetition();
    times.push_back(microseconds_since(begin));
    sum += times.back();
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Both ways, every byte: of the packed ones, and of the gaps, which stay as they are.
void must_be_right(const Bench& bench, const Shaped& shape, const isthmus::Memory& spread, const isthmus::Memory& packed,
                   const std::string& what) {
  const auto size = static_cast<std::size_t>(shape.bytes()), span = static_cast<std::size_t>(shape.span());
  std::vector<unsigned char> before(span), expected, found(size);
  std::mt19937_64 random{size};
  for (unsigned char& byte : before) byte = static_cast<unsigned char>(random());
  for (const ShapeRun& run : shape.runs)
    expected.insert(expected.end(), before.begin() + run.offset, before.begin() + run.offset + run.bytes);
  bench.world.copy(spread.buffer(), isthmus::Buffer::host(before.data()), span);
  shape.layout.pack(bench.world, spread.buffer(), packed.buffer());
  bench.world.copy(isthmus::Buffer::host(found.data()), packed.buffer(), size);
  if (found != expected) throw Failure(1, "bytes are wrong after packing: " + what);
  for (unsigned char& byte : expected) byte = static_cast<unsigned char>(~byte);
  for (std::size_t at = 0; const ShapeRun& run : shape.runs)
    for (std::int64_t i = 0; i < run.bytes; ++i) before[static_cast<std::size_t>(run.offset + i)] = expected[at++];
  bench.world.copy(packed.buffer(), isthmus::Buffer::host(expected.data()), size);
  shape.layout.unpack(bench.world, packed.buffer(), spread.buffer());
  std::vector<unsigned char> after(span);
  bench.world.copy(isthmus::Buffer::host(after.data()), spread.buffer(), span);
  if (after != before) throw Failure(1, "bytes are wrong after unpacking: " + what);
}

void copy(const Bench& bench, const isthmus::Buffer& to, const isthmus::Buffer& from, std::size_t bytes) {
  const auto address = [](const isthmus::Buffer& buffer) {
    return reinterpret_cast<void*>(buffer.c().object + buffer.c().offset);
  };
  if (bench.kind == isthmus::Kind::host)
    std::memcpy(address(to), address(from), bytes);
  else
    bench.world.copy(to, from, bytes);
}

// One copy of rows by what copies on the device, against the same bytes by the library; null where there is no such copy.
Json rows_us(const Bench& bench, const Shaped& shape, const isthmus::Memory& spread, const isthmus::Memory& packed) {
  if (bench.kinds == nullptr || bench.kind == isthmus::Kind::host) return nullptr;
  std::vector<Run> runs;
  for (const ShapeRun& run : shape.runs) append(runs, {run.offset, run.bytes});
  const auto rows = RowsCopy::open(*bench.kinds, form_of(std::move(runs)), spread.buffer().c(), packed.buffer().c());
  if (rows == nullptr) return nullptr;
  const auto size = static_cast<std::size_t>(shape.bytes());
  std::vector<unsigned char> expected(size), found(size);
  shape.layout.pack(bench.world, spread.buffer(), packed.buffer());
  bench.world.copy(isthmus::Buffer::host(expected.data()), packed.buffer(), size);
  bench.world.copy(packed.buffer(), isthmus::Buffer::host(found.data()), size);
  rows->pack();
  bench.world.copy(isthmus::Buffer::host(found.data()), packed.buffer(), size);
  if (found != expected)
    throw Failure(1, "bytes are wrong after a copy of rows, of blocks of " + std::to_string(shape.runs.front().bytes));
  return median_of(times_of(bench.options, [&] { rows->pack(); }));
}

// Between the layout on a device and page-locked host memory by the library: in rows, or by a kernel, a block and a copy. Every byte, both
// ways. Null where the layout is in host memory itself.
std::array<Json, 2> host_us(const Bench& bench, const Shaped& shape, const isthmus::Memory& spread) {
  if (bench.kind == isthmus::Kind::host) return {nullptr, nullptr};
  const auto size = static_cast<std::size_t>(shape.bytes()), span = static_cast<std::size_t>(shape.span());
  std::vector<unsigned char> before(span), packed(size), expected, found(span);
  const isthmus::Registration locked = bench.world.register_memory(std::span{packed});
  std::mt19937_64 random{span};
  for (unsigned char& byte : before) byte = static_cast<unsigned char>(random());
  for (const ShapeRun& run : shape.runs)
    expected.insert(expected.end(), before.begin() + run.offset, before.begin() + run.offset + run.bytes);
  bench.world.copy(spread.buffer(), isthmus::Buffer::host(before.data()), span);
  const auto pack = [&] { shape.layout.pack(bench.world, spread.buffer(), isthmus::Buffer::host(packed.data())); };
  const auto unpack = [&] { shape.layout.unpack(bench.world, isthmus::Buffer::host(packed.data()), spread.buffer()); };
  pack();
  const std::string what = "blocks of " + std::to_string(shape.runs.front().bytes);
  if (packed != expected) throw Failure(1, "bytes are wrong after packing into host memory, of " + what);
  const Json out = median_of(times_of(bench.options, pack));
  for (unsigned char& byte : packed) byte = static_cast<unsigned char>(~byte);
  for (std::size_t at = 0; const ShapeRun& run : shape.runs)
    for (std::int64_t i = 0; i < run.bytes; ++i) before[static_cast<std::size_t>(run.offset + i)] = packed[at++];
  unpack();
  bench.world.copy(isthmus::Buffer::host(found.data()), spread.buffer(), span);
  if (found != before) throw Failure(1, "bytes are wrong after unpacking out of host memory, of " + what);
  return {out, median_of(times_of(bench.options, unpack))};
}

void print(const Json& row) {
  std::array<char, 240> line{};
  const auto time = [&row](const char* name) {
    std::array<char, 24> text{"-"};
    if (!row[name].is_null()) std::snprintf(text.data(), text.size(), "%.2f", row[name].get<double>());
    return std::string{text.data()};
  };
  std::snprintf(line.data(), line.size(), "%9s %7lld %11lld %10.2f %10.2f %12s %10s %10s %10s %10.2f %10.2f %8.2f\n",
                row["shape"].get<std::string>().c_str(), row["block"].get<long long>(), row["bytes"].get<long long>(),
                row["pack_us"].get<double>(), row["unpack_us"].get<double>(), time("blocks_us").c_str(),
                time("rows_us").c_str(), time("to_host_us").c_str(), time("from_host_us").c_str(),
                row["copy_us"].get<double>(), row["limit_us"].get<double>(), row["limit_ratio"].get<double>());
  std::cout << line.data() << std::flush;
}

void bench_shape(Bench& bench, const std::string& name, std::int64_t block, std::int64_t total) {
  const Shaped shape = shaped(name, block, total);
  const auto size = static_cast<std::size_t>(shape.bytes());
  const auto spread = bench.world.allocate(bench.kind, static_cast<std::size_t>(shape.span()));
  const auto packed = bench.world.allocate(bench.kind, size), other = bench.world.allocate(bench.kind, size);
  must_be_right(bench, shape, spread, packed, name + " of blocks of " + std::to_string(block));
  const auto pack = times_of(bench.options, [&] { shape.layout.pack(bench.world, spread.buffer(), packed.buffer()); });
  const auto unpack = times_of(bench.options, [&] { shape.layout.unpack(bench.world, packed.buffer(), spread.buffer()); });
  const auto whole = times_of(bench.options, [&] { copy(bench, packed.buffer(), other.buffer(), size); });
  Json row{{"shape", name},
           {"block", block},
           {"bytes", size},
           {"pack_us", median_of(pack)},
           {"p10_us", percentile(pack, 0.1)},
           {"p90_us", percentile(pack, 0.9)},
           {"unpack_us", median_of(unpack)},
           {"blocks_us", nullptr},
           {"rows_us", rows_us(bench, shape, spread, packed)},
           {"to_host_us", nullptr},
           {"from_host_us", nullptr},
           {"copy_us", median_of(whole)},
           {"iterations", pack.size()}};
  const auto host = host_us(bench, shape, spread);
  row["to_host_us"] = host[0];
  row["from_host_us"] = host[1];
  if (bench.kind == isthmus::Kind::host || shape.runs.size() <= kMostCopies)
    row["blocks_us"] = median_of(times_of(bench.options, [&] {
      for (std::size_t at = 0; const ShapeRun& run : shape.runs) {
        const auto bytes = static_cast<std::size_t>(run.bytes);
        copy(bench, packed.at(at), spread.at(static_cast<std::size_t>(run.offset)), bytes);
        at += bytes;
      }
    }));
  const std::int64_t unit = bench.kind == isthmus::Kind::cuda ? 32 : 64;
  const double limit =
      median_of(whole) * static_cast<double>(touched(shape, unit) + shape.bytes()) / (2.0 * static_cast<double>(size));
  row["limit_us"] = limit;
  row["limit_ratio"] = limit_ratio(median_of(pack), limit);
  print(row);
  bench.rows.push_back(std::move(row));
}

void measure(const BenchOptions& options, const std::string& kind) {
  if (!options.json_file.empty()) must_be_writable(options.json_file);
  Bench bench{options, {}, kind_named(kind), nullptr, {}};
  if (bench.world.size() != 1)
    throw Failure(
        2, "pack is by one rank and was started on " + std::to_string(bench.world.size()) + "; leave out isthmus run");
  static_cast<void>(bench.world.allocate(bench.kind, 1));  // or says why there is none, before anything else is said
  const auto kinds = Kinds::load("all");
  if (kinds.ok()) bench.kinds = kinds->get();
  const std::string machine = kinds.ok() ? describe_machine(find_processors(), **kinds) : "unknown";
  const char* const limit =
      "a copy of as many bytes in one piece, times what reading whole lines of 64 bytes (sectors of 32 on CUDA devices) "
      "adds to it";
  std::cout << "isthmus bench pack, " << kind << "; in us\n"
            << machine << "; commit " << commit_of_sources() << "\nlimit: " << limit
            << "\n\n    shape   block       bytes       pack     unpack   each block       rows    to host  from host   one "
               "copy      limit    ratio\n";
  each_shape(options,
             [&](const char* shape, std::int64_t block, std::int64_t total) { bench_shape(bench, shape, block, total); });
  std::cout << "every byte was right, both ways\n";
  if (options.json_file.empty()) return;
  const Json report{{"machine", machine}, {"commit", commit_of_sources()},
                    {"date", date_now()}, {"benchmark", "pack"},
                    {"from", kind},       {"to", kind},
                    {"ranks", 1},         {"quick", options.quick},
                    {"limit_is", limit},  {"rows", bench.rows}};
  write_json(options.json_file, report);
}

}  // namespace
}  // namespace packs

void run_pack(const BenchOptions& options, const std::string& kind) {
  must_be_shapes(options, kind);
  if (options.ranks > 1) throw Failure(2, "pack is by one rank, but --ranks is " + std::to_string(options.ranks));
  must_be_available({Place::read(kind)});
  try {
    packs::measure(options, kind);
  } catch (const isthmus::Error& error) {
    throw Failure(1, error.what());
  }
}

}  // namespace ist::cli
