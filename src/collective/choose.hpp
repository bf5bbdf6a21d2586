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

#include <cstdint>
#include <string_view>

#include "base/units.hpp"

namespace ist {

enum class Algorithm { none, binomial, chain, recursive_doubling, direct, ring, nccl };
// "ring"; "none" where there was nothing to choose.
std::string_view name_of(Algorithm algorithm);

enum class Collective : std::uint8_t { bcast, reduce, allreduce, reduce_scatter, allgather, alltoall };

struct CollectiveProfile {
  double alpha = 0.5e-6;        // a small message between two ranks of a node
  double alpha_large = 3.0e-6;  // one that is announced first
  double beta = 0.10e-9;        // per byte through the pair's ring
  double gamma = 0.10e-9;       // per byte combined
  double post = 0.10e-6;        // one more message under way at the same time
  double crowd = 1.0;           // what more than this many peers at once cost in caches, as a share of beta per peer
  int crowd_from = 8;
};

// NCCL between the GPUs of one host. A call is agreed on, handed to a thread of NCCL's, started as a kernel on every rank and
// asked after: that is alpha, whatever its size. beta is a byte through NVLink.
struct NcclProfile {
  double alpha = 35e-6;
  double beta = 0.007e-9;
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
// By NCCL between GPUs, the agreement on it included. bytes: of the vector, or of all parts that one rank has.
double nccl(Collective what, const CollectiveShape& shape, const NcclProfile& machine);
// The cheapest way by messages, whichever it is.
double messages(Collective what, const CollectiveShape& shape, const CollectiveProfile& machine);
}  // namespace price

Algorithm choose_bcast(const CollectiveShape& shape, const CollectiveProfile& machine);
// ring: only where the operation is commutative.
Algorithm choose_allreduce(const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine);
Algorithm choose_reduce(const CollectiveShape& shape, const CollectiveProfile& machine);
// bytes: of all parts together.
Algorithm choose_allgather(const CollectiveShape& shape, const CollectiveProfile& machine);
// Is the call worth an agreement on NCCL? By what all ranks know, so without their buffers: against messages between host
// memories, which are the cheapest there are.
bool nccl_pays(Collective what, const CollectiveShape& shape);

}  // namespace ist
