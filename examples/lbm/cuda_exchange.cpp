#include "cuda_exchange.hpp"

#include <isthmus/heap.hpp>

namespace lbm {
namespace {

using example::cuda::check, example::cuda::memory;

class AloneOnDevice : public CudaSteps {
 public:
  AloneOnDevice(const Cut& cut, const Vortices& vortices) { allocate(cut, vortices); }
  void advance(std::int64_t first, std::int64_t count) override {
    for (std::int64_t n = first; n < first + count; ++n) flow_->sweep_all(static_cast<std::size_t>(n % 2), lanes_.front());
    lanes_.wait();
  }
  std::string text() const override { return "no neighbours\n"; }
};

// Direction in words: -1, 0 and 1 along z, y and x.
std::string words_of(const Velocity& step) {
  return std::to_string(step[0]) + ", " + std::to_string(step[1]) + ", " + std::to_string(step[2]);
}

std::size_t bytes_over(const Cut& cut, const Velocity& step) {
  Parcels parcels{};
  add_parcel(parcels, cut.side(step, true), step, nullptr);
  return static_cast<std::size_t>(parcels.begin[1]) * sizeof(float);
}

class ByMessages : public CudaSteps {
 public:
  ByMessages(const isthmus::HaloGrid& grid, const Cut& cut, const Vortices& vortices) {
    allocate(cut, vortices);
    std::int64_t all = 0;
    each_neighbour(cut, [&](const Velocity& step, int /*number*/) {
      all += std::int64_t{kMostInParcel} * cut.side(step, true).cells();
    });
    buffers_ = memory<float>(static_cast<std::size_t>(2 * all));
    float *out = buffers_.get(), *in = out + all;
    const isthmus::Comm comm = grid.comm();
    each_neighbour(cut, [&](const Velocity& step, int number) {
      const int there = grid.neighbour(step);
      add_parcel(goes_, cut.side(step, true), step, out);
      add_parcel(comes_, cut.side(step, false), {-step[0], -step[1], -step[2]}, in);
      const int sent = elements(goes_), received = elements(comes_);
      // A tag says how it moves, since one rank may lie in several directions.
      requests_.push_back(
          comm.recv_init(isthmus::Buffer::cuda(in, lanes_.front()), received, IST_FLOAT, there, kDirections - 1 - number));
      requests_.push_back(comm.send_init(isthmus::Buffer::cuda(out, lanes_.front()), sent, IST_FLOAT, there, number));
      text_ += "rank " + std::to_string(there) + ", at " + words_of(step) + ": " + std::to_string(bytes_over(cut, step)) +
               " bytes out, " + std::to_string(static_cast<std::size_t>(received) * sizeof(float)) + " bytes in\n";
      out += sent, in += received;
    });
  }
  void advance(std::int64_t first, std::int64_t count) override {
    for (std::int64_t n = first; n < first + count; ++n) {
      const auto level = static_cast<std::size_t>(n % 2);
      lanes_.meet();
      flow_->sweep_border(level, lanes_.front());
      lanes_.front_given();
      flow_->sweep_inner(level, lanes_.back());
      lanes_.back_given();
      exchange(1 - level);
    }
    lanes_.wait();
  }
  std::string text() const override { return text_; }
  // The halos of a level.
  void exchange(std::size_t level) {
    const Shape& shape = flow_->cut().shape;
    pack(goes_, shape, flow_->level(level), lanes_.front());
    isthmus::start_all(requests_);
    isthmus::wait_all(requests_);
    unpack(comes_, shape, flow_->level(level), lanes_.front());
  }

 private:
  // Of the last parcel.
  static int elements(const Parcels& parcels) { return parcels.begin[parcels.count] - parcels.begin[parcels.count - 1]; }

