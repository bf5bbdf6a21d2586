// On GPUs.
#include <cstring>

#include "common/program.hpp"
#include "launched.hpp"

namespace jacobi {
namespace {

using example::cuda::check;

constexpr int kCopiesAtOnce = 10;

// One of all ranks, the first without a device; or their number.
int first_without_device(const isthmus::Comm& comm, bool missing) {
  return comm.size() - example::largest(comm, missing ? comm.size() - comm.rank() : 0);
}

class CudaBackend : public Backend {
 public:
  CudaBackend(const isthmus::World& world, const Problem& problem, int device)
      : world_(world), problem_(problem), device_(device), shared_(shares_device()) {
    const isthmus::Comm comm = world_.comm();
    {
      const DeviceGrid grid(problem_, example::part_of(problem_.cut_rows(), comm.size(), comm.rank()));
      tiling_ = tiling_for(problem_, grid, stream_);
    }
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
    name_ = properties.name;
  }
  std::string text() const override {
    return std::string(name_) + ", tiles of " + std::to_string(tiling_.height) + " rows, " + std::to_string(tiling_.batch) +
           " at once";
  }
  const std::vector<std::string>& ways() const override { return cuda_ways(); }
  std::string refusal(const std::string& way) const override {
    if (!shared_ || (way != "one-sided" && way != "kernel")) return {};
    return "two ranks have one GPU, and kernels of two processes that wait for each other need not run together there; "
           "start "
           "one rank for each GPU";
  }
  double copy_seconds() override { return copy_seconds(world_.comm()); }
  double copy_seconds_alone() override { return copy_seconds(world_.self()); }
  std::unique_ptr<Way> make(const std::string& way) override {
    const Needs needs{world_.comm(), problem_, tiling_, device_};
    if (way == "messages") return make_messages(needs);
    if (way == "stream") return make_stream(needs);
    if (way == "one-sided") return make_one_sided(needs);
    return make_kernel(needs);
  }
  std::unique_ptr<Way> make_alone() override { return make_one_sided({world_.self(), problem_, tiling_, device_}); }

 private:
  bool shares_device() const {
    const isthmus::Comm comm = world_.comm();
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
    const auto size = static_cast<std::size_t>(comm.size());
    std::vector<std::uint64_t> mine(2 * size), all(2 * size);
    std::memcpy(&mine[2 * static_cast<std::size_t>(comm.rank())], &properties.uuid, sizeof properties.uuid);
    comm.allreduce(mine, all, isthmus::op::sum);
    for (std::size_t one = 0; one < size; ++one)
      for (std::size_t other = one + 1; other < size; ++other)
        if (all[2 * one] == all[2 * other] && all[2 * one + 1] == all[2 * other + 1]) return true;
    return false;
  }
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
  int device_;
  bool shared_;
  std::string name_;
  example::cuda::Stream stream_;
  Tiling tiling_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const isthmus::World& world, const Problem& problem) {
  const isthmus::Comm comm = world.comm();
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  const int missing = first_without_device(comm, code != cudaSuccess || devices == 0);
  if (missing < comm.size())
    throw example::Mistake("--device cuda cannot be had here: rank " + std::to_string(missing) + " finds no CUDA device" +
                           (code != cudaSuccess ? std::string(" (") + cudaGetErrorString(code) + ")" : std::string()) +
                           "; take --device host");
  if (problem.batch != 0 && problem.batch != 4 && problem.batch != 8)
    throw example::Mistake("--batch is " + std::to_string(problem.batch) + ", and has to be 4 or 8, or 0 for the quicker");
  const int device = comm.local_rank() % devices;
  check(cudaSetDevice(device), "cudaSetDevice");
  return std::make_unique<CudaBackend>(world, problem, device);
}

}  // namespace jacobi
