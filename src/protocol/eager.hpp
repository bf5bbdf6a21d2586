// A message in one page-locked cell: the sender's device copies straight into it, the receiver's straight out of it.
//
// Who calls this : request/engine.
// Threads        : under the world's lock.
// Ownership      : each object owns its cell until it is posted or released.
// Errors         : returned by start() and step(); the cell is given back first.
#pragma once

#include <optional>

#include "memory/kinds.hpp"
#include "path/path.hpp"

namespace ist {

class CellSend {
 public:
  // Takes a cell and starts the copy into it, which begins once `ready` has finished; none if no cell is free now.
  // piece.size is at most link.cell_limit.
  static Result<std::optional<CellSend>> start(const Kinds& kinds, Link& link, const Piece& piece, const Ticket& ready);
  // True when the bytes have arrived in the cell and the envelope is on its way.
  Result<bool> step(const Envelope& envelope);
  // The message goes another way: true when the copy has ended and the cell is given back.
  bool step_unused();

 private:
  CellSend(Link& link, Cell cell, Bytes length, Ticket ticket)
      : link_(&link), cell_(cell), length_(length), ticket_(std::move(ticket)) {}
  Link* link_;
  Cell cell_;
  Bytes length_;
  Ticket ticket_;
};

class CellReceive {
 public:
  // Starts the copy of the first `to.size` bytes of the arrival's cell.
  static Result<CellReceive> start(const Kinds& kinds, Path& path, const Arrival& arrival, const Piece& to);
  // True when the bytes have arrived; the cell is then released.
  Result<bool> step();

 private:
  CellReceive(Path& path, const Arrival& arrival, Ticket ticket)
      : path_(&path), arrival_(arrival), ticket_(std::move(ticket)) {}
  Path* path_;
  Arrival arrival_;
  Ticket ticket_;
};

// True once the ticket's work is over; empty tickets are.
Result<bool> is_finished(Ticket& ticket);

}  // namespace ist
