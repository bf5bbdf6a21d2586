// PEs that share memory: what they say to each other, how they wait, and which of their copies go on.
//
// Who calls this : CollectiveHeap and Window, which are teams.
// Threads        : what all PEs do together, one at a time; the rest any.
// Ownership      : owns a communicator of its own, the word that views tell of deaths by, and copies until they are over.
// Errors         : of what is agreed on: the same at every PE, but for what one PE found, which the others quote.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "collective/agreement.hpp"
#include "collective/communicator.hpp"
#include "face/heap/started_copies.hpp"
#include "memory/pinned_pool.hpp"
#include "memory/spaces.hpp"

namespace ist {

class World;

std::string pe_text(int pe);

class Team {
 public:
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  World& world() const { return world_; }
  Engine& engine() const { return comm_->engine(); }
  Rank rank_of(Pe pe) const { return comm_->to_world(pe.value); }

  // Copies that may go on behind the call that started them, until quiet(). `then`, where there is one, is called once the bytes are
  // there, and not after an error.
  void add(Transfer transfer, StartedCopies::Then then = {}) { started_.add(std::move(transfer), std::move(then)); }
  virtual Status quiet();
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
  // The same, told to the kinds: kernels that have it may wait for other ranks.
  const volatile std::uint32_t* abort_word_for_kernels() const;
  // In the watcher's thread.
  virtual void look_at_board();
  // Somebody died, or all other PEs have left.
  Status nobody_left() const;
  // Why a word of this PE's may never change: that, or a copy of its own has failed, which quiet() tells, too.
  Status word_lost() const {
    Status failed = started_.any() ? started_.failed() : Status{};
    return failed.ok() ? nobody_left() : failed;
  }

 protected:
  // `label`: what errors and traces of the messages between PEs name; it stays.
  Team(World& world, std::unique_ptr<Communicator> comm, const char* label)
      : world_(world), comm_(std::move(comm)), label_(label) {}
  virtual ~Team();
  const Communicator& comm() const { return *comm_; }
  // Before the memory goes: waits for copies that nobody has waited for; nothing follows them.
  void give_up_copies() { started_.give_up(); }
  // The word is then one that devices of that kind read.
  Status make_abort_page(KindId kind);
  // Is somebody on another host? `noun`: what has to be on one.
  Status all_local(const char* noun) const;
  // All PEs tell each other what they were asked for, and whether they can.
  Status agree(const char* call, std::initializer_list<AgreedNumber> values, const Status& own = {});
  // Each PE gives all others one descriptor. What fails is returned when all have passed theirs on.
  Status pass_around(const FileDescriptor& own, std::vector<FileDescriptor>& all);
  // That stretch of a space: every PE makes its own, and maps those of the other PEs that it takes.
  Status extend(Space& space, Offset from, Bytes size, const std::function<bool(Pe)>& takes);
  Status anyone_lost() const;

 private:
  Status pass_once(int pe, std::uint32_t purpose, const FileDescriptor& own, std::vector<bool>& sent,
                   std::vector<bool>& came, FileDescriptor& theirs);

  World& world_;
  std::unique_ptr<Communicator> comm_;
  const char* const label_;
  PinnedPool::Block abort_page_;  // where devices read it
  StartedCopies started_;
};

}  // namespace ist
