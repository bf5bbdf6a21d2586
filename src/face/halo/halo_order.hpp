// Ranks in an order in which those that are side by side in a grid have quick links.
//
// Who calls this : api_halo_grid.cpp; tests, with invented machines.
// Threads        : collective.
// Ownership      : the new communicator is the user's.
// Errors         : those of messages; of arguments, the same at all ranks, with what would do.
#pragma once

#include <utility>
#include <vector>

#include "face/halo/halo_grid.hpp"

namespace ist::halo {

struct GridShape {
  int ndims;
  const int* dims;
  const int* periods;
};
Status order(ist_comm comm, const GridShape& shape, const ist_buffer& buffer, std::int64_t bytes, ist_comm* ordered);

// Places of a grid that are side by side.
using Edge = std::pair<std::size_t, std::size_t>;
std::vector<Edge> edges_of(const std::vector<int>& dims, const std::vector<int>& periods);
// Which rank goes to which place: `times[a * ranks + b]` is that of a message between ranks a and b. In the order of their numbers, where
// another one gains less than a twentieth.
std::vector<std::size_t> best_order(const std::vector<double>& times, std::size_t ranks, const std::vector<Edge>& edges);

}  // namespace ist::halo
