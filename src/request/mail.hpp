// Messages of few bytes between two devices through mailboxes: the envelope goes through the queue as always, and says in which place
// of the receiver's mailbox the bytes lie, or soon will.
//
// Who calls this : the engine, which owns one where a worker was asked for; explain.
// Threads        : under the world's lock.
// Ownership      : owns the boxes that peers send into, and keeps open those of peers. Looks at the engine, which outlives it.
// Errors         : of an operation: in its outcome. What no worker can do goes by the driver; where there is no mailbox, as without workers.
//
// A box is made for each peer when this rank first names device memory, lent, and offered in an envelope. Who hears of it opens it
// beside the first messages. The sender chooses a place; it is free again when the receiver has said so, and the sender's own order about
// it is over. Where no place is free, or either worker is not at hand, messages go as if there were no mailbox, or by the driver.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "memory/mailing.hpp"
#include "request/engine.hpp"

namespace ist {

class Mail {
 public:
  // Null: this rank has no use for one.
  static std::unique_ptr<Mail> make(Engine& engine);
  ~Mail();
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  // Once, when device memory is first named: each peer that may get a box is offered one.
  void offer();
  // As Engine::start_send(). None: it goes another way.
  std::optional<Result<OperationId>> send(const Piece& piece, Rank dest, std::int32_t tag, const Scope& scope);
  // The most bytes that could go that way to that peer, if all else is well.
  Bytes limit(Rank dest) const;

  // An envelope between the mailboxes' owners; and, in its turn among the messages, one of a message.
  void hear(const Arrival& arrival);
  void came(Rank source, const Envelope& envelope);
  // The operation has matched a message of that envelope, and its outcome is noted.
  void receive(Operation& operation, std::uint32_t index, const Envelope& envelope);

  // True if the operation moved on.
  bool step_sending(Operation& operation, std::uint32_t index);
  bool step_taking(Operation& operation, std::uint32_t index);
  // Nothing touches its buffer any more.
  static void settle(state::TakingMail& taking);

 private:
  using Clock = std::chrono::steady_clock;
  // What this rank sends to one peer.
  struct Out {
    Loan loan;         // of the peer's box; none until it is offered
    bool off = false;  // it cannot be opened
    std::shared_ptr<Borrowed> box;
    std::uint16_t told = 0xffff;  // places that the receiver has told to be free
    std::uint16_t busy = 0;       // orders about which are not over
    std::uint32_t next = 0;       // the place to look at first
    std::uint64_t messages = 0;
    bool unfit = false;  // the last one was received where no worker could put it
    std::uint32_t since_unfit = 0;
  };
  // What it gets from one.
  struct In {
    std::shared_ptr<const Piece> box;
    std::uint64_t messages = 0;                           // that have come
    std::array<std::uint64_t, Mailing::kPlaces> clean{};  // the epoch in which each place was last cleaned
    std::uint16_t free = 0;                               // places that the sender is to be told of
    std::uint32_t open = Mailing::kPlaces;                // places that the sender takes to be free
    bool unfit = false;
    std::set<std::uint32_t> failed;  // numbers whose packets will not come
  };

  Mail(Engine& engine, Mailing& mailing);
  Out& out(Rank rank) { return out_[static_cast<std::size_t>(rank.value)]; }
  In& in(Rank rank) { return in_[static_cast<std::size_t>(rank.value)]; }
  bool open(Out& to, Rank dest, const Piece& piece) const;
  static std::optional<std::uint32_t> free_place(const Out& to);
  bool chosen(const PeerState& to, const Piece& piece) const;
  std::optional<Ticket> order(const Piece& piece, const Out& to, const Letter& letter, std::uint32_t index);
  OperationId begin(Operation& operation, OperationId id) noexcept;
  static std::uint32_t news(In& from);
  void tell(Rank rank, In& from);
  bool post_by_driver(Operation& operation, std::uint32_t index);
  Result<bool> bring(Operation& operation, state::SendingMail& sending);
  Status start_copy(Operation& operation, state::SendingMail& sending);
  bool give_up(Operation& operation, std::uint32_t index, Status why);
  bool cleans(const In& from, std::uint32_t place) const;
  void free_again(Rank source, std::uint32_t place, bool cleaned);
  bool take_by_worker(Operation& operation, std::uint32_t index);
  bool take_by_driver(Operation& operation, std::uint32_t index);
  bool lost(Operation& operation, std::uint32_t index);
  Status clean(const In& from, std::uint32_t place) const;
  void note_fit(Rank source, bool unfit);

  Engine& engine_;
  Mailing& mailing_;
  std::vector<Out> out_;
  std::vector<In> in_;
  bool offered_ = false;
};

}  // namespace ist
