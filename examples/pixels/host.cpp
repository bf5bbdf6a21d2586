// In host memory, and messages of any memory.
#include <array>

#include "common/program.hpp"
#include "picture.hpp"

namespace pixels {

void exchange(const isthmus::Comm& comm, const Rows& rows, std::int64_t columns) {
  const Beside beside(comm);
  std::array<isthmus::Request, 4> requests{
      comm.irecv(rows.above, columns, IST_FLOAT, beside.up), comm.irecv(rows.below, columns, IST_FLOAT, beside.down),
      comm.isend(rows.first, columns, IST_FLOAT, beside.up), comm.isend(rows.last, columns, IST_FLOAT, beside.down)};
  isthmus::wait_all(requests);
}

namespace {

class HostPicture final : public Picture {
 public:
  HostPicture(const isthmus::World& world, isthmus::Comm comm, const Options& options)
      : comm_(std::move(comm)),
        part_(example::part_of(options.cut_rows(), comm_.size(), comm_.rank())),
        own_(world, part_.count, options.width) {}
  Times run(int steps) override {
    const example::Field& field = own_.field();
    example::fill(field, part_.first, start);
    example::Stencil stencil;
    double computed = 0;
    const double all = example::slowest_seconds(comm_, [&] {
      for (int step = 0; step < steps; ++step) {
        const example::Clock clock;
        stencil.sweep(field, step % 2, 1, field.rows, false);
        computed += clock.seconds();
        const auto row = [&](std::int64_t y) { return field.row(1 - step % 2, y); };
        exchange(comm_, {row(0), row(1), row(field.rows), row(field.rows + 1)}, field.columns);
      }
    });
    return {all / steps, example::largest(comm_, computed) / steps};
  }
  example::Field result(int /*level*/) override { return own_.field(); }

 private:
  isthmus::Comm comm_;
  example::Part part_;
  example::OwnField own_;
};

class Host final : public Machine {
 public:
  Host(const isthmus::World& world, const Options& options) : world_(world), options_(options) {}
  std::string text() const override { return "host memory"; }
  const std::vector<std::string>& ways() const override { return host_ways(); }
  double copy_rate() override { return 0; }
  std::unique_ptr<Picture> make(const isthmus::Comm& comm, const std::string& /*way*/) override {
    return std::make_unique<HostPicture>(world_, comm, options_);
  }

 private:
  const isthmus::World& world_;
  const Options& options_;
};

}  // namespace

const std::vector<std::string>& host_ways() {
  static const std::vector<std::string> names{"messages"};
  return names;
}
const std::vector<std::string>& cuda_ways() {
  static const std::vector<std::string> names{"messages", "stream"};
  return names;
}

std::unique_ptr<Machine> make_host_machine(const isthmus::World& world, const Options& options) {
  return std::make_unique<Host>(world, options);
}

}  // namespace pixels
