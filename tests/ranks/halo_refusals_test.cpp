// What exchanges and grids refuse, at all ranks with the same words, and what grids tell. Run on 1, 2, 3, 4, 5 and 8 ranks.
#include <isthmus/collective.h>

#include "halo_support.hpp"

namespace {

using namespace rank_test;

void expect_refused(const Made& made, int code, const std::vector<std::string>& words,
                    const ist_halo_options* options = nullptr) {
  ist_halo halo = reinterpret_cast<ist_halo>(1);
  EXPECT_EQ(code, ist_halo_create(made.grid, made.count(), made.given.data(), options, &halo));
  EXPECT_EQ(halo, IST_HALO_NULL);
  for (const std::string& word : words)
    EXPECT_NE(std::string{ist_error_text()}.find(word), std::string::npos) << word << " in: " << ist_error_text();
}

TEST(HaloRefusals, a_grid_thinner_than_the_halo_is_told_of_at_all_ranks) {
  Cut cut;
  cut.ndims = 2;
  cut.dims = {1, size(), 1, 1};
  cut.periods = {0, 1, 0, 0};
  cut.cells = {4, 2, 1, 1};
  Made made(cut);
  made.add({8, {1, 1}, {1, 1}});
  made.add({4, {5, 1}, {5, 3}});  // wide where there is no neighbour, which is right; and 3 of 2 cells
  expect_refused(
      made, IST_ERR_ARGUMENT,
      {"ist_halo_create: rank 0: the grid is thinner than the halo: rank 0 has 2 inner cells in dimension 1 of field 1",
       "wants 3 of them (plus)", "fewer ranks"});
}

TEST(HaloRefusals, ranges_and_maps_that_cannot_be_are_named) {
  Made made(two_dimensions(3));
  made.add({8, {1, 1}, {1, 1}});
  std::array<ist_halo_range, 2> ranges{ist_halo_range{1, 1, 1, 5, 7}, {1, 1, 1, 4, 6}};
  made.given[0].ranges = ranges.data();
  const auto refused = [&](std::size_t d, const ist_halo_range& range, const char* words) {
    const ist_halo_range before = ranges[d];
    ranges[d] = range;
    expect_refused(made, IST_ERR_ARGUMENT, {"rank 0: field 0: dimension " + std::to_string(d), words});
    ranges[d] = before;
  };
  refused(0, {2, 1, 1, 5, 7}, "begin must be at least minus");
  refused(1, {1, 2, 1, 4, 6}, "plus must be at most total_length - end - 1");
  refused(0, {1, 1, 1, 7, 7}, "plus must be at most");
  refused(1, {-1, 1, 1, 4, 6}, "widths must not be negative");
  refused(0, {1, 1, 3, 1, 7}, "end is the last inner index");
  refused(0, {0, 0, 0, -1, 0}, "total_length must be");
  refused(0, {1, 1, 1, INT64_MAX, INT64_MAX}, "total_length must be");
  constexpr int kTwice[] = {1, 1}, kBeyond[] = {0, 2};
  made.given[0].layout_map = kTwice;
  expect_refused(made, IST_ERR_ARGUMENT, {"layout_map[1] is 1, which stands there twice"});
  made.given[0].layout_map = kBeyond;
  expect_refused(made, IST_ERR_ARGUMENT, {"layout_map[1] is 2", "permutation of 0 to 1"});
  made.given[0].layout_map = nullptr;
  made.given[0].element = 0;
  expect_refused(made, IST_ERR_ARGUMENT, {"element is 0"});
  made.given[0].element = 8, made.given[0].ranges = nullptr;
  expect_refused(made, IST_ERR_ARGUMENT, {"ranges is null"});
  made.given[0].ranges = ranges.data(), made.given[0].buffer = ist_host(nullptr);
  expect_refused(made, IST_ERR_ARGUMENT, {"field 0", "null buffer"});
}

TEST(HaloRefusals, options_counts_and_ranks_that_differ) {
  Made made(two_dimensions(3));
  made.add({8, {1, 1}, {1, 1}});
  ist_halo_options options{sizeof options, 3, IST_HALO_CALLS, IST_HALO_MESSAGES, 0};
  expect_refused(made, IST_ERR_ARGUMENT, {"reach is 3; it must be 0 to 2"}, &options);
  options.reach = 0, options.packing = 9;
  expect_refused(made, IST_ERR_ARGUMENT, {"packing is 9"}, &options);
  options.packing = IST_HALO_CALLS, options.way = 5;
  expect_refused(made, IST_ERR_ARGUMENT, {"way is 5"}, &options);
  options.way = IST_HALO_MESSAGES, options.size = 8;
  expect_refused(made, IST_ERR_ARGUMENT, {"size is 8"}, &options);
  ist_halo halo = IST_HALO_NULL;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_create(made.grid, 0, made.given.data(), nullptr, &halo));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_create(made.grid, 1, nullptr, nullptr, &halo));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_create(made.grid, 1, made.given.data(), nullptr, nullptr));
  if (size() == 1) return;
  // One rank has a wider halo, and then more bytes in an element, or looks further.
  Made other(two_dimensions(3));
  other.add(rank() == size() - 1 ? FieldShape{8, {1, 2}, {1, 1}} : FieldShape{8, {1, 1}, {1, 1}});
  expect_refused(other, IST_ERR_ARGUMENT,
                 {"rank " + std::to_string(size() - 1) + ": minus of field 0, dimension 1 is 2 here, and 1 at rank 0"});
  Made third(two_dimensions(3));
  third.add(rank() == size() - 1 ? FieldShape{4, {1, 1}, {1, 1}} : FieldShape{8, {1, 1}, {1, 1}});
  expect_refused(third, IST_ERR_ARGUMENT, {"element of field 0 is 4 here, and 8 at rank 0"});
  options = {sizeof options, rank() == 0 ? 1 : 2, IST_HALO_CALLS, IST_HALO_MESSAGES, 0};
  expect_refused(made, IST_ERR_ARGUMENT, {"reach is 1 at rank 0, and 2 at rank 1"}, &options);
}

