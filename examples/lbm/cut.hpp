// A rank's part for kernels: where its cells lie, which of them are border, and who its neighbours are.
//
// Who calls this : cuda_flow.cpp and the exchanges; the tests.
// Threads        : values.
// Ownership      : none.
// Errors         : example::Mistake where a part has more cells than kernels count; on all ranks alike.
#ifndef LBM_CUT_HPP
#define LBM_CUT_HPP

#include <climits>

#include "common/arguments.hpp"
#include "part.hpp"
#include "shape.hpp"

namespace lbm {

using Triple = std::array<int, 3>;

// The border in boxes, each cell once; blocks of kBorderBlock threads take them one after the other.
constexpr int kBorderBlock = 128;
struct Border {
  int boxes = 0;
  Box box[6];
  int begin[7] = {0};  // the first block of each, and behind the last one how many there are
  int blocks() const { return begin[boxes]; }
};
// The cell of a thread of such a block; false: it has none.
LBM_BOTH inline bool border_cell(const Border& border, const Shape& shape, int block, int thread, Place& place) {
  int n = 0;
  while (block >= border.begin[n + 1]) ++n;
  const Box& box = border.box[n];
  const int cell = (block - border.begin[n]) * kBorderBlock + thread, row = cell / box.count[2];
  if (cell >= box.cells()) return false;
  place =
      look(shape, box.first[0] + row / box.count[1], box.first[1] + row % box.count[1], box.first[2] + cell % box.count[2]);
  return true;
}

struct Cut {
  Setup setup;
  Triple ranks{}, coords{};
  int padding = 0;  // elements behind each population
  Shape shape{};
  Box inner{};  // what reads no halo
  Border border;

  Cut(const Setup& of, const Triple& in, const Triple& at, int between = 0)
      : setup(of), ranks(in), coords(at), padding((between + kRow - 1) / kRow * kRow) {
    std::int64_t size = 1;
    for (std::size_t d = 3; d-- > 0;) {
      const bool cut = ranks[d] > 1;
      shape.cells[d] = cells_of(d, coords[d]);
      shape.beyond[d][0] = setup.walls[d] && coords[d] == 0 ? Beyond::wall : cut ? Beyond::neighbour : Beyond::self;
      shape.beyond[d][1] = setup.walls[d] && coords[d] == ranks[d] - 1 ? Beyond::wall
                           : cut                                       ? Beyond::neighbour
                                                                       : Beyond::self;
      // Rows begin, and a rank's own cells in them, at multiples of 128 bytes.
      const std::int64_t most = (setup.cells[d] + ranks[d] - 1) / ranks[d], row = d == 2 ? kRow : 1;
      shape.margin[d] = cut ? static_cast<int>(row) : 0;
      const std::int64_t length = (most + shape.margin[d] + (cut ? 1 : 0) + row - 1) / row * row;
      shape.strides[d] = static_cast<int>(size);
      shape.lengths[d] = static_cast<int>(length);
      size *= length;
      if (size > INT_MAX - padding)
        throw example::Mistake("a rank's part has " + std::to_string(size) +
                               " cells or more, and kernels count to 2147483647; take more ranks or fewer cells");
    }
    shape.size = static_cast<int>(size) + padding;
    split();
  }

  std::int64_t first(std::size_t d) const { return setup.cells[d] * coords[d] / ranks[d]; }
  int cells_of(std::size_t d, int coord) const {
    return static_cast<int>(setup.cells[d] * (coord + 1) / ranks[d] - setup.cells[d] * coord / ranks[d]);
  }
  std::int64_t populations() const { return static_cast<std::int64_t>(D3Q19::kCount) * shape.size; }
  // Whether a neighbour lies there, of those that get something.
  bool has_neighbour(const Velocity& step) const {
    int moves = 0;
    bool there = true;
    for (std::size_t d = 0; d < 3; ++d) {
      if (step[d] == 0) continue;
      ++moves;
      there = there && shape.beyond[d][step[d] > 0 ? 1 : 0] == Beyond::neighbour;
    }
    return there && moves > 0 && moves <= reach<D3Q19>();
  }
  // From a cell's place here to that in the halo of the neighbour in that direction.
  std::ptrdiff_t to_halo(const Velocity& step) const {
    std::ptrdiff_t places = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      if (step[d] > 0) places -= static_cast<std::ptrdiff_t>(shape.cells[d]) * shape.strides[d];
      if (step[d] < 0)
        places += static_cast<std::ptrdiff_t>(cells_of(d, (coords[d] + ranks[d] - 1) % ranks[d])) * shape.strides[d];
    }
    return places;
  }
  // Own cells that the neighbour in that direction reads, or its own that are read here.
  Box side(const Velocity& step, bool is_own) const {
    Box box{};
    for (std::size_t d = 0; d < 3; ++d) {
      const int last = shape.cells[d] - 1;
      box.first[d] = step[d] == 0 ? 0 : step[d] > 0 ? last + (is_own ? 0 : 1) : is_own ? 0 : -1;
      box.count[d] = step[d] == 0 ? shape.cells[d] : 1;
    }
    return box;
  }

 private:
  static constexpr int kRow = 32;

  // Rows stay whole: where the contiguous dimension is cut all cells are border.
  void split() {
    Box rest{{0, 0, 0}, {shape.cells[0], shape.cells[1], shape.cells[2]}};
    const auto add = [&](const Box& box) {
      if (box.cells() == 0) return;
      border.box[border.boxes] = box;
      border.begin[border.boxes + 1] = border.begin[border.boxes] + (box.cells() + kBorderBlock - 1) / kBorderBlock;
      ++border.boxes;
    };
    for (int d = 0; d < 3; ++d)
      for (const int side : {0, 1}) {
        if (shape.beyond[d][side] != Beyond::neighbour) continue;
        Box slab = rest;
        slab.count[d] = d == 2 ? rest.count[d] : std::min(1, rest.count[d]);
        rest.count[d] -= slab.count[d];
        if (side == 0)
          rest.first[d] += slab.count[d];
        else
          slab.first[d] = rest.first[d] + rest.count[d];
        add(slab);
      }
    inner = rest;
  }
};

// Of every direction in which there is a neighbour.
template <class Do>
void each_neighbour(const Cut& cut, const Do& act) {
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x)
        if (const Velocity step{z, y, x}; cut.has_neighbour(step)) act(step, direction(z, y, x));
}

}  // namespace lbm
#endif
