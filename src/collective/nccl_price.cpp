// What a call by NCCL takes, and whether it is quicker than messages.
#include <limits>

#include "collective/choose.hpp"

namespace ist {
namespace {

constexpr NcclProfile kNccl;

double others(const CollectiveShape& shape) { return static_cast<double>(shape.ranks - 1) / shape.ranks; }

template <class Price>
void by_nccl(ChosenCall call, const CollectiveShape& shape, Price& price) {
  const double share = call == ChosenCall::allreduce                             ? 2 * others(shape)
                       : call == ChosenCall::bcast || call == ChosenCall::reduce ? 1.0
                                                                                 : others(shape);
  price.add("agreeing on it and starting a kernel", kNccl.alpha);
  price.add("bytes between GPUs", share * static_cast<double>(shape.bytes.value) * kNccl.beta);
}

// What a byte takes where a GPU is written and read at the same time, in terms of one that goes one way (two H200, 2026-11-26): of one message, and
// of an alltoall's parts.
constexpr double kBothWays = 1.4;
constexpr double kParts = 1.6;

}  // namespace

double seconds_between_gpus(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine) {
  const auto bytes = static_cast<double>(shape.bytes.value);
  if (shape.ranks > 2) return std::numeric_limits<double>::infinity();
  if (call == ChosenCall::bcast) return machine.gpu_alpha + bytes * machine.gpu_beta;
  const double factor = call == ChosenCall::allgather ? kBothWays : kParts;
  if (call == ChosenCall::allgather || call == ChosenCall::alltoall)
    return 2 * machine.gpu_alpha + others(shape) * bytes * factor * machine.gpu_beta;
  return std::numeric_limits<double>::infinity();
}

CollectiveProfile with_copies_if(bool can, CollectiveProfile machine) {
  if (!can) machine.gpu_alpha = std::numeric_limits<double>::infinity();
  return machine;
}

bool nccl_pays(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine) {
  Sum price;
  by_nccl(call, shape, price);
  return price.seconds() < seconds_between_gpus(call, shape, machine) &&
         price.seconds() < cheapest_seconds(call, shape, true, machine);
}

Offered nccl_offer(ChosenCall call, const CollectiveShape& shape) {
  Offered made{Algorithm::nccl, {}};
  by_nccl(call, shape, made.price);
  return made;
}

}  // namespace ist
