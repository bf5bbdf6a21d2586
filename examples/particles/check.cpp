#include "check.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "common/program.hpp"

namespace particles {

Faults compare(const isthmus::Comm& comm, const std::vector<Particle>& mine, const std::vector<Particle>* alone) {
  Faults faults;
  if (comm.rank() != 0) {
    comm.send(mine, 0);
    return faults;
  }
  std::vector<Particle> found = mine;
  for (int rank = 1; rank < comm.size(); ++rank) {
    const auto count = static_cast<std::size_t>(comm.probe(rank).bytes() / kParticleBytes);
    found.resize(found.size() + count);
    comm.recv(std::span(found).last(count), rank);
  }
  const auto by_id = [](const Particle& one, const Particle& other) { return one[id] < other[id]; };
  std::vector<Particle> wanted = *alone;
  std::sort(found.begin(), found.end(), by_id);
  std::sort(wanted.begin(), wanted.end(), by_id);
  auto next = found.begin();
  for (const Particle& particle : wanted) {
    for (; next != found.end() && by_id(*next, particle); ++next) ++faults.unknown;
    if (next == found.end() || by_id(particle, *next)) {
      ++faults.lost;
      continue;
    }
    if (std::memcmp(next->data(), particle.data(), sizeof particle) != 0) ++faults.elsewhere;
    for (++next; next != found.end() && !by_id(particle, *next); ++next) ++faults.twice;
  }
  faults.unknown += found.end() - next;
  return faults;
}

void must_be_all(const isthmus::Comm& comm, const std::vector<Particle>& mine, std::int64_t count) {
  std::int64_t identities = 0;
  for (const Particle& particle : mine) identities += static_cast<std::int64_t>(particle[id]);
  const std::int64_t found = example::sum(comm, static_cast<std::int64_t>(mine.size()));
  const std::int64_t sum = example::sum(comm, identities), wanted = count * (count - 1) / 2;
  if (found == count && sum == wanted) return;
  throw std::runtime_error("there are " + std::to_string(found) + " particles, whose identities add up to " +
                           std::to_string(sum) + "; there have to be " + std::to_string(count) + ", with " +
                           std::to_string(wanted));
}

}  // namespace particles
