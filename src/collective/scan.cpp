// Prefix reductions. Short ones are combined by rank: in shared memory, or everybody sends to all behind. The others (Hillis, Steele 1986): after round k each rank has combined the inputs of itself and of up to 2^k - 1
// ranks before it; ceil(log2 n) rounds, always with the left operand from the left.
#include <array>
#include <bit>

#include "collective/collectives.hpp"
#include "collective/in_order.hpp"
#include "collective/shared.hpp"

namespace ist {
namespace {

// Chunks of a long vector go through the rounds one after the other, two under way at a time.
struct Turn {
  Piece partial;              // size 0: the result is combined where it belongs
  std::vector<Piece> theirs;  // by round
  Plan::Step last_use = Plan::kNone;
};

class Scan {
 public:
  // The ranks from `first` on take part.
  Scan(Plan& plan, const ReductionData& data, bool exclusive)
      : plan_(plan),
        data_(data),
        first_(exclusive ? 1 : 0),
        exclusive_(exclusive),
        rounds_(1 + static_cast<int>(std::bit_width(static_cast<unsigned>(plan.size() - 1)))),
        // With one to spare, since chunks end between elements.
        chunks_(Parts::chunks(data.elements, Plan::chunk_of(data.elements.bytes(), Schedule::kTags / rounds_ - 1))) {
    beside_ = plan.combines_on(data.recv, data.elements.bytes());
    const Bytes most = chunks_.elements(0).bytes();
    for (Turn& turn : turns_) {
      // Rank 0 of an exclusive one has no result.
      if (!beside_) turn.partial = plan.scratch_for(data.recv, false, most);
      for (int distance = 1; plan.rank() - distance >= first_; distance *= 2)
        turn.theirs.push_back(plan.scratch_for(data.recv, beside_, most));
      if (chunks_.size() == 1) break;
    }
  }

  void plan_chunks() {
    for (int c = 0; c < chunks_.size(); ++c) plan_chunk(c);
  }

 private:
  int tag(int chunk, int round) const { return chunk * rounds_ + round; }

  void plan_chunk(int number) {
    Turn& turn = turns_[static_cast<std::size_t>(number % 2)];
    const Piece input = chunks_.of(data_.send, number);
    Plan::Step sent = Plan::kNone;
    if (exclusive_ && plan_.rank() + 1 < plan_.size()) sent = plan_.send(input, plan_.rank() + 1, tag(number, 0), {});
    if (plan_.rank() < first_) return;
    const Piece result = chunks_.of(data_.recv, number);
    const Piece partial = beside_ ? result : turn.partial.part(Offset{}, result.size);
    if (exclusive_) {
      const Plan::Step begun =
          plan_.receive(partial, plan_.rank() - 1, tag(number, 0), {turn.last_use, data_.in_place ? sent : Plan::kNone});
      return finish(partial, partial, result, turn, begun, number);
    }
    finish(input, partial, result, turn, Plan::kNone, number);
  }

  // `have`: what this rank begins with, its own input, or that of the rank before in the place of partial results.
  void finish(Piece have, const Piece& partial, const Piece& result, Turn& turn, Plan::Step done, int number) {
    int round = 1;
    for (int distance = 1; distance < plan_.size(); distance *= 2, ++round) {
      Plan::Step sent = Plan::kNone;
      if (plan_.rank() + distance < plan_.size())
        sent = plan_.send(have, plan_.rank() + distance, tag(number, round), {done});
      if (plan_.rank() - distance >= first_) {
        const Piece theirs = turn.theirs[static_cast<std::size_t>(round - 1)].part(Offset{}, result.size);
        const Plan::Step needed = same_place(have, partial) || data_.in_place ? sent : Plan::kNone;
        // Behind a send it would be received only once the receiver of that goes on, and so from rank to rank.
        const Plan::Operands operands{partial, have, theirs, true, needed == Plan::kNone};
        done =
            plan_.receive_combined(operands, plan_.rank() - distance, tag(number, round), {turn.last_use}, {needed, done});
        have = partial;
      } else if (sent != Plan::kNone) {
        const Plan::Step both = plan_.join();
        plan_.need(both, done);
        plan_.need(both, sent);
        done = both;
      }
    }
    turn.last_use = same_place(result, have) ? done : plan_.copy(result, have, {done});
  }

  Plan& plan_;
  const ReductionData& data_;
  int first_;
  bool exclusive_;
  int rounds_;  // and the one in which an exclusive one begins
  Parts chunks_;
  bool beside_ = false;
  std::array<Turn, 2> turns_;
};

// Everybody's whole vector to all behind, who combine what they need of it in the order of ranks: one message's time.
void flat_scan(Plan& plan, const ReductionData& data, bool exclusive) {
  const int rank = plan.rank();
  plan.walk(data.elements.bytes());
  const Partial mine = input_to_send(plan, data, rank + 2 < plan.size());
  for (int to = rank + 1; to < plan.size(); ++to) plan.send(mine.piece, to, 0, {mine.done});
  const int last = rank - (exclusive ? 1 : 0);
  if (last >= 0) combine_in_order(plan, data, mine, 0, last);
}

}  // namespace

void plan_scan(Plan& plan, const ReductionData& data, bool exclusive) {
  plan.tell(Plan::Call::scan, data.elements.bytes(), exclusive ? 1 : 0);
  const Algorithm chosen =
      plan.size() > 1 ? plan.choose(ChosenCall::scan, data.elements.bytes()) : Algorithm::recursive_doubling;
  if (chosen == Algorithm::shared) return shared_scan(plan, data, exclusive);
  if (chosen == Algorithm::flat) return flat_scan(plan, data, exclusive);
  plan.walk(data.elements.bytes());
  Scan{plan, data, exclusive}.plan_chunks();
}

}  // namespace ist
