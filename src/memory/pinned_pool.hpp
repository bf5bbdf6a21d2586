// Page-locked host memory for staging: one place, bounded, re-used.
//
// Who calls this : transfer (two-step copies), path/shm (to lock what it shares).
// Threads        : any.
// Ownership      : a Block returns itself to the pool; the pool outlives its blocks, the kinds outlive the pool.
// Errors         : over the limit, or no memory: returned with requested, used and limit.
//
// Memory is locked for the kinds in use (Kinds::used) that can lock. A kind that comes into use later finds free blocks
// locked for it when they are next taken; until then its copies of them are correct, only slower.
//
// A free block that would have to go, since others need the room, stays while a stream waits for another rank (Pins::unpin_now). What is
// free then lies beyond the limit, no more than the limit for each size, until a take() finds that it may go.
#pragma once

#include <chrono>
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
    Block(PinnedPool* pool, std::byte* data, Bytes size, bool pageable)
        : pool_(pool), data_(data), size_(size), pageable_(pageable) {}
    PinnedPool* pool_ = nullptr;
    std::byte* data_ = nullptr;
    Bytes size_;
    bool pageable_ = false;
  };

  PinnedPool(const Kinds& kinds, Bytes limit) : kinds_(kinds), limit_(limit) {}
  ~PinnedPool();
  // At least `size` bytes, page-aligned, locked for every kind in use that can lock. Sizes are rounded up to a power of two.
  Result<Block> take(Bytes size);
  // The same for what kernels of that kind read and write: an error where it could not be locked for it.
  Result<Block> take_locked(Bytes size, KindId kind);
  // One that is not locked and counts against no limit, for what would otherwise wait for whoever holds the others. Some are kept for re-use: new
  // memory is a fault for each page, 1.6 ms for 4 MiB on one AMD EPYC (2026-11-26), and several times that while other programs run.
  Result<Block> take_pageable(Bytes size);
  // Takes a block back that a copy may still touch: it is free once the ticket has finished. Does not wait.
  void retire(Block block, Ticket ticket);
  // Locks memory the library already has (shared cells, rings) for every kind in use that can; unlock before unmapping.
  // Calling it again locks for the kinds that have come into use since. After an error some kinds may hold the lock.
  Status lock(void* address, Bytes size);
  void unlock(void* address);
  // Bytes held, in use or waiting for re-use.
  Bytes held() const;
  Bytes limit() const { return limit_; }
  // What a block of `size` bytes counts against the limit.
  static Bytes rounded(Bytes size);

 private:
  static constexpr Bytes kMostIdle = mebibytes(32);
  struct Locked {
    Bytes size;
    std::uint32_t kinds = 0;  // one bit per KindId for which the memory is locked
  };
  struct Retired {
    Block block;
    Ticket ticket;
  };
  void give_back(std::byte* data, Bytes size, bool pageable);
  void collect();
  Status lock_for_used(std::byte* address, Locked& locked);
  void unlock_all(std::byte* address, const Locked& locked);
  static std::uint32_t bit_of(const MemoryKind& kind) { return 1U << static_cast<unsigned>(kind.id()); }
  bool unlock_now(std::byte* address, Locked& locked);
  std::byte* take_free(Bytes size);
  Result<std::byte*> make_block(Bytes wanted, Bytes size);
  void drop_free(Bytes goal);
  void unmap(std::byte* data);

  const Kinds& kinds_;
  const Bytes limit_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::vector<std::byte*>> free_;  // by size
  std::map<std::byte*, Locked> blocks_;                    // every block of the pool, free or not
  std::map<std::byte*, Locked> foreign_;                   // what lock() was given
  std::map<std::uint64_t, std::vector<std::byte*>> idle_;  // pageable ones, by size
  Bytes idle_bytes_;
  std::vector<Retired> retired_;
  Bytes held_;
  Bytes free_bytes_;
  std::chrono::steady_clock::time_point next_try_;  // to let go of what had to stay
};

}  // namespace ist
