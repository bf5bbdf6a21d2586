// Starts operations and moves them on: the only progress loop of the library.
//
// Who calls this : face/ and collective/, through wait.hpp where they block.
// Threads        : every call under lock(); waiting threads let go of it between looks.
// Ownership      : owns operations and the pairs' streams; looks at kinds, pool and paths, which outlive it.
// Errors         : of an operation: in its outcome. Of a start: returned, and nothing was started.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "match/arrival_order.hpp"
#include "memory/host/shared_heap.hpp"
#include "protocol/choose.hpp"
#include "protocol/copy_choice.hpp"
#include "protocol/explain.hpp"
#include "protocol/pipelined.hpp"
#include "request/awaited.hpp"
#include "request/engine_lock.hpp"
#include "request/engine_parts.hpp"
#include "request/look.hpp"
#include "request/operation_table.hpp"
#include "request/peer_state.hpp"
#include "request/sending.hpp"
#include "request/waiters.hpp"

namespace ist {
class TypeCheck;
class Engine {
 public:
  using Parts = EngineParts;
  explicit Engine(Parts parts);
  ~Engine();
  EngineLock& lock() { return lock_; }
  Rank rank() const { return parts_.rank; }
  int size() const { return static_cast<int>(peers_.size()); }
  const CopyChoice& copies() const { return copies_; }
  void end_trial(Rank with, double slots_up_to);  // of slots_trial.hpp, of which nobody sees more; 0: nothing was found
  const Parts& parts() const { return parts_; }
  TypeCheck* types() { return types_.get(); }  // null without the setting check

  // `piece` is checked and of the message's size. The small host message that fits at once costs no operation:
  // then *done is set and no id is given.
  Result<OperationId> start_send(const Piece& piece, Rank dest, std::int32_t tag, const Scope& scope, bool* done,
                                 SendMode mode = {});
  // engine_at_once.hpp
  // The short way of a small message from host memory to a peer that is there. False: nothing was sent, and start_send() has to.
  // `few`: at most a word, for which nothing is called.
  template <bool few>
  bool send_at_once(const std::byte* bytes, Bytes size, Rank dest, std::int32_t tag, std::uint32_t context, bool blocking);
  // source kAnySource or a rank; piece.size is the room there is.
  Result<OperationId> start_receive(const Piece& piece, std::int32_t source, std::int32_t tag, const Scope& scope);

  // engine_layouts.cpp
  // Of bytes that do not lie in one piece: by a block, which is packed already if it is host memory.
  Result<OperationId> start_send_laid(std::unique_ptr<LaidOut> laid, Rank dest, std::int32_t tag, const Scope& scope,
                                      bool* done, SendMode mode);
  // Is a kernel to pack it straight into that rank's memory? Then it `waits`, and needs no block yet.
  bool packs_late(PackWork& work, Rank dest, SendMode mode) const;
  const char* refuses_slots(const PackWork& work, Rank dest) const;  // as PackedShape::no_slots
  Result<OperationId> start_receive_laid(std::unique_ptr<LaidOut> laid, std::int32_t source, std::int32_t tag,
                                         const Scope& scope);
  // The short way of a receive into host memory. False, and nothing was started, if anything is out of the ordinary: start_receive() then.
  bool receive_at_once(std::byte* buffer, Bytes room, const Pattern& pattern, const Group* group, OperationId& id);
  // engine_awaited.cpp
  // The short way: looks for about a microsecond in that rank's slots alone. False if anything is out of the ordinary: look_for() then, or where
  // an operation was `posted`, a wait for that.
  bool receive_brief(BriefReceive& receive);
  // The communicator of that group goes, and what was started on it goes on.
  void keep(const Group* group) {
    if (group != nullptr) operations_.keep(group);
  }
  // What a request names, if it is complete and nothing went wrong; if not yet, after a look, first in those slots. Null: more has to be done.
  Operation* find_complete(OperationId id);
  // The same of a receive that is plain from its start to its end; let_go() by its line and id.
  PlainReceive* find_plain(OperationId id);
  void let_go(PlainReceive& receive, OperationId id) { operations_.release_plain(receive, id.index()); }
  // Looks once, moving everything else on as progress() does. False: this way is closed. An operation was `posted`; or start_receive() knows why: the
  // message is there already, is too large for a cell, or cannot come.
  bool look_for(AwaitedReceive& receive, bool& moved);

