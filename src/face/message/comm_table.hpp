// The communicators of one world that have handles; and its symmetric heaps.
//
// Who calls this : handles.cpp and face/heap find, the api_*.cpp files add and remove.
// Threads        : any. find() takes no lock; neither must be freed while another thread is inside a call on it.
// Ownership      : owns them until they are removed, or with the world.
// Errors         : a handle of one that was freed is found to be none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "collective/communicator.hpp"

namespace ist {

// Index in the table, 16 bits, and the place's number: never used twice in a process, 35 bits.
struct CommName {
  std::uint32_t index = 0;
  std::uint64_t serial = 0;
};

template <class T>
class HandleTable {
 public:
  HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;
  ~HandleTable() {
    for (auto& chunk : chunks_) delete chunk.load();
  }
  T* find(const CommName& name) const {
    const Chunk* chunk = name.index < kMost ? chunks_[name.index / kChunk].load(std::memory_order_acquire) : nullptr;
    if (chunk == nullptr) return nullptr;
    const Place& place = (*chunk)[name.index % kChunk];
    // The serial is written after the value, and cleared before it goes.
    return place.serial.load(std::memory_order_acquire) == name.serial ? place.value.get() : nullptr;
  }
  // None: the table is full.
  std::optional<CommName> add(std::unique_ptr<T> value) {
    const std::lock_guard lock(mutex_);
    if (free_.empty() && !grow()) return std::nullopt;
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Place& place = (*chunks_[index / kChunk].load())[index % kChunk];
    place.value = std::move(value);
    const std::uint64_t serial = next_serial();
    place.serial.store(serial, std::memory_order_release);
    return CommName{index, serial};
  }
  // With every one that is there; none goes meanwhile.
  template <class What>
  void for_each(const What& what) {
    const std::lock_guard lock(mutex_);
    for (const auto& chunk : chunks_)
      if (Chunk* const places = chunk.load(); places != nullptr)
        for (Place& place : *places)
          if (place.value) what(*place.value);
  }
  void remove(const CommName& name) {
    std::unique_ptr<T> gone;  // destroyed when the lock is free again: a heap takes its time
    const std::lock_guard lock(mutex_);
    if (find(name) == nullptr) return;
    Place& place = (*chunks_[name.index / kChunk].load())[name.index % kChunk];
    place.serial.store(0, std::memory_order_release);
    gone = std::move(place.value);
    free_.push_back(name.index);
  }

 private:
  static constexpr std::uint32_t kChunk = 256;
  static constexpr std::uint32_t kMost = 256 * kChunk;
  struct Place {
    std::unique_ptr<T> value;
    std::atomic<std::uint64_t> serial{0};
  };
  using Chunk = std::array<Place, kChunk>;
  static std::uint64_t next_serial() {
    static std::atomic<std::uint64_t> last{0};
    return ++last & ((std::uint64_t{1} << 35) - 1);
  }
  bool grow() {
    for (std::uint32_t c = 0; c < chunks_.size(); ++c) {
      if (chunks_[c].load() != nullptr) continue;
      chunks_[c].store(new Chunk, std::memory_order_release);
      for (std::uint32_t i = kChunk; i-- > 0;) free_.push_back(c * kChunk + i);
      return true;
    }
    return false;
  }
  std::mutex mutex_;
  std::array<std::atomic<Chunk*>, kMost / kChunk> chunks_{};
  std::vector<std::uint32_t> free_;
};
using CommTable = HandleTable<Communicator>;

}  // namespace ist
