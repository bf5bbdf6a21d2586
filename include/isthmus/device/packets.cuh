// Isthmus in kernels: messages of up to 16 KiB in packets that say themselves whether they are there. models/packets.pml has it
// without its bytes.
//
// Who calls this : kernels, and calls.cuh. One crew at a time sends on a channel to a PE, and one receives on it from a PE.
// Threads        : all threads of the crew of a thread, a warp or a block. Both return when all of them are through.
// Ownership      : none.
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
IST_DEVICE_RARE std::uint64_t odd_word_at(const unsigned char* from, std::uint64_t count) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8 && i < count; ++i) value |= static_cast<std::uint64_t>(from[i]) << 8 * i;
  return value;
}
IST_DEVICE_RARE void put_odd_word(unsigned char* to, std::uint64_t value, std::uint64_t count) {
  for (unsigned i = 0; i < 8 && i < count; ++i) to[i] = static_cast<unsigned char>(value >> 8 * i);
}
IST_DEVICE_CODE std::uint64_t word_at(const unsigned char* from, std::uint64_t left) {
  if (left >= 8 && lies_as<std::uint64_t>(reinterpret_cast<std::uintptr_t>(from)))
    return *reinterpret_cast<const std::uint64_t*>(from);
  return odd_word_at(from, left);
}
IST_DEVICE_CODE void put_word(unsigned char* to, std::uint64_t value, std::uint64_t left) {
  if (left >= 8 && lies_as<std::uint64_t>(reinterpret_cast<std::uintptr_t>(to)))
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

// `word`: the last message that was taken. Numbers go round.
IST_DEVICE_CODE Status wait_for_slot(const ist_team_view& view, const std::uint32_t* word, std::uint32_t found,
                                     std::uint32_t sequence, std::uint64_t deadline) {
  const auto enough = static_cast<std::uint32_t>(sequence - kSlots);
  if (static_cast<std::int32_t>(found - enough) >= 0) return Status::ok;
  Waiter waiter(view, deadline);
  do {
    const Status status = waiter.vain();
    if (status != Status::ok) return status;
    found = load_taken(word);
  } while (static_cast<std::int32_t>(found - enough) < 0);
  return Status::ok;
}

// Both packets of a unit; `status` is kept unless this one fails.
IST_DEVICE_CODE std::uint64_t await(const Pair* packets, std::uint32_t number, Waiter& waiter, Status& status) {
  Pair found = load_relaxed(packets);
  while (status == Status::ok && !has_come(found, number)) {
    status = waiter.vain();
    found = load_relaxed(packets);
  }
  return bytes_in(found);
}

// Zeros for the whole slot, before anybody learns that it may be used again: the fence and the meeting come before what this crew
// tells the sender next, in whatever way.
template <class Crew>
IST_DEVICE_RARE void clean(const Crew crew, Pair* slot, std::uint64_t capacity) {
  crew.sync();  // others of the crew may still be reading
  for (std::uint64_t i = crew.thread; i < capacity / 8; i += crew.threads) store_relaxed(&slot[i], Pair{0, 0});
  fence_system();
  crew.sync();
}

// Does not wait for the receiver but where kSlots messages are under way. When it returns, the source may be changed.
template <Reuse kReuse = Reuse::credited, class Crew>
IST_DEVICE_CODE Status send(const Crew& crew, const ist_team_view& view, int pe, int channel, const void* source,
                            std::uint64_t bytes, std::uint32_t sequence, std::uint64_t deadline = 0) {
  if (!is_usable(view, pe, channel, bytes)) return Status::misuse;
  const auto* const from = static_cast<const unsigned char*>(source);
  Pair* const slot = slot_of(view, pe, view.pe, channel, sequence);
  const std::uint32_t units = units_of(bytes);
  const std::uint32_t number = number_of(sequence);
  Status status = Status::ok;
  // Relaxed, and each thread by itself: the receiver's loads had returned before it said so, and a store is not begun before the
  // branch that allows it. On its way together with the first word of data.
  const std::uint32_t* const taken = &control_of(view, view.pe).peers[pe].taken[channel];
  std::uint32_t found = 0;
  if (kReuse == Reuse::credited) found = load_taken(taken);
  std::uint64_t data =
      crew.thread < units ? word_at(from + std::uint64_t{crew.thread} * 8, bytes - std::uint64_t{crew.thread} * 8) : 0;
  if (kReuse == Reuse::credited) status = wait_for_slot(view, taken, found, sequence, deadline);
  for (std::uint32_t i = crew.thread; i < units && status == Status::ok; i += crew.threads) {
    const std::uint64_t offset = std::uint64_t{i} * 8;
    if (i != crew.thread) data = word_at(from + offset, bytes - offset);
    store_relaxed(&slot[i], packed(number, data));
  }
  return agreed(crew, status);
}

// As many bytes as were sent.
template <Reuse kReuse = Reuse::credited, class Crew>
IST_DEVICE_CODE Status receive(const Crew& crew, const ist_team_view& view, int from, int channel, void* destination,
                               std::uint64_t bytes, std::uint32_t sequence, std::uint64_t deadline = 0) {
  if (!is_usable(view, from, channel, bytes)) return Status::misuse;
  auto* const to = static_cast<unsigned char*>(destination);
  Pair* const slot = slot_of(view, view.pe, from, channel, sequence);
  const std::uint32_t units = units_of(bytes);
  const std::uint32_t number = number_of(sequence);
  Status status = Status::ok;
  Waiter waiter(view, deadline);
  for (std::uint32_t i = crew.thread; i < units; i += crew.threads) {
    const std::uint64_t data = await(&slot[i], number, waiter, status);
    if (status != Status::ok) break;
    const std::uint64_t offset = std::uint64_t{i} * 8;
    put_word(to + offset, data, bytes - offset);
  }
  status = agreed(crew, status);
  if (status != Status::ok) return status;
  if (cleans(sequence)) clean(crew, slot, capacity_of(channel));
  // Relaxed: every load has returned when its thread comes to the meeting, since it was looked at; where zeros were stored, the
  // fence is behind them.
  if (kReuse == Reuse::credited && crew.thread == 0)
    store_taken(&control_of(view, from).peers[view.pe].taken[channel], sequence);
  return Status::ok;
}

}  // namespace ist::device

#endif
