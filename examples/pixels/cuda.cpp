// On GPUs: jacobi's grid and sweep, which are this stencil without a norm.
#include <isthmus/stream.h>

#include "common/cuda.hpp"
#include "common/cuda_device.hpp"
#include "common/program.hpp"
#include "jacobi/device_grid.hpp"
#include "picture.hpp"

namespace pixels {
namespace {

using example::cuda::check;
using jacobi::DeviceGrid;
using jacobi::Share;
using jacobi::Tiling;

constexpr float kFactor = 0.25F;

class CudaPicture : public Picture {
 public:
  CudaPicture(isthmus::Comm comm, const jacobi::Problem& problem, const Tiling& tiling)
      : comm_(std::move(comm)),
        tiling_(tiling),
        part_(example::part_of(problem.cut_rows(), comm_.size(), comm_.rank())),
        grid_(problem, part_),
        start_(static_cast<std::size_t>((part_.count + 2) * problem.nx)) {
    example::fill(example::Field{{start_.data(), start_.data()}, part_.count, problem.nx}, part_.first, start);
    // What lies behind the last column is 0, and no step writes anything else there.
    for (float* const level : grid_.cells().levels) check(cudaMemset(level, 0, level_bytes()), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  // What computing alone takes is measured by itself: the same sweeps, with nothing between them.
  Times run(int steps) final {
    upload();
    const double compute = example::slowest_seconds(comm_, [&] {
      for (int step = 1; step <= steps; ++step) sweep(step);
      stream_.wait();
    });
    upload();
    const double all = example::slowest_seconds(comm_, [&] {
      make_steps(steps);
      stream_.wait();
    });
    return {all / steps, compute / steps};
  }
  example::Field result(int level) final { return grid_.download(level); }

 protected:
  virtual void make_steps(int steps) = 0;
  // Counted from 1 on, into level step % 2.
  void sweep(int step) const {
    launch_sweep(grid_.sweep(step, tiling_, kFactor, nullptr, false), Share::all, tiling_.batch, stream_.get());
  }
  isthmus::Buffer row(int step, int y, void* pending) const {
    return isthmus::Buffer::cuda(grid_.row(step % 2, y), pending);
  }
  int rows() const { return grid_.cells().rows; }
  int columns() const { return grid_.cells().columns; }

  isthmus::Comm comm_;
  example::cuda::Stream stream_;

 private:
  std::size_t level_bytes() const {
    return static_cast<std::size_t>((part_.count + 2) * grid_.cells().pitch) * sizeof(float);
  }
  void upload() const {
    const jacobi::Cells& cells = grid_.cells();
    const std::size_t width = static_cast<std::size_t>(cells.columns) * sizeof(float);
    for (float* const level : cells.levels)
      check(cudaMemcpy2D(level, static_cast<std::size_t>(cells.pitch) * sizeof(float), start_.data(), width, width,
                         static_cast<std::size_t>(cells.rows) + 2, cudaMemcpyHostToDevice),
            "cudaMemcpy2D");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  Tiling tiling_;
  example::Part part_;
  DeviceGrid grid_;
  std::vector<float> start_;
};

// The processor launches a step when the rows of the one before are here. They leave behind the sweep that is still running.
class ByMessages final : public CudaPicture {
 public:
  using CudaPicture::CudaPicture;

 private:
  void make_steps(int steps) override {
    for (int step = 1; step <= steps; ++step) {
      sweep(step);
      const auto at = [&](int y) { return row(step, y, stream_.get()); };
      exchange(comm_, {at(0), at(1), at(rows()), at(rows() + 1)}, columns());
    }
  }
};

// Two steps are a graph, one for each level, and the processor waits for the last one alone.
class InStream final : public CudaPicture {
 public:
  InStream(isthmus::Comm comm, const jacobi::Problem& problem, const Tiling& tiling)
      : CudaPicture(std::move(comm), problem, tiling), beside_(comm_) {
    // What waits for the other ranks, once; captures cannot.
    comm_.prepare_on(stream_.get(), beside_.up, kUpward, IST_SENDS);
    comm_.prepare_on(stream_.get(), beside_.down, kUpward, IST_RECEIVES);
    comm_.prepare_on(stream_.get(), beside_.down, kDownward, IST_SENDS);
    comm_.prepare_on(stream_.get(), beside_.up, kDownward, IST_RECEIVES);
    two_ = example::cuda::captured(stream_.get(), [&] {
      make_step(1);
      make_step(2);
    });
    one_ = example::cuda::captured(stream_.get(), [&] { make_step(1); });
  }

 private:
  static constexpr int kUpward = 0, kDownward = 1;

  void make_steps(int steps) override {
    for (int step = 0; step + 1 < steps; step += 2) two_.launch(stream_.get());
    if (steps % 2 != 0) one_.launch(stream_.get());
  }
  void make_step(int step) const {
    sweep(step);
    const auto at = [&](int y) { return row(step, y, nullptr); };
    comm_.sendrecv_on(stream_.get(), at(1), columns(), IST_FLOAT, beside_.up, kUpward, at(rows() + 1), columns(), IST_FLOAT,
                      beside_.down, kUpward);
    comm_.sendrecv_on(stream_.get(), at(rows()), columns(), IST_FLOAT, beside_.down, kDownward, at(0), columns(), IST_FLOAT,
                      beside_.up, kDownward);
  }

  Beside beside_;
  example::cuda::Graph two_, one_;
};

class Cuda final : public Machine {
 public:
  Cuda(const isthmus::World& world, const Options& options, example::cuda::Device device)
      : world_(world), device_(std::move(device)) {
    problem_.nx = options.width;
    problem_.ny = options.height;
    // Tried out on the part that a rank of all has; fewer have more of the same rows.
    const DeviceGrid grid(problem_, example::part_of(problem_.cut_rows(), world.size(), world.rank()));
    tiling_ = tiling_for(problem_, grid, stream_);
  }
  std::string text() const override { return device_.name + (device_.shared ? ", which ranks share" : ""); }
  const std::vector<std::string>& ways() const override { return cuda_ways(); }
  double copy_rate() override {
    if (world_.rank() != 0) return 0;
    const DeviceGrid grid(problem_, {0, problem_.cut_rows()});
    grid.fill(stream_);
    double least = 0;
    for (const bool by_driver : {true, false}) {
      copy_rows(grid, by_driver, stream_);
      stream_.wait();
      constexpr int kCopies = 20;
      const example::Clock clock;
      for (int n = 0; n < kCopies; ++n) copy_rows(grid, by_driver, stream_);
      stream_.wait();
      const double seconds = clock.seconds() / kCopies;
      if (by_driver || seconds < least) least = seconds;
    }
    return problem_.gigapixels(least);
  }
  std::unique_ptr<Picture> make(const isthmus::Comm& comm, const std::string& way) override {
    if (way == "messages") return std::make_unique<ByMessages>(comm, problem_, tiling_);
    return std::make_unique<InStream>(comm, problem_, tiling_);
  }

 private:
  const isthmus::World& world_;
  const example::cuda::Device device_;
  jacobi::Problem problem_;
  example::cuda::Stream stream_;
  Tiling tiling_;
};

}  // namespace

std::unique_ptr<Machine> make_cuda_machine(const isthmus::World& world, const Options& options) {
  return std::make_unique<Cuda>(world, options, example::cuda::take_device(world));
}

}  // namespace pixels