TEST(HaloRefusals, cells_that_lie_side_by_side_are_as_many) {
  if (size() == 1) GTEST_SKIP() << "not covered here: takes two ranks";
  Cut cut;
  cut.ndims = 2;
  cut.dims = {size(), 1, 1, 1};
  Made made(cut);
  made.add({8, {1, 1}, {1, 1}});
  // Of the last rank the other dimension is longer.
  std::array<ist_halo_range, 2> ranges{ist_halo_range{1, 1, 1, 4, 6}, {1, 1, 1, rank() == size() - 1 ? 5 : 4, 7}};
  std::vector<unsigned char> memory(8 * 6 * 7);
  made.given[0].ranges = ranges.data(), made.given[0].buffer = ist_host(memory.data());
  expect_refused(made, IST_ERR_ARGUMENT,
                 {"rank " + std::to_string(size() - 2) + " has 4 cells in dimension 1 of field 0",
                  "rank " + std::to_string(size() - 1) + ", its neighbour in direction (1, 0), has 5", "as long at both"});
}

// As many bytes, and other boxes: only their shapes tell.
TEST(HaloRefusals, cells_that_lie_side_by_side_are_in_boxes_of_one_shape) {
  if (size() == 1) GTEST_SKIP() << "not covered here: takes two ranks";
  Cut cut;
  cut.ndims = 3;
  cut.dims = {size(), 1, 1, 1};
  cut.reach = 1;
  Made made(cut);
  made.add({8, {1, 1, 1}, {1, 1, 1}});
  const bool last = rank() == size() - 1;
  std::array<ist_halo_range, 3> ranges{
      ist_halo_range{1, 1, 1, 4, 6}, {1, 1, 1, last ? 6 : 4, 8}, {1, 1, 1, last ? 4 : 6, 8}};
  std::vector<unsigned char> memory(8 * 6 * 8 * 8);
  made.given[0].ranges = ranges.data(), made.given[0].buffer = ist_host(memory.data());
  const ist_halo_options options{sizeof options, 1, IST_HALO_LOOPS, IST_HALO_MESSAGES, 0};
  expect_refused(made, IST_ERR_ARGUMENT,
                 {"rank " + std::to_string(size() - 2) + " has 4 cells in dimension 1 of field 0",
                  "its neighbour in direction (1, 0, 0), has 6"},
                 &options);
}

