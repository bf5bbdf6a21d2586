#include "match/matcher.hpp"

#include <algorithm>
#include <utility>

namespace ist {

std::optional<std::uint32_t> Matcher::match_posted(Rank source, const Envelope& envelope) {
  for (std::size_t at = first_; at < end_; ++at) {
    const Posted& receive = posted_[at];
    if (!receive.pattern.takes(source, envelope)) continue;
    const std::uint32_t operation = receive.operation;
    leave_gap_behind(at);
    return operation;
  }
  return std::nullopt;
}

// Perhaps behind a receive that waits for long.
void Matcher::leave_gap_behind(std::size_t at) {
  leave_gap(at);
  if (end_ - first_ > 2 * count_ + kFewGaps) close_gaps();
}

// The array doubles unless half of it was gaps, so that each receive is moved a bounded number of times.
void Matcher::close_gaps() {
  const auto at = [this](std::size_t place) { return posted_.begin() + static_cast<std::ptrdiff_t>(place); };
  const auto kept = std::remove_if(at(first_), at(end_), [](const Posted& receive) { return !receive.waits(); });
  const auto moved = std::move(at(first_), kept, at(0));
  first_ = 0;
  end_ = static_cast<std::size_t>(moved - at(0));
  const std::size_t room = std::max({room_, 2 * count_, std::size_t{64}});
  posted_.resize(room);
  room_ = room;  // not before there is
}

Unexpected& Matcher::keep(Unexpected message) { return unexpected_.emplace_back(std::move(message)); }

const Unexpected* Matcher::peek(const Pattern& pattern) const {
  for (const Unexpected& message : unexpected_)
    if (pattern.takes(message.source, message.envelope)) return &message;
  return nullptr;
}

std::optional<Matcher::Kept> Matcher::find_kept(const Pattern& pattern) {
  for (auto it = unexpected_.begin(); it != unexpected_.end(); ++it)
    if (pattern.takes(it->source, it->envelope)) return it;
  return std::nullopt;
}

std::optional<Unexpected> Matcher::claim(const Pattern& pattern) {
  const auto kept = find(pattern);
  if (!kept) return std::nullopt;
  std::optional<Unexpected> found = std::move(**kept);
  drop(*kept);
  return found;
}

bool Matcher::last_comes_first(Rank source) const {
  constexpr std::size_t kLooks = 16;
  if (end_ - first_ > kLooks) return false;
  for (std::size_t at = first_; at + 1 < end_; ++at) {
    const Posted& before = posted_[at];
    if (before.pattern.source == kAnySource || before.pattern.source == source.value) return false;
  }
  return true;
}

bool Matcher::withdraw(std::uint32_t operation) {
  for (std::size_t at = first_; at < end_; ++at) {
    if (!posted_[at].waits() || posted_[at].operation != operation) continue;
    leave_gap_behind(at);
    return true;
  }
  return false;
}

void Matcher::forget_announced(Rank source) {
  unexpected_.remove_if([source](const Unexpected& message) {
    return message.source == source && message.envelope.type == EnvelopeType::announce;
  });
}

void Matcher::forget_announced(Rank source, std::uint32_t sender_op) {
  unexpected_.remove_if([=](const Unexpected& message) {
    return message.source == source && message.envelope.type == EnvelopeType::announce &&
           message.envelope.sender_op == sender_op;
  });
}

}  // namespace ist
