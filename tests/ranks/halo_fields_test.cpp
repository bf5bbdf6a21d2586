// Halo exchanges of fields in all kinds of memory, of fields that change, and what is refused. Run on 1, 2, 4, 6 and 8 ranks.
#include <isthmus/collective.h>

#include "halo_support.hpp"

namespace {

using namespace rank_test;

// All ranks along the first of two dimensions, around it, or in a plane of two rows where that goes.
Cut two_dimensions(int periods) {
  Cut cut;
  cut.ndims = 2;
  cut.dims = size() % 2 == 0 ? std::array<int, 4>{size() / 2, 2, 1, 1} : std::array<int, 4>{size(), 1, 1, 1};
  cut.periods = {periods & 1, periods >> 1 & 1, 0, 0};
  cut.cells = {5, 4, 1, 1};
  return cut;
}

std::vector<FieldShape> mixture() {
  FieldShape one{8, {2, 1}, {1, 2}, {0, 1}, {1, 0}, {0, 1, 2, 3}};
  FieldShape two{4, {0, 3}, {2, 0}, {0, 0}, {0, 0}, {1, 0, 2, 3}};
  FieldShape three{24, {1, 1}, {1, 1}, {2, 0}, {0, 2}, {0, 1, 2, 3}};
  FieldShape four{1, {3, 2}, {0, 1}, {1, 1}, {1, 1}, {1, 0, 2, 3}};
  return {one, two, three, four};
}

TEST(HaloFields, of_every_kind_by_every_packing) {
  for (const ist_kind kind : all_kinds())
    for (const ist_halo_packing packing : {IST_HALO_AUTO, IST_HALO_CALLS, IST_HALO_LAYOUTS, IST_HALO_LOOPS})
      for (const int periods : {0, 3}) {
        exchange(two_dimensions(periods), mixture(), {packing, IST_HALO_MESSAGES, {kind}, packing == IST_HALO_CALLS});
        if (HasFailure()) FAIL() << "kind " << kind << ", packing " << packing << ", periods " << periods;
      }
}

TEST(HaloFields, of_several_kinds_are_one_exchange) {
  auto kinds = all_kinds();
  for (std::size_t first = 0; first < kinds.size(); ++first) {
    exchange(two_dimensions(3), mixture(), {IST_HALO_LAYOUTS, IST_HALO_MESSAGES, kinds, false});
    std::rotate(kinds.begin(), kinds.begin() + 1, kinds.end());
  }
  // Ranks have them in other places.
  if (rank() % 2 == 1) std::rotate(kinds.begin(), kinds.begin() + 1, kinds.end());
  exchange(two_dimensions(1), mixture(), {IST_HALO_CALLS, IST_HALO_MESSAGES, kinds, true});
}

TEST(HaloFields, packed_in_other_ways_by_every_rank_meet) {
  exchange(two_dimensions(3), mixture(),
           {static_cast<ist_halo_packing>(1 + rank() % 3), IST_HALO_MESSAGES, {IST_KIND_HOST}, false});
}

TEST(HaloFields, go_one_sided_into_symmetric_heaps) {
  for (const ist_kind kind : all_kinds()) {
    if (kind == IST_KIND_OPENCL) continue;
    exchange(two_dimensions(2), mixture(), {IST_HALO_LAYOUTS, IST_HALO_ONE_SIDED, {kind}, true});
    if (HasFailure()) FAIL() << "kind " << kind;
  }
}

struct Made {
  Cut cut;
  ist_halo_grid grid = IST_HALO_GRID_NULL;
  std::array<int, 4> coords{};
  std::vector<std::unique_ptr<CodedField>> fields;
  std::vector<ist_halo_field> given;
  explicit Made(const Cut& wanted) : cut(wanted), grid(grid_for(wanted)), coords(coords_in(grid, wanted.ndims)) {}
  ~Made() { EXPECT_EQ(IST_OK, ist_halo_grid_free(&grid)) << ist_error_text(); }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  void add(const FieldShape& shape, ist_kind kind = IST_KIND_HOST) {
    fields.push_back(std::make_unique<CodedField>(cut, shape, static_cast<int>(fields.size()), coords, kind));
    given.push_back(fields.back()->get());
  }
  int count() const { return static_cast<int>(given.size()); }
};

TEST(HaloFields, take_turns_and_change_their_number_and_shape_on_the_fly) {
  Made one(two_dimensions(3)), two(two_dimensions(3)), more(two_dimensions(3));
  for (const FieldShape& shape : mixture()) one.add(shape), two.add(shape), more.add(shape);
  FieldShape large{40, {2, 2}, {3, 1}, {0, 0}, {0, 0}, {0, 1, 2, 3}};
  more.add(large);
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create(one.grid, one.count(), one.given.data(), nullptr, &halo));
  int number = 0;
  for (Made* const now : {&one, &two, &one, &more, &two, &more, &one}) {
    // With only the first fields, too.
    for (const int count : {now->count(), 2}) {
      for (const auto& field : now->fields) field->fill(number);
      IST_OK_OR_FAIL(ist_halo_set_fields(halo, count, now->given.data()));
      step(halo, number % 2 == 0);
      for (int f = 0; f < count; ++f) now->fields[at(f)]->check(number, "time " + std::to_string(number));
      ++number;
    }
    if (HasFailure()) break;
  }
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

TEST(HaloFields, of_two_time_levels_swap_in_every_kind_and_way) {
  for (const ist_kind kind : all_kinds())
    for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED}) {
      if (kind == IST_KIND_OPENCL && way == IST_HALO_ONE_SIDED) continue;
      Made levels[2]{Made(two_dimensions(3)), Made(two_dimensions(3))};
      for (Made& level : levels) level.add(mixture()[0], kind), level.add(mixture()[2], kind);
      const ist_halo_options options{sizeof options, 0, IST_HALO_AUTO, way, 0};
      ist_halo halo = IST_HALO_NULL;
      IST_OK_OR_FAIL(ist_halo_create(levels[0].grid, 2, levels[0].given.data(), &options, &halo));
      for (int time = 0; time < 7; ++time) {
        Made& level = levels[time % 2];
        for (const auto& field : level.fields) field->fill(time);
        IST_OK_OR_FAIL(ist_halo_set_fields(halo, 2, level.given.data()));
        step(halo, false);
        for (const auto& field : level.fields) field->check(time, "time " + std::to_string(time));
      }
      if (way == IST_HALO_ONE_SIDED) {
        EXPECT_EQ(IST_ERR_UNSUPPORTED, ist_halo_set_fields(halo, 1, levels[0].given.data()));
      }
      IST_OK_OR_FAIL(ist_halo_free(&halo));
    }
}