TEST(HaloRefusals, steps_out_of_order_and_handles_that_are_none) {
  Made made(two_dimensions(3));
  made.add({8, {1, 1}, {1, 1}});
  ist_halo halo = IST_HALO_NULL;
  EXPECT_EQ(IST_ERR_HANDLE, ist_halo_pack(halo));
  IST_OK_OR_FAIL(ist_halo_create(made.grid, 1, made.given.data(), nullptr, &halo));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_exchange(halo));
  EXPECT_NE(std::string{ist_error_text()}.find("ist_halo_exchange: called where pack comes next"), std::string::npos)
      << ist_error_text();
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_wait(halo));
  EXPECT_NE(std::string{ist_error_text()}.find("ist_halo_wait: called where pack comes next"), std::string::npos)
      << ist_error_text();
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_unpack(halo));
  IST_OK_OR_FAIL(ist_halo_pack(halo));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_unpack(halo));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_set_fields(halo, 1, made.given.data()));
  IST_OK_OR_FAIL(ist_halo_start_exchange(halo));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_pack(halo));
  IST_OK_OR_FAIL(ist_halo_wait(halo));
  IST_OK_OR_FAIL(ist_halo_unpack(halo));
  std::size_t needed = 0;
  IST_OK_OR_FAIL(ist_halo_text(halo, nullptr, 0, &needed));
  std::string text(needed, '\0');
  IST_OK_OR_FAIL(ist_halo_text(halo, text.data(), text.size(), nullptr));
  EXPECT_NE(text.find("packed by"), std::string::npos) << text;
  EXPECT_NE(text.find("measured: layouts"), std::string::npos) << text;
  const ist_halo gone = halo;
  IST_OK_OR_FAIL(ist_halo_free(&halo));
  ist_halo again = gone;
  EXPECT_EQ(IST_ERR_HANDLE, ist_halo_free(&again));
  EXPECT_EQ(IST_ERR_HANDLE, ist_halo_pack(gone));
}

TEST(HaloGrids, of_ranks_that_were_put_in_order_are_grids_of_all) {
  for (const KindName& kind : usable_kinds()) {
    GuardedBuffer buffer(kind.kind, 40000);
    constexpr int kDims[] = {0, 0}, kPeriods[] = {1, 0};
    ist_comm ordered = IST_COMM_NULL;
    IST_OK_OR_FAIL(ist_halo_order(comm(), 2, kDims, kPeriods, buffer.get(), 40000, &ordered));
    int ranks = 0, own = 0;
    IST_OK_OR_FAIL(ist_comm_size(ordered, &ranks));
    IST_OK_OR_FAIL(ist_comm_rank(ordered, &own));
    EXPECT_EQ(ranks, size());
    std::vector<int> all(at(ranks));
    IST_OK_OR_FAIL(ist_allgather(ist_host(&own), 1, ist_host(all.data()), 1, IST_INT, comm()));
    std::sort(all.begin(), all.end());
    for (int r = 0; r < ranks; ++r) EXPECT_EQ(all[at(r)], r) << "each place once";
    ist_halo_grid grid = IST_HALO_GRID_NULL;
    IST_OK_OR_FAIL(ist_halo_grid_create(ordered, 2, kDims, kPeriods, nullptr, &grid));
    IST_OK_OR_FAIL(ist_halo_grid_free(&grid));
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_order(comm(), 2, kDims, kPeriods, buffer.get(), 0, &ordered));
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_order(comm(), 2, nullptr, kPeriods, buffer.get(), 100, &ordered));
  }
}

