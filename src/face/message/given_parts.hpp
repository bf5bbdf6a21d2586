// What a rank gives of the parts of a collective call whose parts differ, to be compared with what the others give.
//
// Who calls this : api_gather.cpp, api_layout_collective.cpp, where the setting check is 1.
// Threads        : any; pure functions.
// Ownership      : none.
// Errors         : none; what is wrong with a part is found by the call itself, and the part is not compared.
#pragma once

#include "face/message/collective_calls.hpp"

namespace ist {

// No types: there is no such part.
inline PartNote note_of_part(const SharedLayout& types) {
  return types == nullptr ? PartNote{} : PartNote{note_of(*types), types->size()};
}

// `of`, PartNote(int rank).
template <class Of>
std::vector<PartNote> part_of_each(const Communicator& comm, const Of& of) {
  std::vector<PartNote> parts;
  for (int rank = 0; rank < comm.size(); ++rank) parts.push_back(of(rank));
  return parts;
}

// `own` goes to the root, which has the whole's part of each rank; its own one may be in its place there.
template <class Of>
GivenParts parts_to_root(const Communicator& comm, int root, const PartNote& own, bool in_place, const Of& whole) {
  const bool is_root = comm.rank() == root;
  const PartNote mine = is_root && in_place ? whole(root) : own;
  return {part_of_each(comm, [&](int rank) { return rank == root ? mine : PartNote{}; }),
          part_of_each(comm, [&](int rank) { return is_root ? whole(rank) : PartNote{}; })};
}

// The other way.
template <class Of>
GivenParts parts_of_root(const Communicator& comm, int root, const PartNote& own, bool in_place, const Of& whole) {
  GivenParts parts = parts_to_root(comm, root, own, in_place, whole);
  std::swap(parts.sent, parts.received);
  return parts;
}

}  // namespace ist
