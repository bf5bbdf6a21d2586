// Isthmus in kernels: halos of symmetric fields, put where they belong, and flags behind them. No packing, no handshake.
//
// Who calls this : kernels of programs, with the ist_halo_sides that ist_halo_sides_of() of isthmus/halo.h filled in; included by itself.
// Threads        : calls are made by all threads of a crew.
// Ownership      : none. Fields and flags (sides.flags words, zeroed before the first kernel of any PE) lie in a symmetric heap.
// Errors         : wait_side() returns a Status, which must be looked at, and so does put_side() of a grid.
//
// A field has two arrays that take turns, as stencils have them: step n reads one, with the halos that step n - 1 brought, and writes the
// other. One block takes each side, and waits for nothing but that side's flag. The boundary blocks of a PE meet twice in a step:
//
//   for (step = 1; step <= steps; ++step) {
//     if (blockIdx.x < sides.count) {                        // boundary blocks come first
//       const ist_halo_side& side = sides.side[blockIdx.x];
//       status = wait_side(Block(), view, side, flags, step - 1);    // what this side brought, no more
//       ... meet the other boundary blocks ...               // what all sides brought is here: a cell at an edge reads several
//       ... compute this block's share of the boundary cells from field[(step - 1) % 2] into field[step % 2] ...
//       ... meet the other boundary blocks ...               // all have computed, and none reads halos of step - 1 any more
//       put_side(Block(), view, side, field[step % 2], flags, step);
//     } else {
//       ... compute cells that read no halo ...
//     }
//     ... the grid meets ...
//   }
//
// Without the second meeting a block would put cells of its side that another block has not computed yet (those at edges belong to several
// sides), and would tell a neighbour that its halos of step - 1 were read where another block still reads them. With it, whoever has waited
// for all sides of step n - 1 may put those of step n: what they overwrite was brought by step n - 2, and each neighbour put its step
// n - 1 after all of its blocks had read that. The halos of step 0 are there from the start. A block whose wait failed meets the others all
// the same, and all of them stop.
#ifndef ISTHMUS_DEVICE_HALO_CUH
#define ISTHMUS_DEVICE_HALO_CUH

#include "isthmus/device/move.cuh"
#include "isthmus/halo_sides.h"

namespace ist::device {

// Where the i-th cell of a side lies, from its first one on.
IST_DEVICE_CODE std::int64_t place_of(const ist_halo_side& side, std::int64_t i) {
  std::int64_t place = i % side.count[3] * side.stride[3];
  i /= side.count[3];
  place += i % side.count[2] * side.stride[2];
  i /= side.count[2];
  place += i % side.count[1] * side.stride[1];
  return place + i / side.count[1] * side.stride[0];
}

// The side's cells into the neighbour's halo, then its flag. `field` and `flags` are the own ones. The cells may be changed when this
// returns. The Status is that of put_signal().
template <class Crew, class T>
IST_DEVICE_CODE Status put_side(const Crew& crew, const ist_team_view& view, const ist_halo_side& side, T* field,
                                std::uint64_t* flags, std::uint64_t step, std::uint64_t deadline = 0) {
  Gathering<Crew> all(crew, view, deadline);
  if (!all.fits()) return Status::misuse;
  T* const there = peer_ptr(view, field, side.pe) + side.to;
  const T* const here = field + side.from;
  for (std::int64_t i = thread_of(crew); i < side.cells; i += threads_of(crew)) {
    const std::int64_t place = place_of(side, i);
    there[place] = here[place];
  }
  return all.then([&] {
    signal(view, flags + side.opposite, step, Signal::set, side.pe);
    return Status::ok;
  });
}

// Until the side's cells of that step, or of a later one, are here. The same for all threads of the crew, which then see them.
template <class Crew>
IST_DEVICE_CODE Status wait_side(const Crew& crew, const ist_team_view& view, const ist_halo_side& side,
                                 const std::uint64_t* flags, std::uint64_t step, std::uint64_t deadline = 0) {
  Gathering<Crew> all(crew, view, deadline);
  Status status = Status::ok;
  if (is_first(crew)) status = wait_until(view, flags + side.number, Compare::greater_equal, step, deadline);
  return all.agree(status);
}

}  // namespace ist::device

#endif
