// A heap as kernels on one device of this process use it. Of host memory: every PE's part page-locked for the device, an abort word that it
// can read, and the proxy that changes words for them.
//
// Who calls this : collective_heap, which has one; api_heap.cpp through it.
// Threads        : fill() and add() one at a time, by a lock of its own; drain() any; tell_dead() in the watcher's thread.
// Ownership      : owns locks, ring, desk and proxy, from the first fill() on. The heap's memory outlives it.
// Errors         : returned by fill(), which may be tried again; what it has done so far stays.
#pragma once

#include <isthmus/team.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "heap/symmetric_heap.hpp"
#include "heap/word_proxy.hpp"
#include "memory/pinned_pool.hpp"

namespace ist {

class CollectiveHeap;
class World;

class DeviceView {
 public:
  explicit DeviceView(World& world) : world_(world) {}
  ~DeviceView();
  DeviceView(const DeviceView&) = delete;
  DeviceView& operator=(const DeviceView&) = delete;

  // A stretch of every part, which is memory now.
  void add(Offset from, Bytes size);
  // `device` may be IST_OWN_DEVICE; the same one each time.
  Status fill(const CollectiveHeap& heap, int device, ist_device_view& view);
  // Until all is done that kernels asked for which have ended. An error where one of them has given up in the middle; `dead`: somebody has
  // died, so that this is likely.
  Status drain(bool dead);
  bool has_proxy() const { return serving_.load(std::memory_order_acquire) != nullptr; }
  // Kernels learn that somebody has died.
  void tell_dead() const {
    if (std::uint32_t* const word = abort_word_.load(std::memory_order_acquire); word != nullptr)
      std::atomic_ref(*word).store(1, std::memory_order_release);
  }

 private:
  struct Stretch {
    Offset from;
    Bytes size;
    int pinned = 0;  // parts, from that of PE 0 on
  };
  Status choose_device(const SymmetricHeap& memory, int device);
  Status make_room();
  Status pin(const SymmetricHeap& memory, Stretch& stretch);
  Result<std::int64_t> find_shift() const;
  Status start_proxy(const SymmetricHeap& memory);
  // Of a heap of devices: whose words kernels leave to others.
  Status tell_words(const CollectiveHeap& heap, ist_device_view& view);

  World& world_;
  std::mutex mutex_;
  MemoryKind* kind_ = nullptr;  // of the device, once it was chosen
  int device_ = -1;
  std::vector<Stretch> stretches_;
  std::vector<std::byte*> pinned_;
  PinnedPool::Block room_;  // the ring, and the abort word behind it
  Piece desk_;              // of a heap of devices a byte for each PE, other than 0 where kernels do not change its words
  bool has_desk_ = false;
  bool desk_is_zero_ = false;
  std::unique_ptr<WordProxy> proxy_;
  std::atomic<WordProxy*> serving_{nullptr};
  std::atomic<bool> given_up_{false};  // by a kernel: nothing behind that ticket is done any more
  std::atomic<std::uint32_t*> abort_word_{nullptr};
};

}  // namespace ist
