// C calls about the grids that fields are cut over.
#include "base/ranges.hpp"
#include "face/halo/halo_agreement.hpp"
#include "face/halo/halo_grid.hpp"
#include "face/halo/halo_order.hpp"
#include "face/halo/halo_pattern.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"

namespace ist::halo {
namespace {

int create_grid(ist_comm comm, int ndims, const int* dims, const int* periods, const int* process_map, ist_halo_grid* grid) {
  constexpr const char* kCall = "ist_halo_grid_create";
  const Range range(kCall);
  if (grid == nullptr)
    return report(IST_ERR_ARGUMENT, std::string{kCall} + ": grid is null; pass the address of a variable");
  *grid = IST_HALO_GRID_NULL;
  auto made = make_grid(comm, ndims, dims, periods, process_map);
  if (!made.ok()) return report(in_call(kCall, made.status()));
  if (*made != nullptr) *grid = add_grid(std::move(*made));
  return IST_OK;
}

// Status what(const Grid&)
template <class What>
int in_grid(const char* call, ist_halo_grid grid, const What& what) {
  const auto found = grid_of(grid);
  if (!found.ok()) return report(in_call(call, found.status()));
  const Status done = what(**found);
  return done.ok() ? IST_OK : report(in_call(call, done));
}

Status null_result(const char* name) {
  return {IST_ERR_ARGUMENT, std::string{name} + " is null; pass the address of a variable"};
}

Status get(const Grid& grid, int ndims, int* dims, int* periods, int* coords) {
  if (ndims < 0 || static_cast<std::size_t>(ndims) != grid.dimensions)
    return {IST_ERR_ARGUMENT,
            "ndims is " + std::to_string(ndims) + "; the grid has " + std::to_string(grid.dimensions) + " dimensions"};
  for (std::size_t d = 0; d < grid.dimensions; ++d) {
    if (dims != nullptr) dims[d] = grid.dims[d];
    if (periods != nullptr) periods[d] = grid.periods[d];
    if (coords != nullptr) coords[d] = grid.coords[d];
  }
  return {};
}

// Result<Sides> found_by(const Grid&, const Shape&, int reach)
template <class Sides, class Found>
Status find_sides(const Grid& grid, const ist_halo_field* field, int reach, Sides* sides, const Found& found_by) {
  if (field == nullptr || sides == nullptr) return null_result(sides == nullptr ? "sides" : "field");
  if (reach < 0 || static_cast<std::size_t>(reach) > grid.dimensions)
    return {IST_ERR_ARGUMENT, "reach is " + std::to_string(reach) + "; it must be 0 to " + std::to_string(grid.dimensions)};
  const auto shape = shape_of(*field, grid.dimensions);
  if (!shape.ok()) return shape.status();
  IST_TRY(check_thickness(grid, {&*shape, 1}));
  const auto found = found_by(grid, *shape, reach);
  if (found.ok()) *sides = *found;
  return found.status();
}

Status find_neighbour(const Grid& grid, const int* direction, int* rank) {
  if (direction == nullptr || rank == nullptr) return null_result(rank == nullptr ? "rank" : "direction");
  Direction wanted{};
  for (std::size_t d = 0; d < grid.dimensions; ++d) {
    if (direction[d] < -1 || direction[d] > 1)
      return {IST_ERR_ARGUMENT,
              "direction[" + std::to_string(d) + "] is " + std::to_string(direction[d]) + "; it must be -1, 0 or 1"};
    wanted[d] = direction[d];
  }
  *rank = neighbour(grid, wanted);
  return {};
}

}  // namespace
}  // namespace ist::halo

extern "C" {

int ist_halo_grid_create(ist_comm comm, int ndims, const int* dims, const int* periods, const int* process_map,
                         ist_halo_grid* grid) try {
  return ist::halo::create_grid(comm, ndims, dims, periods, process_map, grid);
} catch (...) {
  return ist::report_exception("ist_halo_grid_create");
}

int ist_halo_order(ist_comm comm, int ndims, const int* dims, const int* periods, ist_buffer buffer, int64_t bytes,
                   ist_comm* ordered) try {
  const ist::Range range("ist_halo_order");
  if (ordered != nullptr) *ordered = IST_COMM_NULL;
  const ist::Status done = ist::halo::order(comm, {ndims, dims, periods}, buffer, bytes, ordered);
  return done.ok() ? IST_OK : ist::report(ist::in_call("ist_halo_order", done));
} catch (...) {
  return ist::report_exception("ist_halo_order");
}

int ist_halo_grid_free(ist_halo_grid* grid) try {
  if (grid == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_halo_grid_free: grid is null");
  const ist::Status removed = ist::halo::remove_grid(*grid);
  if (!removed.ok()) return ist::report(ist::in_call("ist_halo_grid_free", removed));
  *grid = IST_HALO_GRID_NULL;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_halo_grid_free");
}

int ist_halo_grid_ndims(ist_halo_grid grid, int* ndims) try {
  return ist::halo::in_grid("ist_halo_grid_ndims", grid, [=](const ist::halo::Grid& in) -> ist::Status {
    if (ndims == nullptr) return ist::halo::null_result("ndims");
    *ndims = static_cast<int>(in.dimensions);
    return {};
  });
} catch (...) {
  return ist::report_exception("ist_halo_grid_ndims");
}

int ist_halo_grid_get(ist_halo_grid grid, int ndims, int* dims, int* periods, int* coords) try {
  return ist::halo::in_grid("ist_halo_grid_get", grid,
                            [=](const ist::halo::Grid& in) { return ist::halo::get(in, ndims, dims, periods, coords); });
} catch (...) {
  return ist::report_exception("ist_halo_grid_get");
}

int ist_halo_grid_neighbour(ist_halo_grid grid, const int* direction, int* rank) try {
  return ist::halo::in_grid("ist_halo_grid_neighbour", grid,
                            [=](const ist::halo::Grid& in) { return ist::halo::find_neighbour(in, direction, rank); });
} catch (...) {
  return ist::report_exception("ist_halo_grid_neighbour");
}

int ist_halo_sides_of(ist_halo_grid grid, const ist_halo_field* field, int reach, ist_halo_sides* sides) try {
  return ist::halo::in_grid("ist_halo_sides_of", grid, [=](const ist::halo::Grid& in) {
    return ist::halo::find_sides(in, field, reach, sides, ist::halo::sides_of);
  });
} catch (...) {
  return ist::report_exception("ist_halo_sides_of");
}

int ist_halo_all_sides_of(ist_halo_grid grid, const ist_halo_field* field, int reach, ist_halo_all_sides* sides) try {
  return ist::halo::in_grid("ist_halo_all_sides_of", grid, [=](const ist::halo::Grid& in) {
    return ist::halo::find_sides(in, field, reach, sides, ist::halo::all_sides_of);
  });
} catch (...) {
  return ist::report_exception("ist_halo_all_sides_of");
}

int ist_halo_grid_comm(ist_halo_grid grid, ist_comm* comm) try {
  return ist::halo::in_grid("ist_halo_grid_comm", grid, [=](const ist::halo::Grid& in) -> ist::Status {
    if (comm == nullptr) return ist::halo::null_result("comm");
    *comm = in.comm->get();
    return {};
  });
} catch (...) {
  return ist::report_exception("ist_halo_grid_comm");
}
}
