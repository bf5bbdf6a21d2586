// What the kernels do that tell and compare notes (stream_note.hpp): one beside each send and each receive of a channel, and two around
// each call of a meeting. There are none where nothing is compared.
//
// Who calls this : cuda_channel_kernels.cu on devices; the fake driver on processors.
// Threads        : one. They are ordered by their stream: what is told lies there before its message does.
// Ownership      : none.
// Errors         : what is not the same is written into the log, for the host to judge.
//
// A note carries its message's number, and lies there longer than any other rank may be behind.
#pragma once

#include "memory/cuda/channel_protocol.hpp"
#include "memory/cuda/meeting_layout.hpp"

namespace ist::channel {

IST_KERNEL_CODE void store_note(StreamNote& to, const StreamNote& note) {
  store_relaxed(&to.hash, note.hash);
  store_relaxed(&to.types, note.types);
  for (unsigned i = 0; i < sizeof note.rest / sizeof note.rest[0]; ++i) store_relaxed(&to.rest[i], note.rest[i]);
}
IST_KERNEL_CODE void put_note(NoteSlot& slot, std::uint64_t number, const StreamNote& note) {
  store_note(slot.note, note);
  store_release(&slot.number, number + 1);
}

IST_KERNEL_CODE StreamNote load_note(const StreamNote& from) {
  StreamNote note;
  note.hash = load_relaxed(&from.hash);
  note.types = load_relaxed(&from.types);
  for (unsigned i = 0; i < sizeof note.rest / sizeof note.rest[0]; ++i) note.rest[i] = load_relaxed(&from.rest[i]);
  return note;
}

IST_KERNEL_CODE bool same_notes(const StreamNote& one, const StreamNote& other) {
  return one.hash == other.hash && one.types == other.types;
}

// Each pair has one place: what the host has found to be no error does not fill the log. `about`: the message, or the member.
IST_KERNEL_CODE void log_unlike(NoteLog* log, std::uint64_t about, const StreamNote& sent, const StreamNote& received) {
  for (NotePair& pair : log->pairs) {
    const std::uint64_t times = load_relaxed(&pair.times);
    if (times == 0) {
      store_note(pair.sent, sent);
      store_note(pair.received, received);
    } else if (!same_notes(load_note(pair.sent), sent) || !same_notes(load_note(pair.received), received)) {
      continue;
    }
    store_relaxed(&pair.about, about);
    return store_release(&pair.times, times + 1);
  }
}

// `number`: the one that a note in that slot has if it is the one to be compared.
IST_KERNEL_CODE void compare_notes(NoteLog* log, const NoteSlot& slot, std::uint64_t number, const StreamNote& received,
                                   std::uint64_t about) {
  if (load_acquire(&slot.number) != number + 1 || received.types == 0) return;
  const StreamNote sent = load_note(slot.note);
  if (sent.types != 0 && !same_notes(sent, received)) log_unlike(log, about, sent, received);
}

// Before the send. Its message may still wait for room, so that one more than may be under way are told of.
IST_KERNEL_CODE void tell(const TellWork& work) {
  if (load_relaxed(&work.own->broken) != 0) return;
  const std::uint64_t message = load_relaxed(&work.own->sent_and_credit.low);
  put_note(work.peer->notes[message % kNotes], message, work.note);
}

// Behind the receive.
IST_KERNEL_CODE void compare(const CompareWork& work) {
  if (load_relaxed(&work.own->broken) != 0) return;
  const std::uint64_t message = load_relaxed(&work.own->taken) - 1;
  compare_notes(work.log, work.own->notes[message % kNotes], message, work.note, message);
}

}  // namespace ist::channel

namespace ist::meeting {

// Before the call: to all others, and to this rank itself, for what is behind the call.
IST_KERNEL_CODE void tell(const TellWork& work) {
  Mailbox& own = *work.own;
  if (channel::load_relaxed(&own.broken) != 0) return;
  const std::uint64_t meeting = channel::load_relaxed(&own.met);
  channel::store_relaxed(&own.noted, meeting);
  for (std::uint32_t rank = 0; rank < work.ranks; ++rank)
    channel::put_note(work.members[rank]->notes[work.rank][meeting % kNotes], meeting, work.note);
}

// Behind it: with what the ranks gave that this one has heard. Who has given up has heard of any of them.
IST_KERNEL_CODE void compare(const CompareWork& work) {
  Mailbox& own = *work.own;
  const std::uint64_t meeting = channel::load_relaxed(&own.noted);
  const StreamNote mine = channel::load_note(own.notes[work.rank][meeting % kNotes].note);
  const bool gave_up = channel::load_relaxed(&own.broken) != 0;
  // The first of several that gave the same is named, as the last one that the log has.
  for (std::uint32_t rank = work.ranks; rank-- > 0;)
    if (rank != work.rank && (gave_up || (work.heard >> rank & 1) != 0))
      channel::compare_notes(work.log, own.notes[rank][meeting % kNotes], meeting, mine, rank);
}

}  // namespace ist::meeting
