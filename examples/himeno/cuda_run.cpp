// The Himeno benchmark on GPUs, one for each rank: the ways to exchange one after the other, each compared with one rank that computes the whole box.
#include <cstdio>
#include <isthmus/isthmus.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/cuda_device.hpp"
#include "common/json_file.hpp"
#include "common/program.hpp"
#include "cuda_ways.hpp"
#include "host.hpp"
#include "options.hpp"

namespace himeno {
namespace {

using example::Mistake, example::cuda::check, example::cuda::Device;
using Json = nlohmann::ordered_json;

constexpr double kMostOracle = 2e8;  // updates of cells by a processor: a few seconds

// What was asked for, of one of its sizes.
struct Case : Options {
  Case(const Options& options, Size one) : Options(options), size(std::move(one)) {}
  Size size;
};

// Of one way, the same on all ranks.
struct Row {
  std::string name;
  double gosa = 0;
  double seconds = 0;  // of the slowest rank, the median of three runs
  std::int64_t unlike = 0;
  bool right = true;
  double mflops(const Case& options) const { return options.size.flop(options.iterations) / seconds / 1e6; }
  double micros(const Case& options) const { return seconds * 1e6 / options.iterations; }
};

// The whole box by this rank's GPU alone, and, where that does not take long, by its processor.
class Alone {
 public:
  Alone(const isthmus::World& world, const Case& options)
      : options_(options),
        part_(options.size, {1, 1, 1}, {0, 0, 0}, kLead),
        field_(part_, std::make_shared<Coefficient>(part_, static_cast<float>(options.b)), device_levels(part_)),
        sums_(example::cuda::memory<double>(static_cast<std::size_t>(options.iterations))) {
    go();  // brings the kernel to the device
    const auto run = [&] {
      Row row{"one rank alone"};
      row.seconds = example::slowest_seconds(world.comm(), [&] { row.gosa = go(); });
      return row;
    };
    row_ = example::median_of_three(run);
    compare_with_processor();
    row_.right = row_.right && as_published(options.size, options.iterations, static_cast<float>(options.b), row_.gosa);
  }
  const Row& row() const { return row_; }
  // How many of a part's cells are others here.
  std::uint64_t unlike(const Field& field, int level) const { return field.unlike(level, field_, options_.iterations % 2); }

