// Who gets which cells of which fields, in the order in which they lie in a message.
//
// Who calls this : halo_exchange.cpp.
// Threads        : pure functions.
// Ownership      : patterns share layouts.
// Errors         : IST_ERR_ARGUMENT with what was given and what would do.
#pragma once

#include <span>
#include <vector>

#include "face/halo/halo_grid.hpp"

namespace ist::halo {

// Some cells of one field.
struct Section {
  std::size_t field = 0;
  SharedLayout layout;  // bytes from the field's beginning
};

// What goes to one rank, and what comes from it. All of a field lies together, and those fields come first whose elements are multiples of
// the largest power of two, so that elements lie at multiples of theirs. Of a field, directions come in the order of the sender's numbers.
struct Partner {
  int rank = 0;
  std::vector<Section> out;
  std::vector<Section> in;
};
using Pattern = std::vector<Partner>;  // ranks rise

std::vector<std::size_t> order_in_messages(std::span<const Shape> shapes);
Result<Pattern> pattern_of(const Grid& grid, std::span<const Shape> shapes, int reach);
Result<Pattern> pattern_of(const ist_halo_lists& lists, int ranks, std::span<const Shape> shapes);

// For kernels: of a field that lies alike at all ranks.
Result<ist_halo_sides> sides_of(const Grid& grid, const Shape& shape, int reach);
Result<ist_halo_all_sides> all_sides_of(const Grid& grid, const Shape& shape, int reach);

}  // namespace ist::halo
