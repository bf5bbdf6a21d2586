// What the algorithms of each collective call cost: their prices, by the model that choose.hpp tells of.
//
// Who calls this : choose.cpp.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <algorithm>
#include <bit>

#include "collective/choose.hpp"

// A namespace of their own: what plans a call has the same names.
namespace ist::prices {

// What a price is made of: a call's numbers, and where its terms go, a Sum or a Bill.
template <class Price>
class Count {
 public:
  Count(const CollectiveShape& shape, const CollectiveProfile& machine, Price& price)
      : machine_(machine),
        price_(price),
        ranks_(shape.ranks),
        doublings_(static_cast<int>(std::bit_width(static_cast<unsigned>(shape.ranks - 1)))),
        bytes_(static_cast<double>(shape.bytes.value)) {}
  double ranks() const { return ranks_; }
  // ceil(log2 ranks)
  int doublings() const { return doublings_; }
  bool power_of_two() const { return std::has_single_bit(static_cast<unsigned>(ranks_)); }
  double bytes() const { return bytes_; }
  double share() const { return bytes_ / ranks_; }

  // `number` messages one after the other.
  void messages(double number, double bytes) {
    if (bytes > machine_.announced_above) {
      price_.add("announced messages, one after the other", number * machine_.alpha_large);
    } else {
      price_.add("messages, one after the other", number * machine_.alpha);
    }
    price_.add("their bytes", number * bytes * machine_.beta);
  }
  // That many each to another rank, or from one, at the same time: the first is a message, the rest is under way beside it.
  void at_once(double number, double bytes, double times = 1) {
    messages(times, bytes);
    price_.add("messages under way beside them", times * (number - 1) * machine_.post);
    price_.add("the bytes of those", times * (number - 1) * bytes * machine_.beta);
  }
  // Everybody with everybody: beyond some peers, caches are too small for all of them.
  void everybody(double bytes, double times = 1) {
    const double peers = ranks_ - 1;
    at_once(peers, bytes, times);
    const double beyond = std::max(0.0, peers - machine_.crowd_from);
    price_.add("crowded caches", times * beyond * machine_.crowd * machine_.beta * bytes);
  }
  void says(double bytes) {
    if (machine_.shared_up_to == 0 || bytes > machine_.shared_up_to)
      refuse(machine_.shared_up_to == 0 ? "there is no memory that all of these ranks see"
                                        : "what one rank says at a time in memory that all of them see is shorter");
  }
  // Each says `in` bytes, and takes `out` of what `others` say: a message's bytes are copied in and out, too.
  void round(double in, double others, double out) {
    says(in);
    price_.add("a round through shared memory", machine_.alpha);
    price_.add("more of the others to hear", (others - 1) * machine_.post / 2);
    price_.add("bytes in and out", (in + out) * machine_.beta / 2);
  }
  bool beside_gpus() const { return machine_.beside_gpus; }
  bool are_few() const { return are_few(bytes_); }
  bool are_few(double bytes) const { return bytes <= machine_.few_of_two; }
  // None says what it keeps, and each combines what the other one says where it lies.
  bool are_two() const { return ranks_ == 2; }
  // From one to the other of two ranks, or once each way: a message does without what a round tells everybody.
  void between_two() {
    if (ranks_ == 2) price_.add("what a message between two does without", machine_.post);
  }
  void combining(double bytes) { price_.add("combining", bytes * machine_.gamma); }
  void chunks(double number) { price_.add("more chunks to announce", number * machine_.alpha_large); }
  void refuse(const char* why) { price_.refuse(why); }
  bool is_long() const { return bytes_ > static_cast<double>(kMostKept.value); }
  // A long reduce of two ranks on hosts.
  bool one_sends_all() const { return are_two() && is_long() && !beside_gpus(); }
  // Whole vectors of all ranks in memory at once: only of what is short.
  void keep_all() {
    if (is_long()) refuse("every rank's vector would be in memory at once, and is longer than 64 KiB");
  }

