// The border cells of a part to its neighbours' halos: planes as they lie where the box is cut along i alone, else by a halo exchange that
// packs them.
//
// Who calls this : cuda_ways.cpp.
// Threads        : one; collective.
// Ownership      : refers to the field and the stream that it is made with.
// Errors         : isthmus::Error.
#pragma once

#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <optional>
#include <vector>

#include "cuda_field.hpp"

namespace himeno {

class Borders {
 public:
  Borders(const isthmus::HaloGrid& grid, const Field& field, const example::cuda::Stream& stream);
  // Of what the stream has computed so far; when it returns, halos are there.
  void exchange(int level) const;
  // Before the first exchange_on().
  void prepare_on() const;
  // When the stream comes to it.
  void exchange_on(int level) const;
  const isthmus::Comm& comm() const { return comm_; }

 private:
  struct Neighbour {
    int rank;
    std::size_t out, in;  // where its planes begin
    int out_tag, in_tag;
  };
  isthmus::Buffer buffer(int level, std::size_t at) const;
  void set(int level) const;

  isthmus::Comm comm_;
  const Field& field_;
  void* stream_;
  std::int64_t plane_;
  std::vector<Neighbour> neighbours_;
  std::vector<isthmus::HaloField> fields_;
  std::optional<isthmus::Halo> halo_;
};

}  // namespace himeno
