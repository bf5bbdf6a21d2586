// What the resident worker of a device does, thread by thread: it takes its process's orders one after the other until none has come
// for a while. models/worker.pml has it without its bytes.
//
// Who calls this : cuda_worker_kernels.cu on devices; the fake driver and tests on processors.
// Threads        : all threads of one block, `crew` saying which this is: a Crew has thread, threads, barrier(), any(bool),
//                  first(value), which gives the first thread's value, and reach(address, bytes), a device's address as a pointer.
// Ownership      : none.
// Errors         : none. An order's bytes are all written before its first word, so that nothing here waits for another process.
//
// What comes through a mailbox is stored by another device's worker, over the link; its packets are their own flags, too. This process hears
// of it from the other one, not from the packets, so that the worker looks at a place only when it was told to.
//
// It never waits without end: it leaves by itself, whatever its process does, so that nobody who waits for the whole device waits for
// longer than Work::most.
#pragma once

#include "memory/cuda/channel_protocol.hpp"
#include "memory/cuda/worker_board.hpp"

namespace ist::worker {

// A thread's loads that are on their way together.
inline constexpr unsigned kTogether = 4;

// An order's number has its top bit set: none is one of these.
inline constexpr std::uint64_t kNone = 0;
inline constexpr std::uint64_t kLeaves = 1;

struct Taken {
  std::uint64_t head;
  std::uint64_t address;
  std::uint64_t place;
  std::uint32_t letter;
};

// At most eight bytes of a user's memory, zeros after them: past what the multiprocessor remembers, since this kernel may have read the
// same place before somebody wrote there.
IST_KERNEL_CODE std::uint64_t bytes_now(const std::byte* from, std::uint64_t count) {
  if (count >= 8 && channel::lies_as<std::uint64_t>(from))
    return channel::load_relaxed(reinterpret_cast<const std::uint64_t*>(from));
  if (count >= 8 && channel::lies_as<std::uint32_t>(from)) {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(from);
    return channel::load_relaxed(words) | static_cast<std::uint64_t>(channel::load_relaxed(words + 1)) << 32;
  }
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8 && i < count; ++i)
    value |= static_cast<std::uint64_t>(channel::load_relaxed(from + i)) << 8 * i;
  return value;
}

// Packets that are known to be there, or on their way across the bus. Guard PACKET.
IST_KERNEL_CODE std::uint64_t await(const Quad* packets, Quad found, std::uint32_t number) {
  while (!channel::has_come(found, number)) {
    channel::between_looks();
    found = channel::load_relaxed(packets);
  }
  return channel::bytes_in(found);
}

// The first thread looks once. Both words are on their way together. Relaxed: what the process had seen done on the device before it gave
// the order lies where all of the device's loads that are not kept by a multiprocessor find it, and bytes_now() is such a load; it is
// begun when the order is there.
class Watch {
 public:
  IST_KERNEL_CODE explicit Watch(const Work& work) : work_(work), begun_(channel::nanoseconds()), last_(begun_) {}
  IST_KERNEL_CODE Taken look(const Order& order, std::uint32_t number) {
    const std::uint64_t now = channel::nanoseconds();
    if (now - begun_ > work_.most) return {kLeaves, 0, 0, 0};
    // In this order, or the last load would not begin before the others are over.
    const Quad where = channel::load_relaxed(&order.where);
    const Quad place = channel::load_relaxed(&order.place);
    const Quad letter = channel::load_relaxed(&order.letter);
    const std::uint64_t head = channel::load_word(&order.head);
    if (head >> 32 != number) return {now - last_ > work_.idle ? kLeaves : kNone, 0, 0, 0};
    last_ = now;
    Taken taken{head, await(&order.where, where, number), 0, 0};
    if ((head & (kPosts | kTakes)) != 0) {
      taken.place = await(&order.place, place, number);
      taken.letter = static_cast<std::uint32_t>(await(&order.letter, letter, number));
    }
    return taken;
  }

 private:
  const Work& work_;
  std::uint64_t begun_;
  std::uint64_t last_;  // when an order was found
};

// The packets are their own flags.
template <class Crew>
IST_KERNEL_CODE void bring(const Crew& crew, Answer& answer, std::uint32_t number, const std::byte* from,
                           std::uint32_t bytes) {
  const std::uint32_t count = (bytes + 7) / 8;
  for (std::uint32_t i = crew.thread; i < count; i += kTogether * crew.threads) {
    std::uint64_t words[kTogether] = {};
    for (unsigned k = 0; k < kTogether; ++k)
      if (const std::uint32_t at = i + k * crew.threads; at < count) words[k] = bytes_now(from + at * 8U, bytes - at * 8U);
    for (unsigned k = 0; k < kTogether; ++k)
      if (const std::uint32_t at = i + k * crew.threads; at < count)
        channel::store_taken(&answer.packets[at], channel::packed(number, words[k]));
  }
}

