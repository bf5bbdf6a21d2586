// What a call by NCCL takes, and whether it is quicker than messages.
#include <algorithm>
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

// What a byte takes where a GPU is written and read at the same time, in terms of one that goes one way (two H200, 2026-11-26).
constexpr double kBothWays = 1.6;

}  // namespace

double seconds_between_gpus(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine) {
  const auto bytes = static_cast<double>(shape.bytes.value);
  if (shape.ranks > 2) return std::numeric_limits<double>::infinity();
  if (call == ChosenCall::bcast) return machine.gpu_alpha + bytes * machine.gpu_beta;
  if (call == ChosenCall::allgather || call == ChosenCall::alltoall)
    return 2 * machine.gpu_alpha + others(shape) * bytes * kBothWays * machine.gpu_beta;
  return std::numeric_limits<double>::infinity();
}

bool nccl_pays(ChosenCall call, const CollectiveShape& shape, const CollectiveProfile& machine) {
  Sum price;
  by_nccl(call, shape, price);
  double messages = seconds_between_gpus(call, shape, machine);
  if (price.seconds() >= messages) return false;
  for (const Offered& one : offers(call, shape, true, machine))
    if (one.price.refused() == nullptr) messages = std::min(messages, one.price.seconds());
  return price.seconds() < messages;
}

Offered nccl_offer(ChosenCall call, const CollectiveShape& shape) {
  Offered made{Algorithm::nccl, {}};
  by_nccl(call, shape, made.price);
  return made;
}

}  // namespace ist
