// What the exchanges have in common.
//
// Who calls this : exchange.cpp, exchange_halo.cpp, exchange_one_sided.cpp.
// Threads        : one.
// Ownership      : looks at the back-end.
// Errors         : those of what it calls.
#pragma once

#include <array>

#include "exchange.hpp"

namespace stencil {

using Pair = std::array<Side, 2>;
inline constexpr Pair along_rows{Side::north, Side::south};
inline constexpr Pair along_columns{Side::west, Side::east};

struct Parts {
  isthmus::Comm comm;
  Tile tile;
  Layout layout;
  Backend& backend;

  isthmus::Type type() const { return layout.precision == Precision::single_precision ? IST_FLOAT : IST_DOUBLE; }
  std::int64_t count(const Place& place) const { return static_cast<std::int64_t>(place.bytes / layout.element()); }
  template <class Action>
  void for_neighbours(const Pair& pair, const Action& action) const {
    for (const Side side : pair)
      if (tile.neighbour(side) != Tile::wall) action(side, tile.neighbour(side));
  }
};

// transfer(pair) moves the strips of those two sides.
template <class Transfer>
void fill_halos_by(const Parts& parts, const Transfer& transfer) {
  transfer(along_rows);
  parts.for_neighbours(along_columns, [&](Side side, int) { parts.backend.pack(side); });
  transfer(along_columns);
  parts.for_neighbours(along_columns, [&](Side side, int) { parts.backend.unpack(side); });
}

std::unique_ptr<Exchange> make_one_sided_exchange(const Parts& parts);
std::unique_ptr<Exchange> make_halo_exchange(const Parts& parts);

}  // namespace stencil
