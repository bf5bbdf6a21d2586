#include "path/shm/pair_slots.hpp"

#include <chrono>

namespace ist {
namespace {

using Clock = std::chrono::steady_clock;

// A writer that shows nothing for so long is not going on: it takes 2 to 7 us for 128 and 256 KiB.
std::chrono::nanoseconds nothing_comes(std::size_t size) { return std::chrono::nanoseconds{4000 + size / 32}; }

// The writer is to be so far ahead of a reader that stays behind it, or at least half as far.
constexpr Bytes kFarBehind = mebibytes(2);

// Others want their messages, too.
constexpr std::chrono::microseconds kLongest{100};

// Of shorter messages a window of 64 is no longer than the distance.
constexpr std::size_t kLeastBehind = 65536;

std::uint64_t now() { return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()); }

}  // namespace

std::uint64_t PairSlotWriter::word_of(const std::byte* bytes, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  return word;
}

// All pieces but the last one, which may be shorter; how many bytes.
std::size_t PairSlotWriter::show_pieces(PairSlot& slot, const std::byte* payload, std::size_t size) {
  std::size_t shown = 0;
  for (; size - shown > kPieceShown; shown += kPieceShown) {
    handing_.copy(block_at(written_) + shown, payload + shown, kPieceShown);
    // Guard PIECE_LAST: as TURN_LAST, of the envelope and of these bytes.
    slot.turn.store(begun_at(position_, shown + kPieceShown), std::memory_order_release);
  }
  return shown;
}

void PairSlotReader::copy_long(std::byte* to, std::span<const std::byte> payload) {
  const bool much = payload.size() >= kLeastBehind;
  if (much && distance_.keeps(payload.size())) [[unlikely]]
    fall_behind(payload.size());
  if (taking_.copy(to, payload.data(), payload.size()) && much)
    distance_.copied(payload.size(), now);
  else
    distance_.interrupted();
}

// Relaxed: nothing of those messages is read on its word. A message that is begun is not there.
void PairSlotReader::fall_behind(std::size_t size) {
  const auto is_shown = [this](std::uint64_t ahead) {
    return is_turn(slots_[(position_ + ahead) & mask_].turn.load(std::memory_order_relaxed), position_ + ahead);
  };
  const std::uint64_t enough = std::max<std::uint64_t>(kFarBehind.value / 2 / size, 1);
  if (is_shown(enough)) return;
  const std::uint64_t wanted = std::min<std::uint64_t>(mask_, std::max<std::uint64_t>(kFarBehind.value / size, 2));
  const auto begun = Clock::now();
  auto last = begun;
  for (std::uint64_t there = 1; there < wanted && last - begun < kLongest;) {
    if (is_shown(there)) {
      ++there;
      last = Clock::now();
    } else if (Clock::now() - last > nothing_comes(size)) {
      distance_.shown_only(there);
      break;
    } else {
      pause_briefly();
    }
  }
  taking_.waited();
}

}  // namespace ist
