// The way in one kernel: what it needs beside the kernel of cuda_persistent.cuh.
#include <algorithm>
#include <isthmus/heap.hpp>
#include <isthmus/isthmus.hpp>

#include "cuda_ways.hpp"

namespace himeno {
namespace {

using example::cuda::check;

constexpr int kInLaunch = 1000;                      // iterations
constexpr std::uint64_t kDeadline = 10'000'000'000;  // ns; the longest iteration takes some milliseconds

const char* name_of(int status) {
  constexpr const char* names[] = {"ok", "a rank has died", "10 s have passed", "a call was misused"};
  return status >= 0 && status < 4 ? names[status] : "an unknown status";
}

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

// How many threads share the cells: few cells are spread over all multiprocessors, many are taken by full blocks.
struct Grid {
  unsigned threads = 0;
  unsigned blocks = 1;
  unsigned pushers = 0;
  bool can_keep = false;
  unsigned rounds = 0;  // of Persistent
};
// Chunks as a launched sweep's, where each block has several of them; smaller ones where that leaves a few.
unsigned rounds_for(const Grid& grid, unsigned interior) {
  constexpr unsigned kMostRounds = 4;
  const auto chunks_of_block = [&](unsigned rounds) { return interior / (rounds * grid.threads) / grid.blocks; };
  if (chunks_of_block(kMostRounds) >= 8) return kMostRounds;
  return chunks_of_block(1) >= 4 ? 1 : 0;
}
Grid grid_for(bool packets, bool keeps, unsigned border, unsigned interior) {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, current_device()),
        "cudaDeviceGetAttribute");
  Grid grid;
  const auto chunks = [](unsigned quads, unsigned threads) { return (quads + threads - 1) / threads; };
  const auto at_border = [&] { return chunks(border, grid.threads - kFirstAtBorder); };
  const auto all = [&] { return at_border() + chunks(interior, grid.threads); };
  for (grid.threads = 64; grid.threads < most_threads(); grid.threads *= 2)
    if (all() <= 2 * static_cast<unsigned>(multiprocessors)) break;
  // One more block sums.
  const unsigned room = std::min(most_blocks(packets, keeps, grid.threads) - 1, kMostPushers);
  grid.blocks = std::clamp(all(), 1U, room);
  grid.pushers = std::min(grid.blocks, at_border());
  grid.can_keep = chunks(interior, grid.threads) <= grid.blocks;
  grid.rounds = rounds_for(grid, interior);
  return grid;
}
bool is_along_i(const isthmus::HaloGrid& grid) { return grid.dims()[1] == 1 && grid.dims()[2] == 1; }

// Which way a side lies, from where its cells go: into a halo in front of the neighbour's cells or behind them.
std::array<int, 3> direction_of(const Part& part, const ist_halo_side& side) {
  const std::int64_t row = part.ranges[2].total_length, plane = row * part.ranges[1].total_length;
  const std::array<std::int64_t, 3> to{side.to / plane, side.to % plane / row, side.to % row};
  std::array<int, 3> direction{};
  for (std::size_t d = 0; d < 3; ++d) direction[d] = to[d] > part.ranges[d].end ? -1 : to[d] < part.ranges[d].begin ? 1 : 0;
  return direction;
}

class Resident final : public Way {
 public:
  Resident(const isthmus::HaloGrid& grid, const Part& part, std::shared_ptr<const Coefficient> with, bool keeps,
           const Grid& blocks)
      : Way(keeps ? "kernel, coefficients kept" : "kernel"),
        heap_(grid.comm(), isthmus::Kind::cuda, heap_bytes(part, grid.comm().size()), heap_bytes(part, grid.comm().size()),
              current_device()),
        field_(part, with, {lent(part), lent(part)}),
        ended_(example::cuda::memory<Ended>(1)),
        arrived_(example::cuda::memory<std::uint64_t>(1)),
        taken_(example::cuda::memory<unsigned>(1)),
        sums_(example::cuda::memory<double>(kInLaunch)),
        grid_(blocks) {
    check(cudaMemset(ended_.get(), 0, sizeof(Ended)), "cudaMemset");
    job_.shape = shape_of(part), job_.with = with->get();
    job_.p[0] = field_.level(0), job_.p[1] = field_.level(1);
    job_.border = border_work(part), job_.interior = interior_work(part), job_.inner = box_of(part.inner());
    job_.changing = box_of(part.changing(part.inner()));
    job_.flags = heap_.calloc<std::uint64_t>(kFlags);
    job_.arrived = arrived_.get(), job_.sums = sums_.get(), job_.ended = ended_.get();
    job_.deadline = kDeadline;
    job_.view = heap_.device_view().team;
    job_.keeps = keeps;
    job_.rounds = grid_.rounds, job_.taken = taken_.get();
    if (is_along_i(grid)) take_packets(grid);
    partial_ = example::cuda::memory<double>(std::size_t{kInLaunch} * grid_.blocks);
    job_.partial = partial_.get();
    meet(grid);
  }

