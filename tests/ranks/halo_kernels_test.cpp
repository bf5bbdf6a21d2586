// What kernels do that exchange halos by themselves, done by a thread of each rank on a heap of host memory: every cell says which step it
// is of, two arrays take turns, and ranks are delayed at random. Run on 1, 2, 3, 4, 6 and 8 ranks.
#include <isthmus/heap.h>
#include <isthmus/device.cuh>
#include <isthmus/device/halo.cuh>

#include <atomic>
#include <barrier>
#include <chrono>
#include <random>
#include <thread>

#include "halo_support.hpp"

namespace {

using namespace rank_test;

struct Alone {
  static constexpr unsigned thread = 0, threads = 1, block = 0, blocks = 1;
  void sync() const {}
  bool any(bool mine) const { return mine; }
};

// As CodedField does it, but in the heap and of words.
struct Symmetric {
  Cut cut;
  std::array<int, 4> coords;
  std::array<ist_halo_range, 4> ranges{};
  std::array<int, 4> order;
  std::size_t cells = 1;

  Symmetric(const Cut& wanted, const std::array<int, 4>& at_place, const std::array<int, 4>& map)
      : cut(wanted), coords(at_place), order(map) {
    constexpr std::int64_t kMinus[] = {1, 2, 1, 0}, kPlus[] = {2, 0, 1, 1};
    for (int d = 0; d < cut.ndims; ++d) {
      const std::int64_t minus = kMinus[d], plus = kPlus[d], inner = cut.cells[at(d)];
      ranges[at(d)] = {minus, plus, minus + d % 2, minus + d % 2 + inner - 1, minus + inner + plus + 1};
      cells *= static_cast<std::size_t>(ranges[at(d)].total_length);
    }
  }
  std::size_t place(const Four& index) const {
    std::array<int, 4> by_place{};
    for (int d = 0; d < cut.ndims; ++d) by_place[at(order[at(d)])] = d;
    std::int64_t element = 0;
    for (int p = 0; p < cut.ndims; ++p)
      element = element * ranges[at(by_place[at(p)])].total_length + index[at(by_place[at(p)])];
    return static_cast<std::size_t>(element);
  }
  template <class Cell>
  void each_cell(const Cell& cell) const {
    Four index{};
    for (std::size_t c = 0; c < cells; ++c) {
      cell(index);
      for (int d = cut.ndims; d-- > 0;) {
        if (++index[at(d)] < ranges[at(d)].total_length) break;
        index[at(d)] = 0;
      }
    }
  }
  // 0: nobody writes it. `inner`: this rank does.
  std::uint64_t value(const Four& index, int step, bool& inner) const {
    Four cell{};
    inner = true;
    for (int d = 0; d < cut.ndims; ++d) {
      const auto i = at(d);
      const ist_halo_range& range = ranges[i];
      if (index[i] < range.begin - range.minus || index[i] > range.end + range.plus) return inner = false, 0;
      inner = inner && index[i] >= range.begin && index[i] <= range.end;
      const std::int64_t all = cut.cells[i] * cut.dims[i];
      cell[i] = coords[i] * cut.cells[i] + index[i] - range.begin;
      if (cell[i] >= 0 && cell[i] < all) continue;
      if (cut.periods[i] == 0) return 0;
      cell[i] = (cell[i] + all) % all;
    }
    std::uint64_t word = 0;
    encode(reinterpret_cast<unsigned char*>(&word), 8, 1, cell, step);
    return word;
  }
};

// Two arrays of the field in a heap, with flags, and who the neighbours are.
struct Played {
  ist_halo_grid grid;
  Symmetric field;
  ist_halo_sides sides{};
  ist_heap heap = IST_HEAP_NULL;
  std::uint64_t *arrays = nullptr, *flags = nullptr;
  ist_team_view view{};

  Played(const Cut& cut, const std::array<int, 4>& order)
      : grid(grid_for(cut)), field(cut, coords_in(grid, cut.ndims), order) {
    make();
  }
  Played(const Played&) = delete;
  Played& operator=(const Played&) = delete;
  ~Played() {
    EXPECT_EQ(IST_OK, ist_heap_destroy(&heap)) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_halo_grid_free(&grid)) << ist_error_text();
  }
  std::uint64_t* array(int step) const { return arrays + static_cast<std::size_t>(step % 2) * field.cells; }

