// C calls about grids of ranks.
#include <isthmus/collective.h>

#include <algorithm>

#include "base/ranges.hpp"
#include "face/message/calls.hpp"
#include "face/message/created.hpp"
#include "face/message/errors.hpp"

namespace ist {
namespace {

// Extents that multiply to `ranks`, as equal as can be, the largest first: what is left is split by its largest prime factors.
Status balance(int ranks, std::vector<int>& dims) {
  int left = ranks;
  std::vector<std::size_t> open;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 0) return {IST_ERR_ARGUMENT, "dims[" + std::to_string(d) + "] is " + std::to_string(dims[d])};
    if (dims[d] == 0) open.push_back(d);
    if (dims[d] > 0 && left % dims[d] != 0)
      return {IST_ERR_ARGUMENT, std::to_string(ranks) + " ranks are no multiple of the extents that are given; dims[" +
                                    std::to_string(d) + "] is " + std::to_string(dims[d])};
    if (dims[d] > 0) left /= dims[d];
  }
  if (open.empty())
    return left == 1 ? Status{} : Status{IST_ERR_ARGUMENT, "the extents given do not multiply to " + std::to_string(ranks)};
  std::vector<int> factors;
  for (int divisor = 2; left > 1; ++divisor) {
    if (divisor > left / divisor) divisor = left;
    for (; left % divisor == 0; left /= divisor) factors.push_back(divisor);
  }
  std::vector<int> extents(open.size(), 1);
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor)
    *std::min_element(extents.begin(), extents.end()) *= *factor;
  std::sort(extents.rbegin(), extents.rend());
  for (std::size_t i = 0; i < open.size(); ++i) dims[open[i]] = extents[i];
  return {};
}

Result<Grid> grid_of(int ndims, const int* dims, const int* periods, const Communicator& comm) {
  if (ndims < 1 || ndims > 16 || dims == nullptr || periods == nullptr)
    return Status{IST_ERR_ARGUMENT, "ndims is " + std::to_string(ndims) + "; it must be 1 to 16, dims and periods not null"};
  Grid grid{{dims, dims + ndims}, {}};
  std::int64_t ranks = 1;
  for (int d = 0; d < ndims; ++d) {
    if (dims[d] < 1)
      return Status{IST_ERR_ARGUMENT,
                    "dims[" + std::to_string(d) + "] is " + std::to_string(dims[d]) + "; it must be 1 or more"};
    ranks = std::min<std::int64_t>(ranks * dims[d], std::int64_t{1} << 31);
    grid.periods.push_back(periods[d] != 0);
  }
  if (ranks > comm.size())
    return Status{IST_ERR_ARGUMENT, "the grid has " + std::to_string(ranks) + " or more places; communicator \"" +
                                        comm.name() + "\" has " + std::to_string(comm.size()) + " ranks"};
  return grid;
}

Result<const Communicator*> with_grid(ist_comm cart) {
  const auto found = look_up(cart);
  if (!found.ok()) return found.status();
  if (found->comm->grid()) return static_cast<const Communicator*>(found->comm);
  return Status{IST_ERR_HANDLE, "communicator \"" + found->comm->name() + "\" has no grid; make one with ist_cart_create"};
}

Status check_dimensions(const Communicator& cart, int ndims, bool complete) {
  const auto has = static_cast<int>(cart.grid()->dims.size());
  if (ndims != has)
    return {IST_ERR_ARGUMENT, "ndims is " + std::to_string(ndims) + "; the grid has " + std::to_string(has) + " dimensions"};
  return complete ? Status{} : Status{IST_ERR_ARGUMENT, "an array to be filled in is null"};
}

// What is left of a grid, and who shares the rest of this rank's coordinates with it.
struct SubGrid {
  Grid grid;
  int colour = 0;
};

Result<SubGrid> sub_grid_of(const Communicator& cart, int ndims, const int* remain) {
  if (!cart.grid())
    return Status{IST_ERR_HANDLE, "communicator \"" + cart.name() + "\" has no grid; make one with ist_cart_create"};
  IST_TRY(check_dimensions(cart, ndims, true));
  if (remain == nullptr) return Status{IST_ERR_ARGUMENT, "remain is null"};
  const Grid& whole = *cart.grid();
  const std::vector<int> here = whole.coords_of(cart.rank());
  SubGrid found;
  for (std::size_t d = 0; d < here.size(); ++d) {
    if (remain[d] == 0) {
      found.colour = found.colour * whole.dims[d] + here[d];
      continue;
    }
    found.grid.dims.push_back(whole.dims[d]);
    found.grid.periods.push_back(whole.periods[d]);
  }
  if (found.grid.dims.empty())
    return Status{IST_ERR_ARGUMENT,
                  "remain is 0 for all " + std::to_string(ndims) + " dimensions; one must remain, or take ist_comm_split"};
  return found;
}