// The last rank alone has it wrong, and all are told.
TEST(HaloGrids, that_one_rank_alone_gets_wrong_are_errors_at_all) {
  const bool last = rank() == size() - 1;
  const std::string who = "rank " + std::to_string(size() - 1) + ": ";
  std::vector<unsigned char> memory(1000);
  constexpr int kDims[] = {0, 0}, kPeriods[] = {1, 0}, kNegative[] = {-1, 1}, kTwice[] = {0, 0};
  ist_comm ordered = IST_COMM_NULL;
  ist_halo_grid grid = IST_HALO_GRID_NULL;
  const auto told = [&](int code, int wanted, const std::string& words) {
    EXPECT_EQ(code, wanted);
    EXPECT_NE(std::string{ist_error_text()}.find(words), std::string::npos) << words << " in: " << ist_error_text();
  };
  const ist_buffer fine = ist_host(memory.data());
  told(ist_halo_order(comm(), 2, kDims, kPeriods, fine, last ? 0 : 1000, &ordered), IST_ERR_ARGUMENT, who + "bytes is 0");
  told(ist_halo_order(comm(), 2, last ? nullptr : kDims, kPeriods, fine, 1000, &ordered), IST_ERR_ARGUMENT,
       who + "dims is null");
  told(ist_halo_order(comm(), 2, last ? kNegative : kDims, kPeriods, fine, 1000, &ordered), IST_ERR_ARGUMENT,
       who + "dims[0] is -1");
  told(ist_halo_order(comm(), last ? 7 : 2, kDims, kPeriods, fine, 1000, &ordered), IST_ERR_ARGUMENT, who + "ndims is 7");
  told(ist_halo_order(comm(), 2, kDims, kPeriods, last ? ist_host(nullptr) : fine, 1000, &ordered), IST_ERR_ARGUMENT, who);
  told(ist_halo_order(comm(), 2, kDims, kPeriods, fine, 1000, last ? nullptr : &ordered), IST_ERR_ARGUMENT,
       who + "ordered is null");
  told(ist_halo_grid_create(comm(), 2, last ? nullptr : kDims, kPeriods, nullptr, &grid), IST_ERR_ARGUMENT,
       who + "dims is null");
  told(ist_halo_grid_create(comm(), 2, kDims, kPeriods, last ? kTwice : nullptr, &grid), IST_ERR_ARGUMENT,
       who + "process_map[1] is 0");
  constexpr int kInOrder[] = {0, 1}, kTurned[] = {1, 0};
  if (size() > 1)
    told(ist_halo_grid_create(comm(), 2, kDims, kPeriods, last ? kTurned : kInOrder, &grid), IST_ERR_ARGUMENT,
         "process_map, its entries as digits behind a 1, is 101 at rank 0, and 110 at rank " + std::to_string(size() - 1));
  if (size() > 1)
    told(ist_halo_order(comm(), 2, kDims, kPeriods, fine, last ? 999 : 1000, &ordered), IST_ERR_ARGUMENT,
         "bytes is 1000 at rank 0, and 999 at rank " + std::to_string(size() - 1));
}

TEST(HaloGrids, give_places_and_neighbours_in_the_order_of_the_data) {
  // The data's first dimension runs along the grid's last one.
  constexpr int kDims[] = {0, 1, 0}, kPeriods[] = {1, 0, 0}, kMap[] = {2, 1, 0};
  ist_halo_grid grid = IST_HALO_GRID_NULL;
  IST_OK_OR_FAIL(ist_halo_grid_create(comm(), 3, kDims, kPeriods, kMap, &grid));
  int ndims = 0, dims[3] = {}, periods[3] = {}, coords[3] = {}, found = 0;
  IST_OK_OR_FAIL(ist_halo_grid_ndims(grid, &ndims));
  EXPECT_EQ(ndims, 3);
  IST_OK_OR_FAIL(ist_halo_grid_get(grid, 3, dims, periods, coords));
  EXPECT_EQ(dims[0] * dims[1] * dims[2], size());
  EXPECT_EQ(periods[0], 1);
  EXPECT_EQ(periods[2], 0);
  EXPECT_EQ(coords[2] * dims[0] + coords[0], rank()) << "the grid's last dimension runs fastest";
  constexpr int kBack[] = {-1, 0, 0}, kOut[] = {0, 1, 0}, kTwo[] = {2, 0, 0};
  IST_OK_OR_FAIL(ist_halo_grid_neighbour(grid, kBack, &found));
  EXPECT_EQ(found, coords[2] * dims[0] + (coords[0] + dims[0] - 1) % dims[0]);
  IST_OK_OR_FAIL(ist_halo_grid_neighbour(grid, kOut, &found));
  EXPECT_EQ(found, IST_PROC_NULL);
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_grid_neighbour(grid, kTwo, &found));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_grid_get(grid, 2, dims, periods, coords));
  ist_comm own = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_halo_grid_comm(grid, &own));
  IST_OK_OR_FAIL(ist_comm_size(own, &found));
  EXPECT_EQ(found, size());
  IST_OK_OR_FAIL(ist_halo_grid_free(&grid));
  EXPECT_EQ(IST_ERR_HANDLE, ist_halo_grid_free(&grid));
  constexpr int kFive[] = {1, 1, 1, 1, 1}, kTwice[] = {0, 0};
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_grid_create(comm(), 5, kFive, kFive, nullptr, &grid));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_grid_create(comm(), 2, kFive, kFive, kTwice, &grid));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_grid_create(comm(), 2, nullptr, kFive, nullptr, &grid));
  // Who has no place in a grid gets none.
  IST_OK_OR_FAIL(ist_halo_grid_create(comm(), 1, kFive, kFive, nullptr, &grid));
  EXPECT_EQ(grid == IST_HALO_GRID_NULL, rank() != 0);
  if (rank() == 0) {
    IST_OK_OR_FAIL(ist_halo_grid_free(&grid));
  }
}

}  // namespace
