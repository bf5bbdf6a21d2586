// What processes write for each other to read. Sizes are frozen by static_asserts: ranks of one job must agree.
//
// Who calls this : path/ carries envelopes, match/ and protocol/ read them.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ist {

enum class EnvelopeType : std::uint8_t {
  eager = 1,     // the bytes come with the envelope
  announce = 2,  // a message waits at the sender; the bytes follow once the receiver has cleared it
  clear = 3,     // receiver to sender: send `bytes` bytes of operation `sender_op` to operation `receiver_op`
  refuse = 4,    // sender to receiver: nothing will come for operation `receiver_op`
  taken = 5,     // receiver to sender: operation `sender_op` is complete, its bytes were read where they lie
  put = 6,       // sender to receiver: the bytes of operation `receiver_op` lie in its buffer
  lend = 7,      // sender to receiver: operation `receiver_op` may copy the bytes from where the loan in the payload says
  notice = 8,    // between the libraries themselves, beside all messages: to whoever listens there (Engine::listen)
  mailed =
      9,  // the bytes are, or soon will be, in the receiver's mailbox: sender_op is their number, receiver_op their place and news
  mailbox =
      10,  // beside all messages: a loan of a mailbox, or news of one (request/mail.cpp), or that a number will not come (failed)
  announce_more =
      11,  // receiver to sender: what is longer than a cell goes into devices here, and is to be announced, from host memory, too
  // receiver to sender: the pair's ring could not be opened; was `sender_op`, which operation `receiver_op` waits for, to go through it?
  // Then it is refused. `bytes` more of these questions follow, and no new ring is made before the last one
  ring_lost = 12,
  withdraw = 13,  // a message's place in the order, and nothing more: the one announced as `sender_op` was taken back
  types = 14      // a place in the order, and what the message that has the next one is made of (request/type_check.hpp)
};

// The sender could not read its buffer; no bytes follow. In a refusal: the receiver could not open the ring.
inline constexpr std::uint16_t kEnvelopeFailed = 1;

// The sender could not go on with a collective call; receiver_op says why, an ist_code, and sender_op because of which rank.
// No bytes follow. In a refusal, whose receiver_op is taken, `bytes` says why.
inline constexpr std::uint16_t kEnvelopeGaveUp = 2;

// In a clearance: the receiver would rather copy the bytes itself, if the sender can lend its buffer.
inline constexpr std::uint16_t kEnvelopeBorrows = 4;

// Beside it: also where that is not packed yet and lies in strides, which the answer then tells behind the loan (LentForm).
inline constexpr std::uint16_t kEnvelopeTakesForms = 16;

// In a clearance: the receiver would like to know how long the copies into the ring take (SlotHeader).
inline constexpr std::uint16_t kEnvelopeTimes = 64;

// Beside it or not: the ring is to be gone round by strings (copy_by_string()), which is how the receiver reads them, and in few lines but for windows that run ahead.
inline constexpr std::uint16_t kEnvelopeByStrings = 128;

// In an announcement: the sender has taken the invitation that the receiver showed (path/invitation.hpp), and its copy has begun.
inline constexpr std::uint16_t kEnvelopeInvited = 32;

// In a `taken`: the bytes were copied out of the sender's SharedHeap.
inline constexpr std::uint16_t kEnvelopeSeen = 8;

// One per message in the pair's ordered queue, whatever carries the bytes; and one per answer, outside that order.
struct Envelope {
  std::uint32_t sequence = 0;  // position among the pair's messages; in clear, taken and lend that of the announcement
  std::uint32_t context = 0;   // communicator
  std::int32_t tag = 0;
  EnvelopeType type = EnvelopeType::eager;
  std::uint8_t kind = 0;  // KindId of the writer's buffer
  std::uint16_t flags =
      0;  // kEnvelopeFailed, kEnvelopeGaveUp; kEnvelopeBorrows, kEnvelopeTakesForms, kEnvelopeTimes, kEnvelopeByStrings; kEnvelopeInvited; kEnvelopeSeen
  std::uint64_t bytes = 0;        // length of the message
  std::uint32_t sender_op = 0;    // announce, clear, taken, lend, ring_lost, withdraw; mailed, mailbox
  std::uint32_t receiver_op = 0;  // clear, refuse, put, lend, ring_lost; mailed, mailbox; in announce see Offer::withdrawn
};
static_assert(sizeof(Envelope) == 32 && std::is_trivially_copyable_v<Envelope>);

// Which announcement an answer is to. The number of a send comes again once that one is over, and a cancelled one is over at once: only
// with its place in the order it is that very send.
struct AnnouncedAs {
  std::uint32_t sender_op = 0;
  std::uint32_t sequence = 0;
};
inline AnnouncedAs announced_as(const Envelope& envelope) { return {envelope.sender_op, envelope.sequence}; }

// The payload of an announcement whose bytes lie in host memory: the receiver may read them there, as long as `value` stands
// at `word`. Both are addresses in the sender's process. A send that ends before it is answered clears the word, and counts as withdrawn,
// before the buffer is given back: whoever after reading finds that nothing was withdrawn meanwhile, or else the value, has read the
// message and nothing else.
struct Offer {
  // The sender has withdrawn so many that they are not counted any more, or the count did not come: the word tells.
  static constexpr std::uint32_t kNotCounted = ~std::uint32_t{0};
  std::uint64_t address = 0;
  std::uint64_t word = 0;
  std::uint64_t value = 0;  // 0: nothing is offered
  // Of the pair's offers, before this one was made. It travels as the announcement's receiver_op.
  std::uint32_t withdrawn = kNotCounted;
};
inline constexpr std::uint32_t kOfferPayload = 24;
static_assert(offsetof(Offer, withdrawn) == kOfferPayload && std::is_trivially_copyable_v<Offer>);

// Says where the bytes of one ring slot belong.
struct SlotHeader {
  std::uint32_t receiver_op = 0;
  std::uint32_t bytes = 0;
  std::uint64_t offset = 0;  // from the start of the message; kSlotFailed: the sender gave up; kSlotVoid
  std::uint32_t place = 0;   // of the bytes, behind the start of the first slot; the largest ring has 64 slots of 16 MiB
  std::uint32_t next = 0;    // of those of the next slot, where it is filled in the same way
  std::uint64_t nanoseconds = 0;  // of the copy into the slot, where the receiver has asked; 0: not known
};
inline constexpr std::uint64_t kSlotFailed = ~std::uint64_t{0};
// Nothing is in it, and it is for nobody, whatever has the number meanwhile: it was filled for a message that failed.
inline constexpr std::uint64_t kSlotVoid = kSlotFailed - 1;
static_assert(sizeof(SlotHeader) == 32 && std::is_trivially_copyable_v<SlotHeader>);

}  // namespace ist
