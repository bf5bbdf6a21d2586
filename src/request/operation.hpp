// What the library remembers about one send or receive.
//
// Who calls this : request/engine alone.
// Threads        : under the world's lock.
// Ownership      : the table (operation_table.hpp) owns operations.
// Errors         : in an operation's outcome.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "base/trace.hpp"
#include "match/matcher.hpp"
#include "memory/mailing.hpp"
#include "memory/transfer.hpp"
#include "protocol/eager.hpp"
#include "request/block_queue.hpp"
#include "request/group.hpp"
#include "request/laid_out.hpp"
#include "request/operation_id.hpp"
#include "request/schedule_run.hpp"

namespace ist {
class Layout;

// What a completed operation has to say.
struct Outcome {
  Status status;
  Rank source;
  std::int32_t tag = 0;
  ist_carrier carrier = IST_CARRIER_NONE;
  Bytes bytes;
  std::shared_ptr<const Group> group;  // of the communicator, whose ranks the user counts in; null: the world's
  bool cancelled = false;
  std::optional<Rank> about = std::nullopt;  // of a collective call: the sender gave up, because of that rank
  void fail(const Status& why) {
    status = why;
    bytes = Bytes{};
  }
};

// What a persistent request starts, again and again.
enum class Verb : std::uint8_t { send, synchronous_send, receive };

namespace state {
struct Queued {};     // send: waits for room in the slots, or for a free cell
struct FillingCell {  // send: a device copies into the cell, once the buffer is ready
  CellSend cell;
  std::optional<std::chrono::steady_clock::time_point> overdue;  // from then on it is announced instead
};
struct Failing {  // send: its bytes cannot be read, and its place in the order has to be filled all the same
  Status why;
};
struct Announced {};  // send: the receiver has not cleared it yet
struct Taken {};      // send: a receive of this same process copies out of its buffer, and ends it
struct Cleared {      // send: cleared, but the buffer has pending work
  std::uint32_t receiver_op;
  Bytes accepted;
  KindId receiver_kind;
  Loan loan;                         // of the receiver's buffer, if it lends it
  bool borrows;                      // the receiver asks for a loan of this side's,
  bool takes_forms;                  // also of what is not packed
  std::shared_ptr<Borrowed> memory;  // where parts of the message went already, and how much of it
  Bytes sent;
};
struct Copies {  // started together, and over together
  Ticket ticket;
  bool in_turn = false;  // counted in PeerState::copying
  bool ahead = false;    // into a receive that was shown, perhaps behind the program's kernels; counted in PeerState::ahead
  bool over = false;
  Status status;  // then
};
struct Putting {  // send: copies into the receiver's device memory
  std::shared_ptr<Borrowed> memory;
  std::shared_ptr<Copies> copies;
  std::uint32_t receiver_op;
  Bytes sent;  // when this copy is over
  bool more;   // and the rest has to be cleared
  bool by_block;
  Bytes length;  // of this copy
};
struct Parted {  // send: part of it is there, and the next part not cleared yet
  std::shared_ptr<Borrowed> memory;
  Bytes sent;
};
struct Fetching {  // receive: copies from the sender's device memory
  std::shared_ptr<Borrowed> memory;
  Ticket copy;
  AnnouncedAs sender;
  std::optional<Status> over = std::nullopt;  // of the copy
};
struct
    Bouncing {  // receive: comes in parts through memory of this library's own, from the second half of which every other one
  std::shared_ptr<const Piece> block;
  Loan loan;  // of the block
  Piece to;
  Bytes arrived;
  AnnouncedAs sender;
  bool half;                     // the next part comes into the second half
  std::array<Ticket, 2> copies;  // out of each half
  Status failure;
  bool asked = true;  // for the next part
};
struct SendingMail {  // send: its worker stores it into the receiver's mailbox, or, where that failed, the driver does
  Letter letter;
  std::shared_ptr<Borrowed> box;
  Ticket order;
  std::vector<std::byte> bytes, packets;  // by the driver
  std::optional<Transfer> bring;          // of the bytes
  enum class By : std::uint8_t { worker, bringing, brought, driver, failed } by = By::worker;
  Status why;  // it failed
};
struct TakingMail {  // receive: matched a message that lies in the mailbox, or is on its way there
  Letter letter;
  Bytes bytes;  // of the message
  Ticket copy;  // the worker's order, or the driver's copy of the packets
  std::vector<std::byte> packets;
  std::chrono::nanoseconds pause{};  // before it is looked for again
  std::optional<std::chrono::steady_clock::time_point> again,
      last_moment;  // when; and when no more, since its sender is gone
  bool by_driver = false;
  bool cleans = false;
  bool failed = false;  // once: a worker made that copy, and the driver makes the next one
};
struct Streaming {              // send, receive: in the pair's ring
  std::uint32_t sender_op = 0;  // of a receive
};
struct Posted {};  // receive: no message yet
struct Met {};     // receive: its message comes again (PeerState::met), since memory ran out before anything was done of it
struct EmptyingCell {
  CellReceive cell;
};                   // receive: a device copies out of the cell
struct Delivering {  // receive: kept or same-process bytes on their way into the buffer
  KeptBytes bytes;   // where the transfer reads, unless it reads the sender's buffer
  Transfer transfer;
  std::uint32_t sender_op;  // same process: completes with it
  bool has_sender;
};
struct Unpacking {  // receive: its bytes are in the block, and on their way to where they belong
  Ticket kernel;
  bool begun = false;     // the kernel
  std::int64_t done = 0;  // bytes, by the processor
};
struct Readying {  // receive: matched an announced message, but the buffer has pending work, or it waits for a block
  Rank source;
  Envelope announced;
  Offer offer;
  std::uint64_t place = 0;  // among those that wait for a block (BlockQueue); 0: it does not
  bool met = false;         // the outcome says what was announced
};
struct Reading {  // receive: copies from the sender's memory
  Offer offer;
  Envelope announced;
  std::uint64_t done;
};
struct Claimed {  // a message that a matched probe took, and nobody has received yet
  Unexpected message;
};
struct Persistent {  // a request that can be started many times
  Verb verb;
  std::int32_t tag;
  Scope scope;
  OperationId running;                  // of the last start, until it was waited for; null: inactive
  bool started;                         // started, and complete at once
  std::shared_ptr<const Layout> types;  // of each start, where types are compared
  std::shared_ptr<const PackWork> laid =
      nullptr;  // where the bytes do not lie in one piece; every start has a block of its own
};
struct Running {  // a collective operation
  std::unique_ptr<ScheduleRun> run;
};
struct Leaving {             // send: over, but a copy that is not used any more still reads the buffer
  bool kernel_over = false;  // the copy waits for nothing: the bytes were sent after the kernel that writes them
};
struct Done {};  // the outcome is there
}  // namespace state

// Of an operation, where there is a trace.
struct Traced {
  std::uint64_t id = 0;
  Trace::Clock::time_point begun;
  Trace::Clock::time_point copying;  // since then
  const char* call = nullptr;        // of a collective call whose schedule is over
};

// A copy into another rank's memory that can begin.
struct Put {
  std::uint32_t index;  // of its operation, which is cleared
  std::shared_ptr<Borrowed> memory;
  Piece from;
};

// What is touched of a small message's receive stands together, behind the state, whose own mark is its last word.
struct Operation {
  using State = std::variant<state::Queued, state::FillingCell, state::Failing, state::Announced, state::Taken,
                             state::Cleared, state::Putting, state::Parted, state::Fetching, state::Bouncing,
                             state::SendingMail, state::TakingMail, state::Streaming, state::Posted, state::Met,
                             state::EmptyingCell, state::Delivering, state::Unpacking, state::Readying, state::Reading,
                             state::Claimed, state::Persistent, state::Running, state::Leaving, state::Done>;
  Envelope envelope;          // of the send
  std::uint64_t offered = 0;  // of a send: the id, while the receiver may read the bytes; read by other processes
  std::chrono::steady_clock::duration copying{};  // if timed
  Traced traced;
  State state;
  std::uint32_t wire = 0;  // its id, as it travels
  bool sends = false;
  bool answered = false;         // a send whose receiver reads the offered bytes no more
  bool active = false;           // in the engine's list of operations that are stepped
  bool released = false;         // nobody will ask for the outcome
  bool message = false;          // claimed by a matched probe, not yet received
  bool timed = false;            // how long the copying takes is worth knowing
  bool by_strings = false;       // of a send: kEnvelopeByStrings
  bool shown = false;            // the bytes lie in memory that sender and receiver share, for the receiver to copy them
  bool still_read : 1 = false;   // of a send: a copy into a cell that is not used is under way
  bool stays_eager : 1 = false;  // of a send: its cell is waited for, however long that takes
  bool unsaid : 1 = false;       // of a send that has begun: there was no memory for its envelope yet
  bool lent = false;             // of a send that is announced: its receiver may be at work on its memory
  std::uint32_t parent = 0;      // 1 + the index of the collective operation that started this one as its `step`
  std::uint32_t step = 0;
  Rank peer;  // destination, or the source asked for (any: -1), or the source matched
  Piece piece;
  Ticket ready;  // of the work that was pending on the piece when the operation was started
  std::shared_ptr<const Group> group;
  std::unique_ptr<LaidOut>
      laid;  // where the piece is a block of the library's, for bytes that do not lie in one or are combined with others
  Outcome outcome;
  std::shared_ptr<const Layout> types;  // of a receive that has not met its message, where types are compared
  template <class S>
  bool in() const {
    return std::holds_alternative<S>(state);
  }
  // As assigning a state without data, and cheap where the one before has nothing to destroy, which is nearly always so.
  template <class S>
  void become() {
    static_assert(std::is_empty_v<S>);
    if (kNothingToDestroy >> state.index() & 1U) [[likely]]
      std::construct_at(&state, std::in_place_type<S>);
    else
      state.emplace<S>();
  }
  // A send of a layout that nothing has packed yet?
  bool waits_to_pack() const { return laid != nullptr && laid->waits; }
  // A receive that a kernel could bring from strides to strides?
  bool takes_forms() const { return laid != nullptr && piece.kind == KindId::cuda && laid->work.form->strided(); }
  // Of a receive whose bytes are combined with others.
  const Fold* fold() const { return laid != nullptr && laid->fold ? &*laid->fold : nullptr; }
  bool in_mail() const { return in<state::SendingMail>() || in<state::TakingMail>(); }
  // As a new one. Member by member: nearly all are empty already, and whoever starts an operation that moves bytes sets its
  // piece, and a send its envelope.
  void clear() {
    wire = parent = step = 0;
    sends = answered = active = released = message = timed = by_strings = shown = still_read = stays_eager = unsaid = lent =
        false;
    peer = {};
    outcome.source = {};
    outcome.tag = 0;
    outcome.carrier = IST_CARRIER_NONE;
    outcome.bytes = {};
    const bool rare = static_cast<int>(!ready.empty()) | static_cast<int>(group != nullptr) |
                      static_cast<int>(!outcome.status.ok()) | static_cast<int>(outcome.group != nullptr) |
                      static_cast<int>(outcome.about.has_value()) | static_cast<int>(outcome.cancelled) |
                      static_cast<int>(laid != nullptr);
    if (rare) [[unlikely]]
      clear_what_is_rare();
    become<state::Queued>();
  }

 private:
  [[gnu::noinline, gnu::cold]] void clear_what_is_rare() {
    ready = {};
    group.reset();
    laid.reset();
    outcome = {};
  }
  template <std::size_t... I>
  static constexpr std::uint32_t nothing_to_destroy(std::index_sequence<I...>) {
    return ((std::uint32_t{std::is_trivially_destructible_v<std::variant_alternative_t<I, State>>} << I) | ...);
  }
  // One bit per state.
  static const std::uint32_t kNothingToDestroy;
};
static_assert(std::is_nothrow_move_constructible_v<Operation::State>);  // no change of state is lost half way
inline constexpr std::uint32_t Operation::kNothingToDestroy =
    Operation::nothing_to_destroy(std::make_index_sequence<std::variant_size_v<Operation::State>>{});

}  // namespace ist
