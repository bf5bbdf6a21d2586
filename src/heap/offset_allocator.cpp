#include "heap/offset_allocator.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>

namespace ist {
namespace {

constexpr std::uint64_t rounded_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) & ~(to - 1); }
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62U;  // what is more would overflow when it is rounded

}  // namespace

OffsetAllocator::OffsetAllocator(Offset begin, Offset end) : end_(rounded_up(begin.value, kLine)) { grow(end); }

void OffsetAllocator::grow(Offset end, bool apart) {
  const std::uint64_t last = end.value / kLine * kLine;
  if (last <= end_) return;
  if (apart) seams_.insert(end_);
  add_free(end_, last - end_);
  free_bytes_ += Bytes{last - end_};
  end_ = last;
}

Result<Offset> OffsetAllocator::allocate(Bytes size, std::uint64_t alignment) {
  if (!std::has_single_bit(alignment) || alignment > kMostBytes)
    return Status{IST_ERR_ARGUMENT, "the alignment is " + std::to_string(alignment) + "; it must be a power of two"};
  const std::uint64_t to = std::max(alignment, kLine);
  const std::uint64_t length =
      size.value > kMostBytes ? kMostBytes : rounded_up(std::max<std::uint64_t>(size.value, 1), kLine);
  auto best = free_.end();
  for (auto each = free_.begin(); each != free_.end(); ++each) {
    const std::uint64_t lost = rounded_up(each->first, to) - each->first;
    if (lost > each->second || length > each->second - lost) continue;
    if (best == free_.end() || each->second < best->second) best = each;
  }
  if (best == free_.end())
    return Status{IST_ERR_MEMORY, std::to_string(size.value) + " bytes" +
                                      (to > kLine ? " at a multiple of " + std::to_string(to) : std::string{}) +
                                      " were asked for; of this heap " + std::to_string(free_bytes_.value) +
                                      " bytes are free, the largest block has " + std::to_string(largest().value) +
                                      "; free some, or let it grow (ist_heap_grow)"};
  const auto [begin, room] = *best;
  const std::uint64_t at = rounded_up(begin, to);
  free_.erase(best);
  if (at > begin) free_.emplace(begin, at - begin);
  if (begin + room > at + length) free_.emplace(at + length, begin + room - at - length);
  used_.emplace(at, length);
  free_bytes_ = free_bytes_ - Bytes{length};
  return Offset{at};
}

Result<Bytes> OffsetAllocator::release(Offset offset) {
  const auto found = used_.find(offset.value);
  if (found == used_.end())
    return Status{IST_ERR_ARGUMENT, "nothing is allocated at offset " + std::to_string(offset.value) +
                                        " of this heap; was it freed before, or is it the middle of something?"};
  const std::uint64_t length = found->second;
  used_.erase(found);
  add_free(offset.value, length);
  free_bytes_ += Bytes{length};
  return Bytes{length};
}

void OffsetAllocator::add_free(std::uint64_t begin, std::uint64_t length) {
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + length && seams_.count(next->first) == 0) {
    length += next->second;
    next = free_.erase(next);
  }
  const bool joins = next != free_.begin() && std::prev(next)->first + std::prev(next)->second == begin;
  if (joins && seams_.count(begin) == 0)
    std::prev(next)->second += length;
  else
    free_.emplace(begin, length);
}

Bytes OffsetAllocator::largest() const {
  std::uint64_t most = 0;
  for (const auto& [begin, length] : free_) most = std::max(most, length);
  return Bytes{most};
}

Bytes OffsetAllocator::size_at(Offset offset) const {
  const auto found = used_.find(offset.value);
  return Bytes{found == used_.end() ? 0 : found->second};
}

}  // namespace ist
