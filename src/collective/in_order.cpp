#include "collective/in_order.hpp"

namespace ist {

Partial own_input(Plan& plan, const ReductionData& data, bool beside) {
  const Piece where = plan.scratch_for(data.recv, beside, data.elements.bytes());
  return {where, plan.copy(where, data.send, {})};
}

Partial input_to_send(Plan& plan, const ReductionData& data, bool to_several) {
  const bool in_result = plan.combines_on(data.recv, data.elements.bytes());
  if (data.in_place || (to_several && !in_result)) return own_input(plan, data, in_result);
  return {data.send, Plan::kNone};
}

void combine_in_order(Plan& plan, const ReductionData& data, const Partial& mine, int first, int last) {
  constexpr std::uint64_t kAligned = 64;
  const Bytes bytes = data.elements.bytes();
  const std::uint64_t stride = (bytes.value + kAligned - 1) / kAligned * kAligned;
  const bool in_result = plan.combines_on(data.recv, bytes);
  const auto ranks = static_cast<std::uint64_t>(last - first) + 1;
  const Piece room = plan.scratch_for(data.recv, in_result, Bytes{(ranks - (in_result ? 1 : 0)) * stride});
  // The first one where the result belongs, if it may be combined there.
  const auto place = [&](std::uint64_t number) {
    if (in_result && number == 0) return data.recv;
    return room.part(Offset{(number - (in_result ? 1 : 0)) * stride}, bytes);
  };
  const Piece result = place(0);
  const bool mine_serves = mine.piece.kind == KindId::host && result.kind == KindId::host;
  const auto rank_of = [&](std::uint64_t number) {
    return plan.combiner().commutative ? first + static_cast<int>(number) : last - static_cast<int>(number);
  };
  Plan::Step done = Plan::kNone;
  std::uint64_t begun = 0;
  // The first two at once, if one of them is this rank's.
  if (ranks > 1 && rank_of(0) == plan.rank()) {
    done = plan.receive_combined({result, mine.piece, place(1)}, rank_of(1), 0, {mine.done}, {});
    begun = 2;
  } else if (ranks > 1 && rank_of(1) == plan.rank() && mine_serves) {
    done = plan.receive_combined({result, mine.piece, result, false}, rank_of(0), 0, {mine.done}, {});
    begun = 2;
  }
  for (std::uint64_t i = begun; i < ranks; ++i) {
    const int rank = rank_of(i);
    Partial next{place(i), Plan::kNone};
    if (rank != plan.rank()) {
      next.done = plan.receive(next.piece, rank, 0, {mine.done});
    } else if (i > 0 && mine_serves) {
      next = mine;
    } else {
      next.done = plan.copy(next.piece, mine.piece, {mine.done});
    }
    done = i == 0 ? next.done : plan.combine(result, next.piece, {next.done, done});
  }
  if (!in_result) plan.copy(data.recv, result, {done});
}

}  // namespace ist
