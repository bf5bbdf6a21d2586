// Device memory for intermediate results, beside the buffers they belong to: bounded, re-used, since drivers take long to
// allocate.
//
// Who calls this : collective/, through the engine.
// Threads        : any.
// Ownership      : a Block returns itself to the pool; the pool outlives its blocks, the kinds outlive the pool.
// Errors         : of the allocation: returned.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "memory/kinds.hpp"

namespace ist {

class ScratchPool {
 public:
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), piece_(other.piece_) {}
    Block& operator=(Block&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(piece_, other.piece_);
      return *this;
    }
    ~Block() {
      if (pool_ != nullptr) pool_->give_back(piece_);
    }
    const Piece& piece() const { return piece_; }
    // Something may still use it, of which nobody will hear: its memory goes when the device is quiet, and is not used again.
    void let_go_later() {
      if (pool_ != nullptr) std::exchange(pool_, nullptr)->release_later(piece_);
    }

   private:
    friend class ScratchPool;
    Block(ScratchPool* pool, const Piece& piece) : pool_(pool), piece_(piece) {}
    ScratchPool* pool_ = nullptr;
    Piece piece_;
  };

  explicit ScratchPool(const Kinds& kinds) : kinds_(kinds) {}
  ~ScratchPool();
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;
  // At least `size` bytes that copies and kernels can use together with `neighbour`. No copy may touch a block any more when
  // it is dropped.
  Result<Block> take(const Piece& neighbour, Bytes size);

 private:
  void give_back(const Piece& piece);
  void release_later(const Piece& piece);

  const Kinds& kinds_;
  std::mutex mutex_;
  std::vector<Piece> free_;  // the one given back last is last
  std::size_t out_ = 0;      // blocks that will come back
  Bytes free_bytes_;
};

}  // namespace ist
