// What all ranks of an exchange find out together before anything of it is there.
//
// Who calls this : halo_exchange.cpp, halo_grid.cpp, halo_order.cpp.
// Threads        : collective calls, in one order on all ranks.
// Ownership      : none.
// Errors         : the same at all ranks, with the number of the rank that saw it.
#pragma once

#include <span>
#include <vector>

#include "collective/agreement.hpp"
#include "face/halo/halo_pattern.hpp"

namespace ist::halo {

// The first rank's error that has one, or one where numbers are not alike.
Status agree(ist_comm comm, const Status& own, std::span<const AgreedNumber> same_everywhere = {});

// Elements, widths and layout maps are rank 0's. Says so at the rank where they are not.
Status compare_shapes(ist_comm comm, std::span<const Shape> shapes, std::size_t dimensions);
// Boxes that two neighbours give and take of each other are as large at both, of every field and in every direction within reach.
Status compare_boxes(const Grid& grid, std::span<const Shape> shapes, int reach);
// Every rank is sent as many bytes as it expects, of every field.
Status compare_amounts(ist_comm comm, const Pattern& pattern, std::size_t fields, int ranks);
// Fields that share a group at every rank share one now.
Status common_groups(ist_comm comm, std::vector<int>& groups, int ranks);

// A neighbour's halo is filled by one rank.
Status check_thickness(const Grid& grid, std::span<const Shape> shapes);

}  // namespace ist::halo
