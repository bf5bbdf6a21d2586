#include "collective/choose.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

namespace ist {
namespace {

// Whole vectors of all ranks are kept in memory at once up to this size.
constexpr double kMostKept = 64 << 10;

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
  bool are_few() const { return bytes_ <= machine_.few_of_two; }
  // None says what it keeps, and each combines what the other one says where it lies.
  bool are_two() const { return ranks_ == 2; }
  // From one to the other of two ranks, or once each way: a message does without what a round tells everybody.
  void between_two() {
    if (ranks_ == 2) price_.add("what a message between two does without", machine_.post);
  }
  void combining(double bytes) { price_.add("combining", bytes * machine_.gamma); }
  void chunks(double number) { price_.add("more chunks to announce", number * machine_.alpha_large); }
  void refuse(const char* why) { price_.refuse(why); }
  // Whole vectors of all ranks in memory at once: only of what is short.
  void keep_all() {
    if (bytes_ > kMostKept) refuse("every rank's vector would be in memory at once, and is longer than 64 KiB");
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
void shared_allgather(Count<Price> cost) {
  const double others = cost.ranks() - 1;
  cost.round(cost.share(), others, others * cost.share());
}

template <class Price>
void shared_alltoall(Count<Price> cost) {
  const double others = cost.ranks() - 1;
  // With a rank's own part, but of what is short. Two ranks do not say that: but of more their messages were as quick (few_of_two).
  cost.says(cost.bytes());
  const double own = cost.are_few() ? 0 : cost.share();
  cost.round(others * cost.share() + own, others, others * cost.share());
}

template <class Price>
void shared_reduce_scatter(Count<Price> cost) {
  shared_alltoall(cost);
  cost.combining((cost.ranks() - 1) * cost.share());
}

// The algorithms of each call: `offer` is given one after the other, with a function that writes its price down.
template <class Offer>
void each_bcast(const Offer& offer) {
  offer(Algorithm::shared, [](auto cost) { shared_bcast(cost); });
  offer(Algorithm::flat, [](auto cost) { flat_bcast(cost); });
  offer(Algorithm::binomial, [](auto cost) { binomial_bcast(cost); });
  offer(Algorithm::chain, [](auto cost) { chain_bcast(cost); });
}

template <class Offer>
void each_reduce(const Offer& offer) {
  offer(Algorithm::shared, [](auto cost) { shared_reduce(cost); });
  offer(Algorithm::flat, [](auto cost) { flat_reduce(cost); });
  offer(Algorithm::binomial, [](auto cost) { binomial_reduce(cost); });
  offer(Algorithm::direct, [](auto cost) { direct_reduction(cost); });
}

template <class Offer>
void each_allreduce(bool commutative, const Offer& offer) {
  offer(Algorithm::shared, [](auto cost) { shared_reduction(cost); });
  offer(Algorithm::shared_parts, [](auto cost) { shared_parts(cost); });
  offer(Algorithm::flat, [](auto cost) { flat_allreduce(cost); });
  offer(Algorithm::recursive_doubling, [](auto cost) { recursive_doubling(cost); });
  offer(Algorithm::direct, [](auto cost) { direct_reduction(cost); });
  offer(Algorithm::ring, [commutative](auto cost) {
    ring_allreduce(cost);
    if (!commutative) cost.refuse("the operation does not commute, and a ring begins in another place for every part");
  });
}

template <class Offer>
void each_allgather(const Offer& offer) {
  offer(Algorithm::shared, [](auto cost) { shared_allgather(cost); });
  offer(Algorithm::direct, [](auto cost) { direct_allgather(cost); });
  offer(Algorithm::ring, [](auto cost) { ring_allgather(cost); });
}

template <class Offer>
void each_way(ChosenCall call, bool commutative, const Offer& offer) {
  switch (call) {
    case ChosenCall::bcast:
      return each_bcast(offer);
    case ChosenCall::reduce:
      return each_reduce(offer);
    case ChosenCall::allreduce:
      return each_allreduce(commutative, offer);
    case ChosenCall::allgather:
      return each_allgather(offer);
    case ChosenCall::reduce_scatter:
      offer(Algorithm::shared, [](auto cost) { shared_reduce_scatter(cost); });
      return offer(Algorithm::direct, [](auto cost) { direct_reduce_scatter(cost); });
    case ChosenCall::alltoall:
      offer(Algorithm::shared, [](auto cost) { shared_alltoall(cost); });
      return offer(Algorithm::direct, [](auto cost) { direct_alltoall(cost); });
  }
}

// The first of the cheapest.
class Cheapest {
 public:
  Cheapest(const CollectiveShape& shape, const CollectiveProfile& machine) : shape_(shape), machine_(machine) {}
  template <class Pricing>
  void operator()(Algorithm algorithm, const Pricing& pricing) {
    Sum price;
    pricing(Count<Sum>{shape_, machine_, price});
    if (price.seconds() >= least_) return;
    least_ = price.seconds();
    found_ = algorithm;
  }
  Algorithm found() const { return found_; }
  double seconds() const { return least_; }

 private:
  const CollectiveShape& shape_;
  const CollectiveProfile& machine_;
  double least_ = std::numeric_limits<double>::infinity();
  Algorithm found_ = Algorithm::direct;
};

// The machine that orders are chosen by. Other numbers give other bits.
constexpr CollectiveProfile kOfOrder;

// None: there is nothing to combine, or all algorithms do it in one order, or the numbers may choose.
std::optional<CombiningOrder> fixed_order(ChosenCall call, const CollectiveShape& shape, bool commutative,
                                          const CollectiveProfile& machine) {
  if ((call != ChosenCall::reduce && call != ChosenCall::allreduce) || machine.fixed_order == 0) return std::nullopt;
  Cheapest cheapest{shape, kOfOrder};
  each_way(call, commutative, [&](auto... way) { cheapest(way...); });
  return order_of(cheapest.found());
}

Cheapest cheapest(ChosenCall call, const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine) {
  const auto order = fixed_order(call, shape, commutative, machine);
  Cheapest found{shape, machine};
  each_way(call, commutative, [&](Algorithm algorithm, const auto& pricing) {
    if (!order || order_of(algorithm) == *order) found(algorithm, pricing);
  });
  return found;
}

}  // namespace

CombiningOrder order_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::binomial:
      return CombiningOrder::binomial;
    case Algorithm::recursive_doubling:
      return CombiningOrder::recursive_doubling;
    case Algorithm::ring:
      return CombiningOrder::ring;
    default:
      return CombiningOrder::by_rank;
  }
}

