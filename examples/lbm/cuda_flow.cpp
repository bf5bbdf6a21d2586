#include "cuda_flow.hpp"

#include <cmath>

#include "cases.hpp"

namespace lbm {
namespace {

using example::cuda::check, example::cuda::memory;

template <class T>
std::shared_ptr<T[]> table(std::int64_t count, const auto& at) {
  std::vector<T> values;
  for (std::int64_t n = 0; n < count; ++n) values.push_back(at(n));
  auto made = memory<T>(values.size());
  check(cudaMemcpy(made.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return made;
}

template <class T>
std::vector<T> fetched(const std::shared_ptr<T[]>& from, std::size_t count, cudaStream_t stream) {
  std::vector<T> values(count);
  check(cudaMemcpyAsync(values.data(), from.get(), count * sizeof(T), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return values;
}

}  // namespace

Lanes::Lanes() {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  check(cudaStreamCreateWithPriority(&front_, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority");
  check(cudaStreamCreateWithPriority(&back_, cudaStreamNonBlocking, least), "cudaStreamCreateWithPriority");
  check(cudaEventCreateWithFlags(&of_front_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check(cudaEventCreateWithFlags(&of_back_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}
Lanes::~Lanes() {
  cudaEventDestroy(of_front_);
  cudaEventDestroy(of_back_);
  cudaStreamDestroy(front_);
  cudaStreamDestroy(back_);
}
void Lanes::meet() const {
  check(cudaStreamWaitEvent(front_, of_back_, 0), "cudaStreamWaitEvent");
  check(cudaStreamWaitEvent(back_, of_front_, 0), "cudaStreamWaitEvent");
}
void Lanes::fork() const {
  front_given();
  check(cudaStreamWaitEvent(back_, of_front_, 0), "cudaStreamWaitEvent");
}
void Lanes::join() const {
  back_given();
  check(cudaStreamWaitEvent(front_, of_back_, 0), "cudaStreamWaitEvent");
}
void Lanes::wait() const {
  check(cudaStreamSynchronize(back_), "cudaStreamSynchronize");
  check(cudaStreamSynchronize(front_), "cudaStreamSynchronize");
}

CudaFlow::CudaFlow(const Cut& cut, const Vortices& vortices, const std::array<float*, 2>& levels)
    : cut_(cut),
      levels_(levels),
      vortices_(vortices),
      x_(table<Angle>(cut.setup.cells[2], [&](std::int64_t n) { return angle_at(vortices, n); })),
      y_(table<Angle>(cut.setup.cells[1], [&](std::int64_t n) { return angle_at(vortices, n); })),
      across_(table<double>(cut.setup.cells[0], [&](std::int64_t n) { return across_at(vortices, n); })) {}

void CudaFlow::begin(cudaStream_t stream) const {
  for (float* const level : levels_)
    check(cudaMemsetAsync(level, 0, static_cast<std::size_t>(cut_.populations()) * sizeof(float), stream),
          "cudaMemsetAsync");
  if (vortices_.speed != 0) lbm::begin(start(), cut_.shape, levels_[0], stream);
}

Sweep CudaFlow::of(std::size_t from) const {
  const Setup& setup = cut_.setup;
  return {cut_.shape,
          levels_[from],
          levels_[1 - from],
          static_cast<float>(1 / setup.tau),
          static_cast<float>(setup.lid),
          setup.walls[0] || setup.walls[1] || setup.walls[2]};
}

Start CudaFlow::start() const {
  Start made{vortices_, x_.get(), y_.get(), across_.get(), {}, {}, cut_.setup.tau};
  for (std::size_t d = 0; d < 3; ++d) {
    made.first[d] = static_cast<int>(cut_.first(d));
    made.all[d] = static_cast<int>(cut_.setup.cells[d]);
  }
  return made;
}

void CudaFlow::tune(cudaStream_t stream) {
  double best = INFINITY;
  Tile taken = tile_;
  for (const Caching caching : {Caching::plain, Caching::stream_out, Caching::stream_both})
    for (const int threads : {128, kMostThreads})
      for (const int x : {32, 64, 128, 256}) {
        if (x > threads || (x > 32 && x >= 2 * cut_.shape.cells[2])) continue;
        tile_ = {x, threads / x, caching};
        sweep_all(0, stream);
        const double seconds = seconds_of(stream, 3, [&] { sweep_all(0, stream); });
        if (seconds >= best) continue;
        best = seconds;
        taken = tile_;
      }
  tile_ = taken;
}

std::string CudaFlow::tile() const {
  return std::to_string(tile_.x) + " x " + std::to_string(tile_.y) +
         (tile_.caching == Caching::plain        ? ""
          : tile_.caching == Caching::stream_out ? ", streaming stores"
                                                 : ", streaming loads and stores");
}

Sums CudaFlow::sums(std::size_t level, cudaStream_t stream) const {
  const auto layers = static_cast<std::size_t>(cut_.shape.cells[0]);
  const auto found = memory<double2>(layers);
  measure(cut_.shape, levels_[level], found.get(), stream);
  Sums all;
  for (const double2& layer : fetched(found, layers, stream)) {
    all.density += layer.x;
    all.energy += layer.y;
  }
  return all;
}

std::vector<std::uint64_t> CudaFlow::prints(std::size_t level, cudaStream_t stream) const {
  const std::size_t count = Fluid::kCount * static_cast<std::size_t>(cut_.setup.cells[0]);
  const auto found = memory<std::uint64_t>(count);
  check(cudaMemsetAsync(found.get(), 0, count * sizeof(std::uint64_t), stream), "cudaMemsetAsync");
  print(start(), cut_.shape, levels_[level], found.get(), stream);
  return fetched(found, count, stream);
}

void CudaFlow::download(std::size_t level, Fluid& to, cudaStream_t stream) const {
  const Shape& shape = cut_.shape;
  const Part& part = to.part();
  std::vector<float> population(static_cast<std::size_t>(shape.size));
  for (std::size_t q = 0; q < Fluid::kCount; ++q) {
    check(cudaMemcpyAsync(population.data(), levels_[level] + population.size() * q, population.size() * sizeof(float),
                          cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (int z = 0; z < shape.cells[0]; ++z)
      for (int y = 0; y < shape.cells[1]; ++y)
        std::copy_n(population.data() + shape.place(z, y, 0), shape.cells[2],
                    to.population(level, q) + part.at(z + 1, y + 1, 1));
  }
}

void CudaFlow::spoil(std::size_t level) const {
  float value = 0;
  float* const at = levels_[level] + cut_.shape.size + cut_.shape.place(0, 0, 0);
  check(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy");
  value = std::nextafter(value, 2.0F);
  check(cudaMemcpy(at, &value, sizeof value, cudaMemcpyHostToDevice), "cudaMemcpy");
  // Such a copy may return before the bytes are there, and other streams do not wait for it.
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

double copy_rate(const float* from, float* to, std::int64_t count, cudaStream_t stream) {
  const std::int64_t whole = count / 4 * 4;
  const std::size_t bytes = static_cast<std::size_t>(whole) * sizeof(float);
  const auto by_driver = [&] {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  };
  const auto by_kernel = [&] { copy(from, to, whole, stream); };
  by_driver();
  by_kernel();
  const double best = std::min(seconds_of(stream, 10, by_driver), seconds_of(stream, 10, by_kernel));
  return 2 * static_cast<double>(bytes) / best;
}

}  // namespace lbm
