#include "device_grid.hpp"

#include <limits>

namespace jacobi {
namespace {

using example::cuda::check;

std::int64_t level_floats(const Problem& problem, const example::Part& part) {
  return (part.count + 2) * pitch_of(problem.nx);
}

// Of fine tiles, so many that every place for a block gets two.
int rows_of_two_rounds(int columns) {
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  constexpr int kBlocks = 4, kColumns = 1024;  // on a multiprocessor; of a block
  return 2 * multiprocessors * kBlocks * kColumns / columns * kFineHeight;
}

class Timer {
 public:
  Timer() {
    for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), "cudaEventCreate");
  }
  ~Timer() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  template <class Action>
  float milliseconds(const example::cuda::Stream& stream, const Action& action) const {
    check(cudaEventRecord(events_[0], stream.get()), "cudaEventRecord");
    action();
    check(cudaEventRecord(events_[1], stream.get()), "cudaEventRecord");
    check(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
    float time = 0;
    check(cudaEventElapsedTime(&time, events_[0], events_[1]), "cudaEventElapsedTime");
    return time;
  }

 private:
  std::array<cudaEvent_t, 2> events_{};
};

}  // namespace

DeviceGrid::DeviceGrid(const Problem& problem, example::Part part)
    : DeviceGrid(problem, part, std::array<float*, 2>{nullptr, nullptr}) {
  const std::int64_t floats = level_floats(problem, part);
  memory_ = example::cuda::memory<float>(2 * static_cast<std::size_t>(floats));
  cells_.levels[0] = memory_.get();
  cells_.levels[1] = memory_.get() + floats;
}

DeviceGrid::DeviceGrid(const Problem& problem, example::Part part, std::array<float*, 2> levels) {
  cells_ = {{levels[0], levels[1]}, pitch_of(problem.nx), static_cast<int>(problem.nx), static_cast<int>(part.count)};
  std::vector<float> edges;
  for (std::int64_t y = 0; y < part.count + 2; ++y) edges.push_back(static_cast<float>(problem.start(0, part.first + y)));
  edges_ = example::cuda::memory<float>(edges.size());
  check(cudaMemcpy(edges_.get(), edges.data(), edges.size() * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
}

void DeviceGrid::fill(const example::cuda::Stream& stream) const {
  launch_fill(cells_, edges_.get(), stream.get());
  stream.wait();
}

example::Field DeviceGrid::download(int level) {
  const auto width = static_cast<std::size_t>(cells_.columns) * sizeof(float);
  const auto height = static_cast<std::size_t>(cells_.rows) + 2;
  host_.resize(height * static_cast<std::size_t>(cells_.columns));
  check(cudaMemcpy2D(host_.data(), width, cells_.levels[level], static_cast<std::size_t>(cells_.pitch) * sizeof(float),
                     width, height, cudaMemcpyDeviceToHost),
        "cudaMemcpy2D");
  return {{host_.data(), host_.data()}, cells_.rows, cells_.columns};
}

Sweep DeviceGrid::sweep(int iteration, const Tiling& tiling, float factor, float* sums, bool adds) const {
  const int to = iteration % 2;
  return {cells_.levels[1 - to],
          cells_.levels[to],
          nullptr,
          nullptr,
          cells_.pitch,
          cells_.columns,
          cells_.rows,
          tiling.height,
          tiling.fine_rows,
          factor,
          adds ? sums + iteration % kRing : nullptr,
          sums != nullptr ? sums + (iteration + 1) % kRing : nullptr};
}

Tiling tiling_for(const Problem& problem, const DeviceGrid& grid, const example::cuda::Stream& stream) {
  const auto sums = example::cuda::memory<float>(kRing);
  grid.fill(stream);
  const Timer timer;
  Tiling best;
  const int fine_rows = rows_of_two_rounds(grid.cells().columns);
  float least = std::numeric_limits<float>::max();
  for (const int batch : {4, 8})
    for (const int height : {8, 16, 32, 64}) {
      if (problem.batch != 0 && problem.batch != batch) continue;
      const Tiling tiling{batch, problem.height != 0 ? problem.height : height, fine_rows};
      const auto sweeps = [&](int first, int last) {
        for (int n = first; n <= last; ++n)
          launch_sweep(grid.sweep(n, tiling, problem.factor(), sums.get(), true), Share::all, batch, stream.get());
      };
      sweeps(1, 2);
      const float time = timer.milliseconds(stream, [&] { sweeps(3, 8); });
      if (time >= least) continue;
      least = time;
      best = tiling;
    }
  return best;
}

void copy_rows(const DeviceGrid& grid, bool by_driver, const example::cuda::Stream& stream) {
  const std::int64_t floats = grid.cells().rows * grid.cells().pitch;
  if (!by_driver) return launch_copy(grid.row(1, 1), grid.row(0, 1), floats, stream.get());
  check(cudaMemcpyAsync(grid.row(1, 1), grid.row(0, 1), static_cast<std::size_t>(floats) * sizeof(float),
                        cudaMemcpyDeviceToDevice, stream.get()),
        "cudaMemcpyAsync");
}

}  // namespace jacobi
