// What a rank says and takes in calls through memory that all ranks of a communicator see. Its buffers are host memory.
//
// Who calls this : shared.cpp, for a plan; the short ways of the calls (face/message/collective_at_once.hpp).
// Threads        : one per call.
// Ownership      : none.
// Errors         : kept in the call.
//
// Elements are combined from left to right in the order of ranks, as by flat messages, where the operation commutes: what is taken is the
// left operand of what is there. Where it does not they are from right to left, so that the operands stay in that order.
#pragma once

#include "collective/collectives.hpp"
#include "collective/shared_call.hpp"

namespace ist::shared {

inline SharedCall::Share whole(int from, Bytes size) { return {from, 0, all_of(size), {}, size}; }

// Whose input is combined first.
inline int first_of(const SharedCall& call) { return call.commutative() ? 0 : call.size() - 1; }

// What the ranks `first` to `last` have, combined. `own`, what this one has: where the result comes if it is the first one, and else anywhere, or
// there and said, too.
struct Folded {
  int first;
  int last;
  const std::byte* own;
  std::byte* into;
  Bytes size;
};
// share_of: Share(int), what that rank said of it.
template <class ShareOf>
void fold(SharedCall& call, const Folded& what, const ShareOf& share_of) {
  for (int i = 0; i <= what.last - what.first; ++i) {
    const int from = call.commutative() ? what.first + i : what.last - i;
    const bool has_it = from == call.rank() && (i == 0 || what.own != what.into);
    if (i == 0) {
      if (!has_it) call.copy(what.into, share_of(from));
      if (has_it && what.own != what.into) call.copy_own(what.into, what.own, what.size);
    } else if (has_it) {
      call.combine_own(what.into, what.own, what.size);
    } else {
      call.combine(what.into, share_of(from));
    }
  }
}

// What a rank says of a vector of parts, one for each rank: all but its own one, where what is left is in one piece.
struct Said {
  Bytes start;
  LaneBytes size;
};
inline Said said_by(int rank, const Division& layout) {
  const LaneBytes all = all_of(layout.total());
  const auto own = static_cast<std::uint32_t>(layout.elements(rank).bytes().value);
  if (rank == 0) return {layout.elements(0).bytes(), {all.said - own, all.in_all}};
  if (rank == layout.ranks() - 1) return {Bytes{}, {all.said - own, all.in_all}};
  return {Bytes{}, all};
}
// `part`: not that rank's own, but of a call that has failed.
inline SharedCall::Share part_of(int from, int part, const Division& layout) {
  const Said said = said_by(from, layout);
  return {from, 0, said.size, Bytes{layout.place(part).value - said.start.value}, layout.elements(part).bytes()};
}
inline void say_parts(SharedCall& call, const std::byte* vector, const Division& layout) {
  const Said said = said_by(call.rank(), layout);
  call.say(0, vector + said.start.value, said.size, SharedLane::kEverybody);
}

// The ranks from the next one on.
inline int after(const SharedCall& call, int distance) {
  const int rank = call.rank() + distance;
  return rank < call.size() ? rank : rank - call.size();
}

inline void barrier(SharedCall& call) {
  call.look_around();
  call.say(0, nullptr, Bytes{}, SharedLane::kEverybody);
  for (int distance = 1; distance < call.size(); ++distance) call.await(whole(after(call, distance), Bytes{}));
}

inline void bcast(SharedCall& call, std::byte* buffer, Bytes size, int root) {
  if (call.rank() == root) {
    call.say(0, buffer, size, SharedLane::kEverybody);
  } else {
    call.copy(buffer, whole(root, size));
  }
}

// root: SharedLane::kEverybody for an allreduce. recv: of whom gets the result; in place it is `send`.
inline void reduce(SharedCall& call, const std::byte* send, std::byte* recv, Bytes size, int root) {
  const bool wants = root == SharedLane::kEverybody || call.rank() == root;
  if (call.rank() != root || (send == recv && call.rank() != first_of(call))) call.say(0, send, size, root);
  if (wants) fold(call, {0, call.size() - 1, send, recv, size}, [size](int from) { return whole(from, size); });
}

// own: this rank's part. own_too: that is not yet in its place.
inline void allgather(SharedCall& call, const std::byte* own, std::byte* recv, const Division& layout, bool own_too) {
  const Bytes size = layout.elements(call.rank()).bytes();
  call.say(0, own, size, SharedLane::kEverybody);
  if (own_too) call.copy_own(recv + layout.place(call.rank()).value, own, size);
  for (int distance = 1; distance < call.size(); ++distance) {
    const int from = after(call, distance);
    call.copy(recv + layout.place(from).value, whole(from, layout.elements(from).bytes()));
  }
}

// own: this rank's part; recv: the root's, which has its own part in its place, where own is null.
inline void gather(SharedCall& call, const std::byte* own, std::byte* recv, const Division& layout, int root) {
  const Bytes size = layout.elements(0).bytes();
  if (call.rank() != root) return call.say(0, own, size, root);
  if (own != nullptr) call.copy_own(recv + layout.place(root).value, own, size);
  for (int distance = 1; distance < call.size(); ++distance) {
    const int from = after(call, distance);
    call.copy(recv + layout.place(from).value, whole(from, size));
  }
}

// send: the root's; own: where this rank's part belongs; null: it is there.
inline void scatter(SharedCall& call, const std::byte* send, std::byte* own, const Division& layout, int root) {
  const Bytes each = layout.elements(root).bytes();
  Said said = said_by(root, layout);
  said.size.in_all = all_of(each).in_all;  // what each rank knows of the root's is its own part
  if (call.rank() != root) {
    const SharedCall::Share part = part_of(root, call.rank(), layout);
    return call.copy(own, {root, 0, said.size, part.offset, each});
  }
  call.say(0, send + said.start.value, said.size, SharedLane::kEverybody);
  if (own != nullptr) call.copy_own(own, send + layout.place(root).value, each);
}

// Of all that is taken: the operands are not in place.
inline void reduce_scatter(SharedCall& call, const std::byte* send, std::byte* into, const Division& layout) {
  const int rank = call.rank();
  say_parts(call, send, layout);
  fold(call, {0, call.size() - 1, send + layout.place(rank).value, into, layout.elements(rank).bytes()},
       [&](int from) { return part_of(from, rank, layout); });
}

// recv: of whom has a result; in place it is `send`.
inline void scan(SharedCall& call, const std::byte* send, std::byte* recv, Bytes size, bool exclusive) {
  call.say(0, send, size, SharedLane::kThoseBehind);
  const int last = call.rank() - (exclusive ? 1 : 0);
  if (last >= 0) fold(call, {0, last, send, recv, size}, [size](int from) { return whole(from, size); });
}

// In place both are the same.
inline void alltoall(SharedCall& call, const std::byte* send, std::byte* recv, const Division& layout) {
  const int rank = call.rank();
  const std::uint64_t own = layout.place(rank).value;
  say_parts(call, send, layout);
  if (send != recv) call.copy_own(recv + own, send + own, layout.elements(rank).bytes());
  for (int distance = 1; distance < call.size(); ++distance) {
    const int from = after(call, distance);
    call.copy(recv + layout.place(from).value, part_of(from, rank, layout));
  }
}

}  // namespace ist::shared
