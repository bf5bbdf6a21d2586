// Which receive does this arrival belong to? Sees envelopes only, whatever carries the bytes.
//
// Who calls this : request/engine.
// Threads        : under the world's lock.
// Ownership      : owns the bytes of eager messages that came before their receive.
// Errors         : none.
//
// MPI's rule: of two messages of one sender that a receive would take, it takes the one sent first; of two receives that
// would take a message, the one posted first gets it. Both lists are kept and searched in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "base/wire.hpp"
#include "match/kept_bytes.hpp"

namespace ist {

inline constexpr std::int32_t kAnySource = -1;
inline constexpr std::int32_t kAnyTag = -1;
// The source of what takes no message, which nobody can name.
inline constexpr std::int32_t kNoSource = std::numeric_limits<std::int32_t>::min();

struct Pattern {
  std::uint32_t context = 0;
  std::int32_t source = kAnySource;
  std::int32_t tag = kAnyTag;
  bool takes(Rank from, std::uint32_t in, std::int32_t tagged) const {
    return context == in && (source == from.value || source == kAnySource) && (tag == tagged || tag == kAnyTag);
  }
  bool takes(Rank from, const Envelope& envelope) const { return takes(from, envelope.context, envelope.tag); }
};

// A message that came before its receive. An announced one has no bytes here yet.
struct Unexpected {
  Rank source;
  Envelope envelope;
  KeptBytes bytes;
  bool in_cell = false;               // how the bytes came, for the status
  std::vector<std::byte> types = {};  // what it is made of, where that was told
};

class Matcher {
 public:
  // The receive (an operation's id) that takes this envelope, removed from the list; none if no receive does.
  std::optional<std::uint32_t> match(Rank source, const Envelope& envelope) {
    return count_ == 0 ? std::nullopt : match_posted(source, envelope);
  }
  // The same if the receive that was posted first takes it, which nearly always is the one; else nothing has happened.
  bool match_first(Rank source, const Envelope& envelope, std::uint32_t& operation) {
    if (count_ == 0) return false;
    const Posted& first = posted_[first_];  // where there is any, this is no gap
    if (!first.pattern.takes(source, envelope)) return false;
    operation = first.operation;
    drop_first(1);
    return true;
  }
  struct Posted {
    Pattern pattern{.source = kNoSource};  // of nobody: a gap, which was matched or withdrawn
    std::uint32_t operation = 0;
    bool waits() const { return pattern.source != kNoSource; }
  };
  static_assert(sizeof(Posted) == 16);
  // The receives from the one that was posted first on, in that order, and gaps, of which the first is none. drop_first(): so many of
  // them, no gap among them, have got their messages.
  std::span<const Posted> in_order() const { return {posted_.data() + first_, end_ - first_}; }
  void drop_first(std::size_t several) {
    first_ += several;
    count_ -= several;
    skip_gaps();
  }
  // Throws where memory runs out, and then nothing has happened.
  Unexpected& keep(Unexpected message);
  // The first kept message that the pattern takes, which stays until drop(); none: the receive is to be posted.
  using Kept = std::list<Unexpected>::iterator;
  std::optional<Kept> find(const Pattern& pattern) { return unexpected_.empty() ? std::nullopt : find_kept(pattern); }
  void drop(Kept kept) { unexpected_.erase(kept); }
  // Where no kept message is one that it takes. Throws where memory runs out, and then nothing has happened.
  void post(const Pattern& pattern, std::uint32_t operation) {
    if (full()) [[unlikely]]
      close_gaps();
    post_behind(pattern, operation);
  }
  // Would post() have to make room first?
  bool full() const { return end_ == room_; }
  // post() where it would not.
  void post_behind(const Pattern& pattern, std::uint32_t operation) {
    posted_[end_++] = {pattern, operation};
    ++count_;
  }
  // The first kept message that the pattern takes, which stays; null if there is none.
  const Unexpected* peek(const Pattern& pattern) const;
  // The same, removed from the list.
  std::optional<Unexpected> claim(const Pattern& pattern);
  // Will the receive that was posted last take the next message of that rank that its pattern fits? Not if one before it may take any of that
  // rank; and nobody looks through many.
  bool last_comes_first(Rank source) const;
  // Forgets a posted receive; false if it is not posted.
  bool withdraw(std::uint32_t operation);
  // Forgets announced messages of a rank that is gone: their bytes can no longer come.
  void forget_announced(Rank source);
  // Forgets the one that was announced as `sender_op`, if it is still here: its sender has taken it back.
  void forget_announced(Rank source, std::uint32_t sender_op);
  std::size_t posted() const { return count_; }
  std::size_t unexpected() const { return unexpected_.size(); }

 private:
  std::optional<std::uint32_t> match_posted(Rank source, const Envelope& envelope);
  std::optional<Kept> find_kept(const Pattern& pattern);
  void leave_gap(std::size_t at) {
    posted_[at].pattern.source = kNoSource;
    --count_;
    skip_gaps();
  }
  void skip_gaps() {
    if (count_ == 0) {
      first_ = end_ = 0;
    } else {
      while (!posted_[first_].waits()) ++first_;
    }
  }
  void leave_gap_behind(std::size_t at);
  [[gnu::noinline]] void close_gaps();
  // In the order in which they were posted, from first_ on and before end_. Gaps are closed when the array is full, so that a steady exchange
  // allocates nothing, and when they are more than the receives, so that looking past them costs little: a receive that waits
  // for long keeps first_ where it is.
  static constexpr std::size_t kFewGaps = 64;
  std::vector<Posted> posted_;
  std::size_t first_ = 0;  // everything before is over
  std::size_t end_ = 0;
  std::size_t room_ = 0;   // of the array
  std::size_t count_ = 0;  // without the gaps
  std::list<Unexpected> unexpected_;
};

}  // namespace ist