  // engine_probe.cpp
  // The first message that a receive would take now, which stays; null if there is none.
  const Unexpected* probe(std::int32_t source, std::int32_t tag, const Scope& scope) const;
  // The same, taken out of the order: only receive_claimed() gets it. Null: there is none.
  Result<OperationId> claim(std::int32_t source, std::int32_t tag, const Scope& scope);
  // Makes the claimed message's id a receive into `piece`.
  Status receive_claimed(OperationId id, const Piece& piece);
  // Why no message can come from that source any more, if so.
  Status check_source(std::int32_t source, const Group* group) const;
  // Takes what ranks that are gone had published. False: part of it may be hidden yet, and the board is looked at again.
  bool take_last_arrivals();
  // engine_persistent.cpp
  // A request that start_again() starts, as often as wanted; peer: destination or source. `laid`: as of start_send_laid().
  Result<OperationId> make_persistent(state::Persistent what, const Piece& piece, std::int32_t peer);
  const Operation& persistent(OperationId id) { return *operations_.find(id); }
  Status start_again(OperationId id, std::unique_ptr<LaidOut> laid = nullptr);
  // The operation that its last start began, null if that was complete at once; none: the request is inactive.
  std::optional<OperationId> last_start(OperationId id);
  // That operation was waited for.
  void make_inactive(OperationId id);
  // What the piece's queue holds now, and an operation on the piece must wait for. `asked_later`: Streams::in_order().
  Result<Ticket> pending_work(const Piece& piece, bool asked_later = false);
  // engine_schedule.cpp
  // Runs it as far as it goes now; the operation is complete when every step is, and tells the first failure.
  Result<OperationId> start_schedule(std::unique_ptr<Schedule> schedule);
  ScratchPool& scratch() { return scratch_; }
  using GivenUp = ist::GivenUp;
  // A message without bytes that says so; as start_send().
  Result<OperationId> start_giving_up(Rank dest, std::int32_t tag, const Scope& scope, const GivenUp& why, bool* done);
  // What is wrong where ranks gave different counts; where one says something else than what all ask each other.
  Status uneven(Rank from, Bytes came, Bytes expected) const, unanswered(Rank from) const;
  Status gave_up(Rank about, Code code) const, taken_back(Rank source) const;

  // What the libraries of two ranks tell each other beside messages, in the order of each: `heard` is called under the lock, by whoever moves on.
  using Heard = std::function<void(Rank from, const Envelope& envelope, std::span<const std::byte> payload)>;
  void listen(Heard heard) { heard_ = std::move(heard); }
  // At most as many bytes as fit a slot. An error: that rank is gone, or out of reach.
  Status tell(Rank to, std::uint32_t context, std::int32_t tag, std::span<const std::byte> payload);
  // An operation that is complete from the start, for calls that have nothing to do but an outcome to tell; `message`: one
  // that a matched probe found, and receive_claimed() receives.
  Result<OperationId> start_complete(Outcome outcome, bool message = false);
  // Why nothing more can come from that rank, by name; for a rank that is present, that it did not come.
  Status gone(Rank rank) const, died(Rank rank) const;
  // Looks at every path and steps every active operation once, in a brief look until one of them moves; true if anything moved.
  bool progress(Reach reach = Reach::whole);
  // Takes what has come, and leaves what is under way: for calls that start something long before the next one that waits.
  void look_around();
  // For calls that do not look themselves: moves on what is under way, but small posted receives, as look.hpp says.
  [[gnu::always_inline]] void move_on_others() {
    if (!operations_.all_plain()) [[unlikely]]
      move_on_now_and_then();
  }
  // After a progress() that moved nothing: looks for arrivals alone, for a fraction of a microsecond. True if there may be one.
  bool linger();
  Operation* find(OperationId id) { return operations_.find(id); }  // null if the id was released
  static bool complete(const Operation& operation) { return operation.in<state::Done>(); }
  // The outcome of a complete operation, whose id is then released.
  Outcome take(OperationId id);
  // The same for whoever has read the outcome where it is.
  void let_go(OperationId id);
  // A receive that no message has matched is forgotten and its id released; false if one has, and it must be waited for.
  bool cancel_receive(OperationId id);
  // The same for one that is waited for, a send that no clearance has come for, or a call: complete, its outcome cancelled.
  void cancel(OperationId id);
  // Nobody will ask for the outcome: the id is released when the operation is complete.
  void forget(OperationId id);

