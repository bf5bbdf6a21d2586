#include "face/halo/halo_lanes.hpp"

#include <algorithm>

namespace ist::halo {
namespace {

std::int64_t aligned(std::int64_t at, std::int64_t to) { return (at + to - 1) / to * to; }

// Whoever waits for a partner waits for one that is at this pair, or will be when pairs before it are over.
std::vector<Lane> by_pairs(const std::vector<Lane>& lanes, int rank) {
  std::vector<Lane> sorted;
  for (const Lane& lane : lanes)
    if (lane.rank != rank && lane.out_bytes + lane.in_bytes > 0) sorted.push_back(lane);
  const auto pair = [rank](const Lane& lane) { return std::pair{std::min(rank, lane.rank), std::max(rank, lane.rank)}; };
  std::sort(sorted.begin(), sorted.end(), [&](const Lane& one, const Lane& other) { return pair(one) < pair(other); });
  return sorted;
}

}  // namespace

Lanes lanes_of(const Pattern& pattern, std::span<const std::size_t> fields, int rank, std::int64_t alignment) {
  Lanes made;
  std::int64_t out = 0, in = 0;
  const auto ours = [&](const Section& section) {
    return std::find(fields.begin(), fields.end(), section.field) != fields.end();
  };
  for (std::size_t p = 0; p < pattern.size(); ++p) {
    out = aligned(out, alignment), in = aligned(in, alignment);
    Lane lane{pattern[p].rank, out, 0, in, 0};
    for (const Section& section : pattern[p].out) {
      if (!ours(section)) continue;
      made.out.push_back({&section, p, out, false});
      out += section.layout->size();
    }
    const bool own = lane.rank == rank;
    std::int64_t at = own ? lane.out_at : in;
    for (const Section& section : pattern[p].in) {
      if (!ours(section)) continue;
      made.in.push_back({&section, p, at, own});
      at += section.layout->size();
    }
    lane.out_bytes = out - lane.out_at;
    lane.in_bytes = own ? 0 : at - in;
    if (!own) in = at;
    made.lanes.push_back(lane);
  }
  // This rank's own lie together, since it is one partner.
  const auto own = [](const Laid& laid) { return laid.own; };
  const auto first = std::find_if(made.in.begin(), made.in.end(), own);
  std::rotate(made.in.begin(), first, std::find_if_not(first, made.in.end(), own));
  made.in_turn = by_pairs(made.lanes, rank);
  return made;
}

}  // namespace ist::halo
