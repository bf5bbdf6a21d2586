// Algorithms in words.
#include "collective/choose.hpp"

namespace ist {

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::none:
      return "none";
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
    case Algorithm::nccl:
      return "nccl";
    case Algorithm::shared:
      return "shared";
    case Algorithm::shared_parts:
      return "shared parts";
  }
  return "unknown";
}

std::string_view meaning_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::none:
      return "there was nothing to choose";
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
    case Algorithm::nccl:
      return "by NCCL between the GPUs, if the ranks agree on it";
    case Algorithm::shared:
      return "whole buffers written once where all ranks read them";
    case Algorithm::shared_parts:
      return "the same, and each rank combines a part and writes that";
  }
  return "";
}

}  // namespace ist
