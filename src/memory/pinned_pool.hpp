// Page-locked host memory for staging: one place, bounded, re-used.
//
// Who calls this : transfer (two-step copies), path/shm (to lock what it shares).
// Threads        : any.
// Ownership      : a Block returns itself to the pool; the pool outlives its blocks.
// Errors         : over the limit, or no memory: returned with requested, used and limit.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "memory/kinds.hpp"

namespace ist {

class PinnedPool {
 public:
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept;
    Block& operator=(Block&& other) noexcept;
    ~Block();
    std::byte* data() const { return data_; }
    Bytes size() const { return size_; }
    bool empty() const { return data_ == nullptr; }

   private:
    friend class PinnedPool;
    Block(PinnedPool* pool, std::byte* data, Bytes size) : pool_(pool), data_(data), size_(size) {}
    PinnedPool* pool_ = nullptr;
    std::byte* data_ = nullptr;
    Bytes size_;
  };

  PinnedPool(const Kinds& kinds, Bytes limit) : kinds_(kinds), limit_(limit) {}
  ~PinnedPool();
  // At least `size` bytes, page-aligned, locked for every kind that can lock. Sizes are rounded up to a power of two.
  Result<Block> take(Bytes size);
  // Locks memory the library already has (shared cells, rings) for every kind that can; unlock before unmapping.
  Status lock(void* address, Bytes size);
  void unlock(void* address);
  // Bytes held, in use or waiting for re-use.
  Bytes held() const;

 private:
  void give_back(std::byte* data, Bytes size);
  const Kinds& kinds_;
  const Bytes limit_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::vector<std::byte*>> free_;  // by size
  Bytes held_;
};

}  // namespace ist