  // What went between this rank and that one; beside it, by NCCL, what its calls sent and received on this rank.
  const PeerTraffic& traffic(Rank with) const { return peers_[static_cast<std::size_t>(with.value)].traffic; }
  PeerTraffic& nccl_traffic() { return nccl_traffic_; }

  // May another rank of this host copy it from where it lies, if the send does not block?
  bool lies_in_heap(const Piece& piece) const;
  // What decides how so many bytes would go to that rank now, all but the receiver's buffer; or why they cannot.
  std::string_view path_to(Rank dest) const { return peers_[static_cast<std::size_t>(dest.value)].path->name(); }
  Result<ExplainedMessage> about(const MessageEnd& from, Bytes size, Rank dest);
  // Every send that fits the eager limit is handed over; the rest is given up. Used when the world is destroyed.
  bool sends_pending() const { return posting_ > 0; }
  void abandon_all(const Status& why);

  // A driver or a full peer must be polled: a wait must not sleep.
  bool must_poll() const { return !active_.empty() || !unused_cells_.empty() || posting_ > 0 || streams_busy_; }
  Path* sleeping_path() const { return sleeping_path_; }
  Waiters& waiters() { return waiters_; }
  // A thread of this process sleeps, or is about to: whoever completes an operation wakes it.
  bool has_sleeper() const { return sleeper_.load(std::memory_order_relaxed); }
  void set_sleeper(bool sleeps) { sleeper_.store(sleeps, std::memory_order_relaxed); }

 private:
  friend class Preparing;
  friend class Mail;
  PeerState& peer(Rank rank) { return peers_[static_cast<std::size_t>(rank.value)]; }
  Status check_peer(Rank rank) const;
  Status explain(Rank rank, const Status& status) const;
  bool anyone_sends(const Group* group) const;
  bool anyone_left(std::int32_t source, const Group* group) const;

  // engine_awaited.cpp
  void look_in_slots(std::int32_t source);
  bool take_plain(PeerState& from, PairSlotReader& slots);
  int take_plain_behind(Path& path, Rank source);  // how many more arrivals that is worth
  // The slots of that rank, if nothing else has to be looked at; asked for once too often, null, so that others get their turn.
  PairSlotReader* slots_alone(const PeerState& from);
  bool take_from_slot(PeerState&from, PairSlotReader&slots), take_shown_from_slot(PeerState&from, PairSlotReader&slots);
  bool take_shown_brief(BriefReceive& receive, PeerState& from, PairSlotReader& slots);
  bool receive_in_pieces(BriefReceive& receive, PeerState& from, PairSlotReader& slots);
  bool receive_begun(AwaitedReceive& receive);
  bool must_let_go() const { return lock_.contended() || parts_.board.changes() != 0; }  // by a thread, or a rank's end
  bool look_once(const Operation& operation);
  PlainReceive* look_for_plain(OperationId id);
  // Has end() nothing to do for that receive but to say that it is over?
  bool ends_quietly(const Operation& operation) const {
    return !operation.laid && !watched_ && !has_sleeper() && operation.parent == 0 && !operation.released;
  }