 private:
  void make() {
    ist_comm ranks = IST_COMM_NULL;
    IST_OK_OR_FAIL(ist_halo_grid_comm(grid, &ranks));
    const ist_halo_field given{ist_host(nullptr), 8, field.ranges.data(), field.order.data()};
    IST_OK_OR_FAIL(ist_halo_sides_of(grid, &given, 0, &sides));
    IST_OK_OR_FAIL(ist_heap_create(ranks, IST_KIND_HOST, 0, 1 << 20, 1 << 20, &heap));
    void *cells = nullptr, *words = nullptr;
    IST_OK_OR_FAIL(ist_heap_calloc(heap, 2 * field.cells, 8, &cells));
    IST_OK_OR_FAIL(ist_heap_calloc(heap, static_cast<std::uint64_t>(sides.flags), 8, &words));
    arrays = static_cast<std::uint64_t*>(cells), flags = static_cast<std::uint64_t*>(words);
    IST_OK_OR_FAIL(ist_heap_view(heap, &view));
  }
};

constexpr std::uint64_t kDeadline = 20000000000;  // nanoseconds

void play(const Cut& cut, const std::array<int, 4>& order, std::uint64_t seed) {
  const Played in(cut, order);
  if (testing::Test::HasFailure()) return;
  std::mt19937_64 random{seed + static_cast<std::uint64_t>(rank())};
  const auto delay = [&] {
    if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  };
  for (int step = 1; step <= 60 && !testing::Test::HasFailure(); ++step) {
    std::uint64_t* const now = in.array(step);
    in.field.each_cell([&](const Four& index) {
      bool inner = false;
      const std::uint64_t value = in.field.value(index, step, inner);
      if (inner) now[in.field.place(index)] = value;
    });
    for (int s = 0; s < in.sides.count; ++s) {
      delay();
      ist::device::put_side(Alone(), in.view, in.sides.side[s], now, in.flags, static_cast<std::uint64_t>(step));
    }
    for (int s = 0; s < in.sides.count; ++s)
      ASSERT_EQ(ist::device::Status::ok, ist::device::wait_side(Alone(), in.view, in.sides.side[s], in.flags,
                                                                static_cast<std::uint64_t>(step), kDeadline));
    delay();
    in.field.each_cell([&](const Four& index) {
      bool inner = false;
      EXPECT_EQ(in.field.value(index, step, inner), now[in.field.place(index)])
          << described(cut) << ", step " << step << ", cell " << index[0] << ", " << index[1] << ", " << index[2];
    });
  }
}

// The loop of isthmus/device/halo.cuh, a thread for each boundary block. Every block computes a share of all cells, so that those of a side
// are computed by several; in each step another block is late, and whoever puts before it has computed sends what is two steps old, or
// has halos overwritten that it still reads.
class Blocks {
 public:
  explicit Blocks(const Played& in) : in_(in), meeting_(in.sides.count) {}
  int run(int steps) {
    // What step 1 reads is there.
    in_.field.each_cell([&](const Four& index) {
      bool inner = false;
      in_.array(0)[in_.field.place(index)] = in_.field.value(index, 0, inner);
    });
    EXPECT_EQ(IST_OK, ist_heap_barrier(in_.heap)) << ist_error_text();
    std::vector<std::thread> blocks;
    for (int b = 0; b < in_.sides.count; ++b) blocks.emplace_back([this, b, steps] { block(b, steps); });
    for (std::thread& each : blocks) each.join();
    return wrong_;
  }

