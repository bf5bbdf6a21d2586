// Which algorithm carries a collective call: the cheapest, by values that all ranks share.
//
// Who calls this : the algorithms; cli/explain.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none.
//
// Algorithms of a reduction combine in one of some orders (CombiningOrder). The order is that of the algorithm that would be the cheapest on
// one machine, whose numbers are built in: no profile, setting or device changes it, nor whether ranks see each other's memory. Where
// they are is what the choice among the algorithms of that order depends on.
//
// Prices are those of the alpha-beta-gamma model (Thakur, Rabenseifner, Gropp 2005): a message of m bytes takes
// alpha + m * beta, combining m bytes m * gamma. The numbers are the same on every rank, since the choice must be: they are
// those of rank 0, which are handed out when the world is made (profile.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/price.hpp"
#include "base/units.hpp"

namespace ist {

// Whole vectors of all ranks are kept in memory at once up to this size.
inline constexpr Bytes kMostKept = kibibytes(64);

enum class Algorithm : std::uint8_t {
  none,
  flat,
  binomial,
  chain,
  recursive_doubling,
  direct,
  ring,
  nccl,
  shared,
  shared_parts
};
// "ring"; "none" where there was nothing to choose.
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
  // No measured number: bytes of a message between hosts above which it is announced first, by rank 0's settings. Those of a
  // device are announced from fewer on, but then what a call costs is their copies. ISTHMUS_EAGER_LIMIT changes it.
  double announced_above = 64 << 10;
  // Bytes that one rank says at most at a time in memory that all ranks of a communicator see; 0: all goes by messages.
  double shared_up_to = 64 << 10;
  // A message from a GPU to another one, and each of its bytes. (Two H200, 2026-11-26: a broadcast of 1 MiB by messages in 16.9 us, of 64 MiB
  // in 187; an allgather of 1 MiB from each in 28, of 64 MiB in 270.)
  double gpu_alpha = 12.5e-6;
  double gpu_beta = 0.0026e-9;
  // No measured number. Bytes up to which one of two ranks tells the other what it has in memory that both see, and by no message, since calls
  // there have a short way for host memory. (Two processors of an AMD EPYC, Zen 4, 2026-11-28, a barrier after each call, us, there and by messages, with a
  // line in 0.06 us: a broadcast of 8 KiB 0.32 and 0.41, of 16 KiB 0.58 and 0.45, of 64 KiB 1.6 and 1.3; a gather of 8 KiB from each 0.34 and 0.33, of
  // 16 KiB 0.88 and 0.53; a scan of 8 KiB 0.41 and 0.48, of 16 KiB 0.78 and 0.60; in 0.26 us: broadcasts 0.84 and 0.75, 1.2 and 1.0, 3.9 and 1.6; gathers
  // 0.72 and 0.76, 1.1 and 1.1; scans 0.93 and 1.0, 1.4 and 1.5. A reduce is quicker there up to 64 KiB: its root combines what lies there.)
  double few_of_two = 8192;
  // No measured number. A rank has a GPU, where buffers may lie (by_gpus()).
  bool beside_gpus = false;
  // No measured number. Not 0: in which order a reduction combines follows from operation, type, count and ranks alone. 0: these numbers
  // choose among all algorithms, as on the machines that tests invent.
  double fixed_order = 1;
};

// Where a rank has a GPU. As shared_up_to: longer buffers may be on GPUs, and go better from one to the other. And what one of two ranks tells the
// other goes by a message, however short it is (broadcasts of 8 B between two H200: 10 to 16 us, and 18 in shared memory; docs/measured/). Other
// calls take what they take without GPUs (two ranks that share an H200, by messages and so: host memory of 8 B, reduce 0.41 to 0.64 and 0.34 to
// 0.40 us, allreduce 0.57 to 0.72 and 0.41, alltoall 0.63 to 0.78 and 0.34; the GPU's, allreduce of 8 B 28 to 29 and 29 to 30, of 16 KiB 54 to 56
// and 35 to 36; 8fc605ad, 2026-11-28, by hand).
inline constexpr double kSharedUpToByGpus = 16 << 10;
inline CollectiveProfile by_gpus(CollectiveProfile machine) {
  machine.shared_up_to = std::min(machine.shared_up_to, kSharedUpToByGpus);
  machine.beside_gpus = true;
  return machine;
}

