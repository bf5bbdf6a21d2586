#include "face/shmem/slots.hpp"

namespace ist::shmem {
namespace {

constexpr std::uint64_t kShared = 1;  // place 0, which nobody takes
std::uint64_t bit_of(int place) { return std::uint64_t{1} << static_cast<unsigned>(place); }

}  // namespace

int SlotBoard::take_for_team(int members) {
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t free = ~(taken | kShared);
    if (free == 0) return 0;
    const int place = __builtin_ctzll(free);
    if (!taken_.compare_exchange_weak(taken, taken | bit_of(place), std::memory_order_acq_rel)) continue;
    members_[static_cast<std::size_t>(place)].store(members, std::memory_order_relaxed);
    return place;
  }
}

void SlotBoard::give_up(int place) {
  if (place != 0 && members_[static_cast<std::size_t>(place)].fetch_sub(1, std::memory_order_acq_rel) == 1)
    taken_.fetch_and(~bit_of(place), std::memory_order_release);
}

// A key stays where it was put first, so that whoever looks for it from the same place on finds it before an empty one.
int SlotBoard::of_set(std::uint64_t key) {
  constexpr auto kOwn = static_cast<std::uint64_t>(kSets - 1);
  const std::uint64_t first = key * 0x9e3779b97f4a7c15U >> 32U;
  for (std::uint64_t i = 0; i < kOwn; ++i) {
    const std::uint64_t place = 1 + (first + i) % kOwn;
    std::uint64_t found = keys_[place].load(std::memory_order_relaxed);
    if (found == 0 && keys_[place].compare_exchange_strong(found, key, std::memory_order_relaxed)) found = key;
    if (found == key) return static_cast<int>(place);
  }
  return 0;
}

}  // namespace ist::shmem
