#include "collective/choose.hpp"

#include <algorithm>
#include <bit>

namespace ist {
namespace {

// Chunks of the chain (Plan::kChunk).
constexpr double kChunk = 512 << 10;
// Messages above are announced before they are sent.
constexpr double kAnnounced = 64 << 10;

double rounds(const CollectiveShape& shape) { return std::bit_width(static_cast<unsigned>(shape.ranks - 1)); }
double bytes_of(const CollectiveShape& shape) { return static_cast<double>(shape.bytes.value); }

double message(double bytes, const CollectiveProfile& machine) {
  return (bytes > kAnnounced ? machine.alpha_large : machine.alpha) + bytes * machine.beta;
}

// Everybody's part to everybody else at the same time, `share` bytes each.
double everybody(const CollectiveShape& shape, double share, const CollectiveProfile& machine) {
  const double peers = shape.ranks - 1;
  const double crowd = std::max(0.0, peers - machine.crowd_from) * machine.crowd * machine.beta * share;
  return message(share, machine) + (peers - 1) * (machine.post + share * machine.beta) + crowd;
}

}  // namespace

namespace price {

double binomial_bcast(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return rounds(shape) * message(bytes_of(shape), machine);
}

double chain_bcast(const CollectiveShape& shape, const CollectiveProfile& machine) {
  const double chunk = std::min(bytes_of(shape), kChunk);
  return message(bytes_of(shape), machine) + (shape.ranks - 2) * message(chunk, machine) +
         bytes_of(shape) / kChunk * machine.alpha_large;
}

double recursive_doubling(const CollectiveShape& shape, const CollectiveProfile& machine) {
  const bool even = std::has_single_bit(static_cast<unsigned>(shape.ranks));
  const double whole = message(bytes_of(shape), machine) + bytes_of(shape) * machine.gamma;
  // Those beyond a power of two take part through a neighbour.
  return (even ? rounds(shape) : rounds(shape) - 1) * whole + (even ? 0.0 : whole + message(bytes_of(shape), machine));
}

double direct_allreduce(const CollectiveShape& shape, const CollectiveProfile& machine) {
  const double share = bytes_of(shape) / shape.ranks;
  return 2 * everybody(shape, share, machine) + (shape.ranks - 1) * share * machine.gamma;
}

double ring_allreduce(const CollectiveShape& shape, const CollectiveProfile& machine) {
  const double share = bytes_of(shape) / shape.ranks;
  return 2 * (shape.ranks - 1) * message(share, machine) + (shape.ranks - 1) * share * machine.gamma;
}

double binomial_reduce(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return rounds(shape) * (message(bytes_of(shape), machine) + bytes_of(shape) * machine.gamma);
}

double direct_allgather(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return everybody(shape, bytes_of(shape) / shape.ranks, machine);
}

double ring_allgather(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return (shape.ranks - 1) * message(bytes_of(shape) / shape.ranks, machine);
}

double nccl(Collective what, const CollectiveShape& shape, const NcclProfile& machine) {
  const double others = static_cast<double>(shape.ranks - 1) / shape.ranks;
  const double share = what == Collective::allreduce                             ? 2 * others
                       : what == Collective::bcast || what == Collective::reduce ? 1.0
                                                                                 : others;
  return machine.alpha + share * bytes_of(shape) * machine.beta;
}

double messages(Collective what, const CollectiveShape& shape, const CollectiveProfile& machine) {
  const double combining = bytes_of(shape) * machine.gamma;
  switch (what) {
    case Collective::bcast:
      return std::min(binomial_bcast(shape, machine), chain_bcast(shape, machine));
    case Collective::reduce:
      return std::min(binomial_reduce(shape, machine), direct_allreduce(shape, machine));
    case Collective::allreduce:
      return std::min(
          {recursive_doubling(shape, machine), direct_allreduce(shape, machine), ring_allreduce(shape, machine)});
    case Collective::reduce_scatter:
      return direct_allgather(shape, machine) + combining;
    case Collective::allgather:
      return std::min(direct_allgather(shape, machine), ring_allgather(shape, machine));
    case Collective::alltoall:
      break;
  }
  return direct_allgather(shape, machine);
}

}  // namespace price

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::none:
      return "none";
    case Algorithm::binomial:
      return "binomial";
    case Algorithm::chain:
      return "chain";
    case Algorithm::recursive_doubling:
      return "doubling";
    case Algorithm::direct:
      return "direct";
    case Algorithm::ring:
      return "ring";
    case Algorithm::nccl:
      return "nccl";
  }
  return "none";
}

bool nccl_pays(Collective what, const CollectiveShape& shape) {
  return price::nccl(what, shape, {}) < price::messages(what, shape, {});
}

Algorithm choose_bcast(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return price::binomial_bcast(shape, machine) <= price::chain_bcast(shape, machine) ? Algorithm::binomial
                                                                                     : Algorithm::chain;
}

Algorithm choose_allreduce(const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine) {
  const double doubling = price::recursive_doubling(shape, machine);
  const double direct = price::direct_allreduce(shape, machine);
  const double ring = price::ring_allreduce(shape, machine);
  if (doubling <= direct && (doubling <= ring || !commutative)) return Algorithm::recursive_doubling;
  return direct <= ring || !commutative ? Algorithm::direct : Algorithm::ring;
}

Algorithm choose_reduce(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return price::binomial_reduce(shape, machine) <= price::direct_allreduce(shape, machine) ? Algorithm::binomial
                                                                                           : Algorithm::direct;
}

Algorithm choose_allgather(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return price::direct_allgather(shape, machine) <= price::ring_allgather(shape, machine) ? Algorithm::direct
                                                                                          : Algorithm::ring;
}

}  // namespace ist
