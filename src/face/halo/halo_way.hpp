// How packed cells get from one rank to another: by messages, or into the other's symmetric heap.
//
// Who calls this : halo_exchange.cpp.
// Threads        : one at a time per exchange.
// Ownership      : owns the buffers and what moves them.
// Errors         : returned.
#pragma once

#include <memory>
#include <vector>

#include "face/message/calls.hpp"

namespace ist::halo {

// What goes to one rank and comes from it, in the two buffers.
struct Lane {
  int rank = 0;
  std::int64_t out_at = 0;
  std::int64_t out_bytes = 0;
  std::int64_t in_at = 0;
  std::int64_t in_bytes = 0;
};

// `comm` is the exchange's own; `beside`: memory that the buffers can be packed from and to. What goes to this rank itself stays where it
// was packed.
struct WayWanted {
  World& world;
  ist_comm comm;
  int rank;
  int tag;
  const std::vector<Lane>& lanes;
  Piece beside;
};

class Way {
 public:
  virtual ~Way() = default;
  virtual Status start() = 0;
  virtual Status wait() = 0;
  // Where lanes' cells are packed to, and where those of other ranks arrive; valid from wait() to the next start().
  virtual const Piece& out() const = 0;
  virtual const Piece& in() const = 0;
  // Gives everything back, while the world is there.
  virtual Status close() = 0;
};

Result<std::unique_ptr<Way>> by_messages(const WayWanted& wanted);
// Collective.
Result<std::unique_ptr<Way>> one_sided(const WayWanted& wanted);

ist_buffer buffer_of(const Piece& piece);
// So many bytes, at least one, that copies and kernels can use together with `beside`.
Result<Piece> allocate(World& world, const Piece& beside, std::int64_t bytes);

}  // namespace ist::halo
