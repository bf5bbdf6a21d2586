// A symmetric heap with the ranks that share it: what they do together, and how they wait for each other.
//
// Who calls this : api_heap*.cpp; face/message/world, which owns heaps.
// Threads        : collective calls one at a time per heap; the rest any.
// Ownership      : owns the memory of this PE's part, and its mappings of the others'.
// Errors         : of collective calls: the same at every PE, but for what one PE found, which the others quote.
#pragma once

#include <isthmus/heap.h>

#include <memory>
#include <mutex>
#include <vector>

#include "face/heap/device_view.hpp"
#include "face/heap/part_service.hpp"
#include "face/heap/team.hpp"
#include "heap/flag_barrier.hpp"
#include "heap/symmetric_heap.hpp"
#include "layout/shape.hpp"

namespace ist {

class CollectiveHeap final : public Team {
 public:
  struct Wanted {
    ist_kind kind;
    int device;
    std::uint64_t bytes;
    std::uint64_t most;
  };
  static Result<std::unique_ptr<CollectiveHeap>> create(World& world, const Communicator& parent, const Wanted& wanted);
  ~CollectiveHeap() override;
  CollectiveHeap(const CollectiveHeap&) = delete;
  CollectiveHeap& operator=(const CollectiveHeap&) = delete;

  Status grow(std::uint64_t bytes);
  // Null for 0 bytes. `own`: what this PE alone found wrong with the call.
  Result<void*> allocate(const char* call, std::uint64_t bytes, std::uint64_t alignment, bool zero, const Status& own);
  Status release(const void* address);
  Status barrier();
  // The last call on it.
  Status end();

  SymmetricHeap& memory() { return *memory_; }
  const SymmetricHeap& memory() const { return *memory_; }
  // Do processors reach all parts?
  bool on_host() const { return memory_->shape().reach == SpaceReach::processor; }

  // What graphs with calls on this heap may hold stays as long as it. False: it did not stay so far.
  bool keep(const SharedShape& shape, bool only_ask);

  // Where a call of the caller's on its own copy goes.
  Status check(int pe) const { return memory_->check(pe); }
  std::byte* at(Pe pe, Offset offset) const { return memory_->at(pe, offset); }
  Piece piece(Pe pe, Offset offset, Bytes size) const { return memory_->piece(pe, offset, size); }
  KindId kind() const { return memory_->shape().kind; }
  // Why no word of that PE's part can be changed as a whole by this PE's device; ok where one can.
  Status changes_words_of(Pe pe) const { return memory_->space().changes_words_of(rank_of(pe)); }
  // Why kernels here are known not to change words of that PE's, or of some PE's, as a whole.
  Status kernels_change_words_of(Pe pe) const { return memory_->space().kernels_change_words_of(rank_of(pe)); }
  Status kernels_change_words() const;
  // Who does what is done to words of that PE's part; null where processors or this PE's device do.
  PartService* service_of_words(Pe pe) const {
    PartService* const stores = service_of_stores(pe);
    return stores != nullptr || !service_ || changes_words_of(pe).ok() ? stores : service_.get();
  }
  // The same of what only stores into them, for which no atomic operation has to get there.
  PartService* service_of_stores(Pe pe) const {
    return memory_->shape().reach == SpaceReach::owner ? service_.get() : service_for(pe);
  }
  // The same of copies: what lies in the own part needs nobody else.
  PartService* service_for(Pe pe) const {
    if (!service_ || pe == memory_->shape().pe) [[likely]]
      return nullptr;
    return memory_->shape().reach == SpaceReach::owner || !unreached_of(pe).ok() ? service_.get() : nullptr;
  }
  // When the world ends: no thread is left.
  void stop_serving() {
    if (service_) service_->leave();
  }
  // Also of what kernels have asked for.
  Status quiet() override;
  // For kernels on that device of this process.
  Status view_from(int device, ist_device_view& view);
  // Why the addresses of that PE's part, or of some PE's, lead nowhere; ok where they lead somewhere.
  Status has_addresses(Pe pe) const;
  Status has_addresses() const;
  void look_at_board() override;
  // Why all PEs' kernels may not wait for each other: two have one device, where two processes' kernels need not run at once. ok where each PE
  // has its own. The same at all PEs.
  Status kernels_meet() const;

 private:
  CollectiveHeap(World& world, std::unique_ptr<Communicator> comm)
      : Team(world, std::move(comm), "ist_heap"), device_view_(world) {}
  Status open(const Wanted& wanted);
  Status check(const Wanted& wanted, int& device) const;
  // The nearest way that all PEs have to each other's parts.
  Result<SpaceReach> agree_on_reach(MemoryKind& kind, int device) const;
  // That stretch of the memory, at every PE; mapped where it is reached.
  Status extend_memory(Offset from, Bytes size);
  // Whose memory is in reach is found out with every other PE. What this PE's device does not reach is in unreached_.
  Status meet(Space& space);
  Status meet(Space& space, int pe, const SpaceCard& card);
  // Is anybody's part served, or are words of it? And who shares a device with whom.
  Result<bool> is_anyone_served(bool by_owners);
  Status one_device(int pe) const;
  const Status& unreached_of(Pe pe) const { return unreached_[static_cast<std::size_t>(pe.value)]; }
  Status zero(Offset offset, Bytes size);
  Status lost_in_barrier() const;
  Status start_serving();

  std::unique_ptr<SymmetricHeap> memory_;
  std::unique_ptr<Space> control_;  // the barrier's words
  std::unique_ptr<FlagBarrier> barrier_;
  Bytes page_;
  std::unique_ptr<PartService> service_;  // where some PE's device does not reach another's part, or its words
  std::vector<Status> unreached_;         // why this PE's device does not reach that PE's part; ok where it does
  std::vector<bool> asked_by_;            // by PEs: may that one ask this one's service?
  std::vector<std::int32_t> beside_;      // by PEs: the first other one whose part is on the same device, or -1
  DeviceView device_view_;                // of the memory
  std::mutex kept_mutex_;
  std::vector<SharedShape> kept_;
};

}  // namespace ist
