// Where a layout's bytes come together on their way between devices, in words.
//
// Who calls this : face/message/neighbours.cpp, for ist_explain_layout; cli/explain.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none; a way that cannot be taken says why.
#pragma once

#include "protocol/choose_packing.hpp"
#include "protocol/explain.hpp"

namespace ist {

// As in PackedShape.
struct ExplainedLayout {
  std::int64_t width = 16;
  std::int64_t rows = 0;
  const char* no_rows = "the layout is no rows";
  const char* no_slots = "the ring's slots are not mapped for the device";
};

// Of a side that sends a layout of a device; and of one that receives into it what lies in one piece. Once what is opened beside the first
// messages is open.
Explanation explain_packing(const ExplainedMessage& message, const ExplainedLayout& layout, const MachineProfile& machine);
Explanation explain_unpacking(const ExplainedMessage& message, const ExplainedLayout& layout, const MachineProfile& machine);
// Of both, each with gaps; the sender's are between blocks of so many bytes. Where it packs on the way over the link: by one kernel of the
// receiver's from one layout to the other, or by one on each side?
Explanation explain_apart(const ExplainedMessage& message, const ExplainedLayout& layout, std::int64_t block,
                          const MachineProfile& machine);

}  // namespace ist