// `first`: what was seen at the thread's first packets when the order was looked for. The barrier orders the other threads' stores before
// the first one's fence, which is cumulative: then they are done for the device, in the cache that its kernels, its copies and other
// devices alike go through. So nobody who is told by the word, and reads after that, comes too early. A fence of the whole system would
// also wait for the bus, which takes a microsecond more and which nobody needs: no byte went there.
template <class Crew>
IST_KERNEL_CODE void put(const Crew& crew, const Order& order, Answer& answer, std::uint32_t number, Quad first,
                         std::byte* to, std::uint32_t bytes) {
  const std::uint32_t count = (bytes + 7) / 8;
  for (std::uint32_t i = crew.thread; i < count; i += kTogether * crew.threads) {
    Quad found[kTogether] = {};
    for (unsigned k = 0; k < kTogether; ++k)
      if (const std::uint32_t at = i + k * crew.threads; at < count)
        found[k] = at < kLookers && at == crew.thread ? first : channel::load_relaxed(&order.packets[at]);
    for (unsigned k = 0; k < kTogether; ++k)
      if (const std::uint32_t at = i + k * crew.threads; at < count)
        channel::put_bytes(to + at * 8U, await(&order.packets[at], found[k], number), bytes - at * 8U);
  }
  crew.barrier();
  if (crew.thread == 0) channel::store_word(&answer.done, static_cast<std::uint64_t>(number));
}

// Into a place of another device's mailbox. That place is free (guard PLACE_FREE of models/mailbox.pml): its worker's loads had returned
// before its process heard that they were over, and told this one's, which gave the order. The packets need no order among each other,
// nor with the answer, which only says that the bytes have been read here: each was loaded when its store began.
template <class Crew>
IST_KERNEL_CODE void post(const Crew& crew, Place& place, Answer& answer, std::uint32_t number, std::uint32_t letter,
                          const std::byte* from, std::uint32_t bytes) {
  const std::uint32_t count = (bytes + 7) / 8;
  for (std::uint32_t i = crew.thread; i < count; i += crew.threads)
    channel::store_taken(&place.packets[i], channel::packed(letter, bytes_now(from + i * 8U, bytes - i * 8U)));
  crew.barrier();
  if (crew.thread == 0) channel::store_taken(&answer.done, static_cast<std::uint64_t>(number));
}

// What is in this device's mailbox, or is on its way there, since the other worker has its order (guard ORDER_FIRST); if it stays away
// longer than others should wait for this worker, that is said, and the order comes again. As put() otherwise: whoever is told by the word
// finds the bytes, and the place's packets are not looked at any more (guard DONE_LAST).
template <class Crew>
IST_KERNEL_CODE void take(const Crew& crew, Place& place, Answer& answer, std::uint32_t number, const Taken& taken,
                          std::byte* to, std::uint64_t wait) {
  const auto what = static_cast<std::uint32_t>(taken.head);
  const std::uint32_t bytes = what & kBytes;
  const std::uint32_t count = (bytes + 7) / 8;
  const std::uint64_t begun = channel::nanoseconds();
  bool missing = false;
  for (std::uint32_t i = crew.thread; i < count && !missing; i += crew.threads) {
    Quad found = channel::load_mail(&place.packets[i]);
    while (!channel::has_come(found, taken.letter) && !missing) {
      channel::between_looks();
      found = channel::load_mail(&place.packets[i]);
      missing = !channel::has_come(found, taken.letter) && channel::nanoseconds() - begun > wait;
    }
    if (!missing) channel::put_bytes(to + i * 8U, channel::bytes_in(found), bytes - i * 8U);
  }
  missing = crew.any(missing);
  // Before the place is told to be free: guard CLEAN.
  if (!missing && (what & kCleans) != 0)
    for (std::uint32_t i = crew.thread; i < kMost / 8; i += crew.threads)
      channel::store_relaxed(&place.packets[i], Quad{0, 0});
  crew.barrier();
  if (crew.thread == 0) channel::store_word(&answer.done, number | (missing ? kNotThere : 0));
}

template <class Crew>
IST_KERNEL_CODE void run(const Crew& crew, const Work& work) {
  Board& board = *work.board;
  std::uint64_t next = work.next;
  Watch watch(work);
  if (crew.thread == 0) channel::store_relaxed(&board.begun, work.launch);
  for (;;) {
    const Order& order = board.orders[next % kSlots];
    const std::uint32_t number = channel::number_of(next);
    // Looked for together with the order, since they mostly come together.
    Quad first{};
    if (crew.thread < kLookers) first = channel::load_relaxed(&order.packets[crew.thread]);
    Taken taken{kNone, 0, 0, 0};
    if (crew.thread == 0) taken = watch.look(order, number);
    taken = crew.first(taken);
    if (taken.head == kLeaves) break;
    if (taken.head == kNone) {
      channel::between_looks();
      continue;
    }
    const auto what = static_cast<std::uint32_t>(taken.head);
    const std::uint32_t bytes = what & kBytes;
    if (bytes == 0) {  // dismissed
      ++next;
      break;
    }
    std::byte* const place = crew.reach(taken.address, bytes);
    Answer& answer = board.answers[next % kSlots];
    if ((what & (kPosts | kTakes)) != 0) {
      auto& mail = *reinterpret_cast<Place*>(crew.reach(taken.place, sizeof(Place)));
      if ((what & kPosts) != 0)
        post(crew, mail, answer, number, taken.letter, place, bytes);
      else
        take(crew, mail, answer, number, taken, place, work.wait);
    } else if ((what & kIntoDevice) != 0)
      put(crew, order, answer, number, first, place, bytes);
    else
      bring(crew, answer, number, place, bytes);
    ++next;
  }
  if (crew.thread != 0) return;
  // Guard LOOKS_NO_MORE, NEXT_FIRST: an order that comes now is the next launch's.
  channel::store_relaxed(&board.next, next);
  channel::store_release(&board.left, work.launch);
}

}  // namespace ist::worker