int moved(const Communicator& cart, int dimension, std::int64_t displacement) {
  const auto d = static_cast<std::size_t>(dimension);
  const Grid& grid = *cart.grid();
  std::vector<int> coords = grid.coords_of(cart.rank());
  const std::int64_t extent = grid.dims[d];
  // Around a periodic dimension as often as that goes; beyond another one any place is as far.
  const std::int64_t place = coords[d] + (grid.periods[d] ? displacement % extent : displacement);
  coords[d] = static_cast<int>(std::clamp<std::int64_t>(place, -extent, 2 * extent));
  return grid.rank_of(coords).value_or(IST_PROC_NULL);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_dims_create(int ranks, int ndims, int* dims) try {
  if (ranks < 1 || ndims < 1 || dims == nullptr)
    return ist::report(IST_ERR_ARGUMENT, "ist_dims_create: ranks is " + std::to_string(ranks) + " and ndims " +
                                             std::to_string(ndims) + "; both must be 1 or more, and dims not null");
  std::vector<int> extents(dims, dims + ndims);
  if (const auto status = ist::balance(ranks, extents); !status.ok())
    return ist::report(ist::in_call("ist_dims_create", status));
  std::copy(extents.begin(), extents.end(), dims);
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_dims_create");
}

int ist_cart_create(ist_comm comm, int ndims, const int* dims, const int* periods, int, ist_comm* cart) try {
  const ist::Range range("ist_cart_create");
  return ist::create("ist_cart_create", comm, cart, [&](const ist::InWorld& parent, ist::Status wrong) {
    auto grid = ist::grid_of(ndims, dims, periods, *parent.comm);
    if (wrong.ok() && !grid.ok()) wrong = grid.status();
    int places = 1;
    if (grid.ok())
      for (const int extent : grid->dims) places *= extent;
    const ist::Choice choice{parent.comm->rank() < places ? 0 : ist::kNoColour, 0};
    auto made = ist::split(*parent.comm, choice, parent.world->contexts(), "grid", wrong);
    if (made.ok() && *made) (*made)->set_grid(std::move(*grid));
    return made;
  });
} catch (...) {
  return ist::report_exception("ist_cart_create");
}

int ist_cart_sub(ist_comm cart, int ndims, const int* remain, ist_comm* sub) try {
  const ist::Range range("ist_cart_sub");
  return ist::create("ist_cart_sub", cart, sub, [&](const ist::InWorld& parent, ist::Status wrong) {
    auto found = ist::sub_grid_of(*parent.comm, ndims, remain);
    if (wrong.ok() && !found.ok()) wrong = found.status();
    // In the order of ranks the last dimension that is left runs fastest, as in the whole.
    auto made = ist::split(*parent.comm, {found.ok() ? found->colour : 0, 0}, parent.world->contexts(), "grid", wrong);
    if (made.ok() && *made) (*made)->set_grid(std::move(found->grid));
    return made;
  });
} catch (...) {
  return ist::report_exception("ist_cart_sub");
}

int ist_cart_ndims(ist_comm cart, int* ndims) try {
  if (ndims == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_cart_ndims: ndims is null");
  const auto found = ist::with_grid(cart);
  if (!found.ok()) return ist::report(ist::in_call("ist_cart_ndims", found.status()));
  *ndims = static_cast<int>((*found)->grid()->dims.size());
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_cart_ndims");
}

int ist_cart_get(ist_comm cart, int ndims, int* dims, int* periods, int* coords) try {
  const auto found = ist::with_grid(cart);
  if (!found.ok()) return ist::report(ist::in_call("ist_cart_get", found.status()));
  const auto status = ist::check_dimensions(**found, ndims, dims != nullptr && periods != nullptr && coords != nullptr);
  if (!status.ok()) return ist::report(ist::in_call("ist_cart_get", status));
  const ist::Grid& grid = *(*found)->grid();
  const auto here = grid.coords_of((*found)->rank());
  for (std::size_t d = 0; d < here.size(); ++d) {
    dims[d] = grid.dims[d];
    periods[d] = grid.periods[d] ? 1 : 0;
    coords[d] = here[d];
  }
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_cart_get");
}

int ist_cart_coords(ist_comm cart, int rank, int ndims, int* coords) try {
  const auto found = ist::with_grid(cart);
  if (!found.ok()) return ist::report(ist::in_call("ist_cart_coords", found.status()));
  const auto status = ist::check_dimensions(**found, ndims, coords != nullptr);
  if (!status.ok()) return ist::report(ist::in_call("ist_cart_coords", status));
  if (rank < 0 || rank >= (*found)->size())
    return ist::report(IST_ERR_RANK, "ist_cart_coords: rank is " + std::to_string(rank) + "; the grid has ranks 0 to " +
                                         std::to_string((*found)->size() - 1));
  const auto there = (*found)->grid()->coords_of(rank);
  std::copy(there.begin(), there.end(), coords);
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_cart_coords");
}

int ist_cart_rank(ist_comm cart, const int* coords, int* rank) try {
  const auto found = ist::with_grid(cart);
  if (!found.ok()) return ist::report(ist::in_call("ist_cart_rank", found.status()));
  if (coords == nullptr || rank == nullptr)
    return ist::report(IST_ERR_ARGUMENT, "ist_cart_rank: coords and rank must not be null");
  const ist::Grid& grid = *(*found)->grid();
  const auto place = grid.rank_of({coords, coords + grid.dims.size()});
  if (!place)
    return ist::report(IST_ERR_RANK,
                       "ist_cart_rank: the coordinates are outside the grid in a dimension that is not periodic");
  *rank = *place;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_cart_rank");
}

int ist_cart_shift(ist_comm cart, int dimension, int displacement, int* source, int* dest) try {
  const auto found = ist::with_grid(cart);
  if (!found.ok()) return ist::report(ist::in_call("ist_cart_shift", found.status()));
  if (source == nullptr || dest == nullptr)
    return ist::report(IST_ERR_ARGUMENT, "ist_cart_shift: source and dest must not be null");
  const auto dimensions = static_cast<int>((*found)->grid()->dims.size());
  if (dimension < 0 || dimension >= dimensions)
    return ist::report(IST_ERR_ARGUMENT, "ist_cart_shift: dimension is " + std::to_string(dimension) + "; the grid has " +
                                             std::to_string(dimensions));
  *source = ist::moved(**found, dimension, -std::int64_t{displacement});
  *dest = ist::moved(**found, dimension, displacement);
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_cart_shift");
}
}