TEST(HaloFields, packed_may_be_overwritten_before_they_are_sent) {
  Made made(two_dimensions(3));
  made.add(mixture()[0]);
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create(made.grid, 1, made.given.data(), nullptr, &halo));
  made.fields[0]->fill(1);
  IST_OK_OR_FAIL(ist_halo_pack(halo));
  made.fields[0]->fill(2);
  IST_OK_OR_FAIL(ist_halo_pack(halo));  // once more, and this one counts
  made.fields[0]->fill(3);
  IST_OK_OR_FAIL(ist_halo_exchange(halo));
  made.fields[0]->fill(2);
  IST_OK_OR_FAIL(ist_halo_unpack(halo));
  made.fields[0]->check(2, "what was packed");
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

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
  expect_refused(made, IST_ERR_ARGUMENT, {"bytes of field 0", "as long at both"});
}

TEST(HaloRefusals, steps_out_of_order_and_handles_that_are_none) {
  Made made(two_dimensions(3));
  made.add({8, {1, 1}, {1, 1}});
  ist_halo halo = IST_HALO_NULL;
  EXPECT_EQ(IST_ERR_HANDLE, ist_halo_pack(halo));
  IST_OK_OR_FAIL(ist_halo_create(made.grid, 1, made.given.data(), nullptr, &halo));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_exchange(halo));
  EXPECT_NE(std::string{ist_error_text()}.find("ist_halo_exchange: exchange was called where pack comes next"),
            std::string::npos)
      << ist_error_text();
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_wait(halo));
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
