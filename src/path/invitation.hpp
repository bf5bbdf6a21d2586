// What a receiver shows of one posted receive, so that its sender may begin at once, without asking: one place for each pair and way.
//
// Who calls this : request/engine_inviting, at both ends. Model: models/invitation.pml.
// Threads        : one inviter and one guest, in different processes; no lock.
// Ownership      : views of the receiver's segment.
// Errors         : none. Fresh memory is zero: no invitation.
//
// The state says which invitation stands there, by a number never used again, and what has become of it: open until the guest takes it or
// the inviter takes it back, and only one of the two succeeds (guards TAKE_ONCE, CLOSE_ONCE). The guest reads the words before it takes:
// they are of the invitation that it took if that is still the one whose number it saw (guard NUMBER).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

namespace ist {

struct Invitation {
  // Of the inviter's next message from that sender. Who has sent further has messages under way that the receive may take (guard SEQUENCE).
  std::uint32_t sequence = 0;
  std::uint32_t context = 0;
  std::int32_t tag = 0;  // or any
  std::uint32_t receiver_op = 0;
  std::uint64_t room = 0;  // bytes
  std::uint32_t kind = 0;  // KindId of the receiver's buffer
  std::uint32_t unused = 0;
  std::array<std::byte, 192> loan{};  // of it
};
static_assert(sizeof(Invitation) == 224 && std::is_trivially_copyable_v<Invitation>);

struct InvitationBoard {
  static constexpr std::size_t kWords = sizeof(Invitation) / sizeof(std::uint64_t);
  enum State : std::uint64_t { none = 0, open = 1, taken = 2 };
  static constexpr std::uint64_t word(std::uint64_t number, State state) { return number << 2 | state; }
  alignas(128) std::atomic<std::uint64_t> state;
  std::array<std::atomic<std::uint64_t>, kWords> words;
};

class Inviter {
 public:
  explicit Inviter(InvitationBoard* board) : board_(board) {}
  // Only where none is open.
  void open(const Invitation& invitation) {
    std::array<std::uint64_t, InvitationBoard::kWords> words;
    std::memcpy(words.data(), &invitation, sizeof invitation);
    // Whoever reads one of them after this, and then the state, finds that the one before is closed (look()).
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < words.size(); ++i) board_->words[i].store(words[i], std::memory_order_relaxed);
    // Guard WORDS_FIRST: release keeps them before the state that shows them.
    board_->state.store(InvitationBoard::word(++number_, InvitationBoard::open), std::memory_order_release);
  }
  // False: the guest has taken it, and its message is on its way. Acquire and release: what is written there next comes behind this.
  bool close() {
    std::uint64_t expected = InvitationBoard::word(number_, InvitationBoard::open);
    return board_->state.compare_exchange_strong(expected, InvitationBoard::none, std::memory_order_acq_rel,
                                                 std::memory_order_acquire) ||
           (expected & 3) != InvitationBoard::taken;
  }
  // What was taken has come.
  void settle() { board_->state.store(InvitationBoard::none, std::memory_order_relaxed); }

 private:
  InvitationBoard* board_;
  std::uint64_t number_ = 0;
};

class Guest {
 public:
  explicit Guest(InvitationBoard* board) : board_(board) {}
  // What is open now, all of one; take() that, or leave it. It may be taken back at any time.
  std::optional<Invitation> look() {
    seen_ = board_->state.load(std::memory_order_acquire);
    if ((seen_ & 3) != InvitationBoard::open) return std::nullopt;
    std::array<std::uint64_t, InvitationBoard::kWords> words;
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = board_->words[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (board_->state.load(std::memory_order_relaxed) != seen_) return std::nullopt;
    std::optional<Invitation> invitation{std::in_place};
    std::memcpy(static_cast<void*>(&*invitation), words.data(), sizeof(Invitation));
    return invitation;
  }
  // False: it was taken back meanwhile. Release: the words were read before.
  bool take() {
    return board_->state.compare_exchange_strong(seen_, (seen_ & ~std::uint64_t{3}) | InvitationBoard::taken,
                                                 std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  // What was taken could not be used: the message goes another way, if it goes at all, and the receive may be given up.
  void give_back() {
    std::uint64_t expected = (seen_ & ~std::uint64_t{3}) | InvitationBoard::taken;
    board_->state.compare_exchange_strong(expected, InvitationBoard::none, std::memory_order_release,
                                          std::memory_order_relaxed);
  }

 private:
  InvitationBoard* board_;
  std::uint64_t seen_ = 0;
};

}  // namespace ist
