// Receives whose caller looks for the message again and again, and which need no operation, or no other than one that was posted for them meanwhile.
//
// Who calls this : request/engine_awaited.cpp, for those who block: wait.cpp, face/ and collective/walk.
// Threads        : under the world's lock.
// Ownership      : looks at the caller's buffer, which outlives the call.
// Errors         : of an awaited receive: in its outcome. A brief one has none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "match/matcher.hpp"
#include "path/path.hpp"
#include "request/operation.hpp"

namespace ist {

// A blocking receive into host memory while its caller looks for it again and again: the bytes go straight from slot or cell
// into the buffer, and no operation is made. While nobody looks, other receives may take the message.
struct AwaitedReceive {
  std::byte* buffer = nullptr;
  Bytes room;
  Pattern pattern;
  const Group* group = nullptr;  // of the communicator
  bool received = false;         // then the outcome is there, without the group
  Outcome outcome = {};
  std::uint32_t board_seen = 0;
  bool closed = false;           // a message that it would take was announced, and comes before all later ones
  const Scope* scope = nullptr;  // as BriefReceive
  OperationId posted = {};       // the same
  // Asked of each message that no posted receive takes, in their order.
  bool takes(const Arrival& arrival) {
    if (received || closed || !pattern.takes(arrival.source, arrival.envelope)) return false;
    closed = arrival.envelope.type != EnvelopeType::eager;
    return !closed;
  }
};

// A blocking receive of few bytes from one rank into host memory, while nothing else is under way.
struct BriefReceive {
  std::byte* buffer = nullptr;
  Bytes room;
  std::uint32_t context = 0;
  Rank source;
  std::int32_t tag = kAnyTag;
  const Scope* scope =
      nullptr;  // of the communicator whose context that is; null: a message is not begun with before it is whole
  // Not 0: bytes were copied of a message that then did not get on, and this receive was posted for it before anybody else could get it. The caller
  // waits for that operation, and posts no other.
  OperationId posted = {};
  // Of the message, when it was received:
  std::int32_t received_tag = 0;
  Bytes bytes = {};
  ist_carrier carrier = IST_CARRIER_SLOT;
};

}  // namespace ist
