#include "face/shmem/reductions.hpp"

#include <cstring>
#include <memory>

#include "face/shmem/regions.hpp"
#include "memory/host/handing_copy.hpp"

namespace ist::shmem {
namespace {

// Up to so much every PE reads everything; above, each reads one part of everything, and then the parts.
constexpr std::size_t kSmall = 4096;
constexpr std::size_t kStep = 32768;  // what is combined at once stays in a cache
// Of scans, whose every step ends in a meeting of all.
constexpr std::size_t kScanStep = 8 * kStep;

// Aligned for every type, and with whatever was there before in it. Few elements need no memory but the stack.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) {
    if (bytes > kSmall) large_ = std::make_unique_for_overwrite<std::max_align_t[]>(bytes / sizeof(std::max_align_t) + 1);
  }
  std::byte* data() { return large_ != nullptr ? reinterpret_cast<std::byte*>(large_.get()) : small_; }

 private:
  alignas(std::max_align_t) std::byte small_[kSmall];  // NOLINT(modernize-avoid-c-arrays)
  std::unique_ptr<std::max_align_t[]> large_;          // NOLINT(modernize-avoid-c-arrays)
};

// One PE's source, to read from: where it lies, or, if a processor cannot read it there, a copy.
const std::byte* readable(const char* call, const Place& place, const std::byte* source, std::size_t bytes, int pe,
                          Scratch& copy) {
  if (place.device == nullptr) return place.at;
  get(call, SHMEM_CTX_DEFAULT, copy.data(), source, bytes, pe);
  return copy.data();
}

// to = source of the first member (op) ... (op) source of the last before `end`.
bool combine_all(const char* call, const Group& group, const std::byte* source, std::size_t bytes, int end,
                 const Combiner& combiner, std::byte* to) {
  const Place own = look(source, bytes, hot.pe);
  Scratch copy{own.device == nullptr ? 0 : bytes};
  for (int i = 0; i < end; ++i) {
    const int pe = group.at(i);
    const Place place = find(call, source, bytes, pe);
    if (place.at == nullptr) return false;
    const std::byte* const from = readable(call, place, source, bytes, pe, copy);
    if (i == 0)
      copy_across(to, from, bytes);
    else
      combiner.combine(to, from, bytes);
  }
  return true;
}

void store(const char* call, void* dest, const void* from, std::size_t bytes) {
  put(call, SHMEM_CTX_DEFAULT, dest, from, bytes, hot.pe);
}

bool reduce_small(const char* call, const Group& group, const Block& block, const Combiner& combiner) {
  Scratch result{block.bytes};
  if (!combine_all(call, group, static_cast<const std::byte*>(block.source), block.bytes, group.size, combiner,
                   result.data()))
    return false;
  // Where dest is the source, all have read it now.
  if (!sync(call, group)) return false;
  store(call, block.dest, result.data(), block.bytes);
  return true;
}

std::size_t whole_elements(std::size_t bytes, const Combiner& combiner) { return bytes / combiner.size * combiner.size; }

struct Stretch {
  std::size_t begin;
  std::size_t end;
};
Stretch part_of(const Block& block, std::size_t size, int pes, int index) {
  const std::size_t elements = block.bytes / size;
  const auto n = static_cast<std::size_t>(pes);
  const auto i = static_cast<std::size_t>(index);
  return {elements * i / n * size, elements * (i + 1) / n * size};
}

// Nobody but this PE reads its part of anybody's source, so that it may write it where dest is the source. A team's only PE has one part.
bool reduce_own_part(const char* call, const Group& group, const Block& block, const Combiner& combiner) {
  const Stretch mine = part_of(block, combiner.size, group.size, group.me);
  const std::size_t step = whole_elements(kStep, combiner);
  Scratch result{step};
  for (std::size_t at = mine.begin; at < mine.end; at += step) {
    const std::size_t bytes = std::min(step, mine.end - at);
    if (!combine_all(call, group, static_cast<const std::byte*>(block.source) + at, bytes, group.size, combiner,
                     result.data()))
      return false;
    store(call, static_cast<std::byte*>(block.dest) + at, result.data(), bytes);
  }
  return true;
}

}  // namespace

bool reduce_in(const char* call, const Group& group, const Block& block, const Combiner& combiner) {
  if (block.bytes == 0) return sync(call, group);
  if (find(call, block.source, block.bytes, hot.pe).at == nullptr ||
      find(call, block.dest, block.bytes, hot.pe).at == nullptr)
    return false;
  if (!sync(call, group)) return false;
  if (block.bytes <= kSmall) return reduce_small(call, group, block, combiner);
  if (!reduce_own_part(call, group, block, combiner) || !sync(call, group)) return false;
  for (int k = 1; k < group.size; ++k) {
    const int i = (group.me + k) % group.size;
    const Stretch part = part_of(block, combiner.size, group.size, i);
    std::byte* const at = static_cast<std::byte*>(block.dest) + part.begin;
    if (part.end > part.begin) get(call, SHMEM_CTX_DEFAULT, at, at, part.end - part.begin, group.at(i));
  }
  return sync(call, group);
}

bool scan_in(const char* call, const Group& group, const Block& block, const Combiner& combiner, bool own) {
  if (block.bytes == 0) return sync(call, group);
  if (find(call, block.source, block.bytes, hot.pe).at == nullptr ||
      find(call, block.dest, block.bytes, hot.pe).at == nullptr)
    return false;
  if (!sync(call, group)) return false;
  const std::size_t step = std::min(block.bytes, whole_elements(kScanStep, combiner));
  Scratch result{step};
  const int end = group.me + (own ? 1 : 0);
  for (std::size_t at = 0; at < block.bytes; at += step) {
    const std::size_t bytes = std::min(step, block.bytes - at);
    std::memset(result.data(), 0, bytes);
    if (!combine_all(call, group, static_cast<const std::byte*>(block.source) + at, bytes, end, combiner, result.data()))
      return false;
    // Where dest is the source, all have read this step of it now.
    if (!sync(call, group)) return false;
    store(call, static_cast<std::byte*>(block.dest) + at, result.data(), bytes);
  }
  return true;
}

}  // namespace ist::shmem
