// Bare kernels, each of which does one thing that kernels are used for and nothing else: what that thing takes at least on a machine.
//
// Who calls this : bench_limit_kernels.cu on devices, the fake driver on processors.
// Threads        : all threads of a kernel, `crew` saying which this is, as channel_protocol.hpp has it.
// Ownership      : none.
// Errors         : a wait that lasts longer than the work allows, or whose word `stop` is set, ends the kernel, whose `end` then stays
//                  without `over`. Bytes that are not those which were sent are counted.
#pragma once

#include "memory/cuda/channel_protocol.hpp"

namespace ist::cli {

// What a kernel leaves behind, in host memory.
struct KernelEnd {
  std::uint64_t nanoseconds;  // of all trips but the first ones
  std::uint32_t wrong;        // packets with other bytes than were sent
  std::uint32_t unused;
  std::uint64_t over;  // 1, last
};

// What a kernel that waits is told.
struct TripWork {
  KernelEnd* end;
  std::uint64_t* tell;         // the word that this kernel writes: the trip's number
  const std::uint64_t* await;  // the word that it waits for: the same, of a command above the number of bytes
  channel::Quad* theirs;       // packets that it stores, and
  const channel::Quad* mine;   // those that it waits for
  const std::byte* from;       // bytes that it copies
  std::byte* to;
  std::uint64_t bytes;
  std::uint64_t trips;
  std::uint64_t first_ones;   // of which no time is taken
  std::uint64_t leads;        // 1: begins every trip, 0: answers
  const std::uint64_t* stop;  // not 0: leave
  std::uint64_t most;         // nanoseconds that all of it may last
};

// What a store kernel is told: `copies` of so many bytes, `stride` apart, over and over into the same `places`.
struct StoreWork {
  std::byte* to;
  const std::byte* from;
  std::uint64_t bytes;
  std::uint64_t stride;  // of whole vectors
  std::uint64_t places;
  std::uint64_t copies;
  std::uint64_t part;  // bytes of a copy that a block takes at once: whole vectors
};

// Looks in vain between two at the clock and at the word that is across the bus.
inline constexpr unsigned kLooksOfTrips = 1024;
inline constexpr std::uint64_t kNoCommand = ~std::uint64_t{0};

class TripPatience {
 public:
  IST_KERNEL_CODE explicit TripPatience(const TripWork& work)
      : stop_(work.stop), most_(work.most), begun_(channel::nanoseconds()) {}
  template <class Come>
  IST_KERNEL_CODE bool sees(const Come& come) const {
    for (unsigned looks = 1; !come(); ++looks) {
      channel::between_looks();
      if (looks % kLooksOfTrips != 0) continue;
      if (channel::load_relaxed(stop_) != 0 || channel::nanoseconds() - begun_ > most_) return false;
    }
    return true;
  }

