// How packed cells get from one rank to another: by messages, or into the other's symmetric heap.
//
// Who calls this : halo_exchange.cpp.
// Threads        : one at a time per exchange.
// Ownership      : owns the buffers and what moves them.
// Errors         : returned. Where start() fails nothing that it began is under way any more.
#pragma once

#include <memory>
#include <vector>

#include "face/halo/halo_lanes.hpp"
#include "face/message/calls.hpp"
#include "memory/allocated.hpp"

namespace ist::halo {

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
  // Ends what start() began. False: some of it has been done, and cannot be taken back.
  virtual bool take_back() = 0;
  // Is it over? wait() then returns at once, and says how it ended.
  virtual Result<bool> over() = 0;
  virtual Status wait() = 0;
  // Where lanes' cells are packed to.
  virtual const Piece& out() const = 0;
  // Where those of other ranks arrive: one of a few places, which stay the same. That of the last exchange is valid from wait() to
  // the next start().
  virtual const std::vector<Piece>& ins() const = 0;
  virtual std::size_t arrived() const = 0;
  // Gives everything back, while the world is there.
  virtual Status close() = 0;
};

Result<std::unique_ptr<Way>> by_messages(const WayWanted& wanted);
// Collective.
Result<std::unique_ptr<Way>> one_sided(const WayWanted& wanted);

ist_buffer buffer_of(const Piece& piece);
// So many bytes, at least one, that copies and kernels can use together with `beside`.
Result<Allocated> allocate(World& world, const Piece& beside, std::int64_t bytes);

}  // namespace ist::halo