 private:
  double go() const {
    const auto count = static_cast<std::size_t>(options_.iterations);
    field_.start(stream_);
    check(cudaMemsetAsync(sums_.get(), 0, count * sizeof(double), stream_.get()), "cudaMemsetAsync");
    const Work whole = whole_work(part_);
    for (std::size_t n = 0; n < count; ++n) field_.sweep(stream_, whole, static_cast<int>(n % 2), sums_.get() + n);
    stream_.wait();
    double found = 0;
    check(cudaMemcpy(&found, sums_.get() + count - 1, sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return found;
  }
  void compare_with_processor() {
    const auto& cells = options_.size.cells;
    if (static_cast<double>(cells[0] * cells[1] * cells[2]) * options_.iterations > kMostOracle) return;
    Himeno whole(Part(options_.size, {1, 1, 1}, {0, 0, 0}), static_cast<float>(options_.b));
    const double gosa = whole.go_alone(options_.iterations);
    const int level = options_.iterations % 2;
    row_.right = close_to(row_.gosa, gosa, 1e-6) &&
                 same_bits(part_, field_.copy(level).data(), whole, static_cast<std::size_t>(level));
    row_.unlike = row_.right ? 0 : 1;
  }

  const Case& options_;
  Part part_;
  Field field_;
  std::shared_ptr<double[]> sums_;
  example::cuda::Stream stream_;
  Row row_;
};

void spoil_bit(const Field& field, int level) {
  const isthmus::HaloBox box = field.part().inner();
  float* const place = field.level(level) + field.part().at(box.last[0], box.last[1], box.last[2]);
  float value = 0;
  check(cudaMemcpy(&value, place, sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy");
  value = std::nextafter(value, 2.0F);
  check(cudaMemcpy(place, &value, sizeof value, cudaMemcpyHostToDevice), "cudaMemcpy");
}

// Nobody begins before all have filled their arrays, and nobody fills them before all have ended: a neighbour may still store into them.
Row measure(const isthmus::World& world, const Case& options, Way& way, const std::optional<Alone>& alone) {
  const auto run = [&] {
    Row row{way.name()};
    world.comm().barrier();
    way.start();
    row.seconds = example::slowest_seconds(world.comm(), [&] { row.gosa = way.go(options.iterations); });
    return row;
  };
  run();
  Row row = example::median_of_three(run);
  if (options.spoil == "bit" && world.rank() == world.size() - 1) spoil_bit(way.field(), way.level());
  row.right = as_published(options.size, options.iterations, static_cast<float>(options.b), row.gosa);
  if (!alone) return row;
  row.unlike = example::sum(world.comm(), static_cast<std::int64_t>(alone->unlike(way.field(), way.level())));
  row.right = row.right && row.unlike == 0 && close_to(row.gosa, alone->row().gosa, 1e-6);
  return row;
}

bool is_alike(const isthmus::HaloGrid& grid, const Case& options) {
  for (std::size_t d = 0; d < 3; ++d)
    if (options.size.cells[d] % grid.dims()[d] != 0) return false;
  return true;
}

// Why there is no kernel that exchanges; nothing where there can be one.
std::string no_kernel(const isthmus::HaloGrid& grid, const Case& options, const Device& device) {
  if (device.shared)
    return "two ranks share a GPU, where kernels that wait for each other may not run together; give each rank a GPU of its "
           "own";
  if (!is_alike(grid, options))
    return "a kernel stores into parts that are alike, and size " + options.size.name +
           " cannot be cut so by this grid; give each dimension a number of ranks that divides its cells";
  return {};
}

std::vector<Row> all_ways(const isthmus::World& world, const isthmus::HaloGrid& grid, const Case& options,
                          const std::string& refused, const std::optional<Alone>& alone) {
  std::vector<Row> rows;
  const auto wanted = [&](const char* name) { return options.exchange == "all" || options.exchange == name; };
  const Part part(options.size, grid.dims(), grid.coords(), kLead);
  const auto with = std::make_shared<const Coefficient>(part, static_cast<float>(options.b));
  const auto driven = [&](auto make) {
    const Field field(part, with, device_levels(part));
    for (const bool overlapped : {false, true})
      if (options.overlap == "both" || (options.overlap == "yes") == overlapped)
        rows.push_back(measure(world, options, *make(grid, field, overlapped), alone));
  };
  if (wanted("messages")) driven(by_messages);
  if (wanted("stream")) driven(by_streams);
  for (const bool keeps : {false, true})
    if (wanted("kernel") && refused.empty())
      if (const auto way = by_kernel(grid, part, with, keeps); way != nullptr)
        rows.push_back(measure(world, options, *way, alone));
  if (wanted("kernel") && !refused.empty() && world.rank() == 0) std::printf("kernel: left out: %s\n", refused.c_str());
  return rows;
}

bool is_kernel(const Row& row) { return row.name.starts_with("kernel"); }

// The quickest of what the processor drives; null where there is none.
const Row* best_of(const std::vector<Row>& rows) {
  const Row* best = nullptr;
  for (const Row& row : rows)
    if (!is_kernel(row) && (best == nullptr || row.seconds < best->seconds)) best = &row;
  return best;
}

void print(const Case& options, const isthmus::HaloGrid& grid, const Device& device, const std::vector<Row>& rows,
           const std::optional<Alone>& alone, bool right) {
  const auto dims = grid.dims();
  const int ranks = dims[0] * dims[1] * dims[2];
  std::printf("%s: size %s, %d iterations, b = %g, %d x %d x %d ranks, cuda (%s), gosa %.6e\n",
              !right  ? "wrong"
              : alone ? "verified"
                      : "computed",
              options.size.name.c_str(), options.iterations, options.b, dims[0], dims[1], dims[2], device.name.c_str(),
              rows.back().gosa);
  const auto line = [&](const Row& row) {
    std::printf("%-26s %12.0f MFLOPS %10.2f us an iteration", row.name.c_str(), row.mflops(options), row.micros(options));
    if (alone && &row != &alone->row()) std::printf(", efficiency %.3f", alone->row().seconds / row.seconds / ranks);
    if (!row.right) std::printf(", WRONG: %lld other cells, gosa %.9e", static_cast<long long>(row.unlike), row.gosa);
    std::printf("\n");
  };
  if (alone) line(alone->row());
  for (const Row& row : rows) line(row);
  const Row* const best = best_of(rows);
  for (const Row& row : rows)
    if (is_kernel(row) && best != nullptr)
      std::printf("%s: %.2f times as quick as the best that the processor drives (%s)\n", row.name.c_str(),
                  best->seconds / row.seconds, best->name.c_str());
}

Json report_of(const Case& options, const isthmus::HaloGrid& grid, const Device& device, const std::vector<Row>& rows,
               const std::optional<Alone>& alone, bool right) {
  const int ranks = grid.comm().size();
  const auto of = [&](const Row& row, int by) {
    Json way =
        example::json_of<Json>({row.name, by, row.seconds / options.iterations, row.mflops(options), "MFLOPS", row.right});
    way["gosa"] = row.gosa;
    way["other_cells"] = row.unlike;
    return way;
  };
  Json report{{"program", "himeno"},
              {"size", options.size.name},
              {"cells", options.size.cells},
              {"iterations", options.iterations},
              {"b", options.b},
              {"ranks", ranks},
              {"grid", grid.dims()},
              {"memory", device.name},
              {"verified", right},
              {"alone", nullptr},
              {"ways", Json::array()}};
  const Row* const best = best_of(rows);
  for (const Row& row : rows) {
    Json way = of(row, ranks);
    if (best != nullptr && is_kernel(row))
      way["times_as_quick"] = {{"as", best->name}, {"times", best->seconds / row.seconds}};
    if (alone) way["efficiency"] = alone->row().seconds / row.seconds / ranks;
    report["ways"].push_back(way);
  }
  if (alone) report["alone"] = of(alone->row(), 1);
  return report;
}

// True: all that was computed is right. Rank 0 adds its figures.
bool run_size(const isthmus::World& world, const isthmus::HaloGrid& grid, const Case& options, const Device& device,
              std::vector<Json>& reports) {
  const std::string refused = no_kernel(grid, options, device);
  if (options.exchange == "kernel" && !refused.empty()) throw Mistake("--exchange kernel: " + refused);
  std::optional<Alone> alone;
  if (options.check == "yes") alone.emplace(world, options);
  const std::vector<Row> rows = all_ways(world, grid, options, refused, alone);
  bool right = !alone || alone->row().right;
  for (const Row& row : rows) right = right && row.right;
  right = example::largest(world.comm(), right ? 0 : 1) == 0;
  if (world.rank() == 0) {
    print(options, grid, device, rows, alone, right);
    reports.push_back(report_of(options, grid, device, rows, alone, right));
  }
  return right;
}

}  // namespace

bool run_cuda(const isthmus::World& world, const isthmus::HaloGrid& grid, const Options& options) {
  const Device device = example::cuda::take_device(world);
  std::vector<Json> reports;
  bool right = true;
  for (const Size& size : options.sizes) right = run_size(world, grid, {options, size}, device, reports) && right;
  if (world.rank() != 0 || options.json.empty()) return right;
  if (reports.size() == 1)
    example::write_json(options.json, reports[0]);
  else
    example::write_json(options.json,
                        Json{{"program", "himeno"}, {"ranks", world.size()}, {"verified", right}, {"runs", reports}});
  return right;
}

}  // namespace himeno
