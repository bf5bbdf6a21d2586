// Isthmus in kernels: messages of up to 16 KiB in packets that say themselves whether they are there. models/packets.pml has it
// without its bytes.
//
// Who calls this : kernels, and calls.cuh. One crew at a time sends on a channel to a PE, and one receives on it from a PE.
// Threads        : all threads of the crew. Both return when all of them are through.
// Ownership      : a Channel names the view it was given, which must outlive it.
// Errors         : a Status, the same for all threads of the crew. After one that is not ok the channel is not to be used again.
//
// A store of 8 bytes comes whole, so that whoever finds a packet's number (packet.cuh) has its data, and no fence is needed.
//
// Messages of a channel from one PE to another are numbered 1, 2, 3 and so on by the caller, at both ends, over kernels too: `sequence`.
// The n-th lies in slot n % kSlots. Who may store the (n + kSlots)-th there, and how it is known, is said by Reuse, alike at both ends.
#ifndef ISTHMUS_DEVICE_PACKETS_CUH
#define ISTHMUS_DEVICE_PACKETS_CUH

#include "isthmus/device/crew.cuh"
#include "isthmus/device/move.cuh"
#include "isthmus/device/packet.cuh"

namespace ist::device {

enum class Reuse {
  credited,  // the receiver says what it has taken, and the sender waits for that: any pattern
  answered,  // the two send each other on this channel, and each receives the n-th message before it sends the (n + 1)-th: what
             // comes back says it already
};

// Numbers come again after 2^31 messages, and what lies in a slot's end may be as old as a longer message: slots are cleaned in
// between, twice as often. The upper bit tells a number from what was zeroed.
inline constexpr std::uint32_t kNumbered = 0x80000000U;
inline constexpr std::uint32_t kCleaning = 0x3fffffffU;
IST_DEVICE_NUMBER std::uint32_t number_of(std::uint32_t sequence) { return sequence | kNumbered; }
IST_DEVICE_NUMBER bool cleans(std::uint32_t sequence) { return (sequence & kCleaning) < kSlots; }

// Bytes that are no whole word of eight, or do not lie as one; zeros after them.
IST_DEVICE_RARE std::uint64_t odd_word_at(const unsigned char* from, std::uint32_t count) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8 && i < count; ++i) value |= static_cast<std::uint64_t>(from[i]) << 8 * i;
  return value;
}
IST_DEVICE_RARE void put_odd_word(unsigned char* to, std::uint64_t value, std::uint32_t count) {
  for (unsigned i = 0; i < 8 && i < count; ++i) to[i] = static_cast<unsigned char>(value >> 8 * i);
}
IST_DEVICE_CODE bool is_whole(const unsigned char* address, std::uint32_t left) {
  return left >= 8 && lies_as<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
}

// A word that is sent, wherever it lies.
IST_DEVICE_CODE std::uint64_t word_at(const unsigned char* from, std::uint32_t left) {
  return is_whole(from, left) ? *reinterpret_cast<const std::uint64_t*>(from) : odd_word_at(from, left);
}
IST_DEVICE_CODE void put_word(unsigned char* to, std::uint64_t value, std::uint32_t left) {
  if (is_whole(to, left))
    *reinterpret_cast<std::uint64_t*>(to) = value;
  else
    put_odd_word(to, value, left);
}

// A message without bytes is one unit, so that it can be waited for.
IST_DEVICE_NUMBER std::uint32_t units_of(std::uint64_t bytes) {
  return bytes == 0 ? 1U : static_cast<std::uint32_t>((bytes + 7) / 8);
}
IST_DEVICE_CODE bool is_usable(const ist_team_view& view, int pe, int channel, std::uint64_t bytes) {
  return pe >= 0 && pe < view.pes && view.pes <= kMaxPes && channel >= 0 && channel < kChannels &&
         bytes <= capacity_of(channel);
}

// Until the message that lay in a slot is taken. `word`: the last that was; `known`: what was seen of it, and is now. Numbers go round.
IST_DEVICE_CODE bool is_taken(std::uint32_t known, std::uint32_t sequence) {
  return static_cast<std::int32_t>(known - static_cast<std::uint32_t>(sequence - kSlots)) >= 0;
}
// The status above what is known then.
IST_DEVICE_RARE std::uint64_t wait_until_taken(const std::uint32_t* abort_word, const std::uint32_t* word,
                                               std::uint32_t sequence, std::uint64_t deadline) {
  std::uint32_t known = 0;
  const Status status = Waiter(abort_word, deadline).wait([&] {
    known = load_taken(word);
    return is_taken(known, sequence);
  });
  return static_cast<std::uint64_t>(status) << 32 | known;
}
IST_DEVICE_CODE Status wait_for_slot(const ist_team_view& view, const std::uint32_t* word, std::uint32_t& known,
                                     std::uint32_t sequence, std::uint64_t deadline) {
  if (!rarely(!is_taken(known, sequence))) return Status::ok;
  const std::uint64_t found = wait_until_taken(const_cast<const std::uint32_t*>(view.abort_word), word, sequence, deadline);
  known = static_cast<std::uint32_t>(found);
  return static_cast<Status>(found >> 32);
}

