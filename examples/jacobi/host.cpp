// In host memory.
#include "common/program.hpp"
#include "exchange.hpp"
#include "way.hpp"

namespace jacobi {
namespace {

using example::Field;

class HostWay : public Way {
 public:
  HostWay(isthmus::Comm comm, std::unique_ptr<Exchange> exchange) : comm_(std::move(comm)), exchange_(std::move(exchange)) {}
  Solved solve(const Problem& problem) override {
    example::Stencil stencil(problem.factor());
    const Field& field = exchange_->field();
    example::fill(field, example::part_of(problem.cut_rows(), comm_.size(), comm_.rank()).first,
                  [&](auto x, auto y) { return static_cast<float>(problem.start(x, y)); });
    Solved solved;
    std::vector<float> mine(1), all(1);
    const double seconds = example::slowest_seconds(comm_, [&] {
      for (bool over = false; !over && solved.iterations < problem.iterations; ++solved.iterations) {
        const bool check = (solved.iterations + 1) % problem.nccheck == 0;
        iterate(stencil, solved.iterations % 2, check);
        if (!check) continue;
        mine[0] = stencil.change();
        comm_.allreduce(mine, all, isthmus::op::sum);
        solved.norm = std::sqrt(all[0]);
        if (solved.iterations == 0) solved.first_norm = solved.norm;
        over = static_cast<double>(solved.norm) <= problem.tolerance;
      }
    });
    solved.seconds = seconds / solved.iterations;
    return solved;
  }
  Field result(int /*level*/) override { return exchange_->field(); }
  void close() override { exchange_->close(); }

 private:
  void iterate(example::Stencil& stencil, int now, bool check) {
    const Field& field = exchange_->field();
    exchange_->start(now);
    stencil.sweep(field, now, 2, field.rows - 1, check);
    exchange_->finish();
    stencil.sweep(field, now, 1, 1, check);
    if (field.rows > 1) stencil.sweep(field, now, field.rows, field.rows, check);
  }
  isthmus::Comm comm_;
  std::unique_ptr<Exchange> exchange_;
};

class HostBackend : public Backend {
 public:
  HostBackend(const isthmus::World& world, const Problem& problem) : world_(world), problem_(problem) {}
  std::string text() const override { return "host memory"; }
  const std::vector<std::string>& ways() const override { return exchange_names(); }
  double copy_seconds() override { return copy_seconds(world_.comm()); }
  double copy_seconds_alone() override { return copy_seconds(world_.self()); }
  std::unique_ptr<Way> make(const std::string& way) override {
    const isthmus::Comm comm = world_.comm();
    return std::make_unique<HostWay>(comm, make_exchange(way, world_, comm, problem_.cut_rows(), problem_.nx));
  }
  std::unique_ptr<Way> make_alone() override {
    return std::make_unique<HostWay>(world_.self(), make_exchange_with_itself(world_, problem_.cut_rows(), problem_.nx));
  }

 private:
  // The median of as many copies as there are in 0.2 s, or of a hundred.
  double copy_seconds(const isthmus::Comm& comm) const {
    const example::OwnField own(world_, example::part_of(problem_.cut_rows(), comm.size(), comm.rank()).count, problem_.nx);
    const Field& field = own.field();
    example::fill(field, 0, [](auto /*x*/, auto /*y*/) { return 0.0F; });
    std::vector<double> all;
    double sum = 0;
    while (sum < 0.2 && all.size() < 100) {
      all.push_back(example::slowest_seconds(
          comm, [&] { std::copy_n(field.cells(0, 1), field.rows * field.columns, field.cells(1, 1)); }));
      sum += all.back();
    }
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
  }
  const isthmus::World& world_;
  const Problem& problem_;
};

}  // namespace

const std::vector<std::string>& host_ways() { return exchange_names(); }
const std::vector<std::string>& cuda_ways() {
  static const std::vector<std::string> names{"messages", "stream", "one-sided", "kernel"};
  return names;
}

std::unique_ptr<Backend> make_host_backend(const isthmus::World& world, const Problem& problem) {
  return std::make_unique<HostBackend>(world, problem);
}

}  // namespace jacobi
