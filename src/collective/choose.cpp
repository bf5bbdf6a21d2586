#include "collective/choose.hpp"

#include <limits>
#include <optional>

#include "collective/prices.hpp"

namespace ist {
namespace {

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
  offer(Algorithm::flat, [](auto cost) { flat_to_root(cost); });
  offer(Algorithm::binomial, [](auto cost) { binomial_reduce(cost); });
  offer(Algorithm::direct, [](auto cost) { direct_to_root(cost); });
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
    case ChosenCall::barrier:
      offer(Algorithm::shared, [](auto cost) { shared_barrier(cost); });
      return offer(Algorithm::recursive_doubling, [](auto cost) { barrier_in_rounds(cost); });
    case ChosenCall::scan:
      offer(Algorithm::shared, [](auto cost) { shared_scan(cost); });
      offer(Algorithm::flat, [](auto cost) { flat_reduce(cost); });
      return offer(Algorithm::recursive_doubling, [](auto cost) { binomial_reduce(cost); });
    case ChosenCall::gather:
      offer(Algorithm::shared, [](auto cost) { shared_gather(cost); });
      return offer(Algorithm::flat, [](auto cost) { flat_parts(cost); });
    case ChosenCall::scatter:
      offer(Algorithm::shared, [](auto cost) { shared_scatter(cost); });
      return offer(Algorithm::flat, [](auto cost) { flat_parts(cost); });
  }
}

// The first of the cheapest.
class Cheapest {
 public:
  Cheapest(const CollectiveShape& shape, const CollectiveProfile& machine) : shape_(shape), machine_(machine) {}
  template <class Pricing>
  void operator()(Algorithm algorithm, const Pricing& pricing) {
    Sum price;
    pricing(prices::Count<Sum>{shape_, machine_, price});
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
  const bool ordered = call == ChosenCall::reduce || call == ChosenCall::allreduce || call == ChosenCall::scan;
  if (!ordered || machine.fixed_order == 0) return std::nullopt;
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

std::vector<Offered> offers(ChosenCall call, const CollectiveShape& shape, bool commutative,
                            const CollectiveProfile& machine) {
  const auto order = fixed_order(call, shape, commutative, machine);
  std::vector<Offered> all;
  each_way(call, commutative, [&](Algorithm algorithm, const auto& pricing) {
    Offered& made = all.emplace_back(Offered{algorithm, {}});
    pricing(prices::Count<Bill>{shape, machine, made.price});
    if (order && order_of(algorithm) != *order && made.price.refused() == nullptr)
      made.price.refuse("reductions of so much on so many ranks combine in another order, always");
  });
  return all;
}

}  // namespace ist
