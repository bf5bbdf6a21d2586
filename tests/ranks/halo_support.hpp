// What tests of halo exchanges share: fields whose cells say which field and which global cell they are, and what each byte of
// their memory must be after an exchange.
//
// Who calls this : halo_combinations.hpp, halo_test.cpp, halo_fields_test.cpp, halo_refusals_test.cpp, halo_lists_test.cpp, halo_kernels_test.cpp, halo_streams_test.cpp.
// Threads        : one.
// Ownership      : a field owns its memory.
// Errors         : fail the test.
#pragma once

#include <isthmus/halo.h>

#include <array>

#include "rank_test.hpp"

namespace rank_test {

using Four = std::array<std::int64_t, 4>;

// How the data is cut: which cells are whose, with widths, orders and periods. Dimension d of rank coordinate c has cells[d] + c % 2 inner
// cells.
struct Cut {
  int ndims = 1;
  std::array<int, 4> dims{1, 1, 1, 1};  // in the data's order
  std::array<int, 4> periods{};
  std::array<int, 4> process_map{0, 1, 2, 3};
  Four cells{1, 1, 1, 1};
  int reach = 0;
  std::int64_t inner(int d, int coord) const { return cells[at(d)] + coord % 2; }
  std::int64_t first(int d, int coord) const {
    std::int64_t sum = 0;
    for (int c = 0; c < coord; ++c) sum += inner(d, c);
    return sum;
  }
  std::int64_t global(int d) const { return first(d, dims[at(d)]); }
};

struct FieldShape {
  std::int64_t element = 8;
  Four minus{}, plus{};
  Four before{}, behind{};  // padding
  std::array<int, 4> order{0, 1, 2, 3};
};

// `element` bytes that say which field, which cell and which step this is.
inline void encode(unsigned char* into, std::int64_t element, int field, const Four& cell, int step) {
  std::uint64_t word =
      static_cast<std::uint64_t>(field) * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(step) * 0xd1b54a32d192ed03ULL;
  for (const std::int64_t index : cell)
    word = (word ^ static_cast<std::uint64_t>(index + 1)) * 0xff51afd7ed558ccdULL, word ^= word >> 29;
  for (std::int64_t i = 0; i < element; ++i) {
    if (i % 8 == 0) word = word * 0xc4ceb9fe1a85ec53ULL + 1;
    into[i] = static_cast<unsigned char>(word >> (8 * (i % 8)));
  }
}

class CodedField {
 public:
  CodedField(const Cut& cut, const FieldShape& shape, int number, const std::array<int, 4>& coords, ist_kind kind)
      : cut_(cut), shape_(shape), number_(number), coords_(coords) {
    std::size_t bytes = static_cast<std::size_t>(shape.element);
    for (int d = 0; d < cut.ndims; ++d) {
      const auto i = at(d);
      ist_halo_range& range = ranges_[i];
      range.minus = shape.minus[i], range.plus = shape.plus[i];
      range.begin = shape.before[i] + range.minus;
      range.end = range.begin + cut.inner(d, coords[i]) - 1;
      range.total_length = range.end + 1 + range.plus + shape.behind[i];
      bytes *= static_cast<std::size_t>(range.total_length);
    }
    memory_ = std::make_unique<GuardedBuffer>(kind, bytes);
    bytes_ = bytes;
  }
  ist_halo_field get() const { return {memory_->get(), shape_.element, ranges_.data(), shape_.order.data()}; }
  const ist_halo_range& range(int d) const { return ranges_[at(d)]; }
  // Inner cells say what they are, and all others are poisoned.
  void fill(int step) { memory_->poison(), memory_->fill(picture(step, false)); }
  // Inner cells as they were, halos as the neighbours' say, everything else poisoned.
  void check(int step, const std::string& what) const {
    memory_->expect(picture(step, true), what + ", field " + std::to_string(number_));
  }

 private:
  std::vector<unsigned char> picture(int step, bool exchanged) const {
    std::vector<unsigned char> bytes(bytes_, 0xa5);
    Four index{};
    std::size_t cells = 1;
    for (int d = 0; d < cut_.ndims; ++d) cells *= static_cast<std::size_t>(ranges_[at(d)].total_length);
    for (std::size_t c = 0; c < cells; ++c) {
      Four cell{};
      if (known(index, exchanged, cell)) encode(&bytes[place(index)], shape_.element, number_, cell, step);
      for (int d = cut_.ndims; d-- > 0;) {
        if (++index[at(d)] < ranges_[at(d)].total_length) break;
        index[at(d)] = 0;
      }
    }
    return bytes;
  }
  // Written by somebody; `cell` is which one of all.
  bool known(const Four& index, bool exchanged, Four& cell) const {
    int outside = 0;
    for (int d = 0; d < cut_.ndims; ++d) {
      const auto i = at(d);
      const ist_halo_range& range = ranges_[i];
      if (index[i] < range.begin - range.minus || index[i] > range.end + range.plus) return false;
      if (index[i] < range.begin || index[i] > range.end) ++outside;
      cell[i] = cut_.first(d, coords_[i]) + index[i] - range.begin;
      const std::int64_t all = cut_.global(d);
      if (cell[i] >= 0 && cell[i] < all) continue;
      if (cut_.periods[i] == 0) return false;
      cell[i] = (cell[i] + all) % all;
    }
    return outside == 0 || (exchanged && (cut_.reach == 0 || outside <= cut_.reach));
  }
  std::size_t place(const Four& index) const {
    std::array<int, 4> by_place{};
    for (int d = 0; d < cut_.ndims; ++d) by_place[at(shape_.order[at(d)])] = d;
    std::int64_t element = 0;
    for (int p = 0; p < cut_.ndims; ++p) {
      const auto d = at(by_place[at(p)]);
      element = element * ranges_[d].total_length + index[d];
    }
    return static_cast<std::size_t>(element * shape_.element);
  }