Algorithm choose(ChosenCall call, const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine) {
  return cheapest(call, shape, commutative, machine).found();
}

double cheapest_seconds(ChosenCall call, const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine) {
  return cheapest(call, shape, commutative, machine).seconds();
}

bool shares_barrier(int ranks, const CollectiveProfile& machine) {
  const CollectiveShape shape{ranks, Bytes{}};
  Sum shared;
  Count<Sum>{shape, machine, shared}.round(0, ranks - 1, 0);
  Sum messages;
  binomial_bcast(Count<Sum>{shape, machine, messages});
  return machine.shared_up_to > 0 && shared.seconds() <= messages.seconds();
}

bool shares_scan(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return static_cast<double>(shape.bytes.value) <= machine.shared_up_to && machine.shared_up_to > 0 &&
         scans_by_rank(shape, machine);
}

bool scans_by_rank(const CollectiveShape& shape, const CollectiveProfile& machine) {
  const CollectiveProfile& counts = machine.fixed_order != 0 ? kOfOrder : machine;
  Sum by_rank;
  const Count<Sum> cost{shape, counts, by_rank};
  if (counts.shared_up_to > 0) {
    shared_reduction(cost);
  } else {
    flat_reduce(cost);
  }
  Sum rounds;
  binomial_reduce(Count<Sum>{shape, counts, rounds});
  return by_rank.seconds() <= rounds.seconds();
}

std::vector<Offered> offers(ChosenCall call, const CollectiveShape& shape, bool commutative,
                            const CollectiveProfile& machine) {
  const auto order = fixed_order(call, shape, commutative, machine);
  std::vector<Offered> all;
  each_way(call, commutative, [&](Algorithm algorithm, const auto& pricing) {
    Offered& made = all.emplace_back(Offered{algorithm, {}});
    pricing(Count<Bill>{shape, machine, made.price});
    if (order && order_of(algorithm) != *order && made.price.refused() == nullptr)
      made.price.refuse("reductions of so much on so many ranks combine in another order, always");
  });
  return all;
}

}  // namespace ist
