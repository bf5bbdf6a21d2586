// One copy between any two pieces of this process, started and then stepped: directly where one kind can do it, otherwise in
// chunks through page-locked host memory with both directions in flight.
//
// Who calls this : request/, for cells and messages to oneself; face/ (ist_memory_copy).
// Threads        : one at a time.
// Ownership      : owns its staging blocks; not the pieces. Dropped in the middle, it leaves its blocks to the pool, which
//                  keeps them until the copies that touch them are over; the pieces must stay until then too.
// Errors         : returned by step() once no copy touches the pieces any more; then the transfer is finished, and step()
//                  repeats the error.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "memory/pinned_pool.hpp"
#include "memory/word_changes.hpp"

namespace ist {

class Transfer {
 public:
  // to.size == from.size. The copy begins after the work that the queues of both pieces hold at the first step.
  Transfer(const Kinds& kinds, PinnedPool& pool, const Piece& to, const Piece& from);
  // The same after the work that these tickets stand for, whatever was enqueued since: a buffer's pending work is what was
  // pending when its operation was started, so that later kernels of the same queue overlap with the message.
  Transfer(const Kinds& kinds, PinnedPool& pool, const Piece& to, const Piece& from, Ticket to_ready, Ticket from_ready);
  Transfer(Transfer&&) = default;
  Transfer& operator=(Transfer&&) = default;
  // A word to change behind the bytes, in the order of the device that copies them; before the first step. Nobody waits in between.
  void then_change(const Piece& word, const WordChange& change) { word_ = Following{word, change}; }
  // Before the first step, of a caller who waits for it: the queue of a copy within one kind need not be asked, since the copy may go there
  // (Streams::in_order()).
  void may_go_into_queue() { may_go_into_queue_ = true; }
  // Does what can be done without waiting; true when every byte has arrived, and the word was changed if it is changed so.
  Result<bool> step();
  // Between OpenCL buffers, or one and host memory.
  bool is_opencl_alone() const {
    const auto is = [this](KindId kind) { return to_.kind == kind || from_.kind == kind; };
    return is(KindId::opencl) && !is(KindId::cuda);
  }
  // When all has arrived: is the word changed? Where the bytes do not come by one copy, or the device cannot, it is not, and is the caller's
  // to change.
  bool has_changed() const { return has_changed_; }

 private:
  struct Staging;  // the blocks of a copy in two steps, and how far they are
  struct StagingDeleter {
    void operator()(Staging* staging) const;
  };
  enum class State : std::uint8_t {
    fresh,   // nothing asked yet
    direct,  // waiting for the destination's queue, then for one copy
    staged,  // chunks on their way through blocks
    ending,  // failed, and waiting until no copy touches the pieces any more
    done,
    failed
  };
  Status start();
  Status ask_readiness();
  bool goes_into_queue() const;
  Status start_change();
  Result<bool> step_direct();
  Result<bool> step_staged();
  bool over_everywhere();
  Result<bool> take_block(int stage);
  Result<bool> fill(int stage);
  Result<bool> advance(int stage);

  const Kinds* kinds_;
  PinnedPool* pool_;
  Piece to_;
  Piece from_;
  State state_ = State::fresh;
  Status failure_;
  MemoryKind* copier_ = nullptr;
  Ticket from_ready_;
  Ticket to_ready_;
  Ticket ticket_;
  struct Following {
    Piece word;
    WordChange change;
  };
  std::optional<Following> word_;
  Ticket change_ticket_;
  bool has_changed_ = false;
  bool readiness_known_ = false;
  bool may_go_into_queue_ = false;
  bool copying_ = false;
  std::unique_ptr<Staging, StagingDeleter> staging_;
};

}  // namespace ist