// NCCL between the GPUs of one host. A call is agreed on, handed over, started as a kernel on every rank and asked after: that is alpha,
// whatever its size; beta is a byte through NVLink. (Two H200, NCCL 2.28.9, 2026-11-26: allreduce of 1 MiB in 34 us, of 64 MiB in 279 us.
// Handed to it straight, NCCL alone takes 25 and 263 us.)
// Each rank beyond two costs more, and an allgather of more than two costs more to start and less per byte (four H100, 59bf8b1, 2026-11-27: 8 B in 36 us; an
// allgather of 1 MiB from each in 70 us, of 16 MiB in 231).
struct NcclProfile {
  double alpha = 30e-6;
  double rank = 5e-6;
  double beta = 0.004e-9;
  double gather_alpha = 12e-6;
  double gather_beta = 0.0035e-9;
};

// Chunks of a chain (Plan::kChunk).
inline constexpr double kChainChunk = 512 << 10;

struct CollectiveShape {
  int ranks = 1;
  Bytes bytes;
};

// Calls that more than one algorithm can carry. Scans with and without a rank's own input are one; gathers and scatters are of equal parts.
enum class ChosenCall : std::uint8_t {
  bcast,
  reduce,
  allreduce,
  allgather,
  reduce_scatter,
  alltoall,
  barrier,
  scan,
  gather,
  scatter
};
inline constexpr std::size_t kChosenCalls = 10;
// Those that NCCL may carry are the first ones.
inline constexpr std::size_t kNcclCalls = 6;
static_assert(static_cast<std::size_t>(ChosenCall::alltoall) == kNcclCalls - 1);
inline bool nccl_may_carry(ChosenCall call) { return static_cast<std::size_t>(call) < kNcclCalls; }

// How the elements of a reduction are combined: what gives the same bits. Every algorithm has one.
enum class CombiningOrder : std::uint8_t {
  by_rank,   // ((0 op 1) op 2) op 3; where the operation does not commute 0 op (1 op (2 op 3)). No arithmetic: this one, too
  binomial,  // a tree
  recursive_doubling,  // another one
  ring                 // by rank, but from another one on in each part
};
CombiningOrder order_of(Algorithm algorithm);

// The cheapest way by messages, and what it takes. bytes: of the vector, or of all parts that one rank has.
double cheapest_seconds(ChosenCall call, const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine);
Algorithm choose(ChosenCall call, const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine);

// By messages between GPUs, with the algorithm that these numbers choose.
double seconds_between_gpus(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine);
// The same numbers, but for messages between GPUs, which go through host memory where theirs cannot be opened.
CollectiveProfile with_copies_if(bool can, CollectiveProfile machine);
// The ranks tell each other of their buffers before NCCL has a call: is that little of the call where all buffers turn out to be in host memory, for which
// it is in vain?
bool worth_asking(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine);
// Is the call worth an agreement on NCCL? By what all ranks know, so without their buffers: where asking costs little, and NCCL takes less than messages
// between GPUs. Every operation of NCCL's commutes.
bool nccl_pays(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine);

// Every algorithm that could carry the call by messages or through shared memory, with its price. Of equal prices the first one counts: the choice is
// the first of the cheapest.
struct Offered {
  Algorithm algorithm;
  Bill price;
};
std::vector<Offered> offers(ChosenCall call, const CollectiveShape& shape, bool commutative,
                            const CollectiveProfile& machine);
// NCCL's, the agreement on it included.
Offered nccl_offer(ChosenCall call, const CollectiveShape& shape);

}  // namespace ist
