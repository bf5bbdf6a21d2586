#include "collective/parts_alike.hpp"

#include <algorithm>
#include <utility>

namespace ist {
namespace {

// Beside those of what all give alike.
constexpr std::int32_t kPartNumber = Schedule::kTags - 2;
constexpr std::int32_t kVerdictNumber = Schedule::kTags - 3;

// The two ends of one part; it travels as it is.
struct TwoEnds {
  std::uint32_t present = 0;
  std::int32_t sender = -1;  // of a verdict: -1, the receiver has found nothing
  PartNote sent;
  PartNote received;
};
static_assert(std::is_trivially_copyable_v<TwoEnds>);

bool differ(const TwoEnds& part) {
  if (part.sent.bytes == PartNote::kUnknown || part.received.bytes == PartNote::kUnknown) return false;
  return part.sent.bytes != part.received.bytes || difference(part.sent.types, part.received.types);
}

std::string what_differs(const TwoEnds& part, int receiver) {
  const std::string from = "rank " + std::to_string(part.sender);
  const std::string to = "rank " + std::to_string(receiver);
  const std::string out = "what " + from + " sends to " + to;
  const std::string in = "what " + to + " receives of " + from;
  if (const auto types = difference(part.sent.types, part.received.types))
    return described(*types, {out, part.sent.types}, {in, part.received.types});
  return out + " has " + std::to_string(part.sent.bytes) + " bytes, and " + in + " has " +
         std::to_string(part.received.bytes);
}

// By rank: what this one told and heard of parts, and then what each has found of those that it receives.
struct PartsHeard {
  PartsHeard(const Communicator& comm, const GivenParts& mine)
      : name(comm.name()), rank(comm.rank()), told(at(comm.size())), heard(at(comm.size())), verdicts(at(comm.size())) {
    for (std::size_t other = 0; other < told.size(); ++other) told[other] = {1, -1, mine.sent[other], mine.received[other]};
    heard[at(rank)] = told[at(rank)];
  }
  static std::size_t at(int number) { return static_cast<std::size_t>(number); }

  std::string name;  // of the communicator, which may be gone
  int rank;
  std::vector<TwoEnds> told;
  std::vector<TwoEnds> heard;
  std::vector<TwoEnds> verdicts;
};
// Of a rank that is gone the call itself tells.
bool all_present(const std::vector<TwoEnds>& all) {
  return std::all_of(all.begin(), all.end(), [](const TwoEnds& one) { return one.present != 0; });
}

// Finds the first of this rank's parts that is not what its sender sends.
class PartsComparison final : public Action {
 public:
  explicit PartsComparison(std::shared_ptr<PartsHeard> all) : all_(std::move(all)) {}
  Result<bool> step(Moment& /*now*/) override {
    TwoEnds& verdict = all_->verdicts[PartsHeard::at(all_->rank)];
    verdict.present = 1;
    for (std::size_t sender = 0; sender < all_->heard.size(); ++sender) {
      TwoEnds part = all_->heard[sender];
      part.sender = static_cast<std::int32_t>(sender);
      part.received = all_->told[sender].received;
      if (part.present == 0 || !differ(part)) continue;
      verdict = part;
      break;
    }
    return true;
  }

 private:
  std::shared_ptr<PartsHeard> all_;
};

// Every rank hears the same verdicts, and tells of the same one.
class PartsVerdict final : public Action {
 public:
  explicit PartsVerdict(std::shared_ptr<PartsHeard> all) : all_(std::move(all)) {}
  Result<bool> step(Moment& now) override {
    if (now.abandoned || !all_present(all_->verdicts)) return true;
    for (std::size_t receiver = 0; receiver < all_->verdicts.size(); ++receiver) {
      const TwoEnds& part = all_->verdicts[receiver];
      if (part.sender < 0) continue;
      now.schedule.call_off();
      return Status{IST_ERR_ARGUMENT, "the ranks of \"" + all_->name + "\" do not receive what is sent to them: " +
                                          what_differs(part, static_cast<int>(receiver)) + " (found by ISTHMUS_CHECK)"};
    }
    return true;
  }

 private:
  std::shared_ptr<PartsHeard> all_;
};

Piece place_of(TwoEnds& one) { return host_piece(&one, Bytes{sizeof one}); }

}  // namespace

Told tell_parts(Plan& plan, const Told& told, const GivenParts& mine) {
  Schedule& schedule = plan.schedule();
  const auto all = std::make_shared<PartsHeard>(plan.comm(), mine);
  const Plan::Step compared = schedule.act(std::make_unique<PartsComparison>(all), {told.compared});
  const Plan::Step verdict = schedule.act(std::make_unique<PartsVerdict>(all), {compared});
  for (int distance = 1; distance < plan.size(); ++distance) {
    const int from = (plan.rank() - distance + plan.size()) % plan.size();
    const int to = (plan.rank() + distance) % plan.size();
    const std::size_t source = PartsHeard::at(from), dest = PartsHeard::at(to), own = PartsHeard::at(plan.rank());
    const auto in = [&](std::vector<TwoEnds>& list, std::int32_t number, Plan::Step after) {
      return schedule.regardless(plan.receive(place_of(list[source]), from, number, {after}));
    };
    const auto out = [&](TwoEnds& one, std::int32_t number, Plan::Step after) {
      return schedule.regardless(plan.send(place_of(one), to, number, {after}));
    };
    plan.need(compared, in(all->heard, kPartNumber, told.compared));
    plan.need(compared, out(all->told[dest], kPartNumber, told.compared));
    plan.need(verdict, in(all->verdicts, kVerdictNumber, compared));
    plan.need(verdict, out(all->verdicts[own], kVerdictNumber, compared));
  }
  return {verdict, schedule.size()};
}

}  // namespace ist
