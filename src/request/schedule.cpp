#include "request/schedule.hpp"

namespace ist {

void combine_on_host(const Combiner& combiner, std::byte* into, const std::byte* with, Bytes bytes) {
  const auto count = static_cast<std::int64_t>(bytes.value / size_of(combiner.type).value);
  if (combiner.function != nullptr) {
    combiner.function(with, into, count, combiner.type, combiner.user);
  } else {
    combine_on_host(combiner.reduction, combiner.type, into, with, count);
  }
}

Schedule::StepId Schedule::add(const Step& step, std::initializer_list<StepId> needs) {
  const StepId id = size();
  steps_.push_back(step);
  for (const StepId needed : needs) need(id, needed);
  return id;
}

// Counting sort of the needs by the step that is needed.
void Schedule::sort_needs() {
  first_follower_.assign(steps_.size() + 1, 0);
  for (const auto& [needed, needing] : needs_) ++first_follower_[needed + 1];
  for (std::size_t i = 0; i < steps_.size(); ++i) first_follower_[i + 1] += first_follower_[i];
  followers_.resize(needs_.size());
  std::vector<std::uint32_t> next(first_follower_.begin(), first_follower_.end());
  for (const auto& [needed, needing] : needs_) followers_[next[needed]++] = needing;
}

}  // namespace ist