 private:
  const CollectiveProfile& machine_;
  Price& price_;
  int ranks_;
  int doublings_;
  double bytes_;
};

// The prices. Each is written down once, for a Sum and for a Bill.

template <class Price>
void flat_bcast(Count<Price> cost) {
  cost.at_once(cost.ranks() - 1, cost.bytes());
}

template <class Price>
void binomial_bcast(Count<Price> cost) {
  cost.messages(cost.doublings(), cost.bytes());
}

template <class Price>
void chain_bcast(Count<Price> cost) {
  cost.messages(1, cost.bytes());
  cost.messages(cost.ranks() - 2, std::min(cost.bytes(), kChainChunk));
  cost.chunks(cost.bytes() / kChainChunk);
}

// Of two ranks what is long is combined as it comes, by processors, which spares a half of what combining reads and writes.
template <class Price>
void flat_to_root(Count<Price> cost) {
  cost.at_once(cost.ranks() - 1, cost.bytes());
  if (cost.one_sends_all()) return cost.combining(cost.bytes() / 2);
  cost.combining((cost.ranks() - 1) * cost.bytes());
  cost.keep_all();
}

template <class Price>
void flat_reduce(Count<Price> cost) {
  cost.at_once(cost.ranks() - 1, cost.bytes());
  cost.combining((cost.ranks() - 1) * cost.bytes());
  cost.keep_all();
}

template <class Price>
void binomial_reduce(Count<Price> cost) {
  cost.messages(cost.doublings(), cost.bytes());
  cost.combining(cost.doublings() * cost.bytes());
}

template <class Price>
void flat_allreduce(Count<Price> cost) {
  cost.everybody(cost.bytes());
  cost.combining((cost.ranks() - 1) * cost.bytes());
  cost.keep_all();
}

template <class Price>
void recursive_doubling(Count<Price> cost) {
  // Those beyond a power of two take part through a neighbour: one message more before, and one after.
  const double combined = cost.doublings();
  cost.messages(cost.power_of_two() ? combined : combined + 1, cost.bytes());
  cost.combining(combined * cost.bytes());
}

// To one rank or to all: the last messages go at the same time.
template <class Price>
void direct_reduction(Count<Price> cost) {
  cost.everybody(cost.share(), 2);
  cost.combining((cost.ranks() - 1) * cost.share());
}

// A part of it back and forth between two ranks keeps both busy with copies. Reduces of two ranks of a Zen 5, near (us, 2026-11-29, seen, in no
// file; flat, direct): 128 KiB 3.5, 4.8; 1 MiB 26, 50.
template <class Price>
void direct_to_root(Count<Price> cost) {
  if (cost.one_sends_all()) cost.refuse("of two ranks the root combines what the other one sends as it comes");
  direct_reduction(cost);
}

template <class Price>
void ring_allreduce(Count<Price> cost) {
  cost.messages(2 * (cost.ranks() - 1), cost.share());
  cost.combining((cost.ranks() - 1) * cost.share());
}

template <class Price>
void direct_allgather(Count<Price> cost) {
  cost.everybody(cost.share());
}

template <class Price>
void ring_allgather(Count<Price> cost) {
  cost.messages(cost.ranks() - 1, cost.share());
}

template <class Price>
void direct_reduce_scatter(Count<Price> cost) {
  cost.everybody(cost.share());
  cost.combining((cost.ranks() - 1) * cost.share());
}

template <class Price>
void direct_alltoall(Count<Price> cost) {
  cost.everybody(cost.share());
}

template <class Price>
void shared_bcast(Count<Price> cost) {
  if (!cost.are_few() || cost.beside_gpus()) cost.between_two();
  cost.round(cost.bytes(), 1, cost.bytes());
}

template <class Price>
void shared_reduction(Count<Price> cost) {
  const double others = cost.ranks() - 1;
  cost.round(cost.bytes(), others, others * cost.bytes());
  cost.combining(others * cost.bytes());
}

template <class Price>
void shared_reduce(Count<Price> cost) {
  if (!cost.are_two()) {
    cost.between_two();
    return shared_reduction(cost);
  }
  cost.round(cost.bytes(), 1, 0);
  cost.combining(cost.bytes());
}

// Each combines a part, and says that.
template <class Price>
void shared_parts(Count<Price> cost) {
  const double others = cost.ranks() - 1;
  cost.says(cost.bytes());
  cost.round(cost.are_two() ? cost.share() : cost.bytes(), others, cost.are_two() ? 0 : cost.bytes());
  cost.combining(others * cost.share());
  cost.round(cost.share(), others, others * cost.share());
}

template <class Price>
void shared_barrier(Count<Price> cost) {
  cost.round(0, cost.ranks() - 1, 0);
}

// In as many rounds as there are doublings, as a tree without bytes.
template <class Price>
void barrier_in_rounds(Count<Price> cost) {
  cost.messages(cost.doublings(), 0);
}

template <class Price>
void shared_scan(Count<Price> cost) {
  if (!cost.are_few() && !cost.beside_gpus()) cost.between_two();
  shared_reduction(cost);
}

template <class Price>
void shared_allgather(Count<Price> cost) {
  const double others = cost.ranks() - 1;
  if (!cost.are_few(cost.share()) && !cost.beside_gpus()) cost.between_two();
  cost.round(cost.share(), others, others * cost.share());
}

template <class Price>
void shared_alltoall(Count<Price> cost) {
  const double others = cost.ranks() - 1;
  // With a rank's own part, but of what is short. Two ranks do not say that: but of more their messages were as quick (few_of_two).
  cost.says(cost.bytes());
  constexpr double kShort = 4096;
  const bool is_short = cost.are_two() ? cost.are_few(cost.share()) : cost.bytes() <= kShort;
  const double own = is_short ? 0 : cost.share();
  cost.round(others * cost.share() + own, others, others * cost.share());
}

template <class Price>
void shared_reduce_scatter(Count<Price> cost) {
  shared_alltoall(cost);
  cost.combining((cost.ranks() - 1) * cost.share());
}

template <class Price>
void flat_parts(Count<Price> cost) {
  cost.at_once(cost.ranks() - 1, cost.share());
}

// As a broadcast beside GPUs, whatever the number of ranks: parts that lie on them go straight to where they are wanted.
template <class Price>
void shared_part_each(Count<Price> cost, double said, double others, double taken) {
  if (cost.beside_gpus()) cost.refuse("parts may lie on GPUs, and go from one to the other by messages");
  if (!cost.are_few(cost.share())) cost.between_two();
  cost.round(said, others, taken);
}

template <class Price>
void shared_gather(Count<Price> cost) {
  const double others = cost.ranks() - 1;
  shared_part_each(cost, cost.share(), others, others * cost.share());
}

template <class Price>
void shared_scatter(Count<Price> cost) {
  cost.says(cost.bytes());  // a root between others says its own part, too
  shared_part_each(cost, (cost.ranks() - 1) * cost.share(), 1, cost.share());
}

}  // namespace ist::prices
