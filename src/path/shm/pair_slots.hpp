// The small messages of one pair: single-producer slots of one cache line each, which have one message of up to 24 bytes or four of up to 8,
// and a room beside them for the bytes of longer ones.
//
// Who calls this : shm_link writes, shm_path reads. Model: models/slots.pml.
// Threads        : one writer and one reader, in different processes; no lock.
// Ownership      : views of the receiver's segment.
// Errors         : none; full or empty.
//
// A message is there when the turn word of its slot holds the position that the reader expects. The reader changes nothing in
// the slots, so that a line travels once per message, from the writer's cache to the reader's; how far the reader has come it tells
// in a line of its own, once per kReportEvery slots or a sixteenth of the room. Before that the word may say that a message is begun, and how many of its
// bytes are there: whoever waits for that one alone may copy them then, and others find nothing. Nobody but the writer of turns writes where a turn is
// looked for: bytes of messages that are longer than a slot lie elsewhere, in blocks, each message's in one piece.
//
// A message of a word or less joins the one before it in its line, if that has a place and is of the same communicator, whether or not the
// reader has been there: the turn word then tells of one more. The writer goes on to the next line when it likes, and never comes back
// to one from which it has gone on; so the reader, when it has all that a line tells of, looks at the next one, too, and where that is there,
// once more at the first.
//
// Few slots, side by side, so that all of them stay in the writer's first cache. A line that the reader has looked at has to be taken from it
// before it is written again, and a processor does so for one line after the other where it finds its own copy in the second cache, but for
// several at once where that is in the first one: 64 lines of a ring of 1024 with 256 bytes from one to the next, or of 512 side by
// side, took 31 ns each to write, of 256 side by side 10 (AMD EPYC, Zen 4, 2 processors, 2026-11-26).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/pause.hpp"
#include "base/wire.hpp"
#include "memory/host/handing_copy.hpp"
#include "memory/piece.hpp"
#include "path/shm/keeping_distance.hpp"
#include "path/shm/pair_slot.hpp"

namespace ist {

static_assert(kGapFrom == TakingCopy::kLeast);  // where it is worth while is where it is read so
// As memcpy, and without a call for 8 to 16 bytes; of longer ones as copy_across().
constexpr bool is_few(std::size_t size) { return size - 8 <= 8; }
inline void copy_few(std::byte* to, const std::byte* from, std::size_t size) {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::memcpy(&first, from, 8);
  std::memcpy(&last, from + size - 8, 8);
  std::memcpy(to, &first, 8);
  std::memcpy(to + size - 8, &last, 8);
}
inline void copy_any(std::byte* to, const std::byte* from, std::size_t size) {
  if (is_few(size)) [[likely]]
    copy_few(to, from, size);
  else if (size != 0)
    copy_across(to, from, size);
}
// Of a share, which nearly always is full.
inline void copy_share(std::byte* to, const std::uint64_t& word, std::size_t size) {
  if (size == PairSlot::kShare) [[likely]]
    std::memcpy(to, &word, PairSlot::kShare);
  else
    copy_any(to, reinterpret_cast<const std::byte*>(&word), size);
}

class PairSlotWriter {
 public:
  // `consumed` is the reader's line. Behind the slots comes the room.
  PairSlotWriter(PairSlot* slots, std::atomic<std::uint64_t>* consumed, const PairSlotShape& shape)
      : slots_(slots), consumed_(consumed), count_(shape.slots), blocks_(shape.blocks), longest_(shape.again) {}

