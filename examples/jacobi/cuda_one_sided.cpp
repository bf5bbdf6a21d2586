// Rows by kernels that store them where they belong: a kernel for each iteration, or one for all.
#include <isthmus/heap.hpp>

#include "common/program.hpp"
#include "launched.hpp"

namespace jacobi {
namespace {

using example::cuda::check;

// Cells, flags and packets in a symmetric heap, and the addresses of the neighbours' halos.
class Symmetric {
 public:
  explicit Symmetric(const Needs& needs)
      : ring_(needs.comm),
        heap_(needs.comm, isthmus::Kind::cuda, bytes_for(needs), 0, needs.device),
        arrived_(example::cuda::memory<std::uint32_t>(2)) {
    check(cudaMemset(arrived_.get(), 0, 2 * sizeof(std::uint32_t)), "cudaMemset");
    const auto pes = static_cast<std::uint64_t>(needs.comm.size());
    for (float*& level : levels_) level = heap_.alloc<float>(floats_for(needs), 256);
    flags_ = heap_.calloc<std::uint64_t>(2);
    inbox_ = heap_.calloc<std::uint64_t>(kRing * pes);
    const std::int64_t pitch = pitch_of(needs.problem.nx);
    const std::int64_t behind_up = example::part_of(needs.problem.cut_rows(), needs.comm.size(), ring_.up).count + 1;
    for (std::size_t level = 0; level < 2; ++level) {
      beside_up_[level] = heap_.pointer(levels_[level], ring_.up) + behind_up * pitch;
      beside_down_[level] = heap_.pointer(levels_[level], ring_.down);
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    heap_.barrier();
  }
  std::array<float*, 2> levels() const { return levels_; }
  float* beside_up(int level) const { return beside_up_[static_cast<std::size_t>(level)]; }
  float* beside_down(int level) const { return beside_down_[static_cast<std::size_t>(level)]; }
  Others others(std::uint64_t* failure) const {
    return {heap_.device_view().team, ring_.up, ring_.down, flags_, arrived_.get(), inbox_, failure};
  }
  void destroy() { heap_.destroy(); }

 private:
  static std::uint64_t floats_for(const Needs& needs) {
    const std::int64_t most = (needs.problem.cut_rows() + needs.comm.size() - 1) / needs.comm.size();
    return static_cast<std::uint64_t>((most + 2) * pitch_of(needs.problem.nx));
  }
  static std::uint64_t bytes_for(const Needs& needs) {
    return 2 * floats_for(needs) * sizeof(float) + (std::uint64_t{1} << 20);
  }

  Ring ring_;
  isthmus::Heap heap_;
  std::array<float*, 2> levels_{};
  std::array<float*, 2> beside_up_{}, beside_down_{};
  std::uint64_t* flags_ = nullptr;
  std::uint64_t* inbox_ = nullptr;
  std::shared_ptr<std::uint32_t[]> arrived_;
};

std::unique_ptr<DeviceGrid> grid_of(const Needs& needs, const Symmetric& symmetric) {
  const example::Part part = example::part_of(needs.problem.cut_rows(), needs.comm.size(), needs.comm.rank());
  return std::make_unique<DeviceGrid>(needs.problem, part, symmetric.levels());
}

class OneSided final : public Launched {
 public:
  explicit OneSided(const Needs& needs)
      : Launched(needs.comm, needs.tiling, needs.problem.factor()),
        symmetric_(needs),
        others_(symmetric_.others(mailbox_.failure())) {
    grid_ = grid_of(needs, symmetric_);
  }
  void close() override { symmetric_.destroy(); }

 protected:
  void launch(int iteration, bool checks, bool checked_before) override {
    Sweep now = sweep(iteration, checks);
    now.beside_up = symmetric_.beside_up(iteration % 2);
    now.beside_down = symmetric_.beside_down(iteration % 2);
    const Norm before = checked_before ? next_norm(iteration - 1) : Norm{};
    ++step_;
    launch_step(now, others_, step_, checked_before ? &before : nullptr, tiling_.batch, stream_.get());
  }
  float change_of(int iteration, bool last) override {
    if (last) launch_norm(others_, next_norm(iteration), stream_.get());
    return mailbox_.await(stamp_, stream_);
  }
  void wait() override {
    stream_.wait();
    mailbox_.must_be_fine();
  }

 private:
  // Of the step that was launched last.
  Norm next_norm(int iteration) {
    stamp_ = static_cast<std::uint32_t>(step_);
    return {step_, ++norms_, sum_of(iteration), mailbox_.word()};
  }
  Symmetric symmetric_;
  Mailbox mailbox_;
  Others others_;
  std::uint64_t step_ = 0, norms_ = 0;  // of all runs
  std::uint32_t stamp_ = 0;
};

class Persistent final : public Way {
 public:
  explicit Persistent(const Needs& needs)
      : comm_(needs.comm),
        tiling_(needs.tiling),
        factor_(needs.problem.factor()),
        symmetric_(needs),
        grid_(grid_of(needs, symmetric_)),
        scratch_(example::cuda::memory<Scratch>(1)),
        outcome_(example::cuda::pinned<Outcome>(1)) {}
  Solved solve(const Problem& problem) override {
    grid_->fill(stream_);
    check(cudaMemset(scratch_.get(), 0, sizeof(Scratch)), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    outcome_[0] = {};
    Job job{grid_->cells(),
            {symmetric_.beside_up(0), symmetric_.beside_up(1)},
            {symmetric_.beside_down(0), symmetric_.beside_down(1)},
            tiling_.height,
            tiling_.fine_rows,
            factor_,
            problem.iterations,
            problem.nccheck,
            problem.tolerance,
            steps_,
            norms_,
            symmetric_.others(&outcome_[0].failure),
            scratch_.get(),
            outcome_.get()};
    const double seconds = example::slowest_seconds(comm_, [&] {
      launch_persistent(job, tiling_.batch, stream_.get());
      stream_.wait();
    });
    const Outcome& outcome = outcome_[0];
    if (outcome.failure != 0) throw std::runtime_error(Failure{outcome.failure}.text());
    steps_ += static_cast<std::uint64_t>(outcome.run);
    norms_ += static_cast<std::uint64_t>(outcome.run / problem.nccheck);
    return {outcome.iterations, outcome.first_norm, outcome.norm, seconds / outcome.iterations};
  }
  example::Field result(int level) override { return grid_->download(level); }
  void close() override { symmetric_.destroy(); }

 private:
  isthmus::Comm comm_;
  Tiling tiling_;
  float factor_;
  Symmetric symmetric_;
  std::unique_ptr<DeviceGrid> grid_;
  example::cuda::Stream stream_;
  std::shared_ptr<Scratch[]> scratch_;
  std::shared_ptr<Outcome[]> outcome_;
  std::uint64_t steps_ = 0, norms_ = 0;  // of all runs
};

}  // namespace

std::unique_ptr<Way> make_one_sided(const Needs& needs) { return std::make_unique<OneSided>(needs); }
std::unique_ptr<Way> make_kernel(const Needs& needs) { return std::make_unique<Persistent>(needs); }

}  // namespace jacobi
