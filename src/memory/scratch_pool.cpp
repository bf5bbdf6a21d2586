#include "memory/scratch_pool.hpp"

#include <algorithm>
#include <bit>

namespace ist {
namespace {

constexpr Bytes kSmallest = kibibytes(64);
// Kept for re-use at most; what was not used for longest goes first.
constexpr Bytes kMostFree = mebibytes(256);

}  // namespace

ScratchPool::~ScratchPool() {
  for (const Allocated& memory : free_) memory.release();
}

Result<ScratchPool::Block> ScratchPool::take(const Piece& neighbour, Bytes size) {
  MemoryKind& kind = *kinds_.find(neighbour.kind);
  const Bytes rounded{std::bit_ceil(std::max(size, kSmallest).value)};
  {
    const std::lock_guard lock(mutex_);
    free_.reserve(free_.size() + out_ + 1);  // it comes back in a destructor, which must not fail
    ++out_;
    const auto fits = [&](const Allocated& memory) {
      const Piece& piece = memory.piece();
      return piece.kind == neighbour.kind && piece.device == neighbour.device && piece.size == rounded &&
             kind.together(piece, neighbour);
    };
    for (auto found = std::find_if(free_.rbegin(), free_.rend(), fits); found != free_.rend();
         found = std::find_if(free_.rbegin(), free_.rend(), fits)) {
      const Allocated memory = *found;
      free_.erase(std::next(found).base());
      free_bytes_ = free_bytes_ - memory.piece().size;
      if (memory.is_there()) return Block{this, memory};
    }
  }
  auto made = kind.allocate_beside(neighbour, rounded);
  if (made.ok()) return Block{this, Allocated{kind, *made}};
  const std::lock_guard lock(mutex_);
  --out_;
  return made.status();
}

void ScratchPool::release_later(const Allocated& memory) {
  {
    const std::lock_guard lock(mutex_);
    --out_;
  }
  memory.release_later();
}

void ScratchPool::give_back(const Allocated& memory) {
  const std::lock_guard lock(mutex_);
  --out_;
  free_.push_back(memory);
  free_bytes_ += memory.piece().size;
  while (free_bytes_ > kMostFree) {
    const Allocated oldest = free_.front();
    free_bytes_ = free_bytes_ - oldest.piece().size;
    free_.erase(free_.begin());
    oldest.release_later();
  }
}

}  // namespace ist
