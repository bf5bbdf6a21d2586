// Calls through memory that all ranks of a communicator see, of a plan: each says what it has once, and takes what it wants of the others'.
#include "collective/shared.hpp"

#include "collective/shared_steps.hpp"

namespace ist {
namespace {

constexpr int kAll = SharedLane::kEverybody;

// Every rank says what the others need of its vector, and combines its own part of all of them.
void fold_own_part(Plan& plan, SharedCall& call, const std::byte* vector, std::byte* into, const Division& parts) {
  const int rank = plan.rank();
  const Bytes size = parts.elements(rank).bytes();
  const std::byte* own = vector + parts.place(rank).value;
  if (own != into) return shared::reduce_scatter(call, vector, into, parts);
  shared::say_parts(call, vector, parts);
  if (rank != shared::first_of(call)) {
    // In place: the first one's takes its place.
    if (std::byte* const aside = plan.host_scratch(size).address(); aside != nullptr) {  // else the plan has failed
      call.copy_own(aside, own, size);
      own = aside;
    }
  }
  shared::fold(call, {0, plan.size() - 1, own, into, size}, [&](int from) { return shared::part_of(from, rank, parts); });
}

}  // namespace

void shared_barrier(Plan& plan) {
  shared::barrier(plan.share());
  plan.end_shared();
}

void shared_bcast(Plan& plan, const Piece& buffer, int root) {
  SharedCall& call = plan.share();
  const Piece piece = plan.rank() == root ? plan.shared_input(buffer) : plan.shared_output(buffer);
  shared::bcast(call, piece.address(), buffer.size, root);
  plan.end_shared();
}

void shared_reduce(Plan& plan, const ReductionData& data, int root) {
  SharedCall& call = plan.share();
  const bool wants = root == kAll || plan.rank() == root;
  const Piece input = plan.shared_input(data.send);
  std::byte* const result = wants ? plan.shared_output(data.recv).address() : nullptr;
  shared::reduce(call, input.address(), result, data.elements.bytes(), root);
  plan.end_shared();
}

void shared_parts_allreduce(Plan& plan, const ReductionData& data) {
  SharedCall& call = plan.share();
  const Division parts = Division::split(data.elements, plan.size());
  const std::byte* const input = plan.shared_input(data.send).address();
  std::byte* const result = plan.shared_output(data.recv).address();
  const std::uint64_t place = parts.place(plan.rank()).value;
  fold_own_part(plan, call, input, result + place, parts);
  const auto second = [&](int rank) {
    const Bytes size = parts.elements(rank).bytes();
    return LaneBytes{static_cast<std::uint32_t>(size.value), all_of(data.elements.bytes()).in_all};
  };
  call.say(1, result + place, second(plan.rank()), kAll);
  for (int distance = 1; distance < plan.size(); ++distance) {
    const int from = shared::after(call, distance);
    call.copy(result + parts.place(from).value, {from, 1, second(from), {}, Bytes{second(from).said}});
  }
  plan.end_shared();
}

void shared_reduce_scatter(Plan& plan, const Piece& send, const Piece& recv, const Division& layout) {
  SharedCall& call = plan.share();
  const Bytes mine = layout.elements(plan.rank()).bytes();
  const std::byte* const input = plan.shared_input(send).address();
  fold_own_part(plan, call, input, plan.shared_output(recv.part(Offset{}, mine)).address(), layout);
  plan.end_shared();
}

void shared_scan(Plan& plan, const ReductionData& data, bool exclusive) {
  SharedCall& call = plan.share();
  const std::byte* const input = plan.shared_input(data.send).address();
  const bool wants = !exclusive || plan.rank() > 0;
  std::byte* const result = wants ? plan.shared_output(data.recv).address() : nullptr;
  shared::scan(call, input, result, data.elements.bytes(), exclusive);
  plan.end_shared();
}

void shared_allgather(Plan& plan, const Piece& own, const Piece& recv, const Division& layout, bool in_place) {
  SharedCall& call = plan.share();
  const Piece input = plan.shared_input(own);
  // On a device the whole result comes at once, its own part, too.
  shared::allgather(call, input.address(), plan.shared_output(recv).address(), layout,
                    !in_place || recv.kind != KindId::host);
  plan.end_shared();
}

void shared_gather(Plan& plan, const RootedParts& parts, const Division& layout) {
  SharedCall& call = plan.share();
  const bool is_root = plan.rank() == parts.root;
  // On a device the whole comes at once, the root's own part, too.
  const bool gives = !is_root || !parts.in_place || parts.whole.kind != KindId::host;
  const std::byte* const own = gives ? plan.shared_input(parts.own).address() : nullptr;
  std::byte* const whole = is_root ? plan.shared_output(parts.whole).address() : nullptr;
  shared::gather(call, own, whole, layout, parts.root);
  plan.end_shared();
}

void shared_scatter(Plan& plan, const RootedParts& parts, const Division& layout) {
  SharedCall& call = plan.share();
  const bool is_root = plan.rank() == parts.root;
  const std::byte* const whole = is_root ? plan.shared_input(parts.whole).address() : nullptr;
  std::byte* const own = is_root && parts.in_place ? nullptr : plan.shared_output(parts.own).address();
  shared::scatter(call, whole, own, layout, parts.root);
  plan.end_shared();
}

void shared_alltoall(Plan& plan, const Piece& send, const Piece& recv, const Division& layout) {
  SharedCall& call = plan.share();
  const Piece input = plan.shared_input(send);
  shared::alltoall(call, input.address(), plan.shared_output(recv).address(), layout);
  plan.end_shared();
}

}  // namespace ist
