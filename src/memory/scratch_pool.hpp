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

#include "memory/allocated.hpp"
#include "memory/kinds.hpp"

namespace ist {

class ScratchPool {
 public:
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), memory_(other.memory_) {}
    Block& operator=(Block&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(memory_, other.memory_);
      return *this;
    }
    ~Block() {
      if (pool_ != nullptr) pool_->give_back(memory_);
    }
    const Piece& piece() const { return memory_.piece(); }
    // Something may still use it, of which nobody will hear: its memory goes when the device is quiet, and is not used again.
    void let_go_later() {
      if (pool_ != nullptr) std::exchange(pool_, nullptr)->release_later(memory_);
    }

   private:
    friend class ScratchPool;
    Block(ScratchPool* pool, const Allocated& memory) : pool_(pool), memory_(memory) {}
    ScratchPool* pool_ = nullptr;
    Allocated memory_;
  };

  explicit ScratchPool(const Kinds& kinds) : kinds_(kinds) {}
  ~ScratchPool();
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;
  // At least `size` bytes that copies and kernels can use together with `neighbour`. No copy may touch a block any more when
  // it is dropped.
  Result<Block> take(const Piece& neighbour, Bytes size);

 private:
  void give_back(const Allocated& memory);
  void release_later(const Allocated& memory);

  const Kinds& kinds_;
  std::mutex mutex_;
  std::vector<Allocated> free_;  // the one given back last is last
  std::size_t out_ = 0;          // blocks that will come back
  Bytes free_bytes_;
};

}  // namespace ist
