// Kinds whose users' streams copy, put with signals, and wait for words in their own order.
//
// Who calls this : face/heap, for symmetric heaps on devices. Who implements it: cuda/.
// Threads        : any.
// Ownership      : none; pieces and words stay until the stream has passed them.
// Errors         : returned, naming the driver's call; what was put into the stream before stays there.
#pragma once

#include <isthmus/team.h>

#include <cstdint>

#include "memory/word_changes.hpp"

namespace ist {

// A word of the own part, and what it is waited for.
struct WordWait {
  enum class How : std::int32_t { equal, not_equal, greater, greater_equal, less, less_equal };
  How how = How::equal;
  bool is_signed = false;
  std::uint64_t value = 0;  // of a word of 4 bytes the lower half
  const volatile std::uint32_t* abort_word = nullptr;
};

// Bytes into memory that others reach, and a word of 8 bytes there behind them.
struct StreamPut {
  Piece to;
  Piece from;  // as long
  Piece word;
  std::uint64_t value = 0;
  bool adds = false;    // to the word; else it is set
  bool stores = false;  // by the kernel that changes the word, where it can load them; else by a copy engine
};

class StreamOrder {
 public:
  virtual ~StreamOrder() = default;
  // Is it a stream of that device? With `own`, a piece of memory of it, the special streams are.
  virtual Status belongs(std::uint64_t stream, const Piece& own) = 0;
  virtual bool captures(std::uint64_t stream, const Piece& own) = 0;
  virtual Status copy_in(std::uint64_t stream, const Piece& own, const Piece& to, const Piece& from) = 0;
  // Before the first wait_in() or meet_in(): from now on streams may wait for other ranks. Nothing that waits is put in until settled():
  // nobody is setting himself up any more who might wait for it (guests.hpp).
  virtual void use_streams() = 0;
  virtual bool settled() = 0;
  // From now on kernels of the program may wait for other ranks, of which nobody hears when they are over.
  virtual void let_kernels_wait() = 0;
  // The bytes, of which there may be none, and then the word: who sees it sees the bytes, and what the stream did before. `own`: memory of the
  // device whose stream it is; the rest may be another's.
  virtual Status put_signal_in(std::uint64_t stream, const Piece& own, const StreamPut& put) = 0;
  virtual Status wait_in(std::uint64_t stream, const Piece& word, const WordWait& wait) = 0;
  // The team's barrier, of at most kMostMeeting PEs; `own`: the own part.
  static constexpr int kMostMeeting = 8;
  virtual Status meet_in(std::uint64_t stream, const Piece& own, const ist_team_view& view) = 0;
};

}  // namespace ist
