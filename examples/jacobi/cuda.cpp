// On GPUs.
#include "common/cuda_device.hpp"
#include "common/program.hpp"
#include "launched.hpp"

namespace jacobi {
namespace {

constexpr int kCopiesAtOnce = 10;

class CudaBackend : public Backend {
 public:
  CudaBackend(const isthmus::World& world, const Problem& problem, example::cuda::Device device)
      : world_(world), problem_(problem), device_(std::move(device)) {
    const isthmus::Comm comm = world_.comm();
    const DeviceGrid grid(problem_, example::part_of(problem_.cut_rows(), comm.size(), comm.rank()));
    tiling_ = tiling_for(problem_, grid, stream_);
  }
  std::string text() const override {
    return device_.name + ", tiles of " + std::to_string(tiling_.height) + " rows, " + std::to_string(tiling_.batch) +
           " at once";
  }
  const std::vector<std::string>& ways() const override { return cuda_ways(); }
  std::string refusal(const std::string& way) const override {
    if (!device_.shared || (way != "one-sided" && way != "kernel")) return {};
    return "two ranks have one GPU, and kernels of two processes that wait for each other need not run together there; "
           "start "
           "one rank for each GPU";
  }
  double copy_seconds() override { return copy_seconds(world_.comm()); }
  double copy_seconds_alone() override { return copy_seconds(world_.self()); }
  std::unique_ptr<Way> make(const std::string& way) override {
    const Needs needs{world_.comm(), problem_, tiling_, device_.number};
    if (way == "messages") return make_messages(needs);
    if (way == "stream") return make_stream(needs);
    if (way == "one-sided") return make_one_sided(needs);
    return make_kernel(needs);
  }
  std::unique_ptr<Way> make_alone() override { return make_one_sided({world_.self(), problem_, tiling_, device_.number}); }

 private:
  // The driver's copies or a kernel's, whichever are quicker: the median of five times ten of them.
  double copy_seconds(const isthmus::Comm& comm) const {
    const DeviceGrid grid(problem_, example::part_of(problem_.cut_rows(), comm.size(), comm.rank()));
    grid.fill(stream_);
    double least = 0;
    for (const bool by_driver : {true, false}) {
      std::array<double, 6> all{};
      for (double& seconds : all)
        seconds = example::slowest_seconds(comm,
                                           [&] {
                                             for (int n = 0; n < kCopiesAtOnce; ++n) copy_rows(grid, by_driver, stream_);
                                             stream_.wait();
                                           }) /
                  kCopiesAtOnce;
      std::sort(all.begin() + 1, all.end());  // the first one finds everything cold
      if (by_driver || all[3] < least) least = all[3];
    }
    return least;
  }

  const isthmus::World& world_;
  const Problem& problem_;
  const example::cuda::Device device_;
  example::cuda::Stream stream_;
  Tiling tiling_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const isthmus::World& world, const Problem& problem) {
  example::cuda::Device device = example::cuda::take_device(world);
  if (problem.batch != 0 && problem.batch != 4 && problem.batch != 8)
    throw example::Mistake("--batch is " + std::to_string(problem.batch) + ", and has to be 4 or 8, or 0 for the quicker");
  return std::make_unique<CudaBackend>(world, problem, std::move(device));
}

}  // namespace jacobi
