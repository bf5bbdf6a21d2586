// The bytes of a message that do not lie in one piece: a block in which they are brought together, and from where to where.
//
// Who calls this : face/ makes it; the engine keeps it with its operation.
// Threads        : one at a time.
// Ownership      : owns the block; shares the form. The user's memory is a view.
// Errors         : none of its own.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "memory/fold.hpp"
#include "memory/lending.hpp"
#include "memory/packing.hpp"
#include "memory/pinned_pool.hpp"
#include "memory/scratch_pool.hpp"

namespace ist {

struct LaidOut {
  PackWork work;  // `packed` is the block, as long as the message may be
  PinnedPool::Block host;
  ScratchPool::Block device;
  Ticket ready;          // of what was pending on the memory
  Ticket packed;         // of a kernel that still packs when the message is over
  bool waits = false;    // a send without a block: who packs it is known when its receiver has cleared it
  bool of_call = false;  // of a collective call: all is over but what came into the block
  bool gathered =
      false;  // a receive whose bytes are where they belong: a kernel took them there, or they were folded as they came
  // A receive in a schedule, whose bytes are combined with others and not unpacked. `work` says only where they come to lie if they cannot be
  // where they arrive.
  std::optional<Fold> fold = std::nullopt;
};

// For a receive in a schedule; null without a fold.
inline std::unique_ptr<LaidOut> folded(const Piece& room, const Fold* fold) {
  if (fold == nullptr) return nullptr;
  auto laid = std::make_unique<LaidOut>();
  laid->work.packed = room;
  laid->fold = *fold;
  return laid;
}

// The answer of a sender that lends memory of which nothing is packed.
struct LoanApart {
  Loan loan;
  LentForm form;
};
static_assert(sizeof(LoanApart) == sizeof(Loan) + sizeof(LentForm) && std::is_trivially_copyable_v<LoanApart>);
inline std::optional<LentForm> form_in(std::span<const std::byte> payload) {
  LoanApart apart;
  if (payload.size() != sizeof apart) return std::nullopt;
  std::memcpy(&apart, payload.data(), sizeof apart);
  return apart.form;
}

// Device memory for all of its bytes, beside those that it packs.
inline Status take_block(LaidOut& laid, ScratchPool& pool) {
  const Bytes size{static_cast<std::uint64_t>(laid.work.to)};
  auto block = pool.take(laid.work.memory, size);
  if (!block.ok()) return block.status();
  laid.device = std::move(*block);
  laid.work.packed = laid.device.piece().part(Offset{}, size);
  laid.work.packed.ready = true;  // whatever queue it came with
  return {};
}

}  // namespace ist
