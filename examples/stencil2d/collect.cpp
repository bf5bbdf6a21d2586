#include "collect.hpp"

#include <algorithm>
#include <iostream>

namespace stencil {
namespace {

// Tags: halos use the numbers of their sides, 0 to 3.
enum Tag { text_tag = 10, number_tag, answer_tag, scatter_tag, gather_tag };

// The rows of a tile within the whole field.
template <class Copy>
void for_each_row(const Tile& tile, const Extent& extent, const Copy& copy) {
  for (std::int64_t row = 0; row < tile.extent.rows; ++row)
    copy((tile.first_row + row) * extent.columns + tile.first_column, row * tile.extent.columns);
}

// On every rank, what rank 0 makes of all ranks' numbers.
template <class T, class Combine>
T combined(const isthmus::Comm& comm, T value, const Combine& combine) {
  if (comm.rank() != 0) {
    comm.send(std::span(&value, 1), 0, number_tag);
    comm.recv(std::span(&value, 1), 0, answer_tag);
    return value;
  }
  for (int rank = 1; rank < comm.size(); ++rank) {
    T other{};
    comm.recv(std::span(&other, 1), rank, number_tag);
    value = combine(value, other);
  }
  for (int rank = 1; rank < comm.size(); ++rank) comm.send(std::span(&value, 1), rank, answer_tag);
  return value;
}

}  // namespace

double largest(const isthmus::Comm& comm, double value) {
  return combined(comm, value, [](double a, double b) { return std::max(a, b); });
}

std::int64_t from_first(const isthmus::Comm& comm, std::int64_t value) {
  return combined(comm, value, [](std::int64_t first, std::int64_t) { return first; });
}

bool agree(const isthmus::Comm& comm, const std::string& error) {
  std::vector<std::string> told;
  const auto tell = [&](int rank, const std::string& text) {
    if (text.empty() || std::find(told.begin(), told.end(), text) != told.end()) return;
    told.push_back(text);
    std::cerr << "stencil2d: " << (rank == 0 ? "" : "rank " + std::to_string(rank) + ": ") << text << '\n';
  };
  if (comm.rank() == 0) tell(0, error);
  for (int rank = 1; rank < comm.size(); ++rank) {
    std::string text(4096, '\0');
    if (comm.rank() == rank) comm.send(std::string_view(error).substr(0, text.size()), 0, text_tag);
    if (comm.rank() != 0) continue;
    text.resize(static_cast<std::size_t>(comm.recv(text, rank, text_tag).bytes()));
    tell(rank, text);
  }
  return from_first(comm, told.empty() ? 1 : 0) == 1;
}

std::vector<double> scatter(const isthmus::Comm& comm, const Extent& grid, const Extent& extent,
                            const std::vector<double>& field) {
  const auto cut = [&](int rank) {
    const Tile tile = tile_of(rank, grid, extent);
    std::vector<double> points(static_cast<std::size_t>(tile.extent.points()));
    for_each_row(tile, extent, [&](std::int64_t in_field, std::int64_t in_tile) {
      std::copy_n(field.begin() + in_field, tile.extent.columns, points.begin() + in_tile);
    });
    return points;
  };
  if (comm.rank() == 0) {
    for (int rank = 1; rank < comm.size(); ++rank) comm.send(cut(rank), rank, scatter_tag);
    return cut(0);
  }
  std::vector<double> points(static_cast<std::size_t>(tile_of(comm.rank(), grid, extent).extent.points()));
  comm.recv(points, 0, scatter_tag);
  return points;
}

std::vector<double> gather(const isthmus::Comm& comm, const Extent& grid, const Extent& extent,
                           const std::vector<double>& tile) {
  if (comm.rank() != 0) {
    comm.send(tile, 0, gather_tag);
    return {};
  }
  std::vector<double> field(static_cast<std::size_t>(extent.points()));
  for (int rank = 0; rank < comm.size(); ++rank) {
    const Tile place = tile_of(rank, grid, extent);
    std::vector<double> points = tile;
    if (rank != 0) {
      points.assign(static_cast<std::size_t>(place.extent.points()), 0.0);
      comm.recv(points, rank, gather_tag);
    }
    for_each_row(place, extent, [&](std::int64_t in_field, std::int64_t in_tile) {
      std::copy_n(points.begin() + in_tile, place.extent.columns, field.begin() + in_field);
    });
  }
  return field;
}

}  // namespace stencil