 private:
  void block(int number, int steps) {
    const ist_halo_side& side = in_.sides.side[number];
    for (int step = 1; step <= steps; ++step) {
      const auto before =
          ist::device::wait_side(Alone(), in_.view, side, in_.flags, static_cast<std::uint64_t>(step - 1), kDeadline);
      if (before != ist::device::Status::ok) ++wrong_;
      meeting_.arrive_and_wait();
      if (step % in_.sides.count == number) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      compute(number, step);
      meeting_.arrive_and_wait();
      ist::device::put_side(Alone(), in_.view, side, in_.array(step), in_.flags, static_cast<std::uint64_t>(step));
    }
  }
  // The block's share of the inner cells, each from all that the widths let it read.
  void compute(int number, int step) {
    int cell = 0;
    in_.field.each_cell([&](const Four& index) {
      bool inner = false;
      const std::uint64_t value = in_.field.value(index, step, inner);
      if (!inner || cell++ % in_.sides.count != number) return;
      for (std::int64_t row = index[0] - in_.field.ranges[0].minus; row <= index[0] + in_.field.ranges[0].plus; ++row)
        for (std::int64_t column = index[1] - in_.field.ranges[1].minus; column <= index[1] + in_.field.ranges[1].plus;
             ++column) {
          const Four read{row, column, 0, 0};
          bool own = false;
          if (in_.array(step - 1)[in_.field.place(read)] != in_.field.value(read, step - 1, own)) ++wrong_;
        }
      in_.array(step)[in_.field.place(index)] = value;
    });
  }

  const Played& in_;
  std::barrier<> meeting_;
  std::atomic<int> wrong_{0};
};

TEST(HaloKernels, of_several_blocks_meet_before_they_compute_and_before_they_put) {
  if (size() > 4)
    GTEST_SKIP() << "not covered here: eight blocks of so many ranks are more threads than machines have processors";
  for (const int periods : {3, 1}) {
    Cut cut;
    cut.ndims = 2;
    cut.cells = {4, 4, 1, 1};
    cut.dims = size() % 2 == 0 ? std::array<int, 4>{size() / 2, 2, 1, 1} : std::array<int, 4>{size(), 1, 1, 1};
    cut.periods = {periods & 1, periods >> 1 & 1, 0, 0};
    const Played in(cut, {1, 0, 2, 3});
    if (testing::Test::HasFailure()) return;
    ASSERT_GT(in.sides.count, 0);
    EXPECT_EQ(Blocks(in).run(20), 0) << described(cut) << ": cells of another step were read";
  }
}

TEST(HaloKernels, put_halos_where_they_belong_and_wait_for_flags_alone) {
  for (int ndims = 1; ndims <= 3; ++ndims)
    for (int periods = 0; periods < 1 << ndims; ++periods) {
      Cut cut;
      cut.ndims = ndims;
      cut.cells = {4, 3, 3, 1};
      cut.dims =
          ndims > 1 && size() % 2 == 0 ? std::array<int, 4>{size() / 2, 2, 1, 1} : std::array<int, 4>{size(), 1, 1, 1};
      for (int d = 0; d < ndims; ++d) cut.periods[at(d)] = periods >> d & 1;
      const std::array<std::array<int, 4>, 3> orders{{{0, 1, 2, 3}, {1, 0, 2, 3}, {2, 0, 1, 3}}};
      play(cut, orders[at(ndims - 1)], static_cast<std::uint64_t>(periods));
    }
}

TEST(HaloKernels, are_told_what_does_not_fit) {
  Cut cut;
  cut.ndims = 4;
  cut.dims = {size(), 1, 1, 1};
  cut.periods = {1, 1, 1, 1};
  ist_halo_grid grid = grid_for(cut);
  const std::array<ist_halo_range, 4> ranges{
      ist_halo_range{1, 1, 1, 3, 5}, {1, 1, 1, 3, 5}, {1, 1, 1, 3, 5}, {1, 1, 1, 3, 5}};
  const ist_halo_field field{ist_host(nullptr), 8, ranges.data(), nullptr};
  ist_halo_sides sides{};
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_sides_of(grid, &field, 0, &sides));
  EXPECT_NE(std::string{ist_error_text()}.find("more than 26 neighbours"), std::string::npos) << ist_error_text();
  IST_OK_OR_FAIL(ist_halo_sides_of(grid, &field, 1, &sides));
  EXPECT_EQ(sides.count, 8);
  EXPECT_EQ(sides.flags, 81);
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_sides_of(grid, &field, 5, &sides));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_sides_of(grid, nullptr, 0, &sides));
  IST_OK_OR_FAIL(ist_halo_grid_free(&grid));
}

}  // namespace
