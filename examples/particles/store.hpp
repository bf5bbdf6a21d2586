// The particles of one rank: seven numbers each (place, speed, number), as structs side by side or as seven arrays.
//
// Who calls this : particles.cpp, check.cpp. Who implements what computes: store_host.cpp.
// Threads        : one.
// Ownership      : a Store owns its memory. When it grows, the memory before stays until close_holes(), since messages may still leave from it.
// Errors         : isthmus::Error; make_store: where the kind cannot be used.
#pragma once

#include <array>
#include <cstdint>
#include <isthmus/isthmus.hpp>
#include <isthmus/layout.hpp>
#include <memory>
#include <span>
#include <vector>

namespace particles {

// Place in the box, from 0 up to 1 in each dimension; way of a step; which one it is, a number that a double holds exactly.
enum Word : int { place = 0, speed = 3, number = 6, words = 7 };
using Particle = std::array<double, words>;
inline constexpr std::int64_t kParticleBytes = sizeof(Particle);

enum class Shape { structs, arrays };

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
  Store(const isthmus::World& world, isthmus::Kind kind, Shape shape) : world_(world), kind_(kind), shape_(shape) {}
  virtual ~Store() = default;
  std::int64_t count() const { return count_; }

  void append(const std::vector<Particle>& particles);
  // Messages of particles, by a layout of where they lie.
  isthmus::Request send(const isthmus::Comm& comm, int rank, std::span<const std::int64_t> which) const;
  // So many, behind those that are there.
  void receive(const isthmus::Comm& comm, int rank, std::int64_t count);
  std::vector<Particle> all() const;

  // A step of each. What has left `own` stays here until it is sent, and its place is closed.
  virtual void move(const Box& box, int own, Leaving& leaving) = 0;
  // The last ones take the places of these, in ascending order.
  void close_holes(std::span<const std::int64_t> holes);

 protected:
  // From particle i to the next, and from one of its words to the next, in words.
  std::int64_t particle_stride() const { return shape_ == Shape::structs ? words : 1; }
  std::int64_t word_stride() const { return shape_ == Shape::structs ? 1 : capacity_; }
  Shape shape() const { return shape_; }
  isthmus::Buffer memory() const { return memory_.buffer(); }
  virtual void copy_particles(std::span<const std::int64_t> from, std::span<const std::int64_t> to) = 0;

 private:
  void reserve(std::int64_t count);
  isthmus::Buffer at(const isthmus::Memory& memory, std::int64_t particle) const;
  isthmus::Layout first_ones(std::int64_t count, std::int64_t capacity) const;

  const isthmus::World& world_;
  isthmus::Kind kind_;
  Shape shape_;
  isthmus::Memory memory_;
  std::vector<isthmus::Memory> before_;
  std::int64_t count_ = 0;
  std::int64_t capacity_ = 0;
};

std::unique_ptr<Store> make_store(const isthmus::World& world, isthmus::Kind kind, Shape shape);

}  // namespace particles