 private:
  const std::uint64_t* stop_;
  std::uint64_t most_;
  std::uint64_t begun_;
};

// The first threads' clock; by all threads, after the last trip.
template <class Crew>
IST_KERNEL_CODE void end_trips(const Crew& crew, const TripWork& work, std::uint64_t begun, std::uint32_t wrong) {
  const std::uint64_t now = channel::nanoseconds();
  if (wrong != 0) channel::add(&work.end->wrong, wrong);
  crew.barrier();
  if (crew.thread != 0) return;
  channel::store_relaxed(&work.end->nanoseconds, now - begun);
  channel::store_release(&work.end->over, 1);
}

// A word there and one back, by one thread.
template <class Crew>
IST_KERNEL_CODE void trade_flags(const Crew& crew, const TripWork& work) {
  const TripPatience patience(work);
  std::uint64_t begun = channel::nanoseconds();
  for (std::uint64_t trip = 1; trip <= work.trips; ++trip) {
    if (work.leads != 0) channel::store_relaxed(work.tell, trip);
    if (!patience.sees([&] { return channel::load_relaxed(work.await) >= trip; })) return;
    if (work.leads == 0) channel::store_relaxed(work.tell, trip);
    if (trip == work.first_ones) begun = channel::nanoseconds();
  }
  end_trips(crew, work, begun, 0);
}

// Eight bytes a packet and its own flag with them, there and back.
template <class Crew>
IST_KERNEL_CODE void trade_packets(const Crew& crew, const TripWork& work) {
  const TripPatience patience(work);
  const std::uint64_t packets = (work.bytes + 7) / 8;
  std::uint64_t begun = channel::nanoseconds();
  std::uint32_t wrong = 0;
  for (std::uint64_t trip = 1; trip <= work.trips; ++trip) {
    const std::uint32_t number = channel::number_of(trip);
    const std::uint64_t word = trip * 0x9e3779b97f4a7c15U;
    for (unsigned half = 0; half < 2; ++half) {
      const bool sends = (half == 0) == (work.leads != 0);
      bool failed = false;
      for (std::uint64_t i = crew.thread; i < packets && !failed; i += crew.threads) {
        if (sends) {
          channel::store_relaxed(&work.theirs[i], channel::packed(number, word ^ i));
          continue;
        }
        channel::Quad found{};
        failed = !patience.sees([&] {
          found = channel::load_relaxed(&work.mine[i]);
          return channel::has_come(found, number);
        });
        if (!failed && channel::bytes_in(found) != (word ^ i)) ++wrong;
      }
      // All packets of the one way have come before one of the other way goes.
      if (crew.any(failed)) return;
    }
    if (trip == work.first_ones) begun = channel::nanoseconds();
  }
  end_trips(crew, work, begun, wrong);
}

// A barrier of two kernels by pushing: release the other's word, acquire the own one.
template <class Crew>
IST_KERNEL_CODE void meet_in_pairs(const Crew& crew, const TripWork& work) {
  const TripPatience patience(work);
  std::uint64_t begun = channel::nanoseconds();
  for (std::uint64_t trip = 1; trip <= work.trips; ++trip) {
    crew.barrier();
    bool failed = false;
    if (crew.thread == 0) {
      channel::store_release(work.tell, trip);
      failed = !patience.sees([&] { return channel::load_acquire(work.await) >= trip; });
    }
    if (crew.any(failed)) return;
    if (trip == work.first_ones) begun = channel::nanoseconds();
  }
  end_trips(crew, work, begun, 0);
}

// At most eight bytes of memory that somebody else may have written since this kernel began.
IST_KERNEL_CODE std::uint64_t few_bytes(const std::byte* from, std::uint64_t count) {
  if (count >= 8) return channel::load_relaxed(reinterpret_cast<const std::uint64_t*>(from));
  std::uint64_t value = 0;
  if (count >= 4) value = channel::load_relaxed(reinterpret_cast<const std::uint32_t*>(from));
  for (std::uint64_t i = count & 4U; i < count; ++i)
    value |= static_cast<std::uint64_t>(channel::load_relaxed(from + i)) << 8 * i;
  return value;
}

template <class Crew>
IST_KERNEL_CODE void copy_few(const Crew& crew, const TripWork& work, std::uint64_t bytes) {
  using channel::Quad;
  const std::uint64_t vectors = bytes / sizeof(Quad);
  for (std::uint64_t i = crew.thread; i < vectors; i += crew.threads)
    reinterpret_cast<Quad*>(work.to)[i] = channel::load_relaxed(&reinterpret_cast<const Quad*>(work.from)[i]);
  for (std::uint64_t i = vectors * sizeof(Quad) + crew.thread * 8U; i < bytes; i += crew.threads * 8U)
    channel::put_bytes(work.to + i, few_bytes(work.from + i, bytes - i), bytes - i);
}

// A kernel that is launched for one copy, and says by a word that it is over: the number in `trips`.
template <class Crew>
IST_KERNEL_CODE void copy_once(const Crew& crew, const TripWork& work) {
  copy_few(crew, work, work.bytes);
  crew.barrier();
  if (crew.thread == 0) channel::store_release(work.tell, work.trips);
}

// A resident kernel, one thread of it: the processor's word, and one back.
template <class Crew>
IST_KERNEL_CODE void answer_words(const Crew& crew, const TripWork& work) {
  const TripPatience patience(work);
  for (std::uint64_t trip = 1; trip <= work.trips; ++trip) {
    if (!patience.sees([&] { return channel::load_relaxed(work.await) >> 32 >= trip; })) return;
    channel::store_relaxed(work.tell, trip);
  }
  end_trips(crew, work, 0, 0);
}

// A resident kernel of one block that copies as many bytes as the processor's word says.
template <class Crew>
IST_KERNEL_CODE void copy_on_command(const Crew& crew, const TripWork& work) {
  const TripPatience patience(work);
  for (std::uint64_t trip = 1; trip <= work.trips; ++trip) {
    std::uint64_t command = kNoCommand;
    if (crew.thread == 0 && !patience.sees([&] {
          command = channel::load_word(work.await);
          return command >> 32 >= trip;
        }))
      command = kNoCommand;
    command = crew.first(command);
    if (command == kNoCommand) return;
    copy_few(crew, work, channel::least(static_cast<std::uint32_t>(command), work.bytes));
    crew.barrier();
    if (crew.thread == 0) channel::store_release(work.tell, trip);
  }
  end_trips(crew, work, 0, 0);
}

// A resident kernel of a warp that stores packets of its bytes when the processor says so: into the other device's memory, where the next
// one is, or to the processor itself.
template <class Crew>
IST_KERNEL_CODE void post_on_command(const Crew& crew, const TripWork& work) {
  const TripPatience patience(work);
  for (std::uint64_t trip = 1; trip <= work.trips; ++trip) {
    // Every thread looks for itself, at one word and so in one load.
    const bool failed = !patience.sees([&] { return channel::load_word(work.await) >> 32 >= trip; });
    if (crew.any(failed)) return;
    for (std::uint64_t i = crew.thread; i * 8 < work.bytes; i += crew.threads)
      channel::store_taken(&work.theirs[i],
                           channel::packed(channel::number_of(trip), few_bytes(work.from + i * 8, work.bytes - i * 8)));
  }
  end_trips(crew, work, 0, 0);
}

// And one that takes them, and tells the processor. Nothing comes before it has told.
template <class Crew>
IST_KERNEL_CODE void take_and_tell(const Crew& crew, const TripWork& work) {
  const TripPatience patience(work);
  for (std::uint64_t trip = 1; trip <= work.trips; ++trip) {
    bool failed = false;
    for (std::uint64_t i = crew.thread; i * 8 < work.bytes && !failed; i += crew.threads) {
      channel::Quad found{};
      failed = !patience.sees([&] {
        found = channel::load_mail(&work.mine[i]);
        return channel::has_come(found, channel::number_of(trip));
      });
      if (!failed) channel::put_bytes(work.to + i * 8, channel::bytes_in(found), work.bytes - i * 8);
    }
    if (crew.any(failed)) return;
    crew.barrier();
    if (crew.thread == 0) channel::store_word(work.tell, trip);
  }
  end_trips(crew, work, 0, 0);
}

// Four loads are on their way before the first store.
template <class Crew>
IST_KERNEL_CODE void store_part(const Crew& crew, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  using channel::Quad;
  auto* const target = reinterpret_cast<Quad*>(to);
  const auto* const source = reinterpret_cast<const Quad*>(from);
  const std::uint64_t vectors = bytes / sizeof(Quad);
  const std::uint64_t step = crew.threads;
  std::uint64_t i = crew.thread;
  for (; i + 3 * step < vectors; i += 4 * step) {
    const Quad a = source[i];
    const Quad b = source[i + step];
    const Quad c = source[i + 2 * step];
    const Quad d = source[i + 3 * step];
    target[i] = a;
    target[i + step] = b;
    target[i + 2 * step] = c;
    target[i + 3 * step] = d;
  }
  for (; i < vectors; i += step) target[i] = source[i];
  for (i = vectors * sizeof(Quad) + crew.thread; i < bytes; i += step) to[i] = from[i];
}

// By any number of blocks.
template <class Crew>
IST_KERNEL_CODE void store_copies(const Crew& crew, const StoreWork& work) {
  const std::uint64_t parts = (work.bytes + work.part - 1) / work.part;
  for (std::uint64_t n = crew.block; n < parts * work.copies; n += crew.blocks) {
    const std::uint64_t begin = n % parts * work.part;
    const std::uint64_t at = n / parts % work.places * work.stride + begin;
    store_part(crew, work.to + at, work.from + at, channel::least(work.part, work.bytes - begin));
  }
}

}  // namespace ist::cli
