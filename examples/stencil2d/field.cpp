#include "field.hpp"

#include <cstring>

namespace stencil {
namespace {

template <class T>
void put(std::byte* to, double value) {
  const T rounded = static_cast<T>(value);
  std::memcpy(to, &rounded, sizeof rounded);
}

template <class T>
double get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

// Calls visit(offset in the padded field, index in the tile) for every point of the tile.
template <class Visit>
void for_each_point(const Layout& layout, const Visit& visit) {
  for (std::int64_t row = 0; row < layout.tile.rows; ++row)
    for (std::int64_t column = 0; column < layout.tile.columns; ++column)
      visit(
          static_cast<std::size_t>((row + layout.halo) * layout.padded().columns + column + layout.halo) * layout.element(),
          static_cast<std::size_t>(row * layout.tile.columns + column));
}

}  // namespace

std::size_t Layout::box_offset(Side side, Direction direction) const {
  const std::size_t stride = (box_bytes() + 255) / 256 * 256;
  return stride * ((side == Side::east ? 2U : 0U) + (direction == Direction::in ? 1U : 0U));
}

Place Layout::strip(Side side, Direction direction) const {
  if (side == Side::west || side == Side::east) return {true, box_offset(side, direction), box_bytes()};
  const std::size_t row_bytes = static_cast<std::size_t>(padded().columns) * element();
  std::int64_t row = 0;
  if (side == Side::north) row = direction == Direction::out ? halo : 0;
  if (side == Side::south) row = direction == Direction::out ? tile.rows : tile.rows + halo;
  return {false, static_cast<std::size_t>(row) * row_bytes, static_cast<std::size_t>(halo) * row_bytes};
}

std::int64_t Layout::box_column(Side side, Direction direction) const {
  if (side == Side::west) return direction == Direction::out ? halo : 0;
  return direction == Direction::out ? tile.columns : tile.columns + halo;
}

std::vector<std::byte> pad(const Layout& layout, const std::vector<double>& tile) {
  std::vector<std::byte> field(layout.field_bytes());
  const auto write = layout.precision == Precision::single_precision ? put<float> : put<double>;
  for_each_point(layout, [&](std::size_t offset, std::size_t index) { write(field.data() + offset, tile[index]); });
  return field;
}

std::vector<double> unpad(const Layout& layout, const std::vector<std::byte>& field) {
  std::vector<double> tile(static_cast<std::size_t>(layout.tile.points()));
  const auto read = layout.precision == Precision::single_precision ? get<float> : get<double>;
  for_each_point(layout, [&](std::size_t offset, std::size_t index) { tile[index] = read(field.data() + offset); });
  return tile;
}

}  // namespace stencil
