// A field of floats that is cut by rows over ranks, and the mean of a cell's four neighbours on it.
//
// Who calls this : jacobi and pixels. Who implements Stencil: stencil_host.cpp.
// Threads        : one.
// Ownership      : a Field is a view of two levels, which take turns; programs own the memory.
// Errors         : isthmus::Error; make_stencil: std::runtime_error where the kind cannot be used.
#pragma once

#include <array>
#include <cstdint>
#include <isthmus/isthmus.hpp>
#include <memory>

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
  std::array<isthmus::Buffer, 2> levels{isthmus::Buffer::host(nullptr), isthmus::Buffer::host(nullptr)};
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::size_t row_bytes() const { return static_cast<std::size_t>(columns) * sizeof(float); }
  std::size_t level_bytes() const { return static_cast<std::size_t>(rows + 2) * row_bytes(); }
  isthmus::Buffer row(int level, std::int64_t y) const {
    return levels[static_cast<std::size_t>(level)].at(static_cast<std::size_t>(y) * row_bytes());
  }
};

// In memory of one kind. Work may be queued, in order: it is done when finish() or change() returns.
class Stencil {
 public:
  virtual ~Stencil() = default;
  virtual isthmus::Kind kind() const = 0;
  // From one level to the other, all cells of rows `first` to `last` but those of the first and the last column, which stay. With `sum`
  // the squares of what has changed are added up.
  virtual void sweep(const Field& field, int from, std::int64_t first, std::int64_t last, bool sum) = 0;
  // That sum, since it was asked for last.
  virtual float change() = 0;
  // The rank's own rows of level 0 to level 1, as quickly as this memory is copied.
  virtual void copy(const Field& field) = 0;
  virtual void finish() = 0;
};
std::unique_ptr<Stencil> make_stencil(isthmus::Kind kind);

// Memory for a field, from the library.
class OwnField {
 public:
  OwnField(const isthmus::World& world, isthmus::Kind kind, std::int64_t rows, std::int64_t columns);
  const Field& field() const { return field_; }

 private:
  std::array<isthmus::Memory, 2> memory_;
  Field field_;
};

// Whether the ranks' rows, one part after the other, are rows 1, 2 ... of the whole field that rank 0 has, to the last bit. Collective;
// `whole` is looked at on rank 0 alone.
bool same_bits(const isthmus::World& world, const isthmus::Comm& comm, const Field& cut, int level, const Field* whole,
               int whole_level, std::int64_t whole_rows);

// For the tests: another last bit of a cell, as a check has to notice.
void spoil(const isthmus::World& world, const Field& field, int level);

}  // namespace example
