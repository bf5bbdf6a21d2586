#include "cli/bench_bare_windows.hpp"

#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cli/bench_limits.hpp"
#include "cli/bench_timing.hpp"
#include "memory/host/handing_copy.hpp"

namespace ist::cli {
namespace {

using Steady = std::chrono::steady_clock;

struct alignas(128) Word {
  std::atomic<std::uint64_t> value{0};
};

void wait_for(const Word& word, std::uint64_t least) {
  while (word.value.load(std::memory_order_acquire) < least) {
  }
}

// One way to move a window: what the sender does for each piece of it, and what the receiver does.
struct Way {
  std::size_t piece;    // bytes
  std::uint64_t ahead;  // pieces that the sender may be ahead of the receiver; 0: as many as it likes
  std::function<void(std::uint64_t piece, std::size_t place)> put, take;
};

// Both sides' words.
struct Turns {
  Word put, taken, answered;
  std::atomic<bool> over{false};
};

// The receiver's windows, until it is told that they are over.
void receive_windows(Turns& turns, const Way& way, std::size_t bytes, std::uint64_t pieces) {
  const std::uint64_t each = (bytes + way.piece - 1) / way.piece;
  for (std::uint64_t window = 1;; ++window) {
    for (std::uint64_t n = 0; n < pieces; ++n) {
      const std::uint64_t piece = (window - 1) * pieces + n;
      while (turns.put.value.load(std::memory_order_acquire) <= piece)
        if (turns.over.load(std::memory_order_relaxed)) return;
      way.take(piece, n % each * way.piece);
      if (way.ahead != 0) turns.taken.value.store(piece + 1, std::memory_order_release);
    }
    turns.answered.value.store(window, std::memory_order_release);
  }
}

void send_window(Turns& turns, const Way& way, std::size_t bytes, std::uint64_t pieces, std::uint64_t window) {
  const std::uint64_t each = (bytes + way.piece - 1) / way.piece;
  for (std::uint64_t n = 0; n < pieces; ++n) {
    const std::uint64_t piece = (window - 1) * pieces + n;
    if (way.ahead != 0 && piece >= way.ahead) wait_for(turns.taken, piece - way.ahead + 1);
    way.put(piece, n % each * way.piece);
    turns.put.value.store(piece + 1, std::memory_order_release);
  }
  wait_for(turns.answered, window);
}

// GB/s of that way; 0: the other processor is not to be had.
double gbs_of(const Way& way, std::size_t bytes, int other_processor, double seconds) {
  constexpr std::size_t kFewest = 3;
  const auto messages = static_cast<std::uint64_t>(window_of(bytes));
  const std::uint64_t pieces = messages * ((bytes + way.piece - 1) / way.piece);
  Turns turns;
  std::vector<double> times;
  const auto send_windows = [&] {
    send_window(turns, way, bytes, pieces, 1);  // warm
    const auto begin = Steady::now();
    while (times.size() < kFewest || std::chrono::duration<double>(Steady::now() - begin).count() < seconds) {
      const auto start = Steady::now();
      send_window(turns, way, bytes, pieces, times.size() + 2);
      times.push_back(std::chrono::duration<double>(Steady::now() - start).count());
    }
    turns.over.store(true, std::memory_order_relaxed);
  };
  if (!beside_partner(
          other_processor, [&] { receive_windows(turns, way, bytes, pieces); }, send_windows))
    return 0;
  return static_cast<double>(messages * bytes) / median(times) / 1e9;
}

}  // namespace

BareWindows measure_bare_windows(std::size_t longest, int other_processor, bool briefly) {
  const std::size_t bytes = std::min<std::size_t>(longest, 4 << 20);
  const double seconds = briefly ? 0.001 : 0.008;
  BareWindows found;
  const int mine = sched_getcpu();
  if (bytes == 0 || mine < 0 || other_processor < 0 || mine == other_processor) return found;
  const auto from = take_pages(bytes);
  const auto to = take_pages(bytes);
  constexpr std::size_t kPiece = 64 << 10;
  constexpr std::size_t kMostShared = 1 << 20;
  const auto slots = take_pages(kMostShared);
  if (!from || !to || !slots) return found;
  // As the library copies, either way: memcpy takes three times as long for what comes from another processor where it is the wrong instruction for that. Through a
  // pointer that may change at any time, no copy is left out or done at once with the one before.
  void (*volatile copy)(std::byte*, const std::byte*, std::size_t) = copy_across;
  const auto size_at = [bytes](std::size_t piece, std::size_t place) { return std::min(piece, bytes - place); };
  const auto try_two_copies = [&](std::size_t piece, std::size_t room) {
    const std::uint64_t count = std::clamp<std::uint64_t>(room / piece, 2, 64);
    const auto slot = [&, piece, count](std::uint64_t number) { return slots.get() + number % count * piece; };
    const Way way{piece, count,
                  [&](std::uint64_t n, std::size_t place) { copy(slot(n), from.get() + place, size_at(piece, place)); },
                  [&](std::uint64_t n, std::size_t place) { copy(to.get() + place, slot(n), size_at(piece, place)); }};
    found.two_copies_gbs = std::max(found.two_copies_gbs, gbs_of(way, bytes, other_processor, seconds));
  };
  for (const std::size_t most : {kPiece / 8, kPiece}) {
    if (most == kPiece && bytes <= kPiece / 8) continue;  // as before
    for (const std::size_t room : {kPiece, kMostShared / 4, kMostShared})
      for (const auto by : {copy_across, copy_by_string}) {
        copy = by;
        try_two_copies(std::min(most, bytes), room);
      }
  }
  copy = copy_across;
  const auto nothing = [](std::uint64_t, std::size_t) {};
  bool fails = false;
  const Way read{bytes, 0, nothing, [&](std::uint64_t, std::size_t) {
                   const iovec here{to.get(), bytes};
                   const iovec there{from.get(), bytes};
                   const ssize_t moved = ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0);
                   fails = fails || moved != static_cast<ssize_t>(bytes);
                 }};
  found.read_gbs = gbs_of(read, bytes, other_processor, seconds);
  if (fails) found.read_gbs = 0;
  found.one_copy_gbs = gbs_of({bytes, 0, nothing, [&](std::uint64_t, std::size_t) { copy(to.get(), from.get(), bytes); }},
                              bytes, other_processor, seconds);
  return found;
}

}  // namespace ist::cli
