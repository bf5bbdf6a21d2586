// The particles of one rank: seven numbers each (position, velocity, id), as an array of structs (AoS) or as seven arrays (SoA).
//
// Who calls this : particles.cpp, check.cpp.
// Threads        : one.
// Ownership      : a Store owns its memory. When it grows, the memory before stays until close_holes(), since messages may still leave from it.
// Errors         : isthmus::Error.
#pragma once

#include <array>
#include <cstdint>
#include <isthmus/isthmus.hpp>
#include <isthmus/layout.hpp>
#include <span>
#include <vector>

namespace particles {

// Position in the box, from 0 up to 1 in each dimension; velocity, in boxes a step; which one it is, a number that a double holds exactly.
enum Word : int { position = 0, velocity = 3, id = 6, words = 7 };
using Particle = std::array<double, words>;
inline constexpr std::int64_t kParticleBytes = sizeof(Particle);

enum class Shape { aos, soa };

// The box, periodic, in equal parts.
struct Box {
  std::array<int, 3> parts{1, 1, 1};
  std::vector<int> ranks{0};  // of each part, the last dimension running fastest
  int part_at(const double* at) const {
    int part = 0;
    for (std::size_t d = 0; d < 3; ++d) part = part * parts[d] + static_cast<int>(at[d] * parts[d]);
    return part;
  }
};

// Those that are elsewhere now: all of them, and what goes to each rank. In ascending order.
struct Leaving {
  std::vector<std::int64_t> all;
  std::vector<std::vector<std::int64_t>> to_rank;
};

class Store {
 public:
  Store(const isthmus::World& world, Shape shape) : world_(world), shape_(shape) {}

  void append(const std::vector<Particle>& particles);
  // Messages of particles, by a layout of where they lie.
  isthmus::Request send(const isthmus::Comm& comm, int rank, std::span<const std::int64_t> which) const;
  // So many, behind those that are there.
  void receive(const isthmus::Comm& comm, int rank, std::int64_t count);
  std::vector<Particle> all() const;

  // A step of each. What has left `own` stays here until it is sent, and its place is closed.
  void move(const Box& box, int own, Leaving& leaving);
  // The last ones that stay take the places of these, which are in ascending order.
  void close_holes(std::span<const std::int64_t> holes);

 private:
  void move_by(std::int64_t particle, std::int64_t word, const Box& box, int own, Leaving& leaving);
  void reserve(std::int64_t count);
  // From particle i to the next, and from one of its words to the next, in words.
  std::int64_t particle_stride() const { return shape_ == Shape::aos ? words : 1; }
  std::int64_t word_stride() const { return shape_ == Shape::aos ? 1 : capacity_; }
  double* first() const;
  isthmus::Buffer at(std::int64_t particle) const { return isthmus::Buffer::host(first() + particle * particle_stride()); }
  isthmus::Layout first_ones(std::int64_t count) const;

  const isthmus::World& world_;
  Shape shape_;
  isthmus::Memory memory_;
  std::vector<isthmus::Memory> before_;
  std::int64_t count_ = 0;
  std::int64_t capacity_ = 0;
};

}  // namespace particles
