// In host memory.
#include "machine.hpp"

namespace particles {
namespace {

// Inlined with strides that are known, where they are.
void move_by(const Span& of, std::int64_t particle, std::int64_t word, const Box& box, int own, Leaving& leaving) {
  double* now = of.first;
  for (std::int64_t i = 0; i < of.count; ++i, now += particle) {
    std::array<double, 3> at{};
    for (std::int64_t d = 0; d < 3; ++d)
      now[(position + d) * word] = at[static_cast<std::size_t>(d)] =
          moved(now[(position + d) * word], now[(velocity + d) * word]);
    const int part = box.part_at(at.data());
    if (part == own) continue;
    leaving.all.push_back(i);
    leaving.to_rank[static_cast<std::size_t>(box.ranks[static_cast<std::size_t>(part)])].push_back(i);
  }
}

class Host final : public Machine {
 public:
  explicit Host(const isthmus::World& world) : world_(world) {}
  std::string text() const override { return "host memory"; }
  isthmus::Memory allocate(std::size_t bytes) const override { return world_.allocate(isthmus::Kind::host, bytes); }
  isthmus::Buffer at(const double* address) const override { return isthmus::Buffer::host(address); }
  void move(const Span& of, const Box& box, int own, Leaving& leaving) override {
    if (of.particle == words)
      move_by(of, words, 1, box, own, leaving);
    else
      move_by(of, 1, of.word, box, own, leaving);
  }
  void fill(const Span& of, std::span<const Fill> fills) override {
    for (const Fill& one : fills)
      for (std::int64_t w = 0; w < words; ++w)
        of.first[one.to * of.particle + w * of.word] = of.first[one.from * of.particle + w * of.word];
  }

 private:
  const isthmus::World& world_;
};

}  // namespace

std::unique_ptr<Machine> make_host_machine(const isthmus::World& world) { return std::make_unique<Host>(world); }

}  // namespace particles
