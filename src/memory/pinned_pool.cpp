#include "memory/pinned_pool.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <bit>
#include <chrono>
#include <new>

#include "base/log.hpp"

namespace ist {
namespace {

// Between two questions whether what had to stay may go: each may ask the devices.
constexpr std::chrono::milliseconds kPause{64};

}  // namespace

PinnedPool::Block::Block(Block&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      pageable_(other.pageable_) {}

PinnedPool::Block& PinnedPool::Block::operator=(Block&& other) noexcept {
  if (this != &other) {
    if (data_) pool_->give_back(data_, size_, pageable_);
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    size_ = other.size_;
    pageable_ = other.pageable_;
  }
  return *this;
}

PinnedPool::Block::~Block() {
  if (data_) pool_->give_back(data_, size_, pageable_);
}

Bytes PinnedPool::rounded(Bytes size) {
  constexpr std::uint64_t kPage = 4096;
  if (size.value <= kPage) return Bytes{kPage};
  // What no power of two can hold is over any limit as it is.
  if (size.value > std::uint64_t{1} << 62) return size;
  return Bytes{std::bit_ceil(size.value)};
}

PinnedPool::~PinnedPool() {
  // A copy still in flight may be waiting for work of the user's that never ends. Unmapping under it would corrupt, waiting
  // for it without end would hang: after a while its block is left mapped.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{2};
  for (collect(); !retired_.empty() && std::chrono::steady_clock::now() < patience; collect()) ::sched_yield();
  for (Retired& each : retired_) {
    log::warning("a staging block of " + std::to_string(each.block.size_.value) +
                 " bytes is left behind: the copy that uses it has not finished after 2 s");
    blocks_.erase(std::exchange(each.block.data_, nullptr));
  }
  while (!foreign_.empty()) unlock(foreign_.begin()->first);
  for (const auto& [size, blocks] : idle_)
    for (std::byte* data : blocks) ::munmap(data, size);
  for (const auto& [size, blocks] : free_)
    for (std::byte* data : blocks) {
      unlock_all(data, blocks_[data]);
      unmap(data);
    }
}

Result<PinnedPool::Block> PinnedPool::take(Bytes size) {
  collect();
  const Bytes block_size = rounded(size);
  const std::lock_guard lock(mutex_);
  std::byte* data = take_free(block_size);
  if (data) {
    drop_free(limit_);
  } else {
    auto made = make_block(size, block_size);
    if (!made.ok()) return made.status();
    data = *made;
  }
  if (const Status locked = lock_for_used(data, blocks_[data]); !locked.ok())
    log::once(log::Level::warning, "staging memory stays pageable, and copies through it are slower: " + locked.text());
  return Block{this, data, block_size, false};
}

Result<PinnedPool::Block> PinnedPool::take_locked(Bytes size, KindId kind) {
  auto block = take(size);
  if (!block.ok()) return block;
  const std::lock_guard lock(mutex_);
  Locked& locked = blocks_[block->data()];
  const std::uint32_t bit = 1U << static_cast<unsigned>(kind);
  if ((locked.kinds & bit) != 0) return block;
  const Status why = lock_for_used(block->data(), locked);
  if ((locked.kinds & bit) != 0) return block;
  return Status{IST_ERR_DEVICE, "memory that kernels are to write cannot be page-locked for them: " +
                                    (why.ok() ? "the kind is not in use" : why.text())};
}

Result<PinnedPool::Block> PinnedPool::take_pageable(Bytes size) {
  const Bytes block_size = rounded(size);
  {
    const std::lock_guard lock(mutex_);
    const auto found = idle_.find(block_size.value);
    if (found != idle_.end() && !found->second.empty()) {
      std::byte* const data = found->second.back();
      found->second.pop_back();
      idle_bytes_ = idle_bytes_ - block_size;
      return Block{this, data, block_size, true};
    }
  }
  void* address = ::mmap(nullptr, block_size.value, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return Status{IST_ERR_MEMORY, "the system has no " + std::to_string(block_size.value) + " bytes for a staging block"};
  return Block{this, static_cast<std::byte*>(address), block_size, true};
}

std::byte* PinnedPool::take_free(Bytes size) {
  const auto found = free_.find(size.value);
  if (found == free_.end() || found->second.empty()) return nullptr;
  std::byte* data = found->second.back();
  found->second.pop_back();
  free_bytes_ = free_bytes_ - size;
  return data;
}

Result<std::byte*> PinnedPool::make_block(Bytes wanted, Bytes size) {
  const Bytes in_use = held_ - free_bytes_;
  if (size > limit_ || in_use + size > limit_)
    return Status{IST_ERR_MEMORY, "a staging block of " + std::to_string(wanted.value) + " bytes was asked for (" +
                                      std::to_string(size.value) + " with rounding), " + std::to_string(in_use.value) +
                                      " bytes are in use and the limit is " + std::to_string(limit_.value) +
                                      "; raise ISTHMUS_PINNED_POOL_LIMIT"};
  drop_free(limit_ - size);
  void* address = ::mmap(nullptr, size.value, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return Status{IST_ERR_MEMORY, "the system has no " + std::to_string(size.value) + " bytes for a staging block; " +
                                      std::to_string(in_use.value) + " bytes are in use and the limit is " +
                                      std::to_string(limit_.value)};
  auto* data = static_cast<std::byte*>(address);
  blocks_[data] = Locked{size, 0};
  held_ += size;
  return data;
}

// Unmaps free blocks, largest first, until the pool holds no more than `goal`, or none is free. Not while a stream waits for another rank:
// the driver unlocks when nothing runs any more, and would hold up the message of this rank that the other one may need first.
void PinnedPool::drop_free(Bytes goal) {
  if (held_ <= goal || std::chrono::steady_clock::now() < next_try_) return;
  while (held_ > goal && !free_.empty()) {
    const auto largest = std::prev(free_.end());
    if (largest->second.empty()) {
      free_.erase(largest);
      continue;
    }
    std::byte* data = largest->second.back();
    if (!unlock_now(data, blocks_[data])) {
      next_try_ = std::chrono::steady_clock::now() + kPause;
      return;
    }
    largest->second.pop_back();
    free_bytes_ = free_bytes_ - Bytes{largest->first};
    unmap(data);
  }
}

// What is not locked any more.
void PinnedPool::unmap(std::byte* data) {
  const Bytes size = blocks_[data].size;
  ::munmap(data, size.value);
  held_ = held_ - size;
  blocks_.erase(data);
}

void PinnedPool::give_back(std::byte* data, Bytes size, bool pageable) {
  const std::lock_guard lock(mutex_);
  if (pageable) {
    try {
      if (idle_bytes_ + size > kMostIdle) {
        ::munmap(data, size.value);
        return;
      }
      idle_[size.value].push_back(data);
      idle_bytes_ += size;
    } catch (const std::bad_alloc&) {
      ::munmap(data, size.value);  // there is no room to remember it
    }
    return;
  }
  free_[size.value].push_back(data);
  free_bytes_ += size;
}

void PinnedPool::retire(Block block, Ticket ticket) {
  if (block.empty()) return;
  const std::lock_guard lock(mutex_);
  retired_.push_back({std::move(block), std::move(ticket)});
}

// Frees the retired blocks whose copies are over. A copy that failed is over too.
void PinnedPool::collect() {
  std::vector<Retired> over;  // outlives the lock below: a block that dies takes the lock itself
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < retired_.size();) {
    Ticket& ticket = retired_[i].ticket;
    if (!ticket.empty()) {
      const auto done = ticket.kind()->finished(ticket);
      if (done.ok() && !*done) {
        ++i;
        continue;
      }
    }
    over.push_back(std::move(retired_[i]));
    if (i + 1 != retired_.size()) retired_[i] = std::move(retired_.back());
    retired_.pop_back();
  }
}

// A driver that refuses does not keep the others from locking; the first refusal is told.
Status PinnedPool::lock_for_used(std::byte* address, Locked& locked) {
  Status first;
  for (const auto& kind : kinds_.all()) {
    const std::uint32_t bit = bit_of(*kind);
    if ((locked.kinds & bit) != 0 || !kinds_.used(kind->id())) continue;
    Pins* pins = kind->pins();
    if (!pins) continue;
    if (Status status = pins->pin(address, locked.size); status.ok()) {
      locked.kinds |= bit;
    } else if (first.ok()) {
      first = std::move(status);
    }
  }
  return first;
}

void PinnedPool::unlock_all(std::byte* address, const Locked& locked) {
  for (const auto& kind : kinds_.all())
    if ((locked.kinds & bit_of(*kind)) != 0) kind->pins()->unpin(address);
}

// Where one kind has to keep its lock, the others' come back when the block is next taken.
bool PinnedPool::unlock_now(std::byte* address, Locked& locked) {
  for (const auto& kind : kinds_.all()) {
    if ((locked.kinds & bit_of(*kind)) == 0) continue;
    if (!kind->pins()->unpin_now(address)) return false;
    locked.kinds &= ~bit_of(*kind);
  }
  return true;
}

Status PinnedPool::lock(void* address, Bytes size) {
  const std::lock_guard lock(mutex_);
  auto* data = static_cast<std::byte*>(address);
  Locked& locked = foreign_.try_emplace(data, Locked{size, 0}).first->second;
  if (locked.size != size)
    return {IST_ERR_INTERNAL, "memory of " + std::to_string(locked.size.value) +
                                  " bytes is locked already and was to be locked with " + std::to_string(size.value) +
                                  " bytes; unlock it first"};
  return lock_for_used(data, locked);
}

void PinnedPool::unlock(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = foreign_.find(static_cast<std::byte*>(address));
  if (found == foreign_.end()) return;
  unlock_all(found->first, found->second);
  foreign_.erase(found);
}

Bytes PinnedPool::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace ist
