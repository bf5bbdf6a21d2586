// Nine-point stencil on the device of each rank, halos through Isthmus, compared with a serial run.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "collect.hpp"
#include "report.hpp"

namespace {

using namespace stencil;

// SHOC's start: i*j with indices that begin at 0 in every tile.
std::vector<double> synthetic(const Extent& field, const Extent& grid) {
  std::vector<double> values(static_cast<std::size_t>(field.points()));
  for (int rank = 0; rank < grid.points(); ++rank) {
    const Tile tile = tile_of(rank, grid, field);
    for (std::int64_t row = 0; row < tile.extent.rows; ++row)
      for (std::int64_t column = 0; column < tile.extent.columns; ++column)
        values[static_cast<std::size_t>((tile.first_row + row) * field.columns + tile.first_column + column)] =
            static_cast<double>(row * column);
  }
  return values;
}

// Runs one part of the set-up on every rank; an error of any of them ends all of them, and is told once.
template <class Action>
bool all_succeed(const isthmus::Comm& comm, const Action& action) {
  std::string error;
  try {
    action();
  } catch (const std::exception& caught) {
    error = caught.what();
  }
  return agree(comm, error);
}

void make_folder(const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(name, error);
  if (error) throw std::runtime_error("--output " + name + ": the folder cannot be made: " + error.message());
}

// Pictures of the field, scaled so that the start's brightest point is white if it is brighter than 1.
class Pictures {
 public:
  Pictures(const Options& options, const Extent& field, const std::vector<double>& start)
      : options_(options), field_(field), white_(1) {
    for (const double value : start) white_ = std::max(white_, value);
  }
  void write(const std::string& name, const std::vector<double>& values) const {
    if (!options_.output.empty()) write_png(options_.output + "/" + name, {field_, values}, white_, options_.palette);
  }
  void write_frame(int step, const std::vector<double>& values) const {
    char name[32];
    std::snprintf(name, sizeof name, "frame-%06d.png", step);
    write(name, values);
  }

 private:
  const Options& options_;
  Extent field_;
  double white_;
};

double seconds_for(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// `start` is the whole field on rank 0.
bool compute(const Job& job, double allocation_seconds, const std::vector<double>& start) {
  const Options& options = job.options;
  const bool first = job.comm.rank() == 0;
  const Pictures pictures(options, job.field, start);
  Report report{job, job.comm.size(), allocation_seconds, 0, {}};
  if (first) report.print_head();
  if (first) pictures.write("start.png", start);
  OnFrame on_frame;
  if (options.frames > 0) on_frame = [&](int step, const auto& field) { pictures.write_frame(step, field); };
  for (const std::string& exchange : options.exchanges) {
    report.runs.push_back(run(job, exchange, on_frame));
    on_frame = nullptr;
  }
  report.bare_step_seconds = seconds_per_bare_step(job);
  if (!first) return true;

  pictures.write("final.png", report.runs.front().field);
  if (options.verify) {
    const auto expected = serial_run(job.field, start, options.halo, options.iterations, options.weights());
    for (Measured& measured : report.runs)
      measured.comparison = compare(measured.field, expected, options.iterations, options.precision);
  }
  report.print_table();
  if (!options.output.empty())
    std::printf("pictures of the start, the frames and the end are in %s\n", options.output.c_str());
  if (!options.json.empty()) report.write_json(options.json);
  return report.print_verdict();
}

int run_program(const Options& options, const isthmus::Comm& comm) {
  const bool first = comm.rank() == 0;
  Image image;
  Extent field = options.size;
  const bool ready = all_succeed(comm, [&] {
    if (!first) return;
    if (!options.input.empty()) image = read_png(options.input);
    if (!options.input.empty()) field = image.extent;
    if (!options.output.empty()) make_folder(options.output);
  });
  if (!ready) return 1;
  field = {from_first(comm, field.rows), from_first(comm, field.columns)};

  Extent grid;
  Tile tile;
  Layout layout;
  std::unique_ptr<Backend> backend;
  double allocation_seconds = 0;
  const bool made = all_succeed(comm, [&] {
    grid = choose_grid(comm.size(), field, options.halo, options.grid);
    tile = tile_of(comm.rank(), grid, field);
    layout = {tile.extent, options.halo, options.precision};
    backend = make_backend(options.device, comm.local_rank(), options.precision);
    allocation_seconds = seconds_for([&] { backend->allocate(layout, options.weights()); });
  });
  if (!made) return 1;
  if (first && options.input.empty()) image = {field, synthetic(field, grid)};
  const auto start = scatter(comm, grid, field, image.values);
  const Job job{options, comm, field, grid, tile, layout, *backend, start};
  return compute(job, largest(comm, allocation_seconds), image.values) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0;
  try {
    const isthmus::World world;
    rank = world.rank();
    const auto parsed = parse_options(argc, argv, rank == 0);
    if (const int* status = std::get_if<int>(&parsed)) return *status;
    return run_program(std::get<Options>(parsed), world.comm());
  } catch (const std::exception& error) {
    std::cerr << "stencil2d: rank " << rank << ": " << error.what() << '\n';
    return 1;
  }
}