// Both packets of a unit.
IST_DEVICE_CODE Status await(const Pair* packets, std::uint32_t number, Waiter& waiter, std::uint64_t& bytes) {
  Pair found{};
  const Status status = waiter.wait([&] {
    found = load_relaxed(packets);
    return has_come(found, number);
  });
  bytes = bytes_in(found);
  return status;
}

// Zeros for the whole slot, before anybody learns that it may be used again: a meeting is before it, since others of the crew may still be
// reading; the fence, and the next meeting, come before what this crew tells the sender next, in whatever way.
template <class Crew>
IST_DEVICE_RARE void clean(const Crew crew, Pair* slot, std::uint64_t capacity) {
  for (std::uint64_t i = thread_of(crew); i < capacity / 8; i += threads_of(crew)) store_relaxed(&slot[i], Pair{0, 0});
  fence_system();
}

// The units of a message from this thread on, one of so many as the crew has threads; odd ones, whose bytes are no whole words, out of the way.
template <class Crew>
IST_DEVICE_RARE void store_odd_units(const Crew crew, Pair* packet, const unsigned char* from, std::uint32_t length,
                                     std::uint32_t number) {
  for (std::uint32_t i = thread_of(crew); i < units_of(length); i += threads_of(crew), packet += threads_of(crew))
    store_relaxed(packet, packed(number, word_at(from + std::uint64_t{i} * 8, length - i * 8)));
}
template <class Crew>
IST_DEVICE_RARE Status take_odd_units(const Crew crew, const ist_team_view& view, const Pair* packet, unsigned char* to,
                                      std::uint32_t length, std::uint32_t number, std::uint64_t deadline) {
  Waiter waiter(view, deadline);
  for (std::uint32_t i = thread_of(crew); i < units_of(length); i += threads_of(crew), packet += threads_of(crew)) {
    std::uint64_t word = 0;
    const Status status = await(packet, number, waiter, word);
    if (status != Status::ok) return status;
    put_word(to + std::uint64_t{i} * 8, word, length - i * 8);
  }
  return Status::ok;
}

// A channel between this PE and another, as one crew sees it. Make it once and use it for many messages: what depends on the two alone is
// worked out here, and it remembers how far the receiver was. Every thread of the crew has its own.
//
// Between two GPUs whose link takes 0.7 us the instructions between a packet's arrival and the answer are what a library adds, some 5 cycles
// each: what can be worked out before a wait is, the usual case of whole words has nothing of the others in it, and nothing is
// fetched from memory that was not asked for a message ago. (tests/device/in_kernel.cu times it beside bare loops.)
template <class Crew, Reuse kReuse = Reuse::credited>
class Channel {
 public:
  IST_DEVICE_CODE Channel(const Crew& crew, const ist_team_view& view, int pe, int channel) : crew_(crew), view_(view) {
    if (crew.blocks > static_cast<unsigned>(kMaxBlocks) || !is_usable(view, pe, channel, 0)) return;
    const std::uint64_t capacity = capacity_of(channel);
    too_long_ = static_cast<std::uint32_t>(capacity) + 1;
    slot_ = static_cast<std::uint32_t>(capacity / 8);
    there_ = slot_of(view, pe, view.pe, channel, 0) + thread_of(crew);
    here_ = slot_of(view, view.pe, pe, channel, 0) + thread_of(crew);
    taken_here_ = &control_of(view, view.pe).peers[pe].taken[channel];
    taken_there_ = &control_of(view, pe).peers[view.pe].taken[channel];
    // Nobody waits for it before a send looks at it.
    if (kReuse == Reuse::credited) known_ = load_taken(taken_here_);
  }

  // Does not wait for the receiver but where kSlots messages are under way. When it returns, the source may be changed.
  IST_DEVICE_CODE Status send(const void* source, std::uint64_t bytes, std::uint32_t sequence, std::uint64_t deadline = 0) {
    const auto* const from = static_cast<const unsigned char*>(source);
    const bool usual = is_usual(from, bytes);
    if (rarely(!usual) && bytes >= too_long_) return Status::misuse;
    const auto length = static_cast<std::uint32_t>(bytes);
    Pair* packet = there_ + (sequence % kSlots) * slot_;
    Gathering<Crew> all(crew_, view_, deadline);
    Status status = Status::ok;
    // Each thread by itself, and relaxed: the receiver's loads had returned before it said so, and a store is not begun before the
    // branch that allows it.
    if (kReuse == Reuse::credited) status = wait_for_slot(view_, taken_here_, known_, sequence, deadline);
    if (status == Status::ok) {
      if (rarely(!usual))
        store_odd_units(crew_, packet, from, length, number_of(sequence));
      else
        store_units(packet, from, length, number_of(sequence));
    }
    if (kReuse == Reuse::answered) return all.then([] { return Status::ok; });
    // What is seen now is known at the next message, which does not wait for this load then.
    known_ = load_taken(taken_here_);
    return all.agree(status);
  }

