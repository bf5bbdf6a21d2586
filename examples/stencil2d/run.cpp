#include "run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "collect.hpp"
#include "report.hpp"

namespace stencil {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Where the loop stops to show progress (40 times) and to write a frame.
int next_stop(int step, const Options& options, bool frames) {
  const int progress = std::max(1, options.iterations / 40);
  int stop = std::min(options.iterations, (step / progress + 1) * progress);
  if (frames && options.frames > 0) {
    const int distance = std::max(1, options.iterations / options.frames);
    stop = std::min(stop, (step / distance + 1) * distance);
  }
  return stop;
}

bool is_frame(int step, const Options& options) {
  return options.frames > 0 && step < options.iterations && step % std::max(1, options.iterations / options.frames) == 0;
}

// Adds to the first value of the row just above the tile: halo if there is a northern neighbour, frame of the wall if not.
void corrupt(const Job& job) {
  const Place strip = job.layout.strip(Side::north, Direction::in);
  std::vector<std::byte> values(strip.bytes);
  job.backend.read(strip, values.data());
  const std::size_t last_row =
      strip.bytes / static_cast<std::size_t>(job.layout.halo) * (static_cast<std::size_t>(job.layout.halo) - 1);
  const std::size_t at = last_row + (static_cast<std::size_t>(job.layout.halo) + 1) * job.layout.element();
  const float one = 1;
  const double two = 1;
  if (job.layout.precision == Precision::single_precision)
    std::memcpy(values.data() + at, &one, sizeof one);
  else
    std::memcpy(values.data() + at, &two, sizeof two);
  job.backend.write(strip, values.data());
}

// Code, kernels and the paths between ranks are made on first use: not what a step costs.
void warm_up(const Job& job, Exchange& exchange) {
  for (int i = 0; i < 2; ++i) {
    exchange.fill_halos();
    job.backend.step();
  }
  job.backend.finish();
}

}  // namespace

Measured run(const Job& job, const std::string& name, const OnFrame& on_frame) {
  const Options& options = job.options;
  const auto exchange = make_exchange(name, job.comm, job.tile, job.layout, job.backend);
  const auto start = pad(job.layout, job.start);
  job.backend.upload(start);
  warm_up(job, *exchange);

  Measured measured{name, 0, now(), {}, {}};
  job.backend.upload(start);
  measured.upload_seconds = now() - measured.upload_seconds;

  Progress progress(job.comm.rank() == 0, name, options.iterations);
  for (int step = 0; step < options.iterations;) {
    const int stop = next_stop(step, options, static_cast<bool>(on_frame));
    job.comm.barrier();
    const double begin = now();
    for (; step < stop; ++step) {
      if (step % options.halo == 0) exchange->fill_halos();
      if (step == options.corrupt_step && job.comm.rank() == job.comm.size() - 1) corrupt(job);
      job.backend.step();
    }
    job.backend.finish();
    measured.seconds += now() - begin;
    progress.show(step, measured.seconds);
    if (!on_frame || !is_frame(step, options)) continue;
    const auto field = gather(job.comm, job.grid, job.field, unpad(job.layout, job.backend.download()));
    if (job.comm.rank() == 0) on_frame(step, field);
  }
  measured.seconds = largest(job.comm, measured.seconds);
  measured.upload_seconds = largest(job.comm, measured.upload_seconds);
  measured.field = gather(job.comm, job.grid, job.field, unpad(job.layout, job.backend.download()));
  return measured;
}

double seconds_per_bare_step(const Job& job) {
  constexpr int chunks = 15, most_steps = 10;
  const int steps = std::min(job.options.iterations, most_steps);
  job.backend.upload(pad(job.layout, job.start));
  job.backend.step();
  job.backend.finish();
  job.comm.barrier();
  // The median, because other work on the machine makes some chunks slow and none fast.
  std::array<double, chunks> seconds{};
  for (double& each : seconds) {
    const double begin = now();
    for (int i = 0; i < steps; ++i) job.backend.step();
    job.backend.finish();
    each = (now() - begin) / steps;
  }
  std::sort(seconds.begin(), seconds.end());
  return largest(job.comm, seconds[chunks / 2]);
}

}  // namespace stencil