  std::shared_ptr<float[]> buffers_;
  Parcels goes_{}, comes_{};
  std::vector<isthmus::PersistentRequest> requests_;
  std::string text_;
};

class OneSided : public CudaSteps {
 public:
  OneSided(const isthmus::HaloGrid& grid, const Cut& cut, const Vortices& vortices, int device)
      : heap_(grid.comm(), isthmus::Kind::cuda, bytes_for(grid, cut), bytes_for(grid, cut), device) {
    const auto count = static_cast<std::uint64_t>(cut.populations());
    const std::array<float*, 2> levels{heap_.alloc<float>(count, 128), heap_.alloc<float>(count, 128)};
    waits_.view = heap_.device_view().team;
    waits_.flags = heap_.calloc<std::uint64_t>(kDirections);
    waits_.deadline = kDeadline;
    std::fill(std::begin(waits_.pe), std::end(waits_.pe), -1);
    words_ = memory<unsigned>(2);
    check(cudaMemset(words_.get(), 0, 2 * sizeof(unsigned)), "cudaMemset");
    waits_.done = words_.get();
    waits_.lost = reinterpret_cast<int*>(words_.get() + 1);
    each_neighbour(cut, [&](const Velocity& step, int number) {
      waits_.pe[number] = grid.neighbour(step);
      for (std::size_t n = 0; n < 2; ++n)
        crossing_[n].to[number] = heap_.pointer(levels[n], waits_.pe[number]) + cut.to_halo(step);
      text_ += "rank " + std::to_string(waits_.pe[number]) + ", at " + words_of(step) + ": " +
               std::to_string(bytes_over(cut, step)) + " bytes out, by the border's kernel\n";
    });
    flow_ = std::make_unique<CudaFlow>(cut, vortices, levels);
  }
  void advance(std::int64_t first, std::int64_t count) override {
    for (std::int64_t n = first; n < first + count; ++n) {
      const auto level = static_cast<std::size_t>(n % 2);
      waits_.step = told_++;
      lanes_.meet();
      flow_->sweep_border(level, crossing_[1 - level], waits_, lanes_.front());
      lanes_.front_given();
      flow_->sweep_inner(level, lanes_.back());
      lanes_.back_given();
    }
    lanes_.wait();
    int lost = 0;
    check(cudaMemcpy(&lost, waits_.lost, sizeof lost, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (lost == 0) return;
    throw std::runtime_error("of steps " + std::to_string(first) + " to " + std::to_string(first + count - 1) +
                             " one's halo did not come from rank " + std::to_string(waits_.pe[lost - 1]) + " (direction " +
                             std::to_string(lost - 1) + ") within " + std::to_string(kDeadline / 1000000000) +
                             " s, or that rank has died; see what the other ranks say");
  }
  void end() override { heap_.destroy(); }
  std::string text() const override { return text_; }

 private:
  static constexpr std::uint64_t kDeadline = 10000000000;  // ns
  static std::uint64_t bytes_for(const isthmus::HaloGrid& grid, const Cut& cut) {
    constexpr std::uint64_t kMebibyte = 1 << 20;
    const auto pes = static_cast<std::uint64_t>(grid.comm().size());
    const std::uint64_t bytes = 2 * static_cast<std::uint64_t>(cut.populations()) * sizeof(float) + IST_TEAM_SYNC_BYTES(pes);
    return (bytes / kMebibyte + 4) * kMebibyte;
  }

  isthmus::Heap heap_;
  std::shared_ptr<unsigned[]> words_;
  std::array<Crossing, 2> crossing_{};
  Waits waits_{};
  std::uint64_t told_ = 0;  // steps of all calls, which flags count
  std::string text_;
};

class InGraph : public CudaSteps {
 public:
  InGraph(const isthmus::HaloGrid& grid, const Cut& cut, const Vortices& vortices) {
    allocate(cut, vortices);
    fields_ = {fields(0), fields(1)};
    halo_.emplace(grid, fields_[0], isthmus::HaloOptions{reach<D3Q19>()});
    for (const std::size_t level : {1U, 0U}) {
      halo_->set_fields(fields_[level]);
      halo_->prepare_on(lanes_.front());
    }
  }
  void advance(std::int64_t first, std::int64_t count) override {
    std::int64_t n = first;
    if (n % 2 == 1 && count > 0) step(n++);
    for (; n + 2 <= first + count; n += 2) graph().launch(lanes_.front());
    if (n < first + count) step(n);
    lanes_.wait();
  }
  void end() override { graph_ = {}; }
  std::string text() const override { return halo_->text(); }

 private:
  std::vector<isthmus::HaloField> fields(std::size_t level) const {
    const Shape& shape = flow_->cut().shape;
    std::vector<isthmus::HaloField> made;
    for (std::size_t q = 1; q < Fluid::kCount; ++q) {
      std::array<isthmus::HaloRange, 3> ranges{};
      bool crosses = false;
      for (std::size_t d = 0; d < 3; ++d) {
        const int c = shape.margin[d] == 0 ? 0 : D3Q19::kVelocities[q][d];
        ranges[d] = {c > 0, c < 0, shape.margin[d], shape.margin[d] + shape.cells[d] - 1, shape.lengths[d]};
        crosses = crosses || c != 0;
      }
      float* const population = flow_->level(level) + static_cast<std::ptrdiff_t>(q) * shape.size;
      if (crosses) made.push_back(isthmus::HaloField::of<float>(isthmus::Buffer::cuda(population, lanes_.front()), ranges));
    }
    return made;
  }
  void step(std::int64_t n) {
    const auto level = static_cast<std::size_t>(n % 2);
    halo_->set_fields(fields_[1 - level]);
    lanes_.fork();
    flow_->sweep_border(level, lanes_.front());
    flow_->sweep_inner(level, lanes_.back());
    halo_->exchange_on(lanes_.front());
    lanes_.join();
  }
  // Steps of an even number and the one behind it.
  const example::cuda::Graph& graph() {
    if (!graph_)
      graph_ = example::cuda::captured(lanes_.front(), [&] {
        step(0);
        step(1);
      });
    return graph_;
  }

  std::array<std::vector<isthmus::HaloField>, 2> fields_;
  std::optional<isthmus::Halo> halo_;
  example::cuda::Graph graph_;
};

}  // namespace

void CudaSteps::allocate(const Cut& cut, const Vortices& vortices) {
  const std::int64_t count = cut.populations();
  memory_ = memory<float>(static_cast<std::size_t>(2 * count));
  flow_ = std::make_unique<CudaFlow>(cut, vortices, std::array<float*, 2>{memory_.get(), memory_.get() + count});
}

std::unique_ptr<CudaSteps> steps_alone(const Cut& cut, const Vortices& vortices) {
  return std::make_unique<AloneOnDevice>(cut, vortices);
}
std::unique_ptr<CudaSteps> steps_by_messages(const isthmus::HaloGrid& grid, const Cut& cut, const Vortices& vortices) {
  return std::make_unique<ByMessages>(grid, cut, vortices);
}
std::unique_ptr<CudaSteps> steps_one_sided(const isthmus::HaloGrid& grid, const Cut& cut, const Vortices& vortices,
                                           int device) {
  return std::make_unique<OneSided>(grid, cut, vortices, device);
}
std::unique_ptr<CudaSteps> steps_in_graph(const isthmus::HaloGrid& grid, const Cut& cut, const Vortices& vortices) {
  return std::make_unique<InGraph>(grid, cut, vortices);
}

}  // namespace lbm
