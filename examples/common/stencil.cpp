#include "common/stencil.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace example {

OwnField::OwnField(const isthmus::World& world, isthmus::Kind kind, std::int64_t rows, std::int64_t columns) {
  field_.rows = rows;
  field_.columns = columns;
  for (std::size_t level = 0; level < 2; ++level) {
    memory_[level] = world.allocate(kind, field_.level_bytes());
    field_.levels[level] = memory_[level].buffer();
  }
}

bool same_bits(const isthmus::World& world, const isthmus::Comm& comm, const Field& cut, int level, const Field* whole,
               int whole_level, std::int64_t whole_rows) {
  int wrong = 0;
  std::vector<float> found(static_cast<std::size_t>(cut.columns)), wanted(found.size());
  for (int rank = 0; rank < comm.size(); ++rank) {
    const Part part = part_of(whole_rows, comm.size(), rank);
    for (std::int64_t y = 1; y <= part.count; ++y) {
      if (comm.rank() == rank && rank != 0) comm.send(cut.row(level, y), cut.columns, IST_FLOAT, 0);
      if (comm.rank() != 0) continue;
      if (rank == 0)
        world.copy(isthmus::Buffer::host(found.data()), cut.row(level, y), cut.row_bytes());
      else
        comm.recv(found, rank);
      world.copy(isthmus::Buffer::host(wanted.data()), whole->row(whole_level, part.first + y), cut.row_bytes());
      if (std::memcmp(found.data(), wanted.data(), cut.row_bytes()) != 0) wrong = 1;
    }
  }
  comm.bcast(std::span(&wrong, 1), 0);
  return wrong == 0;
}

void spoil(const isthmus::World& world, const Field& field, int level) {
  const isthmus::Buffer cell = field.row(level, field.rows).at(field.row_bytes() / 2 / sizeof(float) * sizeof(float));
  std::uint32_t bits = 0;
  world.copy(isthmus::Buffer::host(&bits), cell, sizeof bits);
  bits ^= 1U;
  world.copy(cell, isthmus::Buffer::host(&bits), sizeof bits);
}

std::unique_ptr<Stencil> make_host_stencil();

std::unique_ptr<Stencil> make_stencil(isthmus::Kind kind) {
  if (kind != isthmus::Kind::host) throw isthmus::Error(IST_ERR_KIND, "this stencil is computed in host memory alone");
  return make_host_stencil();
}

}  // namespace example
