// A symmetric heap with the ranks that share it: what they do together, and how they wait for each other.
//
// Who calls this : api_heap*.cpp; face/message/world, which owns heaps.
// Threads        : collective calls one at a time per heap; the rest any.
// Ownership      : owns a communicator of its own, the memory of this PE's part, and its mappings of the others'.
// Errors         : of collective calls: the same at every PE, but for what one PE found, which the others quote.
#pragma once

#include <isthmus/heap.h>

#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "collective/agreement.hpp"
#include "collective/communicator.hpp"
#include "face/heap/device_view.hpp"
#include "face/heap/started_copies.hpp"
#include "heap/flag_barrier.hpp"
#include "heap/symmetric_heap.hpp"

namespace ist {

class World;

class CollectiveHeap {
 public:
  struct Wanted {
    ist_kind kind;
    int device;
    std::uint64_t bytes;
    std::uint64_t most;
  };
  static Result<std::unique_ptr<CollectiveHeap>> create(World& world, const Communicator& parent, const Wanted& wanted);
  ~CollectiveHeap();
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
  World& world() { return world_; }
  Engine& engine() const { return comm_->engine(); }
  Rank rank_of(Pe pe) const { return comm_->to_world(pe.value); }
  bool on_host() const { return memory_->shape().kind == KindId::host; }

  // Copies that may go on behind the call that started them, until quiet(). `then`, where there is one, is called once the bytes are
  // there, and not after an error.
  void add(Transfer transfer, StartedCopies::Then then = {}) { started_.add(std::move(transfer), std::move(then)); }
  Status quiet();
  // Moves them on without waiting; what fails quiet() tells.
  void move_on() {
    if (started_.any()) started_.step();
  }

  // Waits until `ready` says true, and moves the world's messages on meanwhile; `lost` says why it never will.
  using Ready = std::function<Result<bool>()>;
  using Lost = std::function<Status()>;
  Status wait(const Ready& ready, const Lost& lost);
  // For views: code on a device has to be able to read it.
  const volatile std::uint32_t* abort_word() const;
  // For kernels on that device of this process.
  Status view_from(int device, ist_device_view& view) {
    IST_TRY(device_view_.fill(*this, device, view));
    look_at_board();  // who died before it had an abort word
    return {};
  }
  // In the watcher's thread.
  void look_at_board();
  // Somebody died, or all other PEs have left.
  Status nobody_left() const;
  // Why a word of this PE's may never change: that, or a copy of its own has failed, which quiet() tells, too.
  Status word_lost() const {
    Status failed = started_.any() ? started_.failed() : Status{};
    return failed.ok() ? nobody_left() : failed;
  }

 private:
  CollectiveHeap(World& world, std::unique_ptr<Communicator> comm)
      : world_(world), comm_(std::move(comm)), device_view_(world) {}
  Status open(const Wanted& wanted);
  Status make_abort_page(KindId kind);
  Status check(const Wanted& wanted, int& device) const;
  // All PEs tell each other what they were asked for, and whether they can.
  Status agree(const char* call, std::initializer_list<AgreedNumber> values, const Status& own = {});
  // That stretch of a space: every PE makes its own, and maps the others'.
  Status extend(Space& space, Offset from, Bytes size, const Status& own);
  // Whose memory is in reach is found out with every other PE.
  Status meet(Space& space);
  Status pass_around(const FileDescriptor& own, std::vector<FileDescriptor>& all);
  Status pass_once(int pe, std::uint32_t purpose, const FileDescriptor& own, std::vector<bool>& sent,
                   std::vector<bool>& came, FileDescriptor& theirs);
  Status zero(Offset offset, Bytes size);
  Status anyone_lost() const;
  Status lost_in_barrier() const;

  World& world_;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<SymmetricHeap> memory_;
  std::unique_ptr<Space> control_;  // the barrier's words
  std::unique_ptr<FlagBarrier> barrier_;
  Bytes page_;
  PinnedPool::Block abort_page_;  // where the heap is of a device
  StartedCopies started_;
  DeviceView device_view_;  // of the memory
};

}  // namespace ist
