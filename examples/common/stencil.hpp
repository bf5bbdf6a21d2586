// A field of floats that is cut by rows over ranks, and the mean of a cell's four neighbours on it, in host memory.
//
// Who calls this : jacobi, pixels and serial.cpp.
// Threads        : one.
// Ownership      : a Field is a view of two levels, which take turns; programs own the memory.
// Errors         : isthmus::Error.
#pragma once

#include <array>
#include <cstdint>
#include <isthmus/isthmus.hpp>
#include <vector>

namespace example {

// Rows of one rank, of all that are cut.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
inline Part part_of(std::int64_t rows, int ranks, int rank) {
  const std::int64_t first = rows * rank / ranks;
  return {first, rows * (rank + 1) / ranks - first};
}

// `rows` rows of the rank's own, 1 to rows; row 0 and row rows + 1 are the neighbours'.
struct Field {
  std::array<float*, 2> levels{};
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::size_t row_bytes() const { return static_cast<std::size_t>(columns) * sizeof(float); }
  std::size_t level_bytes() const { return static_cast<std::size_t>(rows + 2) * row_bytes(); }
  float* cells(int level, std::int64_t y) const { return levels[static_cast<std::size_t>(level)] + y * columns; }
  isthmus::Buffer row(int level, std::int64_t y) const { return isthmus::Buffer::host(cells(level, y)); }
};

// Both levels; start(x, y) is what a cell of the whole field begins with, in which row 0 here is row `first`.
template <class Start>
void fill(const Field& field, std::int64_t first, const Start& start) {
  for (std::int64_t y = 0; y <= field.rows + 1; ++y)
    for (std::int64_t x = 0; x < field.columns; ++x) field.cells(0, y)[x] = field.cells(1, y)[x] = start(x, first + y);
}

class Stencil {
 public:
  // Another factor is for the tests, and is wrong.
  explicit Stencil(float factor = 0.25F) : factor_(factor) {}
  // From one level to the other, all cells of rows `first` to `last` but those of the first and the last column, which stay. With `sum`
  // the squares of what has changed are added up.
  void sweep(const Field& field, int from, std::int64_t first, std::int64_t last, bool sum);
  // That sum, since it was asked for last.
  float change();

 private:
  float factor_;
  double change_ = 0;
};

// Memory for a field, from the library.
class OwnField {
 public:
  OwnField(const isthmus::World& world, std::int64_t rows, std::int64_t columns);
  const Field& field() const { return field_; }

 private:
  std::array<isthmus::Memory, 2> memory_;
  Field field_;
};

}  // namespace example
