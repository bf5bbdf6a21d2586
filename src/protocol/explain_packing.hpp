// Where a layout's bytes come together on their way between devices, in words.
//
// Who calls this : face/message/neighbours.cpp, for ist_explain_layout.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none; a way that cannot be taken says why.
#pragma once

#include "protocol/choose_packing.hpp"
#include "protocol/explain.hpp"

namespace ist {

// Of a side that sends a layout of a device; and of one that receives into it what lies in one piece. `width`: as in PackedShape.
// Once what is opened beside the first messages is open.
Explanation explain_packing(const ExplainedMessage& message, std::int64_t width, const MachineProfile& machine);
Explanation explain_unpacking(const ExplainedMessage& message, std::int64_t width, const MachineProfile& machine);

}  // namespace ist