  // False if there is no free slot, or too little room, or if the payload is longer than the shape says.
  bool post(const Envelope& envelope, std::span<const std::byte> payload) {
    PairSlot* const slot = begin(payload.size());
    if (slot == nullptr) return false;
    slot->whole.envelope = envelope;
    finish(*slot, payload.data(), payload.size());
    return true;
  }
  // The two halves of post(), between which the caller writes the envelope into the slot. Null: as false.
  PairSlot* begin(std::size_t size) {
    return size <= longest_ && has_room(blocks_wanted(written_, size, blocks_)) ? &slots_[place_of(position_)] : nullptr;
  }
  // `in_pieces`: one whose reader may be waiting for it, and for nothing else; of those that are short enough for any room.
  void finish(PairSlot& slot, const std::byte* payload, std::size_t size, bool in_pieces = false) {
    if (size <= PairSlot::kPayload) {
      copy_any(slot.whole.payload.data(), payload, size);
    } else {
      written_ += static_cast<std::uint32_t>(blocks_skipped(written_, size, blocks_));
      const std::size_t shown =
          in_pieces && size > kPieceShown && size <= kPairPayload ? show_pieces(slot, payload, size) : 0;
      handing_.copy(block_at(written_) + shown, payload + shown, size - shown);
      written_ += static_cast<std::uint32_t>(blocks_taken(size, blocks_));
    }
    show(slot, turn_at(position_, size));
    shares_ = PairSlot::kShares;
  }

  // An eager message of at most kShare bytes from host memory, in the last line where it may join that. False, also where there may be room:
  // then begin() has to look.
  [[gnu::always_inline]] bool add(std::uint32_t sequence, std::uint32_t context, std::int32_t tag, const std::byte* payload,
                                  std::size_t size) {
    const std::uint64_t word = size == PairSlot::kShare ? whole_word(payload) : word_of(payload, size);
    const std::uint64_t name = std::uint64_t{sequence} << 32 | context;
    if (shares_ < PairSlot::kShares && name == next_share_) {
      // Guard LAST_LINE: behind this one nothing has been shown, so that the reader is still here.
      PairSlot& slot = slots_[place_of(position_ - 1)];
      slot.shared.tags[shares_] = tag;
      slot.shared.words[shares_] = word;
      turn_ += share_at(shares_, size);
      ++shares_;
      // Guard SHARE_LAST: as TURN_LAST.
      slot.turn.store(turn_, std::memory_order_release);
    } else {
      if (static_cast<std::uint32_t>(position_) - seen_.slots >= count_) [[unlikely]]
        return false;
      PairSlot& slot = slots_[place_of(position_)];
      slot.shared.sequence = sequence;
      slot.shared.context = context;
      slot.shared.tags[0] = tag;
      slot.shared.words[0] = word;
      turn_ = turn_at(position_, kSharedBit | share_at(0, size));
      show(slot, turn_);
      shares_ = 1;
    }
    next_share_ = name + (std::uint64_t{1} << 32);  // sequences wrap
    return true;
  }

  // A message may follow in some 50 ns: what another reader looks at has to be taken from its cache first, and that goes on while the
  // caller still computes. Half a round trip of 8 bytes 0.080 us, and 0.060 where who receives asks for the line of its answer (AMD EPYC, 2
  // processors that share a cache, 2026-11-22). A store by itself asks only when its address is known, which is late.
  void fetch_next() const { fetch_for_writing(slots_[place_of(position_ - (shares_ < PairSlot::kShares ? 1 : 0))]); }

  // Another number after each message.
  std::uint64_t shown() const { return position_ << 3 | shares_; }
  // Was the last post() refused, and would it find room now? Then the refusal is forgotten.
  bool news() {
    if (!refused_ || !is_free(PairConsumed::from(consumed_->load(std::memory_order_relaxed)), refused_blocks_)) return false;
    refused_ = false;
    return true;
  }

 private:
  static std::uint64_t whole_word(const std::byte* bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }
  // Out of line, so that the word of whoever sends 8 bytes has no place in memory.
  static std::uint64_t word_of(const std::byte* bytes, std::size_t size);
  // The reader has the line of every slot that it has read, and whoever writes there has to wait for it. A lock taken after the
  // store waits for that store, so that a burst of small messages would pay the whole way of a line for each: 64 outstanding sends
  // of 8 bytes 0.107 us each, and 0.078 with their lines asked for ahead (AMD EPYC, 2 processors, 2026-11-22). Not the next slot,
  // where the reader looks while it waits: it would take the line back before it is written, but where fetch_next() is called.
  static constexpr std::uint64_t kFetchAhead = 16;