  // engine_send.cpp
  MessageShape shape_of(const Piece& piece, const PeerState& with, SendMode mode, bool lent) const;
  ist_carrier carrier_of(const Piece& piece, PeerState& to, bool shown, SendMode mode = {}) const;
  bool is_shown(const Piece& piece, const PeerState& to) const;
  // As start_send(), when `ready` has finished, to a peer that check_peer() finds.
  Result<OperationId> send_ready(const Piece& piece, Ticket ready, const Destination& to, bool* done);
  void post_first(Operation&operation, std::uint32_t index), ask_behind(Operation&operation, std::uint32_t index) noexcept;
  bool try_send(Operation& operation, std::uint32_t index);
  bool announce(Operation& operation, std::uint32_t index);
  bool must_stay(Operation& operation, const Status& status);
  bool step_unused_cells(), tell_types(PeerState&to), drain_outbox(PeerState&to);
  void post_or_queue(PeerState& to, const Envelope& envelope, std::span<const std::byte> payload = {});
  void say(Operation&operation), say_soon(Operation&operation) noexcept;
  static Envelope clearance(const AnnouncedAs& sender, std::uint32_t receiver_op, KindId kind, Bytes bytes);
  void on_clear(const Arrival& arrival);
  void start_stream(Operation& operation, std::uint32_t index);
  void warn_of_host_memory(const Operation& operation) const;
  bool step_send(Operation& operation, std::uint32_t index);
  bool announce_instead(Operation& operation, state::FillingCell& filling);
  // engine_cancelling.cpp
  bool take_back(Operation& operation, std::uint32_t index);
  void give_up_call(Operation& operation, std::uint32_t index);
  void post_refusal(PeerState& to, std::uint32_t receiver_op, std::uint16_t flags = 0, const GivenUp* why = nullptr);
  void refuse(Operation& operation, std::uint32_t index, std::uint32_t receiver_op, const Status& why);
  void fail_send(Operation& operation, std::uint32_t index, const Status& why);
  void fill_place(PeerState& to, const Envelope& envelope);
  bool fill_place_of(Operation& operation, std::uint32_t index);
  // engine_receive.cpp. may_come(): nobody is gone, and a path leads to whom the receive names.
  bool may_come(std::int32_t source) {
    return parts_.board.changes() == 0 && (reaches_all_ || (source != kAnySource && peer(Rank{source}).link != nullptr));
  }
  OperationId add_receive(const Piece& piece, std::int32_t source, const Scope& scope);
  Result<OperationId> receive_ready(const Piece& piece, Ticket ready, std::int32_t source, std::int32_t tag,
                                    const Scope& scope, std::unique_ptr<LaidOut> laid = nullptr);
  void never_posted(Operation& operation, OperationId id);
  void on_arrival(Path& path, const Arrival& arrival);
  void on_word(Path& path, const Arrival& arrival);
  void take_in_order(Path& path, const Arrival& arrival);
  void take_early(Rank source);
  void on_refuse(const Arrival& arrival);
  void on_taken(const Arrival& arrival);
  void watch(Operation& operation);
  void end_watch(Operation& operation);
  void compare_types(Operation& operation, Rank source, const Envelope& envelope, const std::vector<std::byte>& note) const;
  void take_place(const Arrival& arrival);
  void receive_announced(Operation& operation, std::uint32_t index, const state::Readying& announcement);
  void clear_or_copy(Operation& operation, std::uint32_t index, const state::Readying& announcement);
  void clear(Operation& operation, std::uint32_t index, const Envelope& announced);
  std::shared_ptr<const PackWork> into_place(const Operation& operation, const PeerState& from, KindId sender) const;
  void set_off(Operation& operation, std::uint32_t index);
  // engine_eager.cpp
  void deliver(Path& path, const Arrival& arrival);
  std::optional<std::uint32_t> meet(Path& path, const Arrival& arrival);
  void deliver_to(std::uint32_t index, Path& path, const Arrival& arrival);
  void meet_again(Operation& operation, std::uint32_t index, Rank source);
  void receive_eager(Operation& operation, std::uint32_t index, Path& path, const Arrival& arrival);
  void deliver_kept(Operation& operation, std::uint32_t index, KeptBytes bytes);
  void ask_to_announce(PeerState& from, Bytes size);
  void take_kept(Operation& operation, std::uint32_t index, Unexpected& message);
  // engine_putting.cpp
  Lending* lending(const Link& link, KindId kind) const;
  bool may_put(PeerState& to, const Piece& piece) const;
  Loan lend(const PeerState& from, const Piece& piece, KindId sender) const;
  bool put(Operation& operation, std::uint32_t index);
  bool step_putting(Operation& operation, std::uint32_t index);
  bool must_wait_to_put(const Operation& operation) const;
  std::optional<Put> put_beside(const Operation& first, std::uint32_t index, Bytes room);
  void add_others(const Operation& first, std::vector<Put>& puts);
  bool begin_puts(std::vector<Put> puts);
  enum class Turn { none, in_turn, ahead };
  bool begin_put(Put put, Turn turn), begin_ahead(Operation&operation, Put put);
  Result<Ticket> start_put(const Operation& operation, const Put& put, const Ticket& after) const;
  void begun(state::Copies& copies, Ticket ticket, Rank to, Turn turn);
  void copies_over(const state::Copies& copies, Rank to);
  void now_putting(Put& put, std::shared_ptr<state::Copies> copies);
  void on_put(const Arrival& arrival);
  bool would_fetch(PeerState& from, const Piece& to, KindId sender) const;
  bool lend_to_receiver(Operation& operation);
  void on_lend(const Arrival& arrival);
  void hear(const Loan& loan, const Arrival& arrival) const;
  bool fetch(Operation& operation, std::uint32_t index, const Arrival& arrival, const Loan& loan);
  bool step_fetching(Operation& operation, std::uint32_t index);
  // engine_inviting.cpp
  void invite(OperationId id, const Pattern& pattern);
  void retire(PeerState& from);
  bool uninvite(const Operation& operation, std::uint32_t wire);  // false: its message is on the way
  void take_invited(const Arrival& arrival);
  std::optional<OperationId> accept(const Piece& piece, const Destination& order);
  bool leave_copy(Operation& operation);
  void step_left_copies();
  // engine_rings.cpp
  bool step_receiver(PeerState& other, int most = kMostPerStep);
  void on_ring_lost(const Arrival& arrival);
  // engine_bouncing.cpp
  std::optional<state::Bouncing> lend_parts(Operation& operation, const PeerState& from, const Piece& to,
                                            const Envelope& announced);
  std::optional<state::Bouncing> lend_bounce(Operation& operation, const PeerState& from, const Piece& to,
                                             const Envelope& announced);
  static bool waits_for_block(const Operation& operation);
  void leave_blocks(Operation& operation);
  void take_part(Operation& operation, std::uint32_t index);
  bool step_bouncing(Operation& operation, std::uint32_t index);
  static void settle(Operation& operation);
  void end_offer(Operation& operation);
  bool is_shown(const PeerState& from, const Envelope& envelope, std::span<const std::byte> payload, Bytes room);
  bool copy_shown(PeerState& from, const Envelope& envelope, std::span<const std::byte> payload, std::byte* to);
  bool reads(Operation& operation, const state::Readying& announcement);
  bool step_reading(Operation& operation, std::uint32_t index);
  Outcome outcome_of(Rank source, const Envelope& envelope, ist_carrier carrier, Bytes room) const;
  void receive_awaited(Path& path, const Arrival& arrival);
  void set_outcome(Operation& operation, Rank source, const Envelope& envelope, ist_carrier carrier);
  bool step_receive(Operation& operation, std::uint32_t index);
  // engine_layouts.cpp
  bool send_unpacked(Operation& operation, std::uint32_t index, const Status& ready);
  bool would_gather(Operation& operation, PeerState& from, KindId sender) const;
  bool begin_unpacking(Operation& operation, std::uint32_t index);
  Result<Ticket> start_unpacking(const Operation& operation) const;
  bool unpacked(Operation& operation);
  void let_go_of_block(Operation& operation);
  void let_go_of_blocks();
  // engine_schedule.cpp
  static bool polls(const Operation&operation), needs_steps(const Operation&operation);
  bool go_on_alone(Operation&operation, std::uint32_t index), step_schedule(Operation&operation, std::uint32_t index);
  void doubt_schedules();
  std::vector<std::uint32_t> parts_of(std::uint32_t schedule);
  bool user_is_ready(ScheduleRun& run);
  bool start_ready(ScheduleRun& run, std::uint32_t parent);
  bool start_step(ScheduleRun& run, Schedule::StepId id, std::uint32_t parent);
  void begin_step(ScheduleRun& run, Schedule::StepId id, std::uint32_t parent);
  void start_message(ScheduleRun& run, Schedule::StepId id, std::uint32_t parent);
  void start_local(ScheduleRun& run, Schedule::StepId id);
  bool step_local(ScheduleRun& run);
  bool step_on_host(ScheduleRun& run, ScheduleRun::Local& local);
  bool step_on_device(ScheduleRun& run, ScheduleRun::Local& local);
  bool step_action(ScheduleRun& run, Schedule::StepId id);
  void end_step(ScheduleRun& run, const ScheduleRun::Ended& ended);
  void complete_step(ScheduleRun& run, Schedule::StepId step);
  static void give_up(ScheduleRun& run, const Status& why, Rank about);
  void tell_parent(Operation& operation);

