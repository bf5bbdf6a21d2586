// Who moves particles, and in which memory they lie: the processor, or a GPU.
//
// Who calls this : store.cpp; implemented by host.cpp and cuda.cpp.
// Threads        : one.
// Ownership      : a Machine outlives the stores that use it.
// Errors         : isthmus::Error, std::runtime_error; Mistake on all ranks alike where there is no such device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <isthmus/isthmus.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "motion.hpp"

namespace particles {

// The box, periodic, in equal parts.
struct Box {
  std::array<int, 3> parts{1, 1, 1};
  std::vector<int> ranks{0};  // of each part, the last dimension running fastest
  int part_at(const double* at) const { return particles::part_at(parts.data(), at); }
};

// Those that are elsewhere now: all of them, and what goes to each rank. In ascending order.
struct Leaving {
  std::vector<std::int64_t> all;
  std::vector<std::vector<std::int64_t>> to_rank;
};

// Particles where they lie: from one to the next, and from one of its words to the next, in words.
struct Span {
  double* first;
  std::int64_t count;
  std::int64_t particle, word;
};

// The particle at `from` takes the place `to`. Of several at once no place is named twice.
struct Fill {
  std::int64_t to, from;
};

// All calls return when what they do is done.
class Machine {
 public:
  virtual ~Machine() = default;
  // For people: where particles lie.
  virtual std::string text() const = 0;
  virtual isthmus::Memory allocate(std::size_t bytes) const = 0;
  // A place in such memory, on which nothing is pending.
  virtual isthmus::Buffer at(const double* address) const = 0;
  // A step of each, in place; what has left the part `own` is added to `leaving`.
  virtual void move(const Span& particles, const Box& box, int own, Leaving& leaving) = 0;
  virtual void fill(const Span& particles, std::span<const Fill> fills) = 0;
};

std::unique_ptr<Machine> make_host_machine(const isthmus::World& world);
// Collective.
std::unique_ptr<Machine> make_cuda_machine(const isthmus::World& world);

}  // namespace particles
