#include "protocol/eager.hpp"

#include <new>
#include <utility>

namespace ist {

Result<bool> is_finished(Ticket& ticket) {
  if (ticket.empty()) return true;
  return ticket.kind()->finished(ticket);
}

Result<std::optional<CellSend>> CellSend::start(const Kinds& kinds, Link& link, const Piece& piece, const Ticket& ready) {
  const auto cell = link.take_cell();
  if (!cell) return std::optional<CellSend>{};
  try {
    auto ticket = kinds.copier(KindId::host, piece.kind)->copy(own_host_piece(cell->data, piece.size), piece, ready);
    if (ticket.ok()) return std::optional<CellSend>{CellSend{link, *cell, piece.size, std::move(*ticket)}};
    link.return_cell(*cell);
    return ticket.status();
  } catch (const std::bad_alloc&) {
    link.return_cell(*cell);
    throw;
  }
}

Result<bool> CellSend::step(const Envelope& envelope) {
  const auto finished = is_finished(ticket_);
  if (!finished.ok()) {
    link_->return_cell(cell_);
    return finished.status();
  }
  if (*finished) link_->post_cell(cell_, envelope, length_);
  return *finished;
}

bool CellSend::step_unused() {
  const auto finished = is_finished(ticket_);
  if (finished.ok() && !*finished) return false;
  link_->return_cell(cell_);
  return true;
}

Result<CellReceive> CellReceive::start(const Kinds& kinds, Path& path, const Arrival& arrival, const Piece& to) {
  auto ticket = kinds.copier(to.kind, KindId::host)->copy(to, host_piece(arrival.payload.data(), to.size), Ticket{});
  if (!ticket.ok()) {
    path.release(arrival);
    return ticket.status();
  }
  return CellReceive{path, arrival, std::move(*ticket)};
}

Result<bool> CellReceive::step() {
  auto finished = is_finished(ticket_);
  if (!finished.ok() || *finished) path_->release(arrival_);
  return finished;
}

}  // namespace ist