  std::uint64_t place_of(std::uint64_t position) const { return position & (count_ - 1); }
  std::byte* block_at(std::uint64_t number) const {
    return reinterpret_cast<std::byte*>(slots_ + count_) + (number & (blocks_ - 1)) * kBlock;
  }
  void show(PairSlot& slot, std::uint64_t turn) {
    const std::uint64_t position = position_;
    // Guard TURN_LAST: release keeps envelope and payload before the word that shows them; what was stored past the caches, the fence at the end of that copy does
    // (copy_past() in handing_copy.cpp).
    slot.turn.store(turn, std::memory_order_release);
    position_ = position + 1;
    fetch_for_writing(slots_[place_of(position + 1 + kFetchAhead)]);
  }
  std::size_t show_pieces(PairSlot& slot, const std::byte* payload, std::size_t size);
  // Guards ROOM and ROOM_FOR_BYTES, also in add(): nothing is written over that the reader has not counted as consumed.
  bool is_free(PairConsumed consumed, std::uint32_t blocks) const {
    return static_cast<std::uint32_t>(position_) - consumed.slots < count_ && written_ - consumed.blocks + blocks <= blocks_;
  }
  bool has_room(std::uint64_t wanted) {
    const auto blocks = static_cast<std::uint32_t>(wanted);
    refused_ = false;
    if (is_free(seen_, blocks)) [[likely]]
      return true;
    // Acquire pairs with the release in PairSlotReader::pop(): its last look at slot and blocks comes before our first write.
    seen_ = PairConsumed::from(consumed_->load(std::memory_order_acquire));
    if (is_free(seen_, blocks)) return true;
    refused_ = true;
    refused_blocks_ = blocks;
    return false;
  }

  PairSlot* slots_;
  const std::atomic<std::uint64_t>* consumed_;
  const std::uint64_t count_;
  const std::uint64_t blocks_;
  const std::size_t longest_;
  std::uint64_t position_ = 0;
  std::uint64_t turn_ = 0;                    // of the last line, while it is shared
  std::uint64_t next_share_ = 0;              // sequence and context of the message that may join it
  std::uint32_t shares_ = PairSlot::kShares;  // in the last line, of those that it may have
  std::uint32_t written_ = 0;                 // blocks
  PairConsumed seen_;
  std::uint32_t refused_blocks_ = 0;
  bool refused_ = false;  // the last post(), which wanted that many blocks
  HandingCopy handing_;
};

class PairSlotReader {
 public:
  // `alone`: has this process a processor of its own, on which it may wait for the writer?
  PairSlotReader(PairSlot* slots, std::atomic<std::uint64_t>* consumed, const PairSlotShape& shape, bool alone = true)
      : slots_(slots),
        consumed_(consumed),
        mask_(shape.slots - 1),
        block_mask_(shape.blocks - 1),
        report_(static_cast<std::uint32_t>(shape.report())),
        longest_(shape.again),
        takes_lines_(takes_lines()),
        distance_(alone && shape.blocks >= kFirstPart ? shape.room().value : 0) {}

