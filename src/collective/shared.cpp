// Calls through memory that all ranks of a communicator see: each says what it has once, and takes what it wants of the others'.
//
// Elements are combined from left to right in the order of ranks, as by flat messages, where the operation commutes: what is taken is the
// left operand of what is there. Where it does not they are from right to left, so that the operands stay in that order.
#include "collective/shared.hpp"

namespace ist {
namespace {

constexpr int kAll = SharedLane::kEverybody;

SharedCall::Share whole(int from, Bytes size) { return {from, 0, size, {}, size}; }

// Of what the ranks `first` to `last` said.
void fold(SharedCall& call, bool commutative, std::byte* into, int first, int last, const SharedCall::Share& what) {
  for (int i = 0; i <= last - first; ++i) {
    SharedCall::Share share = what;
    share.from = commutative ? first + i : last - i;
    if (i == 0) {
      call.copy(into, share);
    } else {
      call.combine(into, share);
    }
  }
}

}  // namespace

void shared_barrier(Plan& plan) {
  SharedCall& call = plan.share();
  call.look_around();
  call.say(0, nullptr, Bytes{}, kAll);
  for (int distance = 1; distance < plan.size(); ++distance)
    call.copy(nullptr, whole((plan.rank() + distance) % plan.size(), Bytes{}));
  plan.end_shared();
}

void shared_bcast(Plan& plan, const Piece& buffer, int root) {
  SharedCall& call = plan.share();
  if (plan.rank() == root) {
    call.say(0, plan.shared_input(buffer).address(), buffer.size, kAll);
  } else {
    call.copy(plan.shared_output(buffer).address(), whole(root, buffer.size));
  }
  plan.end_shared();
}

void shared_reduce(Plan& plan, const ReductionData& data, int root) {
  SharedCall& call = plan.share();
  const Bytes size = data.elements.bytes();
  const bool wants = root == kAll || plan.rank() == root;
  call.say(0, plan.shared_input(data.send).address(), size, root);
  if (wants)
    fold(call, plan.combiner().commutative, plan.shared_output(data.recv).address(), 0, plan.size() - 1, whole(0, size));
  plan.end_shared();
}

void shared_parts_allreduce(Plan& plan, const ReductionData& data) {
  SharedCall& call = plan.share();
  const Bytes size = data.elements.bytes();
  const Division parts = Division::split(data.elements, plan.size());
  const auto bytes_of = [&](int rank) { return parts.elements(rank).bytes(); };
  std::byte* const result = plan.shared_output(data.recv).address();
  call.say(0, plan.shared_input(data.send).address(), size, kAll);
  std::byte* const own = result + parts.place(plan.rank()).value;
  fold(call, plan.combiner().commutative, own, 0, plan.size() - 1,
       {0, 0, size, parts.place(plan.rank()), bytes_of(plan.rank())});
  call.say(1, own, bytes_of(plan.rank()), kAll);
  for (int distance = 1; distance < plan.size(); ++distance) {
    const int from = (plan.rank() + distance) % plan.size();
    call.copy(result + parts.place(from).value, {from, 1, bytes_of(from), {}, bytes_of(from)});
  }
  plan.end_shared();
}

void shared_reduce_scatter(Plan& plan, const Piece& send, const Piece& recv, const Division& layout) {
  SharedCall& call = plan.share();
  const int rank = plan.rank();
  const Bytes mine = layout.elements(rank).bytes();
  call.say(0, plan.shared_input(send).address(), layout.total(), kAll);
  fold(call, plan.combiner().commutative, plan.shared_output(recv.part(Offset{}, mine)).address(), 0, plan.size() - 1,
       {0, 0, layout.total(), layout.place(rank), mine});
  plan.end_shared();
}

// Every rank's own input lies in its slot before its result is written over it.
void shared_scan(Plan& plan, const ReductionData& data, bool exclusive) {
  SharedCall& call = plan.share();
  const Bytes size = data.elements.bytes();
  call.say(0, plan.shared_input(data.send).address(), size, SharedLane::kThoseBehind);
  const int last = plan.rank() - (exclusive ? 1 : 0);
  if (last >= 0) fold(call, plan.combiner().commutative, plan.shared_output(data.recv).address(), 0, last, whole(0, size));
  plan.end_shared();
}

void shared_allgather(Plan& plan, const Piece& own, const Piece& recv, const Division& layout, bool in_place) {
  SharedCall& call = plan.share();
  call.say(0, plan.shared_input(own).address(), layout.elements(plan.rank()).bytes(), kAll);
  // On a device the whole result comes at once, its own part, too.
  const Piece result = plan.shared_output(recv);
  const bool own_too = !in_place || recv.kind != KindId::host;
  for (int distance = own_too ? 0 : 1; distance < plan.size(); ++distance) {
    const int from = (plan.rank() + distance) % plan.size();
    call.copy(result.address() + layout.place(from).value, whole(from, layout.elements(from).bytes()));
  }
  plan.end_shared();
}

void shared_alltoall(Plan& plan, const Piece& send, const Piece& recv, const Division& layout) {
  SharedCall& call = plan.share();
  call.say(0, plan.shared_input(send).address(), layout.total(), kAll);
  const Piece result = plan.shared_output(recv);
  for (int distance = 0; distance < plan.size(); ++distance) {
    const int from = (plan.rank() + distance) % plan.size();
    const Bytes part = layout.elements(from).bytes();
    call.copy(result.address() + layout.place(from).value, {from, 0, layout.total(), layout.place(plan.rank()), part});
  }
  plan.end_shared();
}

}  // namespace ist
