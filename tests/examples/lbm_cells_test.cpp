// What lbm's kernels do to each cell, without a device: the parts of all ranks in one process, to the last bit those of the host's form.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <vector>

#include "lbm/cases.hpp"
#include "lbm/cell.hpp"
#include "lbm/cut.hpp"
#include "lbm/parcels.hpp"
#include "lbm/run.hpp"

namespace lbm {
namespace {

enum class Way { stores, parcels };

template <class Do>
void each_of(const Box& box, const Do& act) {
  for (int z = 0; z < box.count[0]; ++z)
    for (int y = 0; y < box.count[1]; ++y)
      for (int x = 0; x < box.count[2]; ++x) act(box.first[0] + z, box.first[1] + y, box.first[2] + x);
}

struct Rank {
  Cut cut;
  std::vector<float> levels[2];
  int visits = 0;
};

class Ranks {
 public:
  template <class Case>
  Ranks(const Case& given, const Triple& grid, Way way) : setup_(given.setup()), grid_(grid), way_(way) {
    for (int z = 0; z < grid[0]; ++z)
      for (int y = 0; y < grid[1]; ++y)
        for (int x = 0; x < grid[2]; ++x) {
          auto made = std::make_unique<Rank>(Rank{Cut(setup_, grid, {z, y, x}), {}, 0});
          // What is read and was never written spoils all that comes of it.
          for (auto& level : made->levels) level.assign(static_cast<std::size_t>(made->cut.populations()), std::nanf(""));
          begin(given, *made);
          ranks_.push_back(std::move(made));
        }
  }
  void step(std::size_t level) {
    // The ranks' borders one after the other: what a neighbour still reads must not be written to.
    for (const auto& rank : ranks_) sweep(*rank, level);
    if (way_ == Way::parcels)
      for (const auto& rank : ranks_) carry(*rank, 1 - level);
  }
  void expect_bits_of(const Fluid& whole, std::size_t level, const std::string& what) const {
    int wrong = 0;
    for (const auto& rank : ranks_) {
      const Shape& shape = rank->cut.shape;
      each_of({{0, 0, 0}, {shape.cells[0], shape.cells[1], shape.cells[2]}}, [&](int z, int y, int x) {
        const std::ptrdiff_t there =
            whole.part().at(rank->cut.first(0) + z + 1, rank->cut.first(1) + y + 1, rank->cut.first(2) + x + 1);
        for (std::size_t q = 0; q < Fluid::kCount; ++q) {
          const float found =
              rank->levels[level][static_cast<std::size_t>(shape.size) * q + static_cast<std::size_t>(shape.place(z, y, x))];
          if (std::bit_cast<std::uint32_t>(found) != std::bit_cast<std::uint32_t>(whole.population(level, q)[there]) &&
              wrong++ == 0)
            ADD_FAILURE() << what << ": population " << q << " of cell " << z << ", " << y << ", " << x << " of rank "
                          << rank->cut.coords[0] << rank->cut.coords[1] << rank->cut.coords[2] << " is " << found
                          << " instead of " << whole.population(level, q)[there];
        }
      });
    }
    EXPECT_EQ(wrong, 0) << what;
  }

