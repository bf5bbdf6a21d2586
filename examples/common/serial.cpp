#include "common/serial.hpp"

#include <bit>
#include <cstdio>
#include <cstring>

#include "common/program.hpp"

namespace example {

Serial::Serial(std::int64_t width, std::int64_t height, bool around)
    : levels_{zeros<float>(width * height), zeros<float>(width * height)},
      field_{{levels_[0].data(), levels_[1].data()}, height - 2, width},
      around_(around) {}

void Serial::run_to(int steps) {
  for (; steps_ < steps; ++steps_) {
    const int now = steps_ % 2;
    if (around_) {
      std::memcpy(field_.cells(now, 0), field_.cells(now, field_.rows), field_.row_bytes());
      std::memcpy(field_.cells(now, field_.rows + 1), field_.cells(now, 1), field_.row_bytes());
    }
    for (std::int64_t y = 1; y <= field_.rows; ++y) {
      const float* const here = field_.cells(now, y);
      float* const to = field_.cells(1 - now, y);
      for (std::int64_t x = 1; x < field_.columns - 1; ++x)
        to[x] = 0.25F * (here[x - 1] + here[x + 1] + here[x - field_.columns] + here[x + field_.columns]);
    }
  }
}

double Serial::change() const {
  double sum = 0;
  for (std::int64_t y = 1; y <= field_.rows; ++y)
    for (std::int64_t x = 1; x < field_.columns - 1; ++x) {
      const double change = field_.cells(0, y)[x] - field_.cells(1, y)[x];
      sum += change * change;
    }
  return sum;
}

bool same_bits(const isthmus::Comm& comm, const Field& cut, int level, const Serial* serial) {
  return same_bits(comm, cut, level, serial != nullptr ? &serial->field() : static_cast<const Field*>(nullptr));
}

namespace {

// Rank 0's, of the first cell of a row that is not what it has to be.
void tell_of(const float* found, const float* known, std::int64_t row, std::int64_t columns, int rank) {
  std::int64_t x = 0;
  while (x < columns - 1 && std::bit_cast<std::uint32_t>(found[x]) == std::bit_cast<std::uint32_t>(known[x])) ++x;
  std::fprintf(stderr, "row %lld of all, which rank %d has, column %lld: found %.9g, has to be %.9g\n",
               static_cast<long long>(row), rank, static_cast<long long>(x), static_cast<double>(found[x]),
               static_cast<double>(known[x]));
}

}  // namespace

bool same_bits(const isthmus::Comm& comm, const Field& cut, int level, const Field* whole) {
  const auto columns = static_cast<std::size_t>(cut.columns);
  int wrong = 0;
  if (comm.rank() != 0)
    for (std::int64_t y = 1; y <= cut.rows; ++y) comm.send(std::span(cut.cells(level, y), columns), 0);
  std::vector<float> row(columns);
  for (int rank = 0; comm.rank() == 0 && rank < comm.size(); ++rank) {
    const Part part = part_of(whole->rows, comm.size(), rank);
    for (std::int64_t y = 1; y <= part.count; ++y) {
      if (rank != 0) comm.recv(row, rank);
      const float* const found = rank != 0 ? row.data() : cut.cells(level, y);
      const float* const known = whole->cells(level, part.first + y);
      if (std::memcmp(found, known, cut.row_bytes()) == 0) continue;
      if (wrong == 0) tell_of(found, known, part.first + y, cut.columns, rank);
      wrong = 1;
    }
  }
  comm.bcast(std::span(&wrong, 1), 0);
  return wrong == 0;
}

void spoil(const Field& field, int level) {
  float& cell = field.cells(level, field.rows)[field.columns / 2];
  std::uint32_t bits = 0;
  std::memcpy(&bits, &cell, sizeof bits);
  bits ^= 1U;
  std::memcpy(&cell, &bits, sizeof bits);
}

}  // namespace example
