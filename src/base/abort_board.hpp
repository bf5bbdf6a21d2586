// Which ranks are gone: written by the world's watcher thread, looked at by every wait.
//
// Who calls this : boot/watcher writes; request/progress and paths read; kernels later read the same words.
// Threads        : one writer, any readers.
// Ownership      : the world owns it; it outlives the watcher.
// Errors         : none.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace ist {

class AbortBoard {
 public:
  enum class Fate : std::uint32_t { present = 0, left = 1, dead = 2 };

  explicit AbortBoard(int ranks) : fates_(static_cast<std::size_t>(ranks)) {}

  // A rank that was seen leaving stays `left`; death never turns into anything else.
  //
  // Orders: a wait asks changes() first and the fates after it. The release of changes_, the last write here, pairs with the
  // acquire in changes(): whoever sees the new count sees the fate and the first dead rank written before it. With a relaxed
  // count a wait could take the change for seen, find everybody present, and sleep on. Fates and first_dead_ are also asked
  // without the count, before a send or a receive is started: their own pairs make what the watcher had read of that peer,
  // such as its word that it leaves, visible to whoever acts on the mark; and who sees first_dead_ sees that rank's fate.
  // The load at the top is relaxed, because the watcher alone writes.
  void mark(Rank rank, Fate fate) {
    auto& word = fates_[static_cast<std::size_t>(rank.value)];
    auto seen = word.load(std::memory_order_relaxed);
    if (seen != static_cast<std::uint32_t>(Fate::present)) return;
    // Before the fate, which ends calls behind which a program looks at this word.
    if (fate == Fate::dead) dead_.store(1, std::memory_order_release);
    word.store(static_cast<std::uint32_t>(fate), std::memory_order_release);
    if (fate == Fate::dead) {
      int none = kNobody.value;
      first_dead_.compare_exchange_strong(none, rank.value, std::memory_order_release, std::memory_order_relaxed);
    }
    changes_.fetch_add(1, std::memory_order_release);
  }
  Fate fate(Rank rank) const {
    return static_cast<Fate>(fates_[static_cast<std::size_t>(rank.value)].load(std::memory_order_acquire));
  }
  // Grows with each mark: one load tells a wait whether anything happened.
  std::uint32_t changes() const { return changes_.load(std::memory_order_acquire); }
  // The first rank that died, or kNobody.
  Rank first_dead() const { return Rank{first_dead_.load(std::memory_order_acquire)}; }
  // For code outside of the library, that waits for memory of other ranks: other than 0 once a rank has died.
  const volatile std::uint32_t* abort_word() const { return reinterpret_cast<const volatile std::uint32_t*>(&dead_); }

 private:
  std::vector<std::atomic<std::uint32_t>> fates_;
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<int> first_dead_{kNobody.value};
  std::atomic<std::uint32_t> dead_{0};
  static_assert(sizeof dead_ == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
};

}  // namespace ist
