// How a field is cut into tiles, one per rank, on a two-dimensional grid of ranks.
//
// Who calls this : main.cpp, collect.cpp, the tests.
// Threads        : pure functions.
// Ownership      : values.
// Errors         : std::invalid_argument, with what does not fit and what would.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace stencil {

// Also prints and reads as "3x4".
struct Extent {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t points() const { return rows * columns; }
  bool operator==(const Extent&) const = default;
};
std::string to_text(const Extent& extent);
Extent extent_from(const std::string& text);

enum class Side : std::uint8_t { north, south, west, east };
inline constexpr std::array sides{Side::north, Side::south, Side::west, Side::east};
Side opposite(Side side);

// The part of the field one rank computes. A wall of the field has no neighbour.
struct Tile {
  static constexpr int wall = -1;
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;
  Extent extent;
  std::array<int, 4> neighbours{wall, wall, wall, wall};  // rank, indexed by Side
  int neighbour(Side side) const { return neighbours[static_cast<std::size_t>(side)]; }
};

// The cut of `ranks` tiles with the shortest borders, or `wanted` if it names a grid. Every tile is at least `halo` wide,
// because a halo comes from the nearest neighbour alone.
Extent choose_grid(int ranks, const Extent& field, int halo, const Extent& wanted = {});

// Sizes need not divide: the first tiles of a row or column are one point longer.
Tile tile_of(int rank, const Extent& grid, const Extent& field);

}  // namespace stencil
