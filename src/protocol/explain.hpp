// How a message is carried, told to people: every way with its price term by term, or what stands against it.
//
// Who calls this : face/ for ist_explain and for the lines at start; cli/explain, whose answers about collective calls have the
//                  same form.
// Threads        : pure functions of values, but for `readable`, which is called where it decides.
// Ownership      : values.
// Errors         : none; a way that is not there is one that is refused.
#pragma once

#include <isthmus/isthmus.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/price.hpp"
#include "base/status.hpp"
#include "memory/memory_kind.hpp"
#include "protocol/choose.hpp"

namespace ist {

// "slot" and so on, also of those that the counters alone know; "none" for any other number.
const char* carrier_name(int carrier);

// One way that there is, or would be.
struct ExplainedWay {
  std::string name;
  std::string meaning;
  std::optional<Bill> price;  // none: it is not chosen by its price
  std::string refused;        // why not; empty: possible
  bool chosen = false;
};

struct Explanation {
  std::string question;  // "1 MiB from host to host"
  std::string choice;
  std::string remark;
  std::vector<ExplainedWay> ways;
  std::string numbers = {};  // where the prices are from, where that is not the profile; empty: it is
  // Of a message, as the counters tell it; ring where single copy is still tried beside it.
  ist_carrier carrier = IST_CARRIER_NONE;
};

// The table for people. `source`: of measured numbers; empty: they are built in.
std::string text_of(const Explanation& explanation, const std::string& source);
// In one line: what is taken, its price and the next best one's, and what stands against `wanted`, if anything does.
std::string in_brief(const Explanation& explanation, ist_carrier wanted);
// "0.123"
std::string microseconds(double seconds);

struct ExplainedMessage {
  Bytes bytes;
  MessageEnd from;
  MessageEnd to;
  bool same_process = false;
  bool same_device = false;      // both buffers are on one
  Bytes slot_limit;              // of the link
  Bytes slot_limit_again = {};   // of what leaves a place that messages left lately
  Bytes slots_up_to = kNoLimit;  // of the peer
  Bytes cell_limit;
  // Why no process opens device memory of the other one; empty: it does.
  std::string not_lent = {};
  // Could the last message of devices to this peer be copied straight? If not, small ones are in cells, but for every sixteenth.
  bool last_was_lent = true;
  // Can one process read the other's host memory? Asked where nothing else stands against it; null: it can.
  std::function<Status()> readable = nullptr;
  std::string single_copy = "auto";  // ISTHMUS_SINGLE_COPY
  Bytes worker_limit = {};           // as MessageShape
  Bytes mailbox_limit = {};
  SendMode mode = {};
};

// What is chosen by, and priced. `lent` and `mailbox`: nothing stands against copying into the receiver's memory, or against its mailbox.
MessageShape explained_shape(const ExplainedMessage& message, bool lent, bool mailbox);
// As the engine decides it, once what is opened beside the first messages is open; those go as if there were no such way.
Explanation explain(const ExplainedMessage& message, const MachineProfile& machine);

}  // namespace ist
