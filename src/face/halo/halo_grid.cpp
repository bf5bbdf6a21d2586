#include "face/halo/halo_grid.hpp"

#include <isthmus/isthmus.h>

#include <algorithm>

#include "face/halo/halo_agreement.hpp"
#include "face/message/handles.hpp"
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

Status complete(int ranks, std::vector<int>& dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end())
    if (const int code = ist_dims_create(ranks, static_cast<int>(dims.size()), dims.data()); code != IST_OK)
      return told(code);
  std::int64_t places = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 1)
      return {IST_ERR_ARGUMENT, "dims[" + std::to_string(d) + "] is " + std::to_string(dims[d]) + "; it must be 0 or more"};
    places = std::min<std::int64_t>(places * dims[d], std::int64_t{ranks} + 1);
  }
  if (places > ranks)
    return {IST_ERR_ARGUMENT, "the grid has more places than the " + std::to_string(ranks) + " ranks of the communicator"};
  return {};
}

Status agree_on_grid(ist_comm comm, const Status& own, const std::vector<int>& dims, const std::vector<int>& periods,
                     const PerDimension<int>& map, std::int64_t number) {
  std::vector<AgreedNumber> alike{{"ndims", static_cast<std::int64_t>(dims.size())}, {"bytes", number}};
  constexpr const char* kNames[] = {"dims[0]", "dims[1]", "dims[2]", "dims[3]"};
  for (std::size_t d = 0; d < kMost; ++d) alike.emplace_back(kNames[d], d < dims.size() ? dims[d] : 0);
  std::int64_t places = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) places = 10 * places + map[d];
  alike.emplace_back("process_map, its entries as digits behind a 1,", places);
  std::int64_t around = 0;
  for (std::size_t d = 0; d < periods.size(); ++d) around += periods[d] != 0 ? std::int64_t{1} << d : 0;
  alike.emplace_back("the number with a bit for each dimension of periods", around);
  return agree(comm, own, alike);
}

Status told(int code) { return {static_cast<Code>(code), ist_error_text()}; }

Result<SharedGrid> make_grid(ist_comm comm, int ndims, const int* dims, const int* periods, const int* process_map) {
  const auto found = look_up(comm);
  if (!found.ok()) return found.status();
  auto grid = std::make_shared<Grid>();
  std::vector<int> own, around;
  Status fine = check_dims(ndims, dims, periods);
  if (fine.ok()) {
    grid->dimensions = static_cast<std::size_t>(ndims);
    const auto map = permutation("process_map", process_map, grid->dimensions);
    fine = map.status();
    if (map.ok()) grid->map = *map;
    own.assign(dims, dims + ndims);
    around.resize(grid->dimensions);
  }
  if (fine.ok()) fine = complete(found->comm->size(), own);
  for (std::size_t d = 0; fine.ok() && d < grid->dimensions; ++d)
    around[static_cast<std::size_t>(grid->map[d])] = periods[d] != 0;
  IST_TRY(agree_on_grid(comm, fine, own, around, grid->map, 0));
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
  const auto made = look_up(cart);
  if (!made.ok()) return made.status();
  grid->ranks = *made->comm->grid();
  const auto place = grid->ranks.coords_of(grid->rank);
  for (std::size_t d = 0; d < grid->dimensions; ++d) grid->coords[d] = place[static_cast<std::size_t>(grid->map[d])];
  return SharedGrid{std::move(grid)};
}

int neighbour(const Grid& grid, const Direction& direction) {
  std::vector<int> place(grid.dimensions);
  for (std::size_t d = 0; d < grid.dimensions; ++d)
    place[static_cast<std::size_t>(grid.map[d])] = grid.coords[d] + direction[d];
  return grid.ranks.rank_of(place).value_or(IST_PROC_NULL);
}

Result<SharedGrid> grid_of(ist_halo_grid handle) {
  auto found = grids().find(number_of(handle));
  if (!found) return no_grid(handle);
  return std::move(*found);
}

ist_halo_grid add_grid(SharedGrid grid) { return reinterpret_cast<ist_halo_grid>(grids().add(std::move(grid))); }

Status remove_grid(ist_halo_grid handle) { return grids().remove(number_of(handle)) ? Status{} : no_grid(handle); }

}  // namespace ist::halo
