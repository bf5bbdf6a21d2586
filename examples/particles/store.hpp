// The particles of one rank: seven numbers each (position, velocity, id), as an array of structs (AoS) or as seven arrays (SoA).
//
// Who calls this : particles.cpp, check.cpp.
// Threads        : one.
// Ownership      : a Store owns its memory. When it grows, the memory before stays until close_holes(), since messages may still leave from it.
// Errors         : isthmus::Error, and what its machine throws.
#pragma once

#include <array>
#include <cstdint>
#include <isthmus/isthmus.hpp>
#include <isthmus/layout.hpp>
#include <span>
#include <vector>

#include "machine.hpp"

namespace particles {

using Particle = std::array<double, words>;
inline constexpr std::int64_t kParticleBytes = sizeof(Particle);

enum class Shape { aos, soa };

class Store {
 public:
  Store(const isthmus::World& world, Machine& machine, Shape shape);

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
  // For so many and one more, so that there is memory behind the last one, too.
  void reserve(std::int64_t count);
  // From particle i to the next, and from one of its words to the next, in words.
  std::int64_t particle_stride() const { return shape_ == Shape::aos ? words : 1; }
  std::int64_t word_stride() const { return shape_ == Shape::aos ? 1 : capacity_; }
  double* first() const;
  Span span() const { return {first(), count_, particle_stride(), word_stride()}; }
  isthmus::Buffer at(std::int64_t particle) const { return machine_.at(first() + particle * particle_stride()); }
  isthmus::Layout first_ones(std::int64_t count) const;

  const isthmus::World& world_;
  Machine& machine_;
  Shape shape_;
  isthmus::Memory memory_;
  std::vector<isthmus::Memory> before_;
  std::int64_t count_ = 0;
  std::int64_t capacity_ = 0;
};

}  // namespace particles
