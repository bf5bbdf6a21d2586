#include "collective/choose.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace ist {
namespace {

// Chunks of the chain (Plan::kChunk).
constexpr double kChunk = 512 << 10;
// Messages above are announced before they are sent.
constexpr double kAnnounced = 64 << 10;

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
    if (bytes > kAnnounced) {
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
  void combining(double bytes) { price_.add("combining", bytes * machine_.gamma); }
  void chunks(double number) { price_.add("more chunks to announce", number * machine_.alpha_large); }
  void refuse(const char* why) { price_.refuse(why); }
  // Whole vectors of all ranks in memory at once: only of what is short.
  void keep_all() {
    if (bytes_ > kAnnounced) refuse("every rank's vector would be in memory at once, and is longer than 64 KiB");
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
  cost.messages(cost.ranks() - 2, std::min(cost.bytes(), kChunk));
  cost.chunks(cost.bytes() / kChunk);
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

// The algorithms of each call: `offer` is given one after the other, with a function that writes its price down.
template <class Offer>
void each_bcast(const Offer& offer) {
  offer(Algorithm::flat, [](auto cost) { flat_bcast(cost); });
  offer(Algorithm::binomial, [](auto cost) { binomial_bcast(cost); });
  offer(Algorithm::chain, [](auto cost) { chain_bcast(cost); });
}

template <class Offer>
void each_reduce(const Offer& offer) {
  offer(Algorithm::flat, [](auto cost) { flat_reduce(cost); });
  offer(Algorithm::binomial, [](auto cost) { binomial_reduce(cost); });
  offer(Algorithm::direct, [](auto cost) { direct_reduction(cost); });
}

template <class Offer>
void each_allreduce(bool commutative, const Offer& offer) {
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
  offer(Algorithm::direct, [](auto cost) { direct_allgather(cost); });
  offer(Algorithm::ring, [](auto cost) { ring_allgather(cost); });
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

 private:
  const CollectiveShape& shape_;
  const CollectiveProfile& machine_;
  double least_ = std::numeric_limits<double>::infinity();
  Algorithm found_ = Algorithm::direct;
};

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::flat:
      return "flat";
    case Algorithm::binomial:
      return "binomial";
    case Algorithm::chain:
      return "chain";
    case Algorithm::recursive_doubling:
      return "recursive doubling";
    case Algorithm::direct:
      return "direct";
    case Algorithm::ring:
      return "ring";
  }
  return "unknown";
}

std::string_view meaning_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::flat:
      return "whole buffers straight between those who have them and those who want them";
    case Algorithm::binomial:
      return "a tree, in as many rounds as the ranks can be halved";
    case Algorithm::chain:
      return "chunk after chunk from rank to rank";
    case Algorithm::recursive_doubling:
      return "in each round with a partner twice as far away";
    case Algorithm::direct:
      return "a part of each rank's straight to its owner";
    case Algorithm::ring:
      return "parts from neighbour to neighbour";
  }
  return "";
}

Algorithm choose_bcast(const CollectiveShape& shape, const CollectiveProfile& machine) {
  Cheapest cheapest{shape, machine};
  each_bcast([&](auto... way) { cheapest(way...); });
  return cheapest.found();
}

Algorithm choose_allreduce(const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine) {
  Cheapest cheapest{shape, machine};
  each_allreduce(commutative, [&](auto... way) { cheapest(way...); });
  return cheapest.found();
}

Algorithm choose_reduce(const CollectiveShape& shape, const CollectiveProfile& machine) {
  Cheapest cheapest{shape, machine};
  each_reduce([&](auto... way) { cheapest(way...); });
  return cheapest.found();
}

Algorithm choose_allgather(const CollectiveShape& shape, const CollectiveProfile& machine) {
  Cheapest cheapest{shape, machine};
  each_allgather([&](auto... way) { cheapest(way...); });
  return cheapest.found();
}

Algorithm choose(ChosenCall call, const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine) {
  switch (call) {
    case ChosenCall::bcast:
      return choose_bcast(shape, machine);
    case ChosenCall::reduce:
      return choose_reduce(shape, machine);
    case ChosenCall::allreduce:
      return choose_allreduce(shape, commutative, machine);
    case ChosenCall::allgather:
      break;
  }
  return choose_allgather(shape, machine);
}

std::vector<Offered> offers(ChosenCall call, const CollectiveShape& shape, bool commutative,
                            const CollectiveProfile& machine) {
  std::vector<Offered> all;
  const auto offer = [&](Algorithm algorithm, const auto& pricing) {
    Offered& made = all.emplace_back(Offered{algorithm, {}});
    pricing(Count<Bill>{shape, machine, made.price});
  };
  switch (call) {
    case ChosenCall::bcast:
      each_bcast(offer);
      break;
    case ChosenCall::reduce:
      each_reduce(offer);
      break;
    case ChosenCall::allreduce:
      each_allreduce(commutative, offer);
      break;
    case ChosenCall::allgather:
      each_allgather(offer);
      break;
  }
  return all;
}

}  // namespace ist
