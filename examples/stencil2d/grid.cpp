#include "grid.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace stencil {

std::string to_text(const Extent& extent) { return std::to_string(extent.rows) + "x" + std::to_string(extent.columns); }

Extent extent_from(const std::string& text) {
  Extent extent;
  const char* const end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, extent.rows);
  const bool cross = rows.ec == std::errc{} && rows.ptr != end && *rows.ptr == 'x';
  const auto columns = cross ? std::from_chars(rows.ptr + 1, end, extent.columns) : rows;
  constexpr std::int64_t most = 1 << 20;
  if (!cross || columns.ec != std::errc{} || columns.ptr != end || extent.rows < 1 || extent.columns < 1 ||
      extent.rows > most || extent.columns > most)
    throw std::invalid_argument("\"" + text + "\" is not ROWSxCOLUMNS, two whole numbers from 1 to 1048576 such as 480x640");
  return extent;
}

Side opposite(Side side) {
  switch (side) {
    case Side::north:
      return Side::south;
    case Side::south:
      return Side::north;
    case Side::west:
      return Side::east;
    case Side::east:
      break;
  }
  return Side::west;
}

namespace {

// The smallest tile is what the division leaves: the first ones are one longer.
bool fits(const Extent& grid, const Extent& field, int halo) {
  const std::int64_t least = std::max(halo, 1);
  return field.rows / grid.rows >= least && field.columns / grid.columns >= least;
}

std::int64_t border(const Extent& grid, const Extent& field) {
  return (grid.rows - 1) * field.columns + (grid.columns - 1) * field.rows;
}

[[noreturn]] void refuse(const std::string& what, const Extent& grid, const Extent& field, int halo) {
  throw std::invalid_argument(what + ": a field of " + to_text(field) + " on " + to_text(grid) + " ranks has tiles of " +
                              to_text({field.rows / grid.rows, field.columns / grid.columns}) +
                              ", and each must be at least as wide as the halo, " + std::to_string(halo) +
                              "; take fewer ranks, a larger field or a smaller --halo");
}

// Where part `index` of `parts` begins, and how long it is.
std::pair<std::int64_t, std::int64_t> part(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const std::int64_t size = length / parts, longer = length % parts;
  return {index * size + std::min(index, longer), size + (index < longer ? 1 : 0)};
}

}  // namespace

Extent choose_grid(int ranks, const Extent& field, int halo, const Extent& wanted) {
  if (wanted.points() != 0) {
    if (wanted.points() != ranks)
      throw std::invalid_argument("--grid " + to_text(wanted) + " needs " + std::to_string(wanted.points()) +
                                  " ranks, and " + std::to_string(ranks) + " are running");
    if (!fits(wanted, field, halo)) refuse("--grid " + to_text(wanted) + " does not fit", wanted, field, halo);
    return wanted;
  }
  Extent best, any;
  for (std::int64_t rows = 1; rows <= ranks; ++rows) {
    if (ranks % rows != 0) continue;
    const Extent grid{rows, ranks / rows};
    if (any.points() == 0 || border(grid, field) < border(any, field)) any = grid;
    if (!fits(grid, field, halo)) continue;
    if (best.points() == 0 || border(grid, field) < border(best, field)) best = grid;
  }
  if (best.points() == 0) refuse("no grid of " + std::to_string(ranks) + " ranks fits", any, field, halo);
  return best;
}

Tile tile_of(int rank, const Extent& grid, const Extent& field) {
  const auto columns = static_cast<int>(grid.columns);
  const int row = rank / columns, column = rank % columns;
  Tile tile;
  std::tie(tile.first_row, tile.extent.rows) = part(field.rows, grid.rows, row);
  std::tie(tile.first_column, tile.extent.columns) = part(field.columns, grid.columns, column);
  const auto at = [&](Side side) -> int& { return tile.neighbours[static_cast<std::size_t>(side)]; };
  if (row > 0) at(Side::north) = rank - columns;
  if (row + 1 < grid.rows) at(Side::south) = rank + columns;
  if (column > 0) at(Side::west) = rank - 1;
  if (column + 1 < columns) at(Side::east) = rank + 1;
  return tile;
}

}  // namespace stencil
