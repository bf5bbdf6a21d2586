// Particles that the processor moves.
#include "store.hpp"

namespace particles {
namespace {

class HostStore : public Store {
 public:
  HostStore(const isthmus::World& world, Shape shape_of) : Store(world, isthmus::Kind::host, shape_of) {}
  void move(const Box& box, int own, Leaving& leaving) override {
    if (shape() == Shape::structs)
      move_by(words, 1, box, own, leaving);
    else
      move_by(1, word_stride(), box, own, leaving);
  }

 private:
  double* first() const {
    const ist_buffer place_of_first = memory().c();
    return reinterpret_cast<double*>(place_of_first.object + place_of_first.offset);
  }
  // Inlined with strides that are known, where they are.
  void move_by(std::int64_t particle, std::int64_t word, const Box& box, int own, Leaving& leaving) {
    double* now = count() > 0 ? first() : nullptr;
    for (std::int64_t i = 0; i < count(); ++i, now += particle) {
      std::array<double, 3> at{};
      for (std::int64_t d = 0; d < 3; ++d) {
        double moved = now[(place + d) * word] + now[(speed + d) * word];
        // Less than nothing by so little that it becomes 1 goes on to 0.
        if (moved < 0) moved += 1;
        if (moved >= 1) moved -= 1;
        now[(place + d) * word] = at[static_cast<std::size_t>(d)] = moved;
      }
      const int part = box.part_at(at.data());
      if (part == own) continue;
      leaving.all.push_back(i);
      leaving.to_rank[static_cast<std::size_t>(box.ranks[static_cast<std::size_t>(part)])].push_back(i);
    }
  }
  void copy_particles(std::span<const std::int64_t> from, std::span<const std::int64_t> to) override {
    for (std::size_t n = 0; n < from.size(); ++n)
      for (std::int64_t w = 0; w < words; ++w)
        first()[to[n] * particle_stride() + w * word_stride()] = first()[from[n] * particle_stride() + w * word_stride()];
  }
};

}  // namespace

std::unique_ptr<Store> make_store(const isthmus::World& world, isthmus::Kind kind, Shape shape) {
  if (kind != isthmus::Kind::host) throw isthmus::Error(IST_ERR_KIND, "these particles are moved in host memory alone");
  return std::make_unique<HostStore>(world, shape);
}

}  // namespace particles
