// Two ranks open each other's device memory ahead of the first message between it: each tells the other what it lends, maps what the
// other lends, and says when that is over.
//
// Who calls this : face/ (ist_prepare, ist_iprepare).
// Threads        : under the world's lock.
// Ownership      : the schedule owns the action; the piece stays its owner's.
// Errors         : of the messages between the two. Memory that cannot be opened is no error.
#pragma once

#include <cstdint>
#include <memory>

#include "request/engine.hpp"

namespace ist {

class Preparing : public Action {
 public:
  // `own`: a checked piece of this rank. An operation that is complete when both ranks have opened what they can; a null id: there is
  // nothing to do.
  static Result<OperationId> start(Engine& engine, const Piece& own, Rank peer, const Scope& internal);
  Result<bool> step(Moment& now) override;

 private:
  // What each says of its memory.
  struct Word {
    Loan loan;
    std::uint32_t kind = 0;    // of the memory
    std::uint32_t answer = 0;  // where it expects to hear that the other is ready
  };
  static_assert(sizeof(Word) == 200 && std::is_trivially_copyable_v<Word>);
  Preparing(const Piece& own, Rank peer) : own_(own), peer_(peer) {}
  static Loan loan_of(Engine& engine, const Piece& own, Rank peer);
  // True: opened, or it will never be.
  bool open(Engine& engine);

  const Piece own_;
  const Rank peer_;
  Word mine_;
  Word theirs_;
  bool heard_ = false;
};

}  // namespace ist
