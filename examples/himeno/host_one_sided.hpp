// The Himeno benchmark on the processor as a kernel that stays does it (cuda_persistent.cu): both levels of p lie in a symmetric heap of host
// memory, each rank stores its border straight into the neighbours' halos and says so by a flag at each of them, and no step has a handshake.
//
// Who calls this : himeno.cpp.
// Threads        : one; collective: all ranks make it and go together.
// Ownership      : OneSided has the heap, which goes with its destroy(), a collective call; the arrays that it sweeps are the heap's.
// Errors         : isthmus::Error; a rank that has died ends every wait.
//
// Iteration n reads one level, which n - 1 wrote, and writes the other. It begins when all neighbours' flags say n - 1. That is enough:
// - What it reads, own cells and halos of the level that n - 1 wrote, is there: a flag follows the cells that were stored before it.
// - What it overwrites, own cells and neighbours' halos of the other level, nobody reads any more: that halo was read in n - 1, by the cells
//   beside it, which are those that the neighbour sent here before it set its flag to n - 1.
// So the border comes first, and the interior hides its way. Sums follow one iteration behind, in two places of each rank by turns: who
// stores into one of them has read the sum before, to which everybody who had read what lay there has added.
#pragma once

#include <array>
#include <isthmus/heap.hpp>
#include <memory>
#include <vector>

#include "host.hpp"

namespace himeno {

class OneSided {
 public:
  OneSided(const isthmus::HaloGrid& grid, const Size& size, float b)
      : dims_(grid.dims()),
        size_(size),
        heap_(grid.comm(), isthmus::Kind::host, heap_bytes(size, dims_, grid.comm().size())),
        levels_{heap_.alloc<float>(most_cells(size, dims_)), heap_.alloc<float>(most_cells(size, dims_))},
        flags_(heap_.calloc<std::uint64_t>(kNumbers)),
        come_(heap_.calloc<std::uint64_t>(static_cast<std::uint64_t>(heap_.pes()))),
        sums_(heap_.calloc<double>(2 * static_cast<std::uint64_t>(heap_.pes()))),
        himeno_(Part(size, dims_, grid.coords()), b, levels_),
        split_(isthmus::halo_split(himeno_.part().ranges)) {
    for (int number = 0; number < kNumbers; ++number) {
      const std::array<int, 3> way{number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1};
      const int far = way[0] * way[0] + way[1] * way[1] + way[2] * way[2];
      if (far == 0 || far == 3) continue;  // 19 points: faces and edges
      if (const int pe = grid.neighbour(way); pe != isthmus::proc_null) beside_.push_back(beside(grid, number, way, pe));
    }
    // Nobody stores into a part before it is filled; what iteration 1 reads in its halos is that of the beginning.
    heap_.barrier();
    for (const Beside& one : beside_) push(one, 0, 0);
    heap_.barrier();
  }
  // So many iterations from the start, once; the last one's sum over all ranks.
  double go(int iterations) {
    const auto all = static_cast<std::uint64_t>(iterations);
    for (std::uint64_t n = 1; n <= all; ++n) {
      const auto from = static_cast<std::size_t>((n + 1) % 2);
      for (const Beside& one : beside_) heap_.wait_until(flags_ + one.number, isthmus::Compare::greater_equal, n - 1);
      double mine = 0;
      for (const isthmus::HaloBox& box : split_.border) mine += himeno_.sweep(from, box);
      for (const Beside& one : beside_) push(one, 1 - from, n);
      if (!split_.interior.empty(3)) mine += himeno_.sweep(from, split_.interior);
      if (n > 1) sum_of(n - 1);
      tell_sum(n, mine);
    }
    return sum_of(all);
  }
  Himeno& himeno() { return himeno_; }
  // When all have compared their cells.
  void destroy() { heap_.destroy(); }

 private:
  static constexpr int kNumbers = 27;  // of directions: a flag for each

