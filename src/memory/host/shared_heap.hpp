// Host memory that the other ranks of this host copy from: parts of one file without a name, which they map.
//
// Who calls this : host_kind allocates from it; request/engine shows what lies in it, path/shm hands its descriptor to the peers.
// Threads        : allocate() and release() from any; show() and hide() under the world's lock.
// Ownership      : owns the file and its mapping; what was allocated goes with it, also where others map it still.
// Errors         : none: where there is no room, or the system gives no such memory, allocate() returns null.
//
// The file is as long as the heap may become, and takes memory only where somebody has written. What is freed goes back to the system;
// in a process that its owner has forked nothing is, since both have the same file.
// Its first page has words that say which sends still show their bytes: a reader that finds the number of a send there after copying has
// copied that message and nothing else; it need not look while its link knows that no send of the pair was withdrawn. Sends share words; of two that do so the later one is believed, and the other goes another way.
// Model: models/shown.pml.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "base/file_descriptor.hpp"

namespace ist {

class SharedHeap {
 public:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kWords = kPage / sizeof(std::uint64_t);

  // As long as the system allows, where that is less; 0: none.
  explicit SharedHeap(Bytes most) : most_(most) {}
  ~SharedHeap();
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // Whole pages.
  void* allocate(Bytes size);
  // False: the address is not where one of its allocations begins.
  bool release(const void* address);

  bool holds(const void* address, Bytes size) const {
    const std::uint64_t length = length_.load(std::memory_order_acquire);  // first: then start_ is there, too
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(address) - start_.load(std::memory_order_relaxed);
    return offset < length && size.value <= length - offset;
  }
  // Of the mapping in this process, once something was allocated.
  std::uint64_t start() const { return start_.load(std::memory_order_relaxed); }
  Bytes length() const { return Bytes{length_.load(std::memory_order_relaxed)}; }
  int descriptor() const { return memory_ ? memory_->descriptor() : -1; }

  // Until hide(), the word at the address that is returned holds this id, or that of another send.
  std::uint64_t show(std::uint64_t id);
  void hide(std::uint64_t id);

 private:
  bool make();
  bool grant(std::uint64_t end);
  void empty(std::uint64_t offset, std::uint64_t length) const;
  std::atomic_ref<std::uint64_t> word(std::uint64_t id) const {
    return std::atomic_ref(reinterpret_cast<std::uint64_t*>(memory_->data())[id % kWords]);
  }

  const Bytes most_;
  std::mutex mutex_;
  bool tried_ = false;
  int owner_ = 0;              // the process that made it
  std::uint64_t granted_ = 0;  // so far it is memory
  std::optional<SharedMemory> memory_;
  std::atomic<std::uint64_t> start_{0};
  std::atomic<std::uint64_t> length_{0};         // 0: nothing was allocated yet
  std::map<std::uint64_t, std::uint64_t> free_;  // offset and length; no two touch
  std::map<std::uint64_t, std::uint64_t> used_;
};

}  // namespace ist
