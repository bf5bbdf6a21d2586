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
  for (const Piece& piece : free_) static_cast<void>(kinds_.find(piece.kind)->release(piece));
}

Result<ScratchPool::Block> ScratchPool::take(const Piece& neighbour, Bytes size) {
  MemoryKind& kind = *kinds_.find(neighbour.kind);
  const Bytes rounded{std::bit_ceil(std::max(size, kSmallest).value)};
  {
    const std::lock_guard lock(mutex_);
    free_.reserve(free_.size() + out_ + 1);  // it comes back in a destructor, which must not fail
    ++out_;
    const auto fits = [&](const Piece& piece) {
      return piece.kind == neighbour.kind && piece.device == neighbour.device && piece.size == rounded &&
             kind.together(piece, neighbour);
    };
    const auto found = std::find_if(free_.rbegin(), free_.rend(), fits);
    if (found != free_.rend()) {
      const Piece piece = *found;
      free_.erase(std::next(found).base());
      free_bytes_ = free_bytes_ - piece.size;
      return Block{this, piece};
    }
  }
  auto made = kind.allocate_beside(neighbour, rounded);
  if (made.ok()) return Block{this, *made};
  const std::lock_guard lock(mutex_);
  --out_;
  return made.status();
}

void ScratchPool::release_later(const Piece& piece) {
  {
    const std::lock_guard lock(mutex_);
    --out_;
  }
  kinds_.find(piece.kind)->release_later(piece);
}

void ScratchPool::give_back(const Piece& piece) {
  const std::lock_guard lock(mutex_);
  --out_;
  free_.push_back(piece);
  free_bytes_ += piece.size;
  while (free_bytes_ > kMostFree) {
    free_bytes_ = free_bytes_ - free_.front().size;
    kinds_.find(free_.front().kind)->release_later(free_.front());
    free_.erase(free_.begin());
  }
}

}  // namespace ist
