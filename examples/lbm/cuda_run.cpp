#include "cuda_run.hpp"

namespace lbm {
namespace {

using example::Mistake, example::cuda::check;

// Levels of more are not copied in full, only so many floats.
constexpr std::int64_t kCopied = 1 << 28;

Triple triple_of(const std::vector<int>& values) { return {values[0], values[1], values[2]}; }

std::unique_ptr<CudaSteps> steps_for(const isthmus::World& world, const isthmus::HaloGrid& grid, const Cut& cut,
                                     const Vortices& vortices, const std::string& exchange,
                                     const example::cuda::Device& device) {
  if (world.size() == 1) return steps_alone(cut, vortices);
  if (exchange == "graph") return steps_in_graph(grid, cut, vortices);
  if (exchange == "messages") return steps_by_messages(grid, cut, vortices);
  if (device.shared)
    throw Mistake(
        "--exchange one-sided with --device cuda needs a GPU for each rank: kernels wait for the neighbours' kernels, and "
        "two processes' "
        "kernels on one GPU do not run together; take fewer ranks, or --exchange messages or graph");
  return steps_one_sided(grid, cut, vortices, device.number);
}

}  // namespace

CudaRun::CudaRun(const isthmus::World& world, const isthmus::HaloGrid& grid, const Setup& setup, const Vortices& vortices,
                 const std::string& exchange, int padding)
    : world_(world),
      device_(example::cuda::take_device(world)),
      cut_(setup, triple_of(grid.dims()), triple_of(grid.coords()), padding),
      vortices_(vortices),
      steps_of_(steps_for(world, grid, cut_, vortices, exchange, device_)) {
  // Whatever is made at a first time is made by these steps, of which nothing is kept.
  flow().begin(stream());
  steps_of_->lanes().wait();
  steps_of_->advance(0, 2);
  world.comm().barrier();
  copy_rate_ = copy_rate(flow().level(0), flow().level(1), std::min(kCopied, cut_.populations()), stream());
  flow().begin(stream());
  flow().tune(stream());
  steps_of_->lanes().wait();
}

// The barrier of slowest_seconds is also what lets neighbours store into the first halos: they have begun everywhere.
void CudaRun::advance(std::int64_t count) {
  seconds_ += example::slowest_seconds(world_.comm(), [&] { steps_of_->advance(steps_, count); });
  steps_ += count;
}

Sums CudaRun::sums() const {
  const Sums mine = flow().sums(level(), stream());
  return {example::sum(world_.comm(), mine.density), example::sum(world_.comm(), mine.energy)};
}

const Fluid& CudaRun::mirrored() {
  if (!mirror_)
    mirror_.emplace(Part(cut_.setup, {cut_.ranks.begin(), cut_.ranks.end()}, {cut_.coords.begin(), cut_.coords.end()}),
                    cut_.setup);
  flow().download(level(), *mirror_, stream());
  return *mirror_;
}

void CudaRun::tell(Report& report) const {
  report.device = device_.name;
  report.tile = flow().tile();
  report.copy_rate = example::sum(world_.comm(), copy_rate_);
  report.copy_rate_alone = copy_rate_;
  if (world_.size() > 1) compare_alone(report);
}

void CudaRun::compare_alone(Report& report) const {
  const Cut whole(cut_.setup, {1, 1, 1}, {0, 0, 0}, cut_.padding);
  const auto wanted = 2 * static_cast<std::uint64_t>(whole.populations()) * sizeof(float) + (256ULL << 20U);
  std::size_t free = 0, all = 0;
  check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  const bool fits = example::largest(world_.comm(), world_.rank() == 0 && free < wanted ? 1 : 0) == 0;
  if (!fits) {
    report.alone.text = "the whole box needs " + std::to_string(wanted) + " bytes on rank 0's device, where " +
                        std::to_string(free) + " are free";
    return;
  }
  std::vector<std::uint64_t> mine = flow().prints(level(), stream()), cut = mine, alone(mine.size());
  world_.comm().allreduce(mine, cut, isthmus::op::sum);
  double seconds = 0;
  if (world_.rank() == 0) {
    const auto one = steps_alone(whole, vortices_);
    one->flow().begin(one->lanes().front());
    one->flow().tune(one->lanes().front());
    one->lanes().wait();
    const example::Clock clock;
    one->advance(0, steps_);
    seconds = clock.seconds();
    alone = one->flow().prints(level(), one->lanes().front());
  }
  world_.comm().bcast(alone, 0);
  report.alone.done = true;
  report.alone.seconds = example::largest(world_.comm(), seconds);
  const auto off = std::mismatch(cut.begin(), cut.end(), alone.begin()).first;
  report.alone.same = off == cut.end();
  if (report.alone.same) return;
  const auto at = static_cast<std::int64_t>(off - cut.begin());
  report.alone.text = "first in population " + std::to_string(at / cut_.setup.cells[0]) + " of layer " +
                      std::to_string(at % cut_.setup.cells[0]) + " along z";
}

}  // namespace lbm
