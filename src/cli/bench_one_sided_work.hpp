// What kernels do for `isthmus bench one-sided`: calls of isthmus/device.cuh, and beside each of them bare loops that do the same.
//
// Who calls this : bench_one_sided_kernels.cu on devices, the fake driver on processors; the same kernel at both PEs at once.
// Threads        : all threads of a kernel, `crew` saying which this is, as isthmus/device/crew.cuh has it.
// Ownership      : none.
// Errors         : a wait that lasts longer than the work allows ends the kernel, and its block's end says so.
//
// Numbers of trips go on from `before`: nothing is reset between two launches.
#pragma once

#include "isthmus/device.cuh"
#include "isthmus/device/bulk.cuh"

namespace ist::cli::one_sided {

using device::Status;

// In the order of OneSidedKernel (bench_one_sided_kernels.hpp); the kernels are called isthmus_one_sided_ and this.
inline constexpr const char* kKernelNames[] = {"empty",         "words",           "words_bare",
                                               "put_by_thread", "put_by_warp",     "put_by_block",
                                               "flag_bare",     "packets_by_warp", "packets_by_block",
                                               "packets_bare",  "meet_by_warp",    "meet_by_block",
                                               "meet_by_grid",  "meet_bare",       "put",
                                               "get",           "put_bulk",        "get_bulk",
                                               "store",         "store_bare",      "fetch_add",
                                               "add",           "load_bare",       "small_by_thread",
                                               "small_by_warp", "small_by_block",  "small_bare"};

inline constexpr unsigned kMostBlocks = 1024;
inline constexpr std::uint64_t kMostThreads = 8192;  // that trade words
inline constexpr std::uint64_t kWordPlaces = 64;     // words of one thread, of which it stores one after the other
// Packets of a message, and of the next one, which the other PE may send while the last ones are looked at.
inline constexpr std::uint64_t kMostInPackets = 16384;
inline constexpr std::uint64_t kSlotUnits = kMostInPackets / 8;
inline constexpr std::uint64_t kBarePacketBytes = 2 * kSlotUnits * sizeof(device::Pair);

// What each block leaves behind, in host memory. Times are of the device's clock.
struct BlockEnd {
  std::uint64_t begun;  // after the first trips, of which no time is taken
  std::uint64_t ended;
  std::uint64_t status;
  std::uint64_t over;  // 1, last
};

struct Work {
  ist_team_view view;
  BlockEnd* ends;
  unsigned char* source;  // what is sent; the own copy, as are
  unsigned char* dest;    // where it goes, and
  std::uint64_t* words;   // zeroed when they were made
  std::uint64_t bytes;
  std::uint64_t count;   // words that are traded or stored
  std::uint64_t places;  // of so many bytes each, `bytes` apart, that are copied one after the other
  std::uint64_t trips;
  std::uint64_t first_ones;
  std::uint64_t before;  // the last number that was used of these words or packets
  std::uint64_t most;    // nanoseconds that a wait may last
};

#if !defined(__CUDACC__)
// A processor that plays a block.
struct Lone {
  unsigned thread = 0, threads = 1, block = 0, blocks = 1;
  void sync() const {}
  bool any(bool mine) const { return mine; }
};
#endif

// A bare wait: so many looks, which last some seconds, and nothing is asked between them.
template <class Look>
IST_DEVICE_CODE Status look_until(const Look& look) {
  unsigned left = 1U << 24;
  bool come = false;
  do {
    come = look();
    --left;
    if (!come) device::between_looks();
  } while (!come & (left != 0));
  return come ? Status::ok : Status::late;
}

// By the first thread of each block, once it is over for all of them.
template <class Crew>
IST_DEVICE_CODE void tell_end(const Crew& crew, const Work& work, std::uint64_t begun, Status status) {
  status = device::agreed(crew, status);
  const std::uint64_t ended = device::nanoseconds();
  if (crew.thread != 0) return;
  BlockEnd& end = work.ends[crew.block];
  device::store_relaxed(&end.begun, begun);
  device::store_relaxed(&end.ended, ended);
  device::store_relaxed(&end.status, static_cast<std::uint64_t>(status));
  device::store_release(&end.over, std::uint64_t{1});
}

// Every trip, `step` being given its number.
template <class Crew, class Step>
IST_DEVICE_CODE void run_trips(const Crew& crew, const Work& work, const Step& step) {
  std::uint64_t begun = device::nanoseconds();
  Status status = Status::ok;
  for (std::uint64_t n = 1; n <= work.trips && status == Status::ok; ++n) {
    if (n == work.first_ones + 1) begun = device::nanoseconds();
    status = step(work.before + n);
  }
  tell_end(crew, work, begun, status);
}

// PE 0 sends, and PE 1 answers.
template <class Crew, class Send, class Receive>
IST_DEVICE_CODE void there_and_back(const Crew& crew, const Work& work, const Send& send, const Receive& receive) {
  const bool leads = work.view.pe == 0;
  run_trips(crew, work, [&](std::uint64_t n) {
    const Status first = leads ? send(n) : receive(n);
    if (first != Status::ok) return first;
    return leads ? receive(n) : send(n);
  });
}

// By PE 0 alone; the other one's kernel is over at once. What was stored is there when its time ends. Between two steps, which may be one store
// each, nobody looks at a clock or a status.
template <class Crew, class Step>
IST_DEVICE_CODE void by_the_first(const Crew& crew, const Work& work, const Step& step) {
  const std::uint64_t last = work.before + (work.view.pe == 0 ? work.trips : 0), first = work.before + work.first_ones;
  std::uint64_t n = work.before, begun = 0;
  IST_DEVICE_LOOP_ONCE
  for (int part = 0; part < 2; ++part) {
    begun = device::nanoseconds();
    for (const std::uint64_t until = part == 1 || last < first ? last : first; n < until;) step(++n);
  }
  device::quiet();
  tell_end(crew, work, begun, Status::ok);
}

template <class Crew>
IST_DEVICE_CODE std::uint64_t number_of_thread(const Crew& crew) {
  return std::uint64_t{crew.block} * crew.threads + crew.thread;
}
template <class Crew>
IST_DEVICE_CODE std::uint64_t all_threads(const Crew& crew) {
  return std::uint64_t{crew.blocks} * crew.threads;
}
// Of work.count words the caller's: a thread of a device has one; a processor has all of a block's.
template <class Crew, class Act>
IST_DEVICE_CODE void each_own(const Crew& crew, const Work& work, const Act& act) {
#if defined(__CUDA_ARCH__)
  act(number_of_thread(crew));
#else
  for (std::uint64_t i = number_of_thread(crew); i < work.count; i += all_threads(crew)) act(i);
#endif
}

// ---- ping-pong of words: each thread owns one, on a device; a processor has all of a block's ----

template <class Crew>
IST_DEVICE_CODE void trade_words(const Crew& crew, const Work& work) {
  const int other = 1 - work.view.pe;
  const std::uint64_t from = number_of_thread(crew), step = all_threads(crew);
  there_and_back(
      crew, work,
      [&](std::uint64_t n) {
        for (std::uint64_t i = from; i < work.count; i += step) device::atomic_set(work.view, &work.words[i], n, other);
        return Status::ok;
      },
      [&](std::uint64_t n) {
        Status status = Status::ok;
        for (std::uint64_t i = from; i < work.count && status == Status::ok; i += step)
          status = device::wait_until(work.view, &work.words[i], device::Compare::greater_equal, n, work.most);
        return status;
      });
}
template <class Crew>
IST_DEVICE_CODE void trade_words_bare(const Crew& crew, const Work& work) {
  std::uint64_t* const theirs = device::peer_ptr(work.view, work.words, 1 - work.view.pe);
  const std::uint64_t from = number_of_thread(crew), step = all_threads(crew);
  there_and_back(
      crew, work,
      [&](std::uint64_t n) {
        for (std::uint64_t i = from; i < work.count; i += step) device::store_relaxed(&theirs[i], n);
        return Status::ok;
      },
      [&](std::uint64_t n) {
        Status status = Status::ok;
        for (std::uint64_t i = from; i < work.count && status == Status::ok; i += step)
          status = look_until([&] { return device::load_relaxed(&work.words[i]) >= n; });
        return status;
      });
}

// ---- ping-pong of messages ----

template <class Crew>
IST_DEVICE_CODE void trade_puts(const Crew& crew, const Work& work) {
  const int other = 1 - work.view.pe;
  there_and_back(
      crew, work,
      [&](std::uint64_t n) {
        device::put_signal(crew, work.view, work.dest, work.source, work.bytes, work.words, n, device::Signal::set, other);
        return Status::ok;
      },
      [&](std::uint64_t n) {
        Status status = Status::ok;
        if (crew.thread == 0)
          status = device::wait_until(work.view, work.words, device::Compare::greater_equal, n, work.most);
        return device::agreed(crew, status);
      });
}
// Store, fence, flag.
template <class Crew>
IST_DEVICE_CODE void trade_flags_bare(const Crew& crew, const Work& work) {
  const int other = 1 - work.view.pe;
  std::uint64_t* const flag = device::peer_ptr(work.view, work.words, other);
  unsigned char* const to = device::peer_ptr(work.view, work.dest, other);
  there_and_back(
      crew, work,
      [&](std::uint64_t n) {
        if (work.bytes % sizeof(device::Pair) == 0)
          device::copy_words<device::Pair>(to, work.source, work.bytes / sizeof(device::Pair), crew.thread, crew.threads);
        else
          device::copy_words<std::uint64_t>(to, work.source, work.bytes / 8, crew.thread, crew.threads);
        crew.sync();
        if (crew.thread == 0) {
          device::fence_system();
          device::store_relaxed(flag, n);
        }
        return Status::ok;
      },
      [&](std::uint64_t n) {
        Status status = Status::ok;
        if (crew.thread == 0) status = look_until([&] { return device::load_acquire(work.words) >= n; });
        return crew.any(status != Status::ok) ? Status::late : Status::ok;
      });
}

template <class Crew>
IST_DEVICE_CODE void trade_packets(const Crew& crew, const Work& work) {
  device::Channel<Crew> channel(crew, work.view, 1 - work.view.pe, 0);
  there_and_back(
      crew, work,
      [&](std::uint64_t n) { return channel.send(work.source, work.bytes, static_cast<std::uint32_t>(n), work.most); },
      [&](std::uint64_t n) { return channel.receive(work.dest, work.bytes, static_cast<std::uint32_t>(n), work.most); });
}
// Packets in pairs, loaded from the source and stored to the destination, and nothing else; their slots are behind the words.
template <class Crew>
IST_DEVICE_CODE void trade_packets_bare(const Crew& crew, const Work& work) {
  auto* const mine = reinterpret_cast<device::Pair*>(work.words);
  device::Pair* const theirs = device::peer_ptr(work.view, mine, 1 - work.view.pe);
  const auto* const from = reinterpret_cast<const std::uint64_t*>(work.source);
  auto* const to = reinterpret_cast<std::uint64_t*>(work.dest);
  there_and_back(
      crew, work,
      [&](std::uint64_t n) {
        device::Pair* const slot = theirs + n % 2 * kSlotUnits;
        for (std::uint64_t i = crew.thread; i < work.bytes / 8; i += crew.threads)
          device::store_relaxed(&slot[i], device::packed(static_cast<std::uint32_t>(n), from[i]));
        crew.sync();
        return Status::ok;
      },
      [&](std::uint64_t n) {
        const device::Pair* const slot = mine + n % 2 * kSlotUnits;
        Status status = Status::ok;
        for (std::uint64_t i = crew.thread; i < work.bytes / 8 && status == Status::ok; i += crew.threads) {
          device::Pair found{};
          status = look_until([&] {
            found = device::load_relaxed(&slot[i]);
            return device::has_come(found, static_cast<std::uint32_t>(n));
          });
          to[i] = device::bytes_in(found);
        }
        return crew.any(status != Status::ok) ? Status::late : Status::ok;
      });
}

// ---- barriers ----

template <class Crew>
IST_DEVICE_CODE void meet(const Crew& crew, const Work& work) {
  device::Meeting<Crew> meeting(crew, work.view);
  run_trips(crew, work, [&](std::uint64_t) { return meeting.meet(work.most); });
}
template <class Crew>
IST_DEVICE_CODE void meet_bare(const Crew& crew, const Work& work) {
  std::uint64_t* const flag = device::peer_ptr(work.view, work.words, 1 - work.view.pe);
  run_trips(crew, work, [&](std::uint64_t n) {
    Status status = Status::ok;
    crew.sync();
    if (crew.thread == 0) {
      device::store_release(flag, n);
      status = look_until([&] { return device::load_acquire(work.words) >= n; });
    }
    return crew.any(status != Status::ok) ? Status::late : Status::ok;
  });
}

// ---- by PE 0 alone ----

template <class Crew>
IST_DEVICE_CODE void put_all(const Crew& crew, const Work& work) {
  by_the_first(crew, work, [&](std::uint64_t n) {
    const std::uint64_t at = n % work.places * work.bytes;
    device::put(crew, work.view, work.dest + at, work.source + at, work.bytes, 1);
  });
}
template <class Crew>
IST_DEVICE_CODE void get_all(const Crew& crew, const Work& work) {
  by_the_first(crew, work, [&](std::uint64_t n) {
    const std::uint64_t at = n % work.places * work.bytes;
    device::get(crew, work.view, work.dest + at, work.source + at, work.bytes, 1);
  });
}

// One thread of each block, by the copy unit; blocks have parts in a row.
template <class Crew>
IST_DEVICE_CODE void copy_in_bulk(const Crew& crew, const Work& work, bool puts) {
#if defined(__CUDA_ARCH__)
  __shared__ device::BulkRoom<> room;
#else
  device::BulkRoom<> room;
#endif
  device::Bulk copies(room);
  constexpr std::uint64_t kUnit = 128;
  const std::uint64_t part = (work.bytes / crew.blocks / kUnit + 1) * kUnit;
  const std::uint64_t from = part * crew.block < work.bytes ? part * crew.block : work.bytes;
  const std::uint64_t size = from + part < work.bytes ? part : work.bytes - from;
  by_the_first(crew, work, [&](std::uint64_t n) {
    const std::uint64_t at = n % work.places * work.bytes + from;
    if (puts)
      copies.put(work.view, work.dest + at, work.source + at, size, 1);
    else
      copies.get(work.view, work.dest + at, work.source + at, size, 1);
  });
}
template <class Crew>
IST_DEVICE_CODE void put_in_bulk(const Crew& crew, const Work& work) {
  copy_in_bulk(crew, work, true);
}
template <class Crew>
IST_DEVICE_CODE void get_in_bulk(const Crew& crew, const Work& work) {
  copy_in_bulk(crew, work, false);
}

// Short ones, each to the next of kWordPlaces; and bare, words of eight bytes whose addresses were worked out before.
template <class Crew>
IST_DEVICE_CODE void put_small(const Crew& crew, const Work& work) {
  by_the_first(crew, work, [&](std::uint64_t n) {
    const std::uint64_t at = n % kWordPlaces * work.bytes;
    device::put(crew, work.view, work.dest + at, work.source + at, work.bytes, 1);
  });
}
template <class Crew>
IST_DEVICE_CODE void put_small_bare(const Crew& crew, const Work& work) {
  auto* const theirs = reinterpret_cast<std::uint64_t*>(device::peer_ptr(work.view, work.dest, 1));
  const auto* const from = reinterpret_cast<const std::uint64_t*>(work.source);
  const std::uint64_t words = work.bytes / 8;
  by_the_first(crew, work, [&](std::uint64_t n) {
    const std::uint64_t at = n % kWordPlaces * words;
    for (std::uint64_t i = crew.thread; i < words; i += crew.threads) device::store_relaxed(&theirs[at + i], from[at + i]);
  });
}

// A word of eight bytes after the other, by every thread into its own places.
template <class Crew>
IST_DEVICE_CODE void store_words(const Crew& crew, const Work& work) {
  by_the_first(crew, work, [&](std::uint64_t n) {
    each_own(crew, work,
             [&](std::uint64_t i) { device::p(work.view, &work.words[n % kWordPlaces * work.count + i], n, 1); });
  });
}
template <class Crew>
IST_DEVICE_CODE void store_words_bare(const Crew& crew, const Work& work) {
  std::uint64_t* const theirs = device::peer_ptr(work.view, work.words, 1);
  by_the_first(crew, work, [&](std::uint64_t n) {
    each_own(crew, work, [&](std::uint64_t i) { device::store_relaxed(&theirs[n % kWordPlaces * work.count + i], n); });
  });
}

// Each adds 1 to PE 1's word, and waits for what it found before it adds again.
template <class Crew>
IST_DEVICE_CODE void fetch_and_add(const Crew& crew, const Work& work) {
  std::uint64_t found = 0;
  by_the_first(crew, work, [&](std::uint64_t) {
    each_own(crew, work,
             [&](std::uint64_t) { found = device::atomic_fetch_add(work.view, work.words, 1 + (found >> 63), 1); });
  });
}
template <class Crew>
IST_DEVICE_CODE void only_add(const Crew& crew, const Work& work) {
  by_the_first(crew, work, [&](std::uint64_t) {
    each_own(crew, work, [&](std::uint64_t) { device::atomic_add(work.view, work.words, std::uint64_t{1}, 1); });
  });
}
// Loads of PE 1's word, each of which waits for the one before it: a way there and one back.
template <class Crew>
IST_DEVICE_CODE void load_bare(const Crew& crew, const Work& work) {
  const std::uint64_t* const theirs = device::peer_ptr(work.view, work.words, 1);
  std::uint64_t found = 0;
  by_the_first(crew, work, [&](std::uint64_t) {
    each_own(crew, work, [&](std::uint64_t) { found = device::load_relaxed(theirs + (found >> 63)); });
  });
}

}  // namespace ist::cli::one_sided
