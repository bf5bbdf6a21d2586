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

inline SharedCall::Share whole(int from, Bytes size) { return {from, 0, size, {}, size}; }

// Of what the ranks `first` to `last` said.
inline void fold(SharedCall& call, std::byte* into, int first, int last, const SharedCall::Share& what) {
  for (int i = 0; i <= last - first; ++i) {
    SharedCall::Share share = what;
    share.from = call.commutative() ? first + i : last - i;
    if (i == 0) {
      call.copy(into, share);
    } else {
      call.combine(into, share);
    }
  }
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

// root: SharedLane::kEverybody for an allreduce. recv: of whom gets the result.
inline void reduce(SharedCall& call, const std::byte* send, std::byte* recv, Bytes size, int root) {
  call.say(0, send, size, root);
  if (root == SharedLane::kEverybody || call.rank() == root) fold(call, recv, 0, call.size() - 1, whole(0, size));
}

// own: this rank's part. own_too: that is not yet in its place.
inline void allgather(SharedCall& call, const std::byte* own, std::byte* recv, const Division& layout, bool own_too) {
  call.say(0, own, layout.elements(call.rank()).bytes(), SharedLane::kEverybody);
  for (int distance = own_too ? 0 : 1; distance < call.size(); ++distance) {
    const int from = after(call, distance);
    call.copy(recv + layout.place(from).value, whole(from, layout.elements(from).bytes()));
  }
}

inline void alltoall(SharedCall& call, const std::byte* send, std::byte* recv, const Division& layout) {
  const Bytes given = layout.total();
  call.say(0, send, given, SharedLane::kEverybody);
  for (int distance = 0; distance < call.size(); ++distance) {
    const int from = after(call, distance);
    call.copy(recv + layout.place(from).value, {from, 0, given, layout.place(call.rank()), layout.elements(from).bytes()});
  }
}

}  // namespace ist::shared
