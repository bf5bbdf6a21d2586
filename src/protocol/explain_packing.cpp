#include "protocol/explain_packing.hpp"

namespace ist {
namespace {

PackedShape packed_shape_of(const ExplainedMessage& message, const ExplainedLayout& layout) {
  const bool between = message.from.kind != KindId::host && message.to.kind != KindId::host;
  const bool lent = between && message.not_lent.empty() && message.last_was_lent && !message.same_process;
  return {explained_shape(message, lent, false), layout.width, layout.rows, layout.no_rows, layout.no_slots};
}

const char* name_of(PackingWay way) {
  switch (way) {
    case PackingWay::block:
      return "in a block";
    case PackingWay::link:
      return "over the link";
    case PackingWay::slots:
      return "in slots";
    case PackingWay::block_rows:
      return "rows in block";
    case PackingWay::link_rows:
      return "rows over link";
    case PackingWay::slot_rows:
      break;
  }
  return "rows in slots";
}

Explanation explained(const ExplainedMessage& message, const std::vector<OfferedPacking>& offers, PackingWay chosen) {
  Explanation answer;
  for (const OfferedPacking& offer : offers) {
    const bool link = offer.way == PackingWay::link || offer.way == PackingWay::link_rows;
    std::string why = offer.price.refused() != nullptr ? offer.price.refused() : "";
    if (link && !why.empty() && !message.not_lent.empty()) why = message.not_lent;
    answer.ways.push_back({name_of(offer.way), "", offer.price, why, offer.way == chosen});
    if (offer.way == chosen) answer.choice = answer.ways.back().name;
  }
  return answer;
}

}  // namespace

Explanation explain_packing(const ExplainedMessage& message, const ExplainedLayout& layout, const MachineProfile& machine) {
  const PackedShape shape = packed_shape_of(message, layout);
  Explanation answer = explained(message, packings(shape, machine), choose_packing(shape, machine));
  answer.question = "packing";
  return answer;
}

Explanation explain_unpacking(const ExplainedMessage& message, const ExplainedLayout& layout,
                              const MachineProfile& machine) {
  const PackedShape shape = packed_shape_of(message, layout);
  Explanation answer = explained(message, unpackings(shape, machine), choose_unpacking(shape, machine));
  answer.question = "unpacking as much from there, which lies in one piece";
  return answer;
}

}  // namespace ist
