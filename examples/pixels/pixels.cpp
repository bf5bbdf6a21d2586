// cudaMPI's stencil: every pixel of a picture becomes the mean of its four neighbours, but those at its border, which stay. The long side is
// cut over ranks; in each step they compute, and then a row goes to the rank above and one to that below, by plain messages and with nothing
// that hides them. The same by 1, 2, 4 ... ranks of those that are running gives the paper's table. Every bit is compared with that of a loop.
// Run: isthmus run -n 4 pixels
#include <optional>

#include "common/program.hpp"
#include "common/serial.hpp"

namespace {

using example::Field;
using example::Serial;

struct Options {
  std::int64_t width = 3000, height = 16000;
  int steps = 20;
  std::string spoil = "no";
  std::int64_t cut_rows() const { return height - 2; }
};

float start(std::int64_t x, std::int64_t y) { return static_cast<float>((x * 29 + y * 71 + x * y % 13) % 256) / 255.0F; }

struct Times {
  double seconds = 0;  // of a step, of the slowest rank
  double compute = 0;  // of whom computes longest; the rest is the network, and waiting
};

// The rank above has no row that is wanted at the top of the picture, and that below none at the bottom.
void exchange(const isthmus::Comm& comm, const Field& field, int level) {
  const int up = comm.rank() > 0 ? comm.rank() - 1 : isthmus::proc_null;
  const int down = comm.rank() + 1 < comm.size() ? comm.rank() + 1 : isthmus::proc_null;
  std::array<isthmus::Request, 4> requests{comm.irecv(field.row(level, 0), field.columns, IST_FLOAT, up),
                                           comm.irecv(field.row(level, field.rows + 1), field.columns, IST_FLOAT, down),
                                           comm.isend(field.row(level, 1), field.columns, IST_FLOAT, up),
                                           comm.isend(field.row(level, field.rows), field.columns, IST_FLOAT, down)};
  isthmus::wait_all(requests);
}

// From the start.
Times run_steps(const isthmus::Comm& comm, const Field& field, std::int64_t first_row, int steps) {
  example::fill(field, first_row, start);
  example::Stencil stencil;
  double computed = 0;
  const double all = example::slowest_seconds(comm, [&] {
    for (int step = 0; step < steps; ++step) {
      const example::Clock clock;
      stencil.sweep(field, step % 2, 1, field.rows, false);
      computed += clock.seconds();
      exchange(comm, field, 1 - step % 2);
    }
  });
  return {all / steps, example::largest(comm, computed) / steps};
}

// By the ranks of comm; a line of the table, whose first one is that of one rank. Whether the result was right.
bool run_ranks(const isthmus::World& world, const isthmus::Comm& comm, const Options& options, const Serial* serial,
               double& rate_of_one) {
  const example::Part part = example::part_of(options.cut_rows(), comm.size(), comm.rank());
  const example::OwnField own(world, part.count, options.width);
  const Field& field = own.field();
  run_steps(comm, field, part.first, 2);  // an exchange of each level, which is not counted
  const Times times = example::median_of_three([&] { return run_steps(comm, field, part.first, options.steps); });
  const int level = options.steps % 2;
  if (options.spoil == "yes" && comm.rank() == comm.size() - 1) example::spoil(field, level);
  const bool right = example::same_bits(comm, field, level, serial);
  if (comm.rank() != 0) return right;
  const double updated = static_cast<double>(options.width - 2) * static_cast<double>(options.cut_rows());
  const double rate = updated / times.seconds / 1e9;
  if (comm.size() == 1) rate_of_one = rate;
  std::printf("%5d %10.3f %12.3f %16.3f %10.0f %%%s\n", comm.size(), rate, times.compute * 1e3,
              (times.seconds - times.compute) * 1e3, 100 * rate / rate_of_one / comm.size(), right ? "" : "  WRONG");
  std::fflush(stdout);
  return right;
}

bool work(const isthmus::World& world, const Options& options) {
  const isthmus::Comm comm = world.comm();
  if (options.cut_rows() < comm.size())
    throw example::Mistake("--height " + std::to_string(options.height) + " leaves " + std::to_string(options.cut_rows()) +
                           " rows for " + std::to_string(comm.size()) + " ranks, and every rank needs one");
  std::optional<Serial> serial;
  if (comm.rank() == 0) {
    serial.emplace(options.width, options.height, false, start);
    serial->run_to(options.steps);
    std::printf("%lld x %lld pixels, %d steps, messages of %lld bytes, host memory\n", static_cast<long long>(options.width),
                static_cast<long long>(options.height), options.steps,
                static_cast<long long>(options.width) * static_cast<long long>(sizeof(float)));
    std::printf("%5s %10s %12s %16s %12s\n", "ranks", "Gpix/s", "ms compute", "ms network, wait", "efficiency");
  }
  bool right = true;
  double rate_of_one = 1;
  for (int ranks = 1; ranks <= comm.size(); ranks = ranks < comm.size() ? std::min(2 * ranks, comm.size()) : ranks + 1) {
    const isthmus::Comm some = comm.split(comm.rank() < ranks ? 0 : isthmus::undefined);
    if (some) right = run_ranks(world, some, options, serial ? &*serial : nullptr, rate_of_one) && right;
    comm.barrier();
  }
  right = example::sum(comm, right ? 0 : 1) == 0;
  if (comm.rank() == 0)
    std::puts(right ? "verified: the same bits as a serial loop" : "wrong: other bits than a serial loop");
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::Arguments arguments("pixels", "The mean of four neighbours on a picture, by 1, 2, 4 ... and all ranks.");
  arguments.number<std::int64_t>("--width", options.width, 3, 1 << 20, "pixels of a row, which a message has");
  arguments.number<std::int64_t>("--height", options.height, 3, 1 << 20, "rows, which are cut");
  arguments.number("--steps", options.steps, 1, 1000000000, "steps");
  arguments.word("--spoil", options.spoil, {"no", "yes"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) { return work(world, options); });
}
