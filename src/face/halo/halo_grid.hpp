// A grid of ranks in the order of the data's dimensions, and the communicator of its ranks.
//
// Who calls this : api_halo_grid.cpp makes it; exchanges share it.
// Threads        : never changes once it is made.
// Ownership      : owns its communicator. Shared, so that it may be freed before its exchanges.
// Errors         : returned with what was given and what would do; of collective calls, the same at all ranks.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collective/communicator.hpp"
#include "face/halo/halo_geometry.hpp"

namespace ist::halo {

// Frees a communicator that was made here, unless its world has taken it along.
class OwnComm {
 public:
  explicit OwnComm(ist_comm comm) : comm_(comm) {}
  ~OwnComm();
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;
  ist_comm get() const { return comm_; }

 private:
  ist_comm comm_;
};

struct Grid {
  std::unique_ptr<OwnComm> comm;
  std::size_t dimensions = 0;
  PerDimension<int> dims{1, 1, 1, 1};
  PerDimension<int> periods{};
  PerDimension<int> coords{};  // of this rank
  PerDimension<int> map{0, 1, 2, 3};
  ist::Grid ranks;  // of the communicator, in the grid's own order
  int rank = 0;
  int size = 1;
};
using SharedGrid = std::shared_ptr<const Grid>;

// Null: this rank has no place in it.
Result<SharedGrid> make_grid(ist_comm comm, int ndims, const int* dims, const int* periods, const int* process_map);
// In the grid's communicator; IST_PROC_NULL past an edge.
int neighbour(const Grid& grid, const Direction& direction);

Result<SharedGrid> grid_of(ist_halo_grid handle);
ist_halo_grid add_grid(SharedGrid grid);
Status remove_grid(ist_halo_grid handle);

// As many dimensions as there may be, and nothing null.
Status check_dims(int ndims, const int* dims, const int* periods);
// Extents that are 0 are chosen, so that all of so many ranks have a place; otherwise the grid has at most as many.
Status complete(int ranks, std::vector<int>& dims);
// Collective: the first rank's error, or one where ranks give different grids, process maps or another `number`.
Status agree_on_grid(ist_comm comm, const Status& own, const std::vector<int>& dims, const std::vector<int>& periods,
                     const PerDimension<int>& map, std::int64_t number);

// What a call of the C interface said, which failed.
Status told(int code);

}  // namespace ist::halo
