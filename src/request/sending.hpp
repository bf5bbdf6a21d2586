// What the engine passes on between the steps of a send.
//
// Who calls this : request/engine_send, engine_inviting and collective/.
// Threads        : values.
// Ownership      : a destination looks at its caller's scope.
// Errors         : none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.hpp"
#include "protocol/eager.hpp"
#include "request/operation.hpp"

namespace ist {

// Why a rank goes on with a collective call that has failed.
struct GivenUp {
  Code code = IST_OK;
  Rank about;
};

struct UnusedCell {  // its copy still runs
  CellSend cell;
  std::optional<std::uint32_t> sender;  // the operation that stays until then; zero is one's number like any other
};

struct LeftCopy {  // its message is over, since its receiver is gone, and it still waits in the program's stream
  Rank to;
  std::shared_ptr<state::Copies> copies;
  std::shared_ptr<Borrowed> memory;
};

struct Destination {
  Rank rank;
  std::int32_t tag;
  const Scope& scope;
  ist_carrier carrier = IST_CARRIER_NONE;  // Engine::carrier_of()
  bool shown = false;                      // may the receiver copy it from where it lies?
  const GivenUp* given_up = nullptr;       // the message says so, and has no bytes
  bool stays_eager = false;                // SendMode's
};

}  // namespace ist
