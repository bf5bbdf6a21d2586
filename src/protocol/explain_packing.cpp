#include "protocol/explain_packing.hpp"

namespace ist {
namespace {

PackedShape packed_shape_of(const ExplainedMessage& message, std::int64_t width) {
  const bool lent = message.not_lent.empty() && message.last_was_lent && !message.same_process;
  return {explained_shape(message, lent, false), width};
}

Explanation explained(const ExplainedMessage& message, const std::vector<OfferedPacking>& offers, PackingWay chosen) {
  Explanation answer;
  for (const OfferedPacking& offer : offers) {
    const bool link = offer.way == PackingWay::link;
    std::string why = offer.price.refused() != nullptr ? offer.price.refused() : "";
    if (link && !why.empty() && !message.not_lent.empty()) why = message.not_lent;
    answer.ways.push_back({link ? "over the link" : "in a block", "", offer.price, why, offer.way == chosen});
    if (offer.way == chosen) answer.choice = answer.ways.back().name;
  }
  return answer;
}

}  // namespace

Explanation explain_packing(const ExplainedMessage& message, std::int64_t width, const MachineProfile& machine) {
  const PackedShape shape = packed_shape_of(message, width);
  Explanation answer = explained(message, packings(shape, machine), choose_packing(shape, machine));
  answer.question = "packing";
  return answer;
}

Explanation explain_unpacking(const ExplainedMessage& message, std::int64_t width, const MachineProfile& machine) {
  const PackedShape shape = packed_shape_of(message, width);
  Explanation answer = explained(message, unpackings(shape, machine), choose_unpacking(shape, machine));
  answer.question = "unpacking as much from there, which lies in one piece";
  return answer;
}

}  // namespace ist
