// Which algorithm carries a collective call: the cheapest, by values that all ranks share.
//
// Who calls this : the algorithms; cli/explain.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none.
//
// Prices are those of the alpha-beta-gamma model (Thakur, Rabenseifner, Gropp 2005): a message of m bytes takes
// alpha + m * beta, combining m bytes m * gamma. The numbers are the same on every rank, since the choice must be: they are
// those of rank 0, which are handed out when the world is made (profile.hpp).
#pragma once

#include <string_view>
#include <vector>

#include "base/price.hpp"
#include "base/units.hpp"

namespace ist {

enum class Algorithm { flat, binomial, chain, recursive_doubling, direct, ring };
std::string_view name_of(Algorithm algorithm);
// In a few words, what the algorithm does.
std::string_view meaning_of(Algorithm algorithm);

struct CollectiveProfile {
  double alpha = 0.5e-6;        // a small message between two ranks of a node
  double alpha_large = 3.0e-6;  // one that is announced first
  double beta = 0.10e-9;        // per byte through the pair's ring
  double gamma = 0.10e-9;       // per byte combined
  double post = 0.10e-6;        // one more message under way at the same time
  double crowd = 1.0;           // what more than this many peers at once cost in caches, as a share of beta per peer
  double crowd_from = 8;
};

struct CollectiveShape {
  int ranks = 1;
  Bytes bytes;
};

// Calls that more than one algorithm can carry.
enum class ChosenCall { bcast, reduce, allreduce, allgather };
inline constexpr std::size_t kChosenCalls = 4;

Algorithm choose_bcast(const CollectiveShape& shape, const CollectiveProfile& machine);
// ring: only where the operation is commutative.
Algorithm choose_allreduce(const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine);
Algorithm choose_reduce(const CollectiveShape& shape, const CollectiveProfile& machine);
// bytes: of all parts together.
Algorithm choose_allgather(const CollectiveShape& shape, const CollectiveProfile& machine);

Algorithm choose(ChosenCall call, const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine);

// Every algorithm that could carry the call, with its price. Of equal prices the first one counts: the choice is the first of
// the cheapest.
struct Offered {
  Algorithm algorithm;
  Bill price;
};
std::vector<Offered> offers(ChosenCall call, const CollectiveShape& shape, bool commutative,
                            const CollectiveProfile& machine);

}  // namespace ist