  double go(int iterations) override {
    int last = 0;
    job_.fresh = true;
    for (int left = iterations; left > 0; left -= last) {
      last = std::min(left, kInLaunch);
      job_.iterations = static_cast<unsigned>(last);
      check(cudaMemsetAsync(arrived_.get(), 0, sizeof(std::uint64_t), stream_.get()), "cudaMemsetAsync");
      check(cudaMemsetAsync(taken_.get(), 0, sizeof(unsigned), stream_.get()), "cudaMemsetAsync");
      iterate(stream_.get(), job_, grid_.blocks, grid_.threads);
      job_.before += job_.iterations;
      job_.fresh = false;
    }
    stream_.wait();
    double sum = 0;
    check(cudaMemcpy(&sum, sums_.get() + last - 1, sizeof sum, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must_have_ended();
    return sum;
  }
  const Field& field() const override { return field_; }
  int level() const override { return static_cast<int>(job_.before % 2); }

 private:
  static constexpr std::uint64_t kNumbers = 27, kFlags = kNumbers * kMostPushers;  // directions, and what sets their flags

  static std::uint64_t heap_bytes(const Part& part, int ranks) {
    return 2 * (part.size() * sizeof(float) + 256) + kFlags * sizeof(std::uint64_t) + packet_bytes(part) +
           IST_TEAM_SYNC_BYTES(ranks) + (std::uint64_t{1} << 20);
  }
  // The heap keeps it.
  std::shared_ptr<float[]> lent(const Part& part) const {
    return {heap_.alloc<float>(part.size(), 256), [](float*) {}};
  }
  // Four planes of them: from below and above, of two iterations.
  static std::uint64_t packet_bytes(const Part& part) {
    return 8 * static_cast<std::uint64_t>(shape_of(part).plane) * sizeof(float);
  }
  void take_packets(const isthmus::HaloGrid& grid) {
    job_.packets.base = heap_.calloc<unsigned char>(packet_bytes(field_.part()));
    job_.packets.rows = job_.shape.plane / job_.shape.row, job_.packets.quads = job_.shape.row / kQuad;
    for (const int side : {0, 1}) {
      const int rank = grid.neighbour(std::array{side == 0 ? -1 : 1, 0, 0});
      job_.packets.pe[side] = rank == isthmus::proc_null ? -1 : rank;
    }
  }
  void meet(const isthmus::HaloGrid& grid) {
    std::vector<std::int64_t> mine{grid_.pushers}, all(static_cast<std::size_t>(grid.comm().size()));
    grid.comm().allgather(mine, all);
    const ist_halo_sides sides = grid.sides(field_.part().ranges, sizeof(float), 2);
    job_.sides = sides.count;
    job_.pushers = grid_.pushers;
    for (int s = 0; s < sides.count; ++s) {
      const ist_halo_side& from = sides.side[s];
      const auto direction = direction_of(field_.part(), from);
      job_.side[s] = {{direction[0], direction[1], direction[2]},
                      from.pe,
                      from.number,
                      from.opposite,
                      static_cast<int>(from.to - from.from),
                      static_cast<unsigned>(all[static_cast<std::size_t>(from.pe)])};
    }
  }
  void must_have_ended() const {
    Ended ended{};
    check(cudaMemcpy(&ended, ended_.get(), sizeof ended, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (ended.status == 0) return;
    const std::string whom = ended.what == 0   ? "the other blocks of its GPU"
                             : ended.what == 1 ? "rank " + std::to_string(ended.pe)
                                               : "the sum over all ranks";
    throw std::runtime_error("--exchange kernel: in iteration " + std::to_string(ended.iteration) + " block " +
                             std::to_string(ended.block) + " of " + std::to_string(grid_.blocks + 1) +
                             " waited in vain for " + whom + ": " + name_of(ended.status));
  }

  isthmus::Heap heap_;
  Field field_;
  std::shared_ptr<Ended[]> ended_;
  std::shared_ptr<std::uint64_t[]> arrived_;
  std::shared_ptr<unsigned[]> taken_;
  std::shared_ptr<double[]> sums_, partial_;
  Grid grid_;
  Persistent job_{};
};

}  // namespace

// All ranks make it or none.
std::unique_ptr<Way> by_kernel(const isthmus::HaloGrid& grid, const Part& part, std::shared_ptr<const Coefficient> with,
                               bool keeps) {
  const Grid blocks = grid_for(is_along_i(grid), keeps, border_work(part).quads(), interior_work(part).quads());
  std::vector<int> mine{keeps && !blocks.can_keep ? 1 : 0}, any(1);
  grid.comm().allreduce(mine, any, isthmus::op::max);
  if (any[0] != 0) return nullptr;
  return std::make_unique<Resident>(grid, part, std::move(with), keeps, blocks);
}

}  // namespace himeno
