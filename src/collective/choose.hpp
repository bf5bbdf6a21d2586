// Which algorithm carries a collective call: the cheapest, by values that all ranks share.
//
// Who calls this : the algorithms.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none.
//
// Prices are those of the alpha-beta-gamma model (Thakur, Rabenseifner, Gropp 2005): a message of m bytes takes
// alpha + m * beta, combining m bytes m * gamma. The numbers are the same on every rank, since the choice must be.
#pragma once

#include "base/units.hpp"

namespace ist {

enum class Algorithm { binomial, chain, recursive_doubling, direct, ring };

struct CollectiveProfile {
  double alpha = 0.5e-6;        // a small message between two ranks of a node
  double alpha_large = 3.0e-6;  // one that is announced first
  double beta = 0.10e-9;        // per byte through the pair's ring
  double gamma = 0.10e-9;       // per byte combined
  double post = 0.10e-6;        // one more message under way at the same time
  double crowd = 1.0;           // what more than this many peers at once cost in caches, as a share of beta per peer
  int crowd_from = 8;
};

struct CollectiveShape {
  int ranks = 1;
  Bytes bytes;
};

namespace price {
double binomial_bcast(const CollectiveShape& shape, const CollectiveProfile& machine);
double chain_bcast(const CollectiveShape& shape, const CollectiveProfile& machine);
double recursive_doubling(const CollectiveShape& shape, const CollectiveProfile& machine);
// To one rank or to all: the last messages go at the same time.
double direct_allreduce(const CollectiveShape& shape, const CollectiveProfile& machine);
double ring_allreduce(const CollectiveShape& shape, const CollectiveProfile& machine);
double binomial_reduce(const CollectiveShape& shape, const CollectiveProfile& machine);
double direct_allgather(const CollectiveShape& shape, const CollectiveProfile& machine);
double ring_allgather(const CollectiveShape& shape, const CollectiveProfile& machine);
}  // namespace price

Algorithm choose_bcast(const CollectiveShape& shape, const CollectiveProfile& machine);
// ring: only where the operation is commutative.
Algorithm choose_allreduce(const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine);
Algorithm choose_reduce(const CollectiveShape& shape, const CollectiveProfile& machine);
// bytes: of all parts together.
Algorithm choose_allgather(const CollectiveShape& shape, const CollectiveProfile& machine);

}  // namespace ist