  // The slot of the oldest message, or null. The message stays as it is until pop().
  const PairSlot* front() {
    return front_by([](const PairSlot& slot) { return slot.turn.load(std::memory_order_acquire); });
  }
  // The same of who looks again and again, and for this rank's messages alone: after a moment in which their writer has the line, and where that pays
  // (takes_lines()) by an addition of nothing, after which only this cache has it; no store of the writer's comes between the halves of that, and is lost.
  const PairSlot* front_again() {
    if (has_told_more()) return front();
    pause_briefly();
    if (!takes_lines_ || taken_ == 0) return front();
    return front_by([](PairSlot& slot) { return take_word(slot.turn); });
  }
  // Where front() has found none: the slot of a message of which some bytes are there, or null, as of the last look. Its envelope is there, too.
  const PairSlot* begun() const { return is_begun(turn_, position_) ? &slots_[position_ & mask_] : nullptr; }
  // Looks at that slot once more: what is there of the message. All of it, where begun() is null then, and front() finds it.
  std::span<const std::byte> look_again(const PairSlot& slot) {
    turn_ = slot.turn.load(std::memory_order_acquire);
    return {block_at(first_block()), is_begun(turn_, position_) || is_turn(turn_, position_) ? length() : 0};
  }
  // Would front() find one? Relaxed: nothing of the message is read on its word.
  bool ready() const {
    const std::uint64_t turn = slots_[position_ & mask_].turn.load(std::memory_order_relaxed);
    return is_turn(turn, position_) &&
           (has_more(turn) || is_turn(slots_[(position_ + 1) & mask_].turn.load(std::memory_order_relaxed), position_ + 1));
  }
  // Does the line of front() have several? Whoever has asked may say so to the three that follow, which are quicker then.
  bool shared() const { return (turn_ & kSharedBit) != 0; }
  // Of a shared line that front() has found: its messages from `taken` on, and what it tells of their lengths, as share_in() of places from
  // there on. pop_shares() is done with so many of them at once.
  struct Shares {
    const PairSlot::Shared& line;
    std::uint32_t taken;
    std::uint64_t lengths;
  };
  Shares shares(const PairSlot& slot) const { return {slot.shared, taken_, (turn_ & kShareBits) >> 4 * taken_}; }
  bool pop_shares(std::uint32_t messages) {
    taken_ += messages;
    if (taken_ == PairSlot::kShares) taken_ = 0, ++position_;
    return report();
  }
  // After pop(): all that a shared line told of was taken, and more may join it.
  bool waits_at_line() const { return taken_ != 0 && share_in(turn_, taken_) == 0; }
  // Of front(), until pop().
  template <bool is_shared>
  Envelope envelope(const PairSlot& slot) const {
    if (!is_shared) return slot.whole.envelope;
    Envelope made;
    made.sequence = slot.shared.sequence + taken_;
    made.context = slot.shared.context;
    made.tag = slot.shared.tags[taken_];
    made.kind = static_cast<std::uint8_t>(KindId::host);
    made.bytes = share_in(turn_, taken_) - 1;
    return made;
  }
  Envelope envelope(const PairSlot& slot) const { return shared() ? envelope<true>(slot) : envelope<false>(slot); }
  template <bool is_shared>
  std::span<const std::byte> payload(const PairSlot& slot) const {
    if (is_shared) return {reinterpret_cast<const std::byte*>(&slot.shared.words[taken_]), share_in(turn_, taken_) - 1};
    const std::size_t size = length();
    if (size <= PairSlot::kPayload) [[likely]]
      return {slot.whole.payload.data(), size};
    return {block_at(first_block()), size};
  }
  std::span<const std::byte> payload(const PairSlot& slot) const {
    return shared() ? payload<true>(slot) : payload<false>(slot);
  }
  // Of front(), whose line is not shared and which is one of many: the next one comes while this one is copied, if it has been sent.
  std::span<const std::byte> payload_of_many(const PairSlot& slot) const {
    if (length() > PairSlot::kPayload) fetch_following();
    return payload<false>(slot);
  }

  // All bytes of a message of front().
  void copy_out(std::byte* to, std::span<const std::byte> payload) {
    if (is_few(payload.size())) [[likely]]
      copy_few(to, payload.data(), payload.size());
    else if (payload.size() >= TakingCopy::kLeast)
      copy_long(to, payload);
    else if (!payload.empty())
      copy_across(to, payload.data(), payload.size());
  }
  // Done with front(). True if the writer was told, and may have to be woken.
  template <bool is_shared>
  bool pop() {
    if (is_shared) return pop_shares(1);
    read_ = next_block();
    ++position_;
    return report();
  }
  bool pop() { return shared() ? pop<true>() : pop<false>(); }

