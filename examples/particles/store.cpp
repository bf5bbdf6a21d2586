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

Store::Store(const isthmus::World& world, Machine& machine, Shape shape) : world_(world), machine_(machine), shape_(shape) {
  reserve(0);
}

double* Store::first() const {
  const ist_buffer place = memory_.buffer().c();
  return reinterpret_cast<double*>(place.object + place.offset);
}

Layout Store::first_ones(std::int64_t count) const {
  if (shape_ == Shape::aos) return Layout::contiguous(count * words, IST_DOUBLE);
  return Layout::vector(words, count, capacity_, IST_DOUBLE);
}

void Store::reserve(std::int64_t count) {
  if (count < capacity_) return;
  const std::int64_t capacity = std::max(count + 1, capacity_ + capacity_ / 2);
  isthmus::Memory grown = machine_.allocate(static_cast<std::size_t>(capacity * kParticleBytes));
  if (count_ > 0) {
    const auto bytes = static_cast<std::size_t>(kWord * count_) * (shape_ == Shape::aos ? words : 1);
    for (std::int64_t array = 0; array < (shape_ == Shape::aos ? 1 : words); ++array)
      world_.copy(grown.at(static_cast<std::size_t>(array * capacity * kWord)),
                  memory_.at(static_cast<std::size_t>(array * capacity_ * kWord)), bytes);
  }
  if (capacity_ > 0) before_.push_back(std::move(memory_));
  memory_ = std::move(grown);
  capacity_ = capacity;
}

void Store::append(const std::vector<Particle>& particles) {
  if (particles.empty()) return;
  const auto count = static_cast<std::int64_t>(particles.size());
  reserve(count_ + count + count / 8);                   // for those that come
  std::vector<double> packed(particles.size() * words);  // in the order of the layout
  const std::int64_t particle = shape_ == Shape::aos ? words : 1, word = shape_ == Shape::aos ? 1 : count;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t w = 0; w < words; ++w)
      packed[static_cast<std::size_t>(i * particle + w * word)] =
          particles[static_cast<std::size_t>(i)][static_cast<std::size_t>(w)];
  first_ones(count).unpack(world_, Buffer::host(packed.data()), at(count_));
  count_ += count;
}

std::vector<Particle> Store::all() const {
  std::vector<Particle> found(static_cast<std::size_t>(count_));
  if (found.empty()) return found;
  std::vector<double> packed(found.size() * words);
  first_ones(count_).pack(world_, at(0), Buffer::host(packed.data()));
  const std::int64_t particle = shape_ == Shape::aos ? words : 1, word = shape_ == Shape::aos ? 1 : count_;
  for (std::int64_t i = 0; i < count_; ++i)
    for (std::int64_t w = 0; w < words; ++w)
      found[static_cast<std::size_t>(i)][static_cast<std::size_t>(w)] =
          packed[static_cast<std::size_t>(i * particle + w * word)];
  return found;
}

isthmus::Request Store::send(const isthmus::Comm& comm, int rank, std::span<const std::int64_t> which) const {
  if (shape_ == Shape::aos) {
    const Layout particle = Layout::contiguous(words, IST_DOUBLE);
    return Layout::indexed_block(1, which, particle).isend(comm, at(0), rank);
  }
  const Layout of_one_array = Layout::indexed_block(1, which, IST_DOUBLE);
  return Layout::hvector(words, 1, capacity_ * kWord, of_one_array).isend(comm, at(0), rank);
}

void Store::receive(const isthmus::Comm& comm, int rank, std::int64_t count) {
  reserve(count_ + count);
  first_ones(count).recv(comm, at(count_), rank);
  count_ += count;
}

void Store::move(const Box& box, int own, Leaving& leaving) { machine_.move(span(), box, own, leaving); }

// Those to be filled are below the new count, and what fills them is not: in whatever order they are copied.
void Store::close_holes(std::span<const std::int64_t> holes) {
  before_.clear();
  const std::int64_t stay = count_ - static_cast<std::int64_t>(holes.size());
  auto hole = holes.begin(), gone = std::lower_bound(holes.begin(), holes.end(), stay);
  std::vector<Fill> fills;
  for (std::int64_t last = stay; last < count_; ++last) {
    if (gone != holes.end() && *gone == last)
      ++gone;
    else
      fills.push_back({*hole++, last});
  }
  machine_.fill(span(), fills);
  count_ = stay;
}

}  // namespace particles