  // As many bytes as were sent.
  IST_DEVICE_CODE Status receive(void* destination, std::uint64_t bytes, std::uint32_t sequence,
                                 std::uint64_t deadline = 0) {
    auto* const to = static_cast<unsigned char*>(destination);
    const bool usual = is_usual(to, bytes), full_circle = cleans(sequence);
    if (rarely(!usual) && bytes >= too_long_) return Status::misuse;
    const auto length = static_cast<std::uint32_t>(bytes);
    Pair* const slot = here_ + (sequence % kSlots) * slot_;
    Gathering<Crew> all(crew_, view_, deadline);
    const Status status = rarely(!usual) ? take_odd_units(crew_, view_, slot, to, length, number_of(sequence), deadline)
                                         : take_units(slot, to, length, number_of(sequence), deadline);
    if (crew_.blocks != 1) return end_of_grid(all, status, slot, sequence);
    if (const bool failed = crew_.any(status != Status::ok); rarely(failed | full_circle)) {
      if (failed) return worst(crew_, status);
      clean(crew_, slot - crew_.thread, std::uint64_t{slot_} * 8);
      crew_.sync();
    }
    // Relaxed: every load has returned when its thread comes to the meeting, since it was looked at; where zeros were stored, the
    // fence is behind them.
    if (kReuse == Reuse::credited && crew_.thread == 0) store_taken(taken_there_, sequence);
    return Status::ok;
  }

 private:
  // The same as of one block: the first thread tells the sender when all blocks have come, and before any of them leaves.
  IST_DEVICE_CODE Status end_of_grid(Gathering<Crew>& all, Status status, Pair* slot, std::uint32_t sequence) const {
    if (rarely(cleans(sequence))) {
      status = all.agree(status);
      if (status != Status::ok) return status;
      clean(crew_, slot - thread_of(crew_), std::uint64_t{slot_} * 8);
    }
    return all.meet(status, [&] {
      if (kReuse == Reuse::credited) store_taken(taken_there_, sequence);
      return Status::ok;
    });
  }
  // Whole words that lie as such: nothing that is asked about one by one.
  IST_DEVICE_CODE bool is_usual(const unsigned char* address, std::uint64_t bytes) const {
    return bytes < too_long_ && bytes != 0 && ((reinterpret_cast<std::uintptr_t>(address) | bytes) & 7) == 0;
  }
  IST_DEVICE_CODE void store_units(Pair* packet, const unsigned char* from, std::uint32_t length,
                                   std::uint32_t number) const {
    const unsigned first = thread_of(crew_), step = threads_of(crew_);
    const auto* word = reinterpret_cast<const std::uint64_t*>(from) + first;
    IST_DEVICE_LOOP_ONCE
    for (std::uint32_t i = first; i < length / 8; i += step) {
      store_relaxed(packet, packed(number, *word));
      word += step;
      packet += step;
    }
  }
  IST_DEVICE_CODE Status take_units(const Pair* packet, unsigned char* to, std::uint32_t length, std::uint32_t number,
                                    std::uint64_t deadline) const {
    Waiter waiter(view_, deadline);
    const unsigned first = thread_of(crew_), step = threads_of(crew_);
    auto* word = reinterpret_cast<std::uint64_t*>(to) + first;
    IST_DEVICE_LOOP_ONCE
    for (std::uint32_t i = first; i < length / 8; i += step) {
      Pair found{};
      const auto look = [&] {
        found = load_relaxed(packet);
        return has_come(found, number);
      };
      while (rarely(!waiter.comes(look)))
        if (const Status status = waiter.around(); status != Status::ok) return status;
      *word = bytes_in(found);
      word += step;
      packet += step;
    }
    return Status::ok;
  }

  Crew crew_;
  const ist_team_view& view_;
  std::uint32_t too_long_ = 0;  // 0: no channel of this team, nothing is short enough
  std::uint32_t slot_ = 0;      // units of one
  Pair* there_ = nullptr;       // this thread's first in each
  Pair* here_ = nullptr;
  const std::uint32_t* taken_here_ = nullptr;
  std::uint32_t* taken_there_ = nullptr;
  std::uint32_t known_ = 0;
};

// One message of a channel. Many in a row are quicker by a Channel.
template <Reuse kReuse = Reuse::credited, class Crew>
IST_DEVICE_CODE Status send(const Crew& crew, const ist_team_view& view, int pe, int channel, const void* source,
                            std::uint64_t bytes, std::uint32_t sequence, std::uint64_t deadline = 0) {
  return Channel<Crew, kReuse>(crew, view, pe, channel).send(source, bytes, sequence, deadline);
}
template <Reuse kReuse = Reuse::credited, class Crew>
IST_DEVICE_CODE Status receive(const Crew& crew, const ist_team_view& view, int from, int channel, void* destination,
                               std::uint64_t bytes, std::uint32_t sequence, std::uint64_t deadline = 0) {
  return Channel<Crew, kReuse>(crew, view, from, channel).receive(destination, bytes, sequence, deadline);
}

}  // namespace ist::device

#endif
