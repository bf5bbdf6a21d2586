#include "face/halo/halo_grid.hpp"

#include <isthmus/isthmus.h>

#include "face/message/numbered.hpp"

namespace ist::halo {
namespace {

Numbered<SharedGrid>& grids() {
  static auto* const table = new Numbered<SharedGrid>;
  return *table;
}

std::uint64_t number_of(ist_halo_grid handle) { return reinterpret_cast<std::uint64_t>(handle); }

Status no_grid(ist_halo_grid handle) {
  if (handle == IST_HALO_GRID_NULL)
    return {IST_ERR_HANDLE, "the grid is null; ranks that have no place in a grid get such a one, and cannot use it"};
  return {IST_ERR_HANDLE,
          number_text(number_of(handle)) + " is no grid: it was not made by ist_halo_grid_create, or was freed since"};
}

}  // namespace

OwnComm::~OwnComm() {
  if (comm_ != IST_COMM_NULL) ist_comm_free(&comm_);
}

Status check_dims(int ndims, const int* dims, const int* periods) {
  if (ndims < 1 || static_cast<std::size_t>(ndims) > kMost)
    return {IST_ERR_ARGUMENT, "ndims is " + std::to_string(ndims) + "; it must be 1 to " + std::to_string(kMost)};
  if (dims == nullptr || periods == nullptr)
    return {IST_ERR_ARGUMENT,
            std::string{dims == nullptr ? "dims" : "periods"} + " is null; give one number for each dimension"};
  return {};
}

Status complete(ist_comm comm, std::vector<int>& dims) {
  int ranks = 0;
  if (const int code = ist_comm_size(comm, &ranks); code != IST_OK) return told(code);
  for (const int extent : dims)
    if (extent == 0) {
      const int code = ist_dims_create(ranks, static_cast<int>(dims.size()), dims.data());
      return code == IST_OK ? Status{} : told(code);
    }
  return {};
}

Status told(int code) { return {static_cast<Code>(code), ist_error_text()}; }

Result<SharedGrid> make_grid(ist_comm comm, int ndims, const int* dims, const int* periods, const int* process_map) {
  IST_TRY(check_dims(ndims, dims, periods));
  auto grid = std::make_shared<Grid>();
  grid->dimensions = static_cast<std::size_t>(ndims);
  const auto map = permutation("process_map", process_map, grid->dimensions);
  if (!map.ok()) return map.status();
  grid->map = *map;
  std::vector<int> own(dims, dims + ndims), around(grid->dimensions);
  IST_TRY(complete(comm, own));
  for (std::size_t d = 0; d < grid->dimensions; ++d) around[static_cast<std::size_t>(grid->map[d])] = periods[d] != 0;
  ist_comm cart = IST_COMM_NULL;
  if (const int code = ist_cart_create(comm, ndims, own.data(), around.data(), 0, &cart); code != IST_OK) return told(code);
  if (cart == IST_COMM_NULL) return SharedGrid{};
  grid->comm = std::make_unique<OwnComm>(cart);
  for (std::size_t d = 0; d < grid->dimensions; ++d) {
    grid->dims[d] = own[static_cast<std::size_t>(grid->map[d])];
    grid->periods[d] = periods[d] != 0 ? 1 : 0;
  }
  int code = ist_comm_rank(cart, &grid->rank);
  if (code == IST_OK) code = ist_comm_size(cart, &grid->size);
  if (code != IST_OK) return told(code);
  grid->coords = coords_of(*grid, grid->rank);
  return SharedGrid{std::move(grid)};
}

PerDimension<int> coords_of(const Grid& grid, int rank) {
  PerDimension<int> at_grid{}, extent{1, 1, 1, 1}, coords{};
  for (std::size_t d = 0; d < grid.dimensions; ++d) extent[static_cast<std::size_t>(grid.map[d])] = grid.dims[d];
  for (std::size_t g = grid.dimensions; g-- > 0; rank /= extent[g]) at_grid[g] = rank % extent[g];
  for (std::size_t d = 0; d < grid.dimensions; ++d) coords[d] = at_grid[static_cast<std::size_t>(grid.map[d])];
  return coords;
}

int neighbour(const Grid& grid, const PerDimension<int>& coords, const Direction& direction) {
  PerDimension<int> at_grid{}, extent{1, 1, 1, 1};
  for (std::size_t d = 0; d < grid.dimensions; ++d) {
    int place = coords[d] + direction[d];
    if (place < 0 || place >= grid.dims[d]) {
      if (grid.periods[d] == 0) return IST_PROC_NULL;
      place = (place + grid.dims[d]) % grid.dims[d];
    }
    at_grid[static_cast<std::size_t>(grid.map[d])] = place;
    extent[static_cast<std::size_t>(grid.map[d])] = grid.dims[d];
  }
  int rank = 0;
  for (std::size_t g = 0; g < grid.dimensions; ++g) rank = rank * extent[g] + at_grid[g];
  return rank;
}

Result<SharedGrid> grid_of(ist_halo_grid handle) {
  auto found = grids().find(number_of(handle));
  if (!found) return no_grid(handle);
  return std::move(*found);
}

ist_halo_grid add_grid(SharedGrid grid) { return reinterpret_cast<ist_halo_grid>(grids().add(std::move(grid))); }

Status remove_grid(ist_halo_grid handle) { return grids().remove(number_of(handle)) ? Status{} : no_grid(handle); }

}  // namespace ist::halo
