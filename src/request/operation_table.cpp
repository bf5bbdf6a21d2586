#include "request/operation_table.hpp"

#include <algorithm>

namespace ist {

bool OperationTable::grow() {
  const auto index = static_cast<std::uint32_t>(lines_.size());
  if (index == kMost) return false;
  if (listed_ != nullptr && listed_->capacity() <= index) listed_->reserve(std::max<std::size_t>(64, 2 * lines_.size()));
  operations_.push_back(std::make_unique<Operation>());
  lines_.emplace_back().generation = first_generation_ + 1;
  lines_.back().next_free = first_free_;
  first_free_ = index;
  size_ = index + 1;
  return true;
}

void OperationTable::make_whole(std::uint32_t index) {
  PlainReceive& plain = lines_[index];
  Operation& operation = *operations_[index];
  operation.peer = Rank{plain.source};
  operation.piece = host_piece(plain.buffer, plain.room);
  if (plain.group != nullptr) operation.group = plain.group->shared_from_this();
  operation.state = state::Posted{};
  if (plain.stage == Stage::done) {
    operation.outcome.source = operation.peer;
    operation.outcome.tag = plain.tag;
    operation.outcome.carrier = IST_CARRIER_SLOT;
    operation.outcome.bytes = plain.bytes;
    operation.state = state::Done{};
  }
  plain.stage = Stage::whole;
  ++whole_;
}

void OperationTable::keep(const Group* group) {
  for (std::uint32_t index = 0; index < size_; ++index)
    if (lines_[index].stage > Stage::whole && lines_[index].group == group) make_whole(index);
}

}  // namespace ist
