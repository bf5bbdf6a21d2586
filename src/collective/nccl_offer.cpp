// Which calls NCCL is offered, and how a rank refuses at once.
#include <algorithm>
#include <utility>

#include "collective/nccl_call.hpp"

namespace ist {
namespace {

struct NcclElement {
  nccl::Type type;
  int parts;  // of an element
};

std::optional<NcclElement> type_of(ist_type type) {
  const auto element = element_of(type);
  if (!element || family_of(type) == Family::bytes) return std::nullopt;
  switch (*element) {
    case Element::int8:
      return NcclElement{nccl::Type::int8, 1};
    case Element::uint8:
      return NcclElement{nccl::Type::uint8, 1};
    case Element::int32:
      return NcclElement{nccl::Type::int32, 1};
    case Element::uint32:
      return NcclElement{nccl::Type::uint32, 1};
    case Element::int64:
      return NcclElement{nccl::Type::int64, 1};
    case Element::uint64:
      return NcclElement{nccl::Type::uint64, 1};
    case Element::float16:
      return NcclElement{nccl::Type::float16, 1};
    case Element::bfloat16:
      return NcclElement{nccl::Type::bfloat16, 1};
    case Element::float32:
      return NcclElement{nccl::Type::float32, 1};
    case Element::float64:
      return NcclElement{nccl::Type::float64, 1};
    case Element::complex32:
      return NcclElement{nccl::Type::float32, 2};
    case Element::complex64:
      return NcclElement{nccl::Type::float64, 2};
    default:
      return std::nullopt;
  }
}

std::optional<nccl::Operation> operation_of(const Combiner& combiner) {
  if (combiner.function != nullptr) return std::nullopt;
  switch (combiner.reduction) {
    case Reduction::sum:
      return nccl::Operation::sum;
    case Reduction::product:
      return nccl::Operation::product;
    case Reduction::minimum:
      return nccl::Operation::minimum;
    case Reduction::maximum:
      return nccl::Operation::maximum;
    default:
      return std::nullopt;
  }
}

bool aligned(const Piece& piece, ist_type type) {
  return (piece.object + piece.offset.value) % alignment_of(*element_of(type)).value == 0;
}

// Not empty: a root's result alone may be, on the other ranks.
bool on_host(const NcclWork& work) { return work.send.kind == KindId::host && work.recv.kind == KindId::host; }

void offer(Plan& plan, const NcclWork& work, ByMessages by_messages) {
  plan.take(Algorithm::nccl);
  plan.tell_asked();
  if (plan.may_refuse() && on_host(work)) return NcclCall::refuse(plan, by_messages);
  std::make_shared<NcclCall>(plan.comm().nccl_team(), work, plan.combiner(), std::move(by_messages))->write(plan);
}

}  // namespace

// A complex number is added part by part, and multiplied otherwise.
bool nccl_knows(const Combiner& combiner) {
  const auto type = type_of(combiner.type);
  const auto operation = operation_of(combiner);
  return type && operation && (type->parts == 1 || *operation == nccl::Operation::sum);
}

void offer_bytes(Plan& plan, NcclWork work, Bytes bytes, ByMessages by_messages) {
  work.count = bytes.value;
  offer(plan, work, std::move(by_messages));
}

void set_elements(NcclWork& work, const Combiner& combiner, std::uint64_t count) {
  const NcclElement part = *type_of(combiner.type);
  work.count = count * static_cast<std::uint64_t>(part.parts);
  work.type = part.type;
  work.operation = *operation_of(combiner);
}

void offer_elements(Plan& plan, NcclWork work, const Elements& elements, ByMessages by_messages) {
  set_elements(work, plan.combiner(), elements.count);
  work.usable &= aligned(work.send, plan.combiner().type) && aligned(work.recv, plan.combiner().type);
  offer(plan, work, std::move(by_messages));
}

void NcclCall::refuse(Plan& plan, const ByMessages& by_messages) {
  std::vector<Vote> votes(static_cast<std::size_t>(plan.size()));
  Vote& mine = votes[static_cast<std::size_t>(plan.rank())];
  mine.present = 1;
  Status asked;
  {
    Walk walk = plan.asking();
    for (int distance = 1; distance < plan.size(); ++distance) {
      const int from = (plan.rank() - distance + plan.size()) % plan.size();
      const int to = (plan.rank() + distance) % plan.size();
      walk.receive(place_of(votes[static_cast<std::size_t>(from)]), plan.comm().to_world(from), plan.tag_of(kVote), {});
      walk.send(place_of(mine), plan.comm().to_world(to), plan.tag_of(kVote), {});
    }
    asked = walk.end();
  }
  if (asked.ok()) asked = all_voted(votes);
  plan.set_refused();
  if (!asked.ok()) plan.fail(asked);
  by_messages(plan);
}

// Who did not vote has told everybody so in the place of its vote, and sends nothing else: the call has failed.
Status NcclCall::all_voted(const std::vector<Vote>& votes) {
  if (std::all_of(votes.begin(), votes.end(), [](const Vote& vote) { return vote.present != 0; })) return {};
  return {IST_ERR_ARGUMENT,
          "another rank could not take part in the call: its arguments may be wrong, or its count another"};
}

}  // namespace ist