 private:
  // look, std::uint64_t(PairSlot&): its turn word.
  template <class Look>
  [[gnu::always_inline]] const PairSlot* front_by(const Look& look) {
    PairSlot& slot = slots_[position_ & mask_];
    // What the word told before is there: the line is not asked for again while its writer may be at it.
    if (has_told_more()) return &slot;
    // Guard TURN: acquire pairs with the release in show() and add(). Messages of another lap have another position in their word.
    turn_ = look(slot);
    if (!is_turn(turn_, position_)) return nullptr;
    if (has_more(turn_)) [[likely]]
      return &slot;
    return front_of_next(slot);
  }
  const std::byte* block_at(std::uint32_t number) const {
    return reinterpret_cast<const std::byte*>(slots_ + mask_ + 1) + (number & block_mask_) * kBlock;
  }
  void copy_long(std::byte* to, std::span<const std::byte> payload);
  void fall_behind(std::size_t size);
  // Of the message in front, and behind it.
  std::uint32_t first_block() const {
    return read_ + static_cast<std::uint32_t>(blocks_skipped(read_, length(), block_mask_ + 1));
  }
  std::uint32_t next_block() const {
    return first_block() + static_cast<std::uint32_t>(blocks_taken(length(), block_mask_ + 1));
  }
  // What a processor fetches by itself begins anew with every message.
  void fetch_following() const {
    constexpr std::size_t kLines = 8;
    const std::uint64_t turn = slots_[(position_ + 1) & mask_].turn.load(std::memory_order_relaxed);
    __builtin_prefetch(&slots_[(position_ + 2) & mask_]);
    if (!is_turn(turn, position_ + 1) || (turn & kSharedBit) != 0) return;
    const std::uint64_t blocks = blocks_for(std::min<std::size_t>(turn & (kSharedBit - 1), longest_));
    const std::byte* const first = block_at(next_block());
    for (std::size_t line = 0; line < std::min<std::size_t>(blocks, kLines); ++line)
      __builtin_prefetch(first + line * kBlock);
  }
  // Has the last look at the line in front told of a message that was not taken?
  bool has_told_more() const { return taken_ != 0 && share_in(turn_, taken_) != 0; }
  // Of the line in front, a message that was not taken?
  bool has_more(std::uint64_t turn) const { return (turn & kSharedBit) == 0 || share_in(turn, taken_) != 0; }
  // All that a shared line told of was taken.
  const PairSlot* front_of_next(const PairSlot& slot) {
    const PairSlot& next = slots_[(position_ + 1) & mask_];
    const std::uint64_t turn = next.turn.load(std::memory_order_acquire);
    if (!is_turn(turn, position_ + 1) && !is_begun(turn, position_ + 1)) return nullptr;
    // Guard LOOK_BACK: more may have joined it before the writer went on, which now it has.
    turn_ = slot.turn.load(std::memory_order_acquire);
    if (has_more(turn_)) return &slot;
    taken_ = 0;
    ++position_;
    turn_ = turn;
    return is_turn(turn, position_) ? &next : nullptr;
  }
  // Also where it stays at a line: front_of_next() goes on, too, and tells nothing.
  bool report() {
    if (static_cast<std::uint32_t>(position_) - told_.slots < kReportEvery && read_ - told_.blocks < report_) [[likely]]
      return false;
    told_ = {static_cast<std::uint32_t>(position_), read_};
    // Guard REPORT_LAST: release keeps our reads of slots and blocks before the count that lets the writer fill them again.
    consumed_->store(told_.word(), std::memory_order_release);
    return true;
  }
  // A length beyond the limit is never written; it keeps a scribbled segment from leading us out of the room.
  std::size_t length() const { return std::min<std::size_t>(turn_ & (kSharedBit - 1), longest_); }

  PairSlot* slots_;
  std::atomic<std::uint64_t>* consumed_;
  const std::uint64_t mask_;
  const std::uint64_t block_mask_;
  const std::uint32_t report_;
  const std::size_t longest_;
  const bool takes_lines_;
  std::uint64_t position_ = 0;
  std::uint64_t turn_ = 0;   // of the line in front, as front() saw it last
  std::uint32_t taken_ = 0;  // of that line, while it is shared
  std::uint32_t read_ = 0;   // blocks
  PairConsumed told_;
  TakingCopy taking_;
  KeepingDistance distance_;
};

}  // namespace ist