  Cut cut_;
  FieldShape shape_;
  int number_;
  std::array<int, 4> coords_;
  std::array<ist_halo_range, 4> ranges_{};
  std::unique_ptr<GuardedBuffer> memory_;
  std::size_t bytes_ = 0;
};

// A grid for the cut; null where this rank has no place in it.
inline ist_halo_grid grid_for(const Cut& cut) {
  std::array<int, 4> dims{};
  for (int d = 0; d < cut.ndims; ++d) dims[at(cut.process_map[at(d)])] = cut.dims[at(d)];
  ist_halo_grid grid = IST_HALO_GRID_NULL;
  EXPECT_EQ(IST_OK, ist_halo_grid_create(comm(), cut.ndims, dims.data(), cut.periods.data(), cut.process_map.data(), &grid))
      << ist_error_text();
  return grid;
}

inline std::array<int, 4> coords_in(ist_halo_grid grid, int ndims) {
  std::array<int, 4> coords{};
  EXPECT_EQ(IST_OK, ist_halo_grid_get(grid, ndims, nullptr, nullptr, coords.data())) << ist_error_text();
  return coords;
}

struct Wanted {
  ist_halo_packing packing = IST_HALO_CALLS;
  ist_halo_way way = IST_HALO_MESSAGES;
  std::vector<ist_kind> kinds{IST_KIND_HOST};  // of fields, in turn
  bool in_two = false;                         // start and wait
  int steps = 3;
};

inline ist_halo_options options_of(const Cut& cut, const Wanted& wanted) {
  return {sizeof(ist_halo_options), cut.reach, wanted.packing, wanted.way, 0};
}

inline std::string described(const Cut& cut) {
  std::string text;
  for (int d = 0; d < cut.ndims; ++d)
    text += (d > 0 ? " x " : "") + std::to_string(cut.dims[at(d)]) + (cut.periods[at(d)] != 0 ? "p" : "");
  return text + " ranks, reach " + std::to_string(cut.reach);
}

inline void step(ist_halo halo, bool in_two) {
  IST_OK_OR_FAIL(ist_halo_pack(halo));
  if (in_two) {
    IST_OK_OR_FAIL(ist_halo_start_exchange(halo));
    IST_OK_OR_FAIL(ist_halo_wait(halo));
  } else {
    IST_OK_OR_FAIL(ist_halo_exchange(halo));
  }
  IST_OK_OR_FAIL(ist_halo_unpack(halo));
}

// Some steps of an exchange of these fields, each with other values.
inline void exchange(const Cut& cut, const std::vector<FieldShape>& shapes, const Wanted& wanted) {
  ist_halo_grid grid = grid_for(cut);
  if (grid == IST_HALO_GRID_NULL) return;
  const auto coords = coords_in(grid, cut.ndims);
  std::vector<std::unique_ptr<CodedField>> fields;
  std::vector<ist_halo_field> given;
  for (std::size_t f = 0; f < shapes.size(); ++f) {
    fields.push_back(
        std::make_unique<CodedField>(cut, shapes[f], static_cast<int>(f), coords, wanted.kinds[f % wanted.kinds.size()]));
    given.push_back(fields.back()->get());
  }
  const auto options = options_of(cut, wanted);
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create(grid, static_cast<int>(given.size()), given.data(), &options, &halo));
  IST_OK_OR_FAIL(ist_halo_grid_free(&grid));
  for (int times = 0; times < wanted.steps; ++times) {
    for (const auto& field : fields) field->fill(times);
    step(halo, wanted.in_two);
    for (const auto& field : fields) field->check(times, described(cut) + ", step " + std::to_string(times));
    if (testing::Test::HasFailure()) break;
  }
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

// All ranks along the first of two dimensions, around it, or in a plane of two rows where that goes.
inline Cut two_dimensions(int periods) {
  Cut cut;
  cut.ndims = 2;
  cut.dims = size() % 2 == 0 ? std::array<int, 4>{size() / 2, 2, 1, 1} : std::array<int, 4>{size(), 1, 1, 1};
  cut.periods = {periods & 1, periods >> 1 & 1, 0, 0};
  cut.cells = {5, 4, 1, 1};
  return cut;
}

inline std::vector<FieldShape> mixture() {
  FieldShape one{8, {2, 1}, {1, 2}, {0, 1}, {1, 0}, {0, 1, 2, 3}};
  FieldShape two{4, {0, 3}, {2, 0}, {0, 0}, {0, 0}, {1, 0, 2, 3}};
  FieldShape three{24, {1, 1}, {1, 1}, {2, 0}, {0, 2}, {0, 1, 2, 3}};
  FieldShape four{1, {3, 2}, {0, 1}, {1, 1}, {1, 1}, {1, 0, 2, 3}};
  return {one, two, three, four};
}

// Fields of a cut that are to be exchanged, with a grid of their own.
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

inline std::vector<ist_kind> all_kinds() {
  std::vector<ist_kind> kinds;
  for (const KindName& known : usable_kinds()) kinds.push_back(known.kind);
  return kinds;
}

}  // namespace rank_test
