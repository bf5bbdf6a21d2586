#include "protocol/explain_packing.hpp"

#include <memory>
#include <utility>

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

// Why its memory is not lent for a kernel of the receiver's, whatever that costs; empty: it is.
std::string against_one_kernel(const ExplainedMessage& message, std::int64_t block) {
  if (message.from.memory != MemoryClass::unknown && !opens_whole(message.from.memory))
    return "no other process can open memory of the sender's class as it is";
  Form form;
  form.block = block;
  form.size = static_cast<std::int64_t>(message.bytes.value);
  PackWork work;
  work.form = std::make_shared<const Form>(std::move(form));
  work.memory.kind = message.from.kind;
  work.to = work.form->size;
  return lies_apart(work) ? "" : "takes blocks of 64 bytes or more, and less than 2 GiB in all";
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

Explanation explain_apart(const ExplainedMessage& message, const ExplainedLayout& layout, std::int64_t block,
                          const MachineProfile& machine) {
  const PackedShape shape = packed_shape_of(message, layout);
  const PackingWay packed = choose_packing(shape, machine);
  if (packed != PackingWay::link && packed != PackingWay::link_rows) {
    Explanation answer = explain_packing(message, layout, machine);
    answer.remark = "The receiver unpacks out of a block of its own.";
    return answer;
  }
  const OfferedApart offers = offers_apart(shape, machine);
  const std::string why = against_one_kernel(message, block);
  const bool one = why.empty() && lends_apart(shape, machine);
  Explanation answer;
  answer.question = "from layout to layout";
  answer.choice = one ? "by one kernel" : "by two kernels";
  answer.ways = {{"by one kernel", "", offers.one_kernel, why, one}, {"by two kernels", "", offers.two_kernels, "", !one}};
  answer.remark =
      "Prices are from when the receiver has cleared the message on. One kernel is the receiver's, once the sender's memory "
      "is open to it.\nWhere both layouts have as many rows as long, it may be copies of rows.";
  return answer;
}

}  // namespace ist