  // A neighbour: which own cells it needs, and where it has them.
  struct Beside {
    int pe, number;
    isthmus::HaloBox box;
    std::array<float*, 2> there;  // both levels, of its part
    std::array<std::int64_t, 3> shift;
    Part part;
  };
  Beside beside(const isthmus::HaloGrid& grid, int number, const std::array<int, 3>& way, int pe) const {
    std::vector<int> coords = grid.coords();
    for (std::size_t d = 0; d < 3; ++d) coords[d] += way[d];
    const Part &mine = himeno_.part(), theirs(size_, dims_, coords);
    Beside made{pe, number, mine.inner(), {heap_.pointer(levels_[0], pe), heap_.pointer(levels_[1], pe)}, {}, theirs};
    for (std::size_t d = 0; d < 3; ++d) {
      if (way[d] < 0) made.box.last[d] = made.box.first[d];
      if (way[d] > 0) made.box.first[d] = made.box.last[d];
      made.shift[d] = mine.first[d] - mine.ranges[d].begin - theirs.first[d] + theirs.ranges[d].begin;
    }
    return made;
  }
  // The border's cells of a level into that neighbour's halo, and then its flag, which there has the opposite direction's number.
  void push(const Beside& to, std::size_t level, std::uint64_t iteration) const {
    const auto bytes = static_cast<std::size_t>(to.box.last[2] - to.box.first[2] + 1) * sizeof(float);
    for (std::int64_t i = to.box.first[0]; i <= to.box.last[0]; ++i)
      for (std::int64_t j = to.box.first[1]; j <= to.box.last[1]; ++j)
        std::memcpy(to.there[level] + to.part.at(i + to.shift[0], j + to.shift[1], to.box.first[2] + to.shift[2]),
                    himeno_.p[level] + himeno_.part().at(i, j, to.box.first[2]), bytes);
    heap_.put_signal(flags_, isthmus::Buffer::host(nullptr), 0, flags_ + (kNumbers - 1 - to.number), iteration, to.pe);
  }
  void tell_sum(std::uint64_t iteration, double mine) const {
    double* const place = sums_ + (iteration % 2) * static_cast<unsigned>(heap_.pes()) + heap_.pe();
    for (int pe = 0; pe < heap_.pes(); ++pe)
      heap_.put_signal(place, isthmus::Buffer::host(&mine), 1, come_ + heap_.pe(), iteration, pe);
  }
  // In the order of ranks: all get the same bits.
  double sum_of(std::uint64_t iteration) const {
    double sum = 0;
    for (int pe = 0; pe < heap_.pes(); ++pe) {
      heap_.wait_until(come_ + pe, isthmus::Compare::greater_equal, iteration);
      sum += sums_[(iteration % 2) * static_cast<unsigned>(heap_.pes()) + static_cast<unsigned>(pe)];
    }
    return sum;
  }
  // Of the largest part: a heap has the same places at all ranks.
  static std::uint64_t most_cells(const Size& size, const std::vector<int>& dims) {
    std::uint64_t cells = 1;
    for (std::size_t d = 0; d < 3; ++d) cells *= static_cast<std::uint64_t>((size.cells[d] + dims[d] - 1) / dims[d] + 2);
    return cells;
  }
  static std::uint64_t heap_bytes(const Size& size, const std::vector<int>& dims, int pes) {
    return 2 * most_cells(size, dims) * sizeof(float) + kNumbers * 8 + static_cast<std::uint64_t>(pes) * 24 + 4096;
  }

  std::vector<int> dims_;
  Size size_;
  isthmus::Heap heap_;
  std::array<float*, 2> levels_;
  std::uint64_t *flags_, *come_;  // by direction, and by rank: the last iteration
  double* sums_;                  // by turns, one of each rank
  Himeno himeno_;
  isthmus::HaloSplit split_;
  std::vector<Beside> beside_;
};

}  // namespace himeno
