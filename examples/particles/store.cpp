#include "store.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace particles {

using isthmus::Buffer;
using isthmus::Layout;

namespace {
constexpr std::int64_t kWord = sizeof(double);
}

Buffer Store::at(const isthmus::Memory& memory, std::int64_t particle) const {
  return memory.at(static_cast<std::size_t>(particle * particle_stride() * kWord));
}

Layout Store::first_ones(std::int64_t count, std::int64_t capacity) const {
  if (shape_ == Shape::structs) return Layout::contiguous(count * words, IST_DOUBLE);
  return Layout::vector(words, count, capacity, IST_DOUBLE);
}

void Store::reserve(std::int64_t count) {
  if (count <= capacity_) return;
  const std::int64_t capacity = std::max(count, capacity_ + capacity_ / 2);
  isthmus::Memory grown = world_.allocate(kind_, static_cast<std::size_t>(capacity * kParticleBytes));
  if (count_ > 0) {
    const auto bytes = static_cast<std::size_t>(kWord * count_) * (shape_ == Shape::structs ? words : 1);
    for (std::int64_t array = 0; array < (shape_ == Shape::structs ? 1 : words); ++array)
      world_.copy(grown.at(static_cast<std::size_t>(array * capacity * kWord)),
                  memory_.at(static_cast<std::size_t>(array * capacity_ * kWord)), bytes);
    before_.push_back(std::move(memory_));
  }
  memory_ = std::move(grown);
  capacity_ = capacity;
}

void Store::append(const std::vector<Particle>& particles) {
  if (particles.empty()) return;
  const auto count = static_cast<std::int64_t>(particles.size());
  reserve(count_ + count);
  std::vector<double> packed(particles.size() * words);  // in the order of the layout
  const std::int64_t particle = shape_ == Shape::structs ? words : 1, word = shape_ == Shape::structs ? 1 : count;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t w = 0; w < words; ++w)
      packed[static_cast<std::size_t>(i * particle + w * word)] =
          particles[static_cast<std::size_t>(i)][static_cast<std::size_t>(w)];
  first_ones(count, capacity_).unpack(world_, Buffer::host(packed.data()), at(memory_, count_));
  count_ += count;
}

std::vector<Particle> Store::all() const {
  std::vector<Particle> found(static_cast<std::size_t>(count_));
  if (found.empty()) return found;
  std::vector<double> packed(found.size() * words);
  first_ones(count_, capacity_).pack(world_, memory(), Buffer::host(packed.data()));
  const std::int64_t particle = shape_ == Shape::structs ? words : 1, word = shape_ == Shape::structs ? 1 : count_;
  for (std::int64_t i = 0; i < count_; ++i)
    for (std::int64_t w = 0; w < words; ++w)
      found[static_cast<std::size_t>(i)][static_cast<std::size_t>(w)] =
          packed[static_cast<std::size_t>(i * particle + w * word)];
  return found;
}

isthmus::Request Store::send(const isthmus::Comm& comm, int rank, std::span<const std::int64_t> which) const {
  if (shape_ == Shape::structs) {
    const Layout particle = Layout::contiguous(words, IST_DOUBLE);
    return Layout::indexed_block(1, which, particle).isend(comm, memory(), rank);
  }
  const Layout of_one_array = Layout::indexed_block(1, which, IST_DOUBLE);
  return Layout::hvector(words, 1, capacity_ * kWord, of_one_array).isend(comm, memory(), rank);
}

void Store::receive(const isthmus::Comm& comm, int rank, std::int64_t count) {
  reserve(count_ + count);
  first_ones(count, capacity_).recv(comm, at(memory_, count_), rank);
  count_ += count;
}

void Store::close_holes(std::span<const std::int64_t> holes) {
  before_.clear();
  std::vector<std::int64_t> from, to;
  // From behind, so that the last one is never a hole that is still to be filled.
  for (auto hole = holes.rbegin(); hole != holes.rend(); ++hole) {
    --count_;
    if (*hole == count_) continue;
    from.push_back(count_);
    to.push_back(*hole);
  }
  copy_particles(from, to);
}

}  // namespace particles
