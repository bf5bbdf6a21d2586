#include "match/matcher.hpp"

#include <utility>

namespace ist {

std::optional<std::uint32_t> Matcher::match(Rank source, const Envelope& envelope) {
  for (auto it = posted_.begin(); it != posted_.end(); ++it) {
    if (!it->pattern.takes(source, envelope)) continue;
    const std::uint32_t operation = it->operation;
    spare_posted_.splice(spare_posted_.begin(), posted_, it);
    return operation;
  }
  return std::nullopt;
}

void Matcher::keep(Unexpected message) { unexpected_.push_back(std::move(message)); }

const Unexpected* Matcher::peek(const Pattern& pattern) const {
  for (const Unexpected& message : unexpected_)
    if (pattern.takes(message.source, message.envelope)) return &message;
  return nullptr;
}

std::optional<Unexpected> Matcher::claim(const Pattern& pattern) {
  for (auto it = unexpected_.begin(); it != unexpected_.end(); ++it) {
    if (!pattern.takes(it->source, it->envelope)) continue;
    std::optional<Unexpected> found = std::move(*it);
    unexpected_.erase(it);
    return found;
  }
  return std::nullopt;
}

std::optional<Unexpected> Matcher::match_or_post(const Pattern& pattern, std::uint32_t operation) {
  if (auto found = claim(pattern)) return found;
  if (spare_posted_.empty()) {
    posted_.push_back({pattern, operation});
  } else {
    spare_posted_.front() = {pattern, operation};
    posted_.splice(posted_.end(), spare_posted_, spare_posted_.begin());
  }
  return std::nullopt;
}

bool Matcher::withdraw(std::uint32_t operation) {
  for (auto it = posted_.begin(); it != posted_.end(); ++it) {
    if (it->operation != operation) continue;
    spare_posted_.splice(spare_posted_.begin(), posted_, it);
    return true;
  }
  return false;
}

void Matcher::forget_announced(Rank source) {
  unexpected_.remove_if([source](const Unexpected& message) {
    return message.source == source && message.envelope.type == EnvelopeType::announce;
  });
}

}  // namespace ist
