// One rank's tile with its halo, as it lies in memory of any kind.
//
// Who calls this : the back-ends, the exchanges, run.cpp.
// Threads        : values and pure functions.
// Ownership      : values.
// Errors         : none.
//
//             columns
//        +--+--------+--+
//   halo |  | north  |  |    A padded row is halo + columns + halo long and rows follow each other, so a strip along north
//        +--+--------+--+    or south is contiguous, corners included. A strip along west or east is not: a kernel packs it
//   rows |we|  tile  |ea|    into a box of (padded rows x halo), which is contiguous, corners included too.
//        +--+--------+--+
//        |  | south  |  |
//        +--+--------+--+
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid.hpp"

namespace stencil {

enum class Precision : std::uint8_t { single_precision, double_precision };

struct Weights {
  double centre = 0.25;
  double cardinal = 0.15;
  double diagonal = 0.05;
  double sum() const { return centre + 4 * (cardinal + diagonal); }
  // The same shape with sum 1, so that a field neither grows nor shrinks away from walls.
  Weights normalised() const { return {centre / sum(), cardinal / sum(), diagonal / sum()}; }
};

// A contiguous stretch of a back-end's memory: of the field, or of the boxes for columns.
struct Place {
  bool in_boxes = false;
  std::size_t offset = 0;  // bytes
  std::size_t bytes = 0;
};

// The strips a tile exchanges on a side: its own outermost points go out, the neighbour's come in to the halo.
enum class Direction : std::uint8_t { out, in };

struct Layout {
  Extent tile;
  int halo = 1;
  Precision precision = Precision::single_precision;

  std::size_t element() const { return precision == Precision::single_precision ? sizeof(float) : sizeof(double); }
  Extent padded() const { return {tile.rows + 2 * halo, tile.columns + 2 * halo}; }
  std::size_t field_bytes() const { return static_cast<std::size_t>(padded().points()) * element(); }
  std::size_t box_bytes() const { return static_cast<std::size_t>(padded().rows * halo) * element(); }
  // Boxes begin on multiples of 256 bytes, for the devices' sake: west out, west in, east out, east in.
  std::size_t box_offset(Side side, Direction direction) const;
  std::size_t boxes_bytes() const { return box_offset(Side::east, Direction::in) + box_bytes(); }
  // What is sent to, or received from, the neighbour on that side.
  Place strip(Side side, Direction direction) const;
  // First padded column that box holds; only west and east have boxes.
  std::int64_t box_column(Side side, Direction direction) const;
};

// A tile's points, row by row, as a padded field in the layout's precision, and back. The halo begins as 0.
std::vector<std::byte> pad(const Layout& layout, const std::vector<double>& tile);
std::vector<double> unpad(const Layout& layout, const std::vector<std::byte>& field);

}  // namespace stencil
