#include "launched.hpp"

#include <sched.h>
#include <isthmus/device/wait.cuh>

#include <atomic>
#include <bit>

#include "common/program.hpp"

namespace jacobi {

using example::cuda::check;

constexpr double kPatience = 60;  // s

std::string Failure::text() const {
  if (word == 0) return {};
  constexpr const char* kAwaited[] = {"the row of the neighbour above", "the row of the neighbour below",
                                      "another rank's part of the norm", "the other blocks of the grid"};
  const auto status = static_cast<int>(word & 15U);
  return std::string("in step ") + std::to_string(word >> 8) + " a kernel waited for " + kAwaited[word >> 4 & 3U] +
         ", and " +
         (status == static_cast<int>(ist::device::Status::peer_dead)
              ? "a rank has died"
              : "it did not come within " + std::to_string(kDeadline / 1000000000) + " s");
}

Mailbox::Mailbox() : memory_(example::cuda::pinned<std::uint64_t>(2)) { memory_[0] = memory_[1] = 0; }

void Mailbox::must_be_fine() const {
  const Failure failure{std::atomic_ref(memory_[1]).load()};
  if (failure.word != 0) throw std::runtime_error(failure.text());
}

float Mailbox::await(std::uint32_t stamp, const example::cuda::Stream& stream) const {
  const example::Clock clock;
  for (unsigned looks = 1;; ++looks) {
    const std::uint64_t found = std::atomic_ref(memory_[0]).load(std::memory_order_acquire);
    if (found >> 32 == stamp) return std::bit_cast<float>(static_cast<std::uint32_t>(found));
    if (looks % 1024 != 0) continue;
    must_be_fine();
    const cudaError_t state = cudaStreamQuery(stream.get());
    if (state != cudaErrorNotReady) check(state, "what was launched");
    if (clock.seconds() > kPatience)
      throw std::runtime_error("norm " + std::to_string(stamp) + " did not come within " + std::to_string(kPatience) +
                               " s, and the last that came is " + std::to_string(found >> 32));
    sched_yield();
  }
}

Launched::Launched(isthmus::Comm comm, const Tiling& tiling, float factor)
    : comm_(std::move(comm)), tiling_(tiling), factor_(factor), sums_(example::cuda::memory<float>(kRing)) {}

Solved Launched::solve(const Problem& problem) {
  grid_->fill(stream_);
  check(cudaMemset(sums_.get(), 0, kRing * sizeof(float)), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const auto checks = [&](int iteration) { return iteration > 0 && iteration % problem.nccheck == 0; };
  Solved solved;
  // Whether this norm ends it.
  const auto ends = [&](int iteration, bool last) {
    solved.norm = std::sqrt(change_of(iteration, last));
    if (iteration == 1) solved.first_norm = solved.norm;
    return static_cast<double>(solved.norm) <= problem.tolerance;
  };
  const double seconds = example::slowest_seconds(comm_, [&] {
    int iteration = 1;
    for (;; ++iteration) {
      launch(iteration, checks(iteration), checks(iteration - 1));
      // Of the iteration before, while this one runs.
      if (checks(iteration - 1) && ends(iteration - 1, false)) {
        --iteration;
        break;
      }
      if (iteration < problem.iterations) continue;
      if (checks(iteration)) ends(iteration, true);
      break;
    }
    solved.iterations = iteration;
    wait();
  });
  solved.seconds = seconds / solved.iterations;
  return solved;
}

}  // namespace jacobi
