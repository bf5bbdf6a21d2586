#include "collective/alike.hpp"

#include <algorithm>
#include <utility>

#include "layout/extent.hpp"

namespace ist {
namespace {

// Far from the numbers that algorithms count up from 0; and what was sent first is received first.
constexpr std::int32_t kNumber = Schedule::kTags - 1;

std::string operation_text(std::uint32_t operation) {
  if (operation == GivenAlike::kOrdered) return "one of ist_op_create() in the order of ranks";
  if (operation == GivenAlike::kCommutative) return "one of ist_op_create() that commutes";
  if (operation > 0 && operation <= kReductions) return std::string{name_of(static_cast<Reduction>(operation))};
  return "none that there is";
}

std::int64_t bytes_of(const GivenAlike& given) {
  if (given.type == GivenAlike::kLayout) return given.count;
  return given.count * static_cast<std::int64_t>(size_of(static_cast<ist_type>(given.type)).value);
}

// Of the first rank's part and a part of another, or of its own.
std::optional<FirstDifference> unlike(const TypeNote& one, const TypeNote& other, const char* of_what) {
  const auto types = difference(one, other);
  if (!types) return std::nullopt;
  if (!types->sent || !types->received)
    return FirstDifference{"what comes behind element " + std::to_string(types->element - 1), "made of some types",
                           std::string{"of others"} + of_what};
  return FirstDifference{"element " + std::to_string(types->element), name_of(*types->sent),
                         name_of(*types->received) + std::string{of_what}};
}
std::optional<FirstDifference> unlike(const GivenAlike& one, const GivenAlike& other) {
  auto found = unlike(one.types, other.types, "");
  return found ? found : unlike(one.types, other.own, " (in its own part)");
}

class Comparison final : public Action {
 public:
  Comparison(const Communicator& comm, const GivenAlike& mine)
      : name_(comm.name()), all_(static_cast<std::size_t>(comm.size())) {
    for (int rank = 0; rank < comm.size(); ++rank) world_.push_back(comm.to_world(rank));
    for (GivenAlike& one : all_) one.present = 0;
    all_[static_cast<std::size_t>(comm.rank())] = mine;
  }
  Piece of(int rank) { return host_piece(&all_[static_cast<std::size_t>(rank)], Bytes{sizeof(GivenAlike)}); }

  // Every rank hears the same, and finds the same two.
  Result<bool> step(Moment& now) override {
    if (now.abandoned) return true;
    // Of a rank that is gone the call itself tells; and it may have told some of the others what it gives.
    const bool all_told = std::none_of(all_.begin(), all_.end(), [](const GivenAlike& one) { return one.present == 0; });
    for (std::size_t rank = 0; all_told && rank < all_.size(); ++rank) {  // rank 0, too: its own part may be of other types
      const auto found = difference(all_.front(), all_[rank]);
      if (!found) continue;
      now.schedule.call_off();
      return Status{IST_ERR_ARGUMENT, "the ranks of \"" + name_ + "\" give different values where all must give the same: " +
                                          found->what + " is " + found->one + " on rank 0 and " + found->other +
                                          " on rank " + std::to_string(rank) + " (found by ISTHMUS_CHECK)"};
    }
    // One that gives the same and cannot make the call takes no part in it either.
    for (std::size_t rank = 0; rank < all_.size(); ++rank) {
      if (all_[rank].present == 0 || all_[rank].present == GivenAlike::kFine) continue;
      now.schedule.call_off();
      return now.engine.gave_up(world_[rank], static_cast<Code>(all_[rank].present - GivenAlike::kFine));
    }
    return true;
  }

 private:
  std::string name_;             // of the communicator, which may be gone
  std::vector<Rank> world_;      // its ranks
  std::vector<GivenAlike> all_;  // by rank
};

}  // namespace

void GivenAlike::name(std::string_view call_name) {
  call = {};
  std::copy_n(call_name.begin(), std::min(call_name.size(), call.size() - 1), call.begin());
}

std::optional<FirstDifference> difference(const GivenAlike& one, const GivenAlike& other) {
  const auto found = [](const char* what, std::string a, std::string b) {
    return FirstDifference{what, std::move(a), std::move(b)};
  };
  if (one.call != other.call) return found("call", one.call.data(), other.call.data());
  if (one.root != other.root) return found("root", std::to_string(one.root), std::to_string(other.root));
  if (one.operation != other.operation)
    return found("operation", operation_text(one.operation), operation_text(other.operation));
  if (const bool laid = one.type == GivenAlike::kLayout; laid != (other.type == GivenAlike::kLayout)) {
    const std::int64_t a = bytes_of(one), b = bytes_of(other);
    if (a == b) return std::nullopt;
    return found("bytes", std::to_string(a), std::to_string(b));
  } else if (laid && one.count != other.count) {
    return found("bytes", std::to_string(one.count), std::to_string(other.count));
  } else if (laid) {
    if (auto types = unlike(one, other)) return types;
  }
  if (one.type != other.type)
    return found("type", name_of(static_cast<ist_type>(one.type)), name_of(static_cast<ist_type>(other.type)));
  if (one.count != other.count) return found("count", std::to_string(one.count), std::to_string(other.count));
  if (one.digest != other.digest)
    return found("counts", "parts with " + std::to_string(one.count) + " elements in all", "as many in other parts");
  return std::nullopt;
}

// FNV-1a over the numbers.
void GivenAlike::list(const std::int64_t* counts, int ranks) {
  digest = 0xcbf29ce484222325U;
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    sum += static_cast<std::uint64_t>(counts[rank]);
    digest = (digest ^ static_cast<std::uint64_t>(counts[rank])) * 0x100000001b3U;
  }
  count = static_cast<std::int64_t>(sum);
}

Told tell_what_is_given(Plan& plan, const GivenAlike& mine) {
  plan.set_compared();
  Schedule& schedule = plan.schedule();
  auto made = std::make_unique<Comparison>(plan.comm(), mine);
  Comparison& all = *made;
  const Plan::Step compared = schedule.act(std::move(made), {});
  for (int distance = 1; distance < plan.size(); ++distance) {
    const int from = (plan.rank() - distance + plan.size()) % plan.size();
    const int to = (plan.rank() + distance) % plan.size();
    plan.need(compared, schedule.regardless(plan.receive(all.of(from), from, kNumber, {})));
    plan.need(compared, schedule.regardless(plan.send(all.of(plan.rank()), to, kNumber, {})));
  }
  return {compared, schedule.size()};
}

void hold_back(Plan& plan, const Told& told) {
  Schedule& schedule = plan.schedule();
  for (Plan::Step step = told.end; step < schedule.size(); ++step)
    if (schedule.at(step).unmet == 0) schedule.need(step, told.compared);
}

}  // namespace ist