  // engine.cpp
  void move_on_now_and_then();
  static Status too_many();
  void use_devices(const Piece& piece);
  void activate(Operation& operation, std::uint32_t index);
  void finish(Operation& operation, std::uint32_t index, const Status& status);
  void end(Operation& operation, std::uint32_t index);
  std::optional<Way> way_taken(const Operation& operation) const;
  void count(const Operation& operation);
  // engine_tracing.cpp
  void trace_begin(Operation& operation);
  void trace_at_once(const Destination& order, Bytes size, Trace::Clock::time_point begun);
  void copying(Operation& operation) const;
  void copied(const Operation& operation, const char* what, Bytes size);
  void trace_copy(const Operation& operation, const char* what, Bytes size);
  void trace_end(Operation& operation, bool unfinished = false);
  void trace_unfinished();
  bool take_arrivals(bool all = false);  // all: also what comes after a message that is waited for
  bool step_active(Reach reach = Reach::whole), step_streams(Reach reach);
  void wake_sleeper(), finish_ended(), look_at_board(), end_what_is_lost();
  void fail_for(Rank lost, bool everything);
  Parts parts_;
  SharedHeap* heap_;                      // whose bytes peers copy from where they lie
  Bytes shown_above_{~std::uint64_t{0}};  // what is shorter is eager all the same
  CopyChoice copies_;
  EngineLock lock_;
  Waiters waiters_;
  ScratchPool scratch_;
  OperationTable operations_{&active_};
  Matcher matcher_;
  ArrivalOrder order_;
  std::vector<PeerState> peers_;
  std::vector<std::uint32_t> active_;
  std::vector<UnusedCell> unused_cells_;
  std::vector<LeftCopy> left_copies_;
  std::vector<std::unique_ptr<LaidOut>> still_packed_;  // of messages that are over
  std::vector<Finished> ended_;
  std::size_t posting_ = 0;    // envelopes in outboxes
  int puts_ = 0, offers_ = 0;  // calls under way that copy into others' memory; announced messages that others may read here
  std::optional<Rank> early_of_;  // whose put-aside arrivals may be due
  bool streams_busy_ = false, more_arrivals_ = false, reaches_all_ = true, ended_puts_ = false;  // no more puts begin
  PeerTraffic nccl_traffic_;
  std::uint32_t board_seen_ = 0, locked_kinds_ = 0;  // one bit per KindId that the paths page-lock their memory for
  BlockQueue blocks_;
  Status world_failed_;                // a rank died
  AwaitedReceive* awaited_ = nullptr;  // during look_for()
  LooksOfStarts looks_of_starts_;      // move_on_others()
  unsigned fruitless_ = 0;             // progress()
  int brief_in_a_row_ = 0;             // slots_alone(), take_plain(): of one rank's slots alone
  Heard heard_;
  std::unique_ptr<class Mail> mail_;  // where a worker was asked for
  std::unique_ptr<TypeCheck> types_;
  bool watched_ = false;  // each message is looked at by itself: there is a trace, or types are compared
  Path* sleeping_path_ = nullptr;
  std::atomic<bool> sleeper_{false};
};

}  // namespace ist
