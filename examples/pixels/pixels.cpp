// cudaMPI's stencil: every pixel of a picture becomes the mean of its four neighbours, but those at its border, which stay. The long side is
// cut over ranks; in each step they compute, and then a row goes to the rank above and one to that below, by plain messages and with nothing
// that hides them. The same by 1, 2, 4 ... ranks of those that are running gives the paper's table. Every bit is compared with that of a loop.
// Run: isthmus run -n 4 pixels
#include <optional>

#include "common/program.hpp"
#include "common/stencil.hpp"

namespace {

using example::Field;
using example::Part;
using isthmus::Buffer;

struct Options {
  std::int64_t width = 3000, height = 16000;
  int steps = 20;
  std::string spoil = "no";
  std::int64_t cut_rows() const { return height - 2; }
};

float start(std::int64_t x, std::int64_t y) { return static_cast<float>((x * 29 + y * 71 + x * y % 13) % 256) / 255.0F; }

std::vector<float> row_at_start(std::int64_t y, std::int64_t width) {
  std::vector<float> row(static_cast<std::size_t>(width));
  for (std::int64_t x = 0; x < width; ++x) row[static_cast<std::size_t>(x)] = start(x, y);
  return row;
}

// The whole picture by a loop that knows of no ranks.
class Serial {
 public:
  explicit Serial(const Options& options) {
    for (auto& level : levels_)
      for (std::int64_t y = 0; y < options.height; ++y) {
        const auto row = row_at_start(y, options.width);
        level.insert(level.end(), row.begin(), row.end());
      }
    const auto width = static_cast<std::size_t>(options.width), height = static_cast<std::size_t>(options.height);
    for (int step = 0; step < options.steps; ++step) {
      const auto& from = levels_[static_cast<std::size_t>(step % 2)];
      auto& to = levels_[static_cast<std::size_t>(1 - step % 2)];
      for (std::size_t y = 1; y + 1 < height; ++y)
        for (std::size_t at = y * width + 1; at + 1 < (y + 1) * width; ++at)
          to[at] = 0.25F * (from[at - 1] + from[at + 1] + from[at - width] + from[at + width]);
    }
    field_ = {{Buffer::host(levels_[0].data()), Buffer::host(levels_[1].data())}, options.cut_rows(), options.width};
  }
  const Field& field() const { return field_; }

 private:
  std::array<std::vector<float>, 2> levels_;
  Field field_;
};

struct Times {
  double step = 0;     // of the slowest rank, in seconds
  double compute = 0;  // the same, of its part; the rest is the network, and the wait for who computes longest
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

Times run_steps(const isthmus::Comm& comm, const Field& field, example::Stencil& stencil, int steps) {
  double computed = 0;
  const double all = example::slowest_seconds(comm, [&] {
    for (int step = 0; step < steps; ++step) {
      const example::Clock clock;
      stencil.sweep(field, step % 2, 1, field.rows, false);
      stencil.finish();
      computed += clock.seconds();
      exchange(comm, field, 1 - step % 2);
    }
  });
  return {all / steps, example::largest(comm, computed) / steps};
}

// By the ranks of comm; a line of the table, whose first one is that of one rank. Whether the result was right.
bool run_ranks(const isthmus::World& world, const isthmus::Comm& comm, const Options& options, const Serial* serial,
               double& rate_of_one) {
  const Part part = example::part_of(options.cut_rows(), comm.size(), comm.rank());
  const auto stencil = example::make_stencil(isthmus::Kind::host);
  const example::OwnField own(world, stencil->kind(), part.count, options.width);
  const Field& field = own.field();
  for (std::int64_t y = 0; y <= field.rows + 1; ++y) {
    const auto row = row_at_start(part.first + y, options.width);
    for (int level = 0; level < 2; ++level) world.copy(field.row(level, y), Buffer::host(row.data()), field.row_bytes());
  }
  const Times times = run_steps(comm, field, *stencil, options.steps);
  const int level = options.steps % 2;
  if (options.spoil == "yes" && comm.rank() == comm.size() - 1) example::spoil(world, field, level);
  const Field* const whole = serial != nullptr ? &serial->field() : nullptr;
  const bool right = example::same_bits(world, comm, field, level, whole, level, options.cut_rows());
  if (comm.rank() != 0) return right;
  const double rate = static_cast<double>(options.width) * static_cast<double>(options.height) / times.step / 1e9;
  if (comm.size() == 1) rate_of_one = rate;
  std::printf("%5d %10.3f %12.3f %12.3f %10.0f %%%s\n", comm.size(), rate, times.compute * 1e3,
              (times.step - times.compute) * 1e3, 100 * rate / rate_of_one / comm.size(), right ? "" : "  WRONG");
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
    serial.emplace(options);
    std::printf("%lld x %lld pixels, %d steps, messages of %lld bytes, host memory\n", static_cast<long long>(options.width),
                static_cast<long long>(options.height), options.steps,
                static_cast<long long>(options.width) * static_cast<long long>(sizeof(float)));
    std::printf("%5s %10s %12s %12s %12s\n", "ranks", "Gpix/s", "ms compute", "ms network", "efficiency");
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
