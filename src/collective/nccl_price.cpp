// What a call by NCCL takes, and whether it is quicker than messages.
#include <algorithm>
#include <bit>

#include "collective/choose.hpp"

namespace ist {
namespace {

constexpr NcclProfile kNccl;

double others(const CollectiveShape& shape) { return static_cast<double>(shape.ranks - 1) / shape.ranks; }

template <class Price>
void by_nccl(ChosenCall call, const CollectiveShape& shape, Price& price) {
  const bool gathers = call == ChosenCall::allgather && shape.ranks > 2;
  const double share = call == ChosenCall::allreduce                             ? 2 * others(shape)
                       : call == ChosenCall::bcast || call == ChosenCall::reduce ? 1.0
                                                                                 : others(shape);
  const double beta = gathers ? kNccl.gather_beta : kNccl.beta;
  price.add("agreeing on it and starting a kernel", kNccl.alpha + (shape.ranks - 2) * kNccl.rank);
  if (gathers) price.add("gathering from more than one other", kNccl.gather_alpha);
  price.add("bytes between GPUs", share * static_cast<double>(shape.bytes.value) * beta);
}

// What a byte takes where a GPU is written and read at the same time, in terms of one that goes one way (two H200, 2026-11-26): of one message, and
// of parts for each other rank.
constexpr double kBothWays = 1.4;
constexpr double kParts = 1.6;

// In terms of gpu_alpha, which a message alone takes (two and four H100, 59bf8b1, 2026-11-27).
constexpr double kPair = 2;        // a message each way at the same time
constexpr double kBeside = 0.6;    // one more beside those
constexpr double kRound = 1.5;     // through shared memory, or what is short told to everybody, and combined by each
constexpr double kHeard = 0.3;     // what one more rank says there
constexpr double kCombines = 0.5;  // a kernel that combines
constexpr double kOfChain = 0.65;  // a chunk of a chain
// A byte that is combined, with its way there and back in chunks.
constexpr double kCombinedBeta = 0.03e-9;
// Between GPUs whose memory no other process opens, through a ring in page-locked memory (two H200, 59bf8b1, 2026-11-27).
constexpr double kThroughHostAlpha = 17e-6;
constexpr double kThroughHostBeta = 0.035e-9;
// Of a call between host memories, an agreement that is in vain may take this part by the model. What is refused then goes by messages also where shared
// memory would be quicker, so that what goes through that is not asked about.
constexpr double kInVain = 0.125;

bool combines(ChosenCall call) {
  return call == ChosenCall::reduce || call == ChosenCall::allreduce || call == ChosenCall::reduce_scatter;
}

double seconds_of_moving(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine,
                         Algorithm algorithm) {
  const auto bytes = static_cast<double>(shape.bytes.value);
  const double doublings = std::bit_width(static_cast<unsigned>(shape.ranks - 1));
  const double alpha = machine.gpu_alpha;
  const double beta = machine.gpu_beta;
  if (call == ChosenCall::bcast) {
    if (algorithm == Algorithm::chain)
      return alpha + bytes * beta + (shape.ranks - 2 + bytes / kChainChunk) * kOfChain * alpha;
    if (algorithm == Algorithm::flat) return alpha + bytes * beta + (shape.ranks - 2) * (kBeside * alpha + bytes * beta);
    return doublings * (alpha + bytes * beta);
  }
  if (algorithm == Algorithm::ring) return (shape.ranks - 1) * alpha + others(shape) * bytes * kBothWays * beta;
  const double factor = call == ChosenCall::allgather && shape.ranks == 2 ? kBothWays : kParts;
  return (kPair + (shape.ranks - 2) * kBeside) * alpha + others(shape) * bytes * factor * beta;
}

double seconds_of_combining(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine,
                            Algorithm algorithm) {
  const double everybody = kPair + (shape.ranks - 2) * kBeside;
  const double doublings = std::bit_width(static_cast<unsigned>(shape.ranks - 1));
  const double times = algorithm == Algorithm::ring ? 2 * (shape.ranks - 1)
                       : algorithm == Algorithm::binomial || algorithm == Algorithm::recursive_doubling ? doublings * kRound
                       : call == ChosenCall::allreduce                                                  ? 2 * everybody
                       : call == ChosenCall::reduce ? everybody + 1 + kCombines
                                                    : everybody + kCombines;
  return times * machine.gpu_alpha + static_cast<double>(shape.bytes.value) * std::max(kCombinedBeta, machine.gpu_beta);
}

}  // namespace

double seconds_between_gpus(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine) {
  const Algorithm algorithm = choose(call, shape, true, machine);
  const bool kept = combines(call) && algorithm == Algorithm::flat && shape.bytes <= kMostKept;
  const bool at_once = algorithm == Algorithm::shared || kept;
  if (at_once) return (kRound + (shape.ranks - 2) * kHeard) * machine.gpu_alpha;
  if (algorithm == Algorithm::shared_parts) return (kRound + (shape.ranks - 1) * kHeard) * machine.gpu_alpha;
  return combines(call) ? seconds_of_combining(call, shape, machine, algorithm)
                        : seconds_of_moving(call, shape, machine, algorithm);
}

CollectiveProfile with_copies_if(bool can, CollectiveProfile machine) {
  if (can) return machine;
  machine.gpu_alpha = std::max(machine.gpu_alpha, kThroughHostAlpha);
  machine.gpu_beta = std::max(machine.gpu_beta, kThroughHostBeta);
  return machine;
}

bool worth_asking(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine) {
  const Algorithm algorithm = choose(call, shape, true, machine);
  if (shape.ranks < 2 || algorithm == Algorithm::shared || algorithm == Algorithm::shared_parts) return false;
  const double agreement = machine.alpha + (shape.ranks - 2) * machine.post;
  return agreement < kInVain * cheapest_seconds(call, shape, true, machine);
}

bool nccl_pays(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine) {
  Sum price;
  by_nccl(call, shape, price);
  return worth_asking(call, shape, machine) && price.seconds() < seconds_between_gpus(call, shape, machine);
}

Offered nccl_offer(ChosenCall call, const CollectiveShape& shape) {
  Offered made{Algorithm::nccl, {}};
  by_nccl(call, shape, made.price);
  return made;
}

}  // namespace ist