 private:
  template <class Case>
  void begin(const Case& given, Rank& rank) {
    const Shape& shape = rank.cut.shape;
    Box all{};
    for (int d = 0; d < 3; ++d) {
      const int layer = shape.margin[d] == 0 ? 0 : 1;
      all.first[d] = -layer;
      all.count[d] = shape.cells[d] + 2 * layer;
    }
    each_of(all, [&](int z, int y, int x) {
      const int cell[3] = {z, y, x};
      Cells place{};
      for (std::size_t d = 0; d < 3; ++d) place[d] = (rank.cut.first(d) + cell[d] + setup_.cells[d]) % setup_.cells[d];
      begin_cell<D3Q19>(given.state(place), setup_.tau, [&](std::size_t q, float value) {
        rank.levels[0][static_cast<std::size_t>(shape.size) * q + static_cast<std::size_t>(shape.place(z, y, x))] = value;
      });
    });
  }
  Rank& neighbour(const Rank& rank, const Velocity& step) const {
    int number = 0;
    for (std::size_t d = 0; d < 3; ++d) number = number * grid_[d] + (rank.cut.coords[d] + step[d] + grid_[d]) % grid_[d];
    return *ranks_[static_cast<std::size_t>(number)];
  }
  void sweep(Rank& rank, std::size_t level) {
    Crossing crossing{};
    each_neighbour(rank.cut, [&](const Velocity& step, int number) {
      crossing.to[number] = neighbour(rank, step).levels[1 - level].data() + rank.cut.to_halo(step);
    });
    rank.visits = 0;
    for (int n = 0; n < rank.cut.border.boxes; ++n) sweep(rank, level, rank.cut.border.box[n], &crossing);
    sweep(rank, level, rank.cut.inner, nullptr);
    EXPECT_EQ(rank.visits, rank.cut.shape.cells[0] * rank.cut.shape.cells[1] * rank.cut.shape.cells[2]);
  }
  void sweep(Rank& rank, std::size_t level, const Box& box, const Crossing* crossing) {
    const float* const from = rank.levels[level].data();
    float* const to = rank.levels[1 - level].data();
    const Shape& shape = rank.cut.shape;
    const auto omega = static_cast<float>(1 / setup_.tau), lid = static_cast<float>(setup_.lid);
    const bool walls = setup_.walls[0] || setup_.walls[1] || setup_.walls[2];
    each_of(box, [&](int z, int y, int x) {
      const Place place = look(shape, z, y, x);
      const auto cell = walls ? stepped<D3Q19, true, PlainMemory>(from, shape, place, omega, lid)
                              : stepped<D3Q19, false, PlainMemory>(from, shape, place, omega, lid);
      store<PlainMemory>(cell, to, shape, place);
      if (crossing != nullptr && way_ == Way::stores) cross(cell, *crossing, shape, place);
      EXPECT_TRUE(crossing != nullptr || place.ends == 0);
      ++rank.visits;
    });
  }
  void carry(Rank& rank, std::size_t level) {
    each_neighbour(rank.cut, [&](const Velocity& step, int /*number*/) {
      Rank& other = neighbour(rank, step);
      Parcels goes{}, comes{};
      std::vector<float> buffer(5000, std::nanf(""));
      add_parcel(goes, rank.cut.side(step, true), step, buffer.data());
      add_parcel(comes, other.cut.side({-step[0], -step[1], -step[2]}, false), step, buffer.data());
      ASSERT_EQ(goes.begin[1], comes.begin[1]);
      ASSERT_LT(goes.begin[1], 5000);
      ASSERT_EQ(goes.parcel[0].count, step[0] * step[0] + step[1] * step[1] + step[2] * step[2] == 1 ? 5 : 1);
      for (int i = 0; i < goes.begin[1]; ++i) {
        const Element element = element_of(goes, rank.cut.shape, i);
        *element.packed = rank.levels[level][static_cast<std::size_t>(element.place)];
      }
      for (int i = 0; i < comes.begin[1]; ++i) {
        const Element element = element_of(comes, other.cut.shape, i);
        other.levels[level][static_cast<std::size_t>(element.place)] = *element.packed;
      }
    });
  }

  Setup setup_;
  Triple grid_;
  Way way_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

template <class Case>
void compare(const Case& given, const Triple& grid, Way way, int steps) {
  Ranks ranks(given, grid, way);
  Alone alone(given.setup());
  alone.flow.start([&](const Cells& cell) { return given.state(cell); });
  alone.advance(steps);
  for (int n = 0; n < steps; ++n) ranks.step(static_cast<std::size_t>(n % 2));
  ranks.expect_bits_of(alone.flow, static_cast<std::size_t>(steps % 2),
                       std::to_string(grid[0]) + "x" + std::to_string(grid[1]) + "x" + std::to_string(grid[2]) +
                           (way == Way::stores ? " by stores" : " by parcels"));
}

constexpr Triple kGrids[] = {{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1},
                             {2, 1, 3}, {1, 2, 2}, {2, 2, 2}, {4, 1, 1}, {1, 4, 1}, {1, 1, 4}};

// 9 cells are divided evenly by none but 3 ranks; of 4 layers, by 4 ranks, each rank has one, which is both of its ends.
TEST(LatticeBoltzmannCells, vortices_have_the_bits_of_the_host_however_they_are_cut) {
  const TaylorGreen flow(9);
  for (const Triple& grid : kGrids)
    for (const Way way : {Way::stores, Way::parcels}) compare(flow, grid, way, 7);
}
TEST(LatticeBoltzmannCells, the_cavity_has_the_bits_of_the_host_however_it_is_cut) {
  const Cavity flow(9, 20);
  for (const Triple& grid : kGrids)
    for (const Way way : {Way::stores, Way::parcels}) compare(flow, grid, way, 12);
}

// Rows of 37 cells: what is behind them up to the next multiple of 32 is read by nobody.
TEST(LatticeBoltzmannCells, rows_need_not_fill_their_memory) { compare(TaylorGreen(37), {2, 1, 1}, Way::stores, 3); }

TEST(LatticeBoltzmannCells, prints_tell_bits_cells_and_populations_apart) {
  const std::uint64_t one = print_of(0x3F800000U, 7, 3);
  for (unsigned bit = 0; bit < 32; ++bit) EXPECT_NE(print_of(0x3F800000U ^ 1U << bit, 7, 3), one);
  EXPECT_NE(print_of(0x3F800000U, 8, 3), one);
  EXPECT_NE(print_of(0x3F800000U, 7, 4), one);
}

TEST(LatticeBoltzmannCells, a_part_that_kernels_cannot_count_is_a_mistake) {
  lbm::Setup setup = TaylorGreen(8).setup();
  setup.cells = {1024, 2048, 1024};
  EXPECT_THROW(Cut(setup, {1, 1, 1}, {0, 0, 0}), example::Mistake);
  EXPECT_NO_THROW(Cut(setup, {2, 1, 1}, {1, 0, 0}));
}

}  // namespace
}  // namespace lbm
