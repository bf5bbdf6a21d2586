// Particles in a periodic box that is cut over all ranks, in three dimensions. In each step those that have left a rank's part go to the
// neighbour that has it: one message to each neighbour, by an indexed layout of where they lie, and the neighbour learns by a probe how many
// come. The last ones then fill the holes. Rank 0 also moves all of them alone: none may be lost or doubled, and all bits are the same.
// Run: isthmus run -n 4 particles --count 1000000
#include <cmath>
#include <optional>
#include <set>

#include "check.hpp"
#include "common/program.hpp"
#include "store.hpp"

namespace {

using particles::Box;
using particles::Particle;
using particles::Shape;
using particles::Store;

struct Options {
  std::int64_t count = 200000;
  int steps = 50;
  double speed = 0.02;
  std::string store = "both", spoil = "no";
};

// From 0 up to 1: what each particle begins with follows from its number, whichever rank makes it (splitmix64).
double scattered(std::uint64_t which) {
  std::uint64_t bits = (which + 1) * 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((bits ^ (bits >> 31U)) >> 11U) * 0x1p-53;
}

std::vector<Particle> at_start(const Options& options, const Box& box, int own) {
  std::vector<Particle> found;
  for (std::int64_t n = 0; n < options.count; ++n) {
    Particle particle{};
    for (std::size_t d = 0; d < 3; ++d) {
      const std::uint64_t seed = static_cast<std::uint64_t>(n) * 6 + d;
      particle[particles::position + d] = scattered(seed);
      particle[particles::velocity + d] = options.speed * (2 * scattered(seed + 3) - 1);
    }
    particle[particles::id] = static_cast<double>(n);
    if (box.part_at(particle.data()) == own) found.push_back(particle);
  }
  return found;
}

// A rank's place in the box.
struct Place {
  isthmus::Comm comm;
  Box box;
  int own = 0;                  // its part
  std::vector<int> neighbours;  // those of the 26 around that are other ranks, each once
};

Place place_of(const isthmus::World& world) {
  const auto dims = isthmus::balanced_dims(world.size(), {0, 0, 0});
  const isthmus::Cart cart = world.comm().cart(dims, std::array{1, 1, 1});
  const auto coords = cart.coords();
  Place place{cart, {}, 0, {}};
  std::copy(dims.begin(), dims.end(), place.box.parts.begin());
  place.box.ranks.clear();
  std::array<int, 3> at{};
  std::set<int> around;
  for (at[0] = 0; at[0] < dims[0]; ++at[0])
    for (at[1] = 0; at[1] < dims[1]; ++at[1])
      for (at[2] = 0; at[2] < dims[2]; ++at[2]) {
        if (std::equal(at.begin(), at.end(), coords.begin())) place.own = static_cast<int>(place.box.ranks.size());
        place.box.ranks.push_back(cart.rank_at(at));
      }
  for (at[0] = coords[0] - 1; at[0] <= coords[0] + 1; ++at[0])
    for (at[1] = coords[1] - 1; at[1] <= coords[1] + 1; ++at[1])
      for (at[2] = coords[2] - 1; at[2] <= coords[2] + 1; ++at[2]) around.insert(cart.rank_at(at));
  around.erase(cart.rank());
  place.neighbours.assign(around.begin(), around.end());
  return place;
}

struct Times {
  double moving = 0;
  double migrating = 0;
};

// How many have left.
std::int64_t step(const Place& place, Store& store, Times& times) {
  const example::Clock clock;
  particles::Leaving leaving;
  leaving.to_rank.resize(static_cast<std::size_t>(place.comm.size()));
  store.move(place.box, place.own, leaving);
  times.moving += clock.seconds();
  const example::Clock moved;
  std::vector<isthmus::Request> sends;
  for (const int rank : place.neighbours)
    sends.push_back(store.send(place.comm, rank, leaving.to_rank[static_cast<std::size_t>(rank)]));
  for (const int rank : place.neighbours)
    store.receive(place.comm, rank, place.comm.probe(rank).bytes() / particles::kParticleBytes);
  // Holes are written to, so that nothing may be on its way from them.
  isthmus::wait_all(sends);
  store.close_holes(leaving.all);
  times.migrating += moved.seconds();
  return static_cast<std::int64_t>(leaving.all.size());
}

void spoil(const std::string& how, std::vector<Particle>& mine) {
  if (mine.empty()) return;
  if (how == "lost") mine.pop_back();
  if (how == "twice") mine.push_back(mine.front());
  if (how == "bit") mine.back()[particles::position] = std::nextafter(mine.back()[particles::position], 2.0);
}

double rate(const Options& options, double seconds) {
  return static_cast<double>(options.count) * options.steps / seconds / 1e6;
}

struct Run {
  double seconds = 0;  // of the slowest rank
  Times times;
  std::int64_t left = 0;
  std::vector<Particle> end;
};

Run run_steps(const isthmus::World& world, const Place& place, const std::vector<Particle>& start, Shape shape, int steps) {
  Store store(world, shape);
  store.append(start);
  Run run;
  run.seconds = example::slowest_seconds(place.comm, [&] {
    for (int n = 0; n < steps; ++n) run.left += step(place, store, run.times);
  });
  run.end = store.all();
  return run;
}

// The median of three runs, behind two steps that are not counted.
Run measure(const isthmus::World& world, const Place& place, const Options& options, Shape shape) {
  const auto start = at_start(options, place.box, place.own);
  run_steps(world, place, start, shape, 2);
  return example::median_of_three([&] { return run_steps(world, place, start, shape, options.steps); });
}

// A line of the table; rank 0 says whether the result was right.
bool run_shape(const isthmus::World& world, const Place& place, const Options& options, const std::string& name) {
  const Shape shape = name == "soa" ? Shape::soa : Shape::aos;
  std::optional<Run> alone;
  if (place.comm.rank() == 0) alone = measure(world, {world.self(), {}, 0, {}}, options, shape);
  Run run = measure(world, place, options, shape);
  run.left = example::sum(place.comm, run.left);
  run.times = {example::sum(place.comm, run.times.moving), example::sum(place.comm, run.times.migrating)};
  if (place.comm.rank() == place.comm.size() - 1) spoil(options.spoil, run.end);
  const auto faults = particles::compare(place.comm, run.end, alone ? &alone->end : nullptr);
  if (!alone) return true;
  // A mean over ranks and steps.
  const double found = rate(options, run.seconds), by_one = rate(options, alone->seconds);
  const double of_all = 1.0 / options.steps / place.comm.size();
  std::printf("%-8s %12.3f %12.3f %10.0f %% %10.3f %12.3f %9.3f %% %14.0f\n", name.c_str(), by_one, found,
              100 * found / by_one / place.comm.size(), run.times.moving * of_all * 1e3, run.times.migrating * of_all * 1e3,
              100 * static_cast<double>(run.left) / options.steps / static_cast<double>(options.count),
              static_cast<double>(run.left * particles::kParticleBytes) * of_all);
  std::fflush(stdout);
  if (faults.count() > 0)
    std::printf("WRONG: %lld lost, %lld twice, %lld that nobody knows, %lld elsewhere\n",
                static_cast<long long>(faults.lost), static_cast<long long>(faults.twice),
                static_cast<long long>(faults.unknown), static_cast<long long>(faults.elsewhere));
  return faults.count() == 0;
}

bool work(const isthmus::World& world, const Options& options) {
  const Place place = place_of(world);
  const auto& parts = place.box.parts;
  // A particle that passes a whole part in a step would come to a rank that is no neighbour.
  const int most = *std::max_element(parts.begin(), parts.end());
  if (options.speed * most > 1)
    throw example::Mistake("--speed is " + example::in_words(options.speed) + " of the box, and a part of " +
                           std::to_string(most) + " is narrower: with so many ranks it has to be " +
                           example::in_words(std::floor(1e6 / most) / 1e6) + " or less");
  const bool first = place.comm.rank() == 0;
  if (first) {
    std::printf("%lld particles, %d steps of up to %g, %d x %d x %d parts, host memory\n",
                static_cast<long long>(options.count), options.steps, options.speed, parts[0], parts[1], parts[2]);
    std::printf("%-8s %12s %12s %12s %10s %12s %11s %14s\n", "store", "M/s, 1 rank", "M/s, all", "efficiency", "ms moving",
                "ms migrating", "migrate", "bytes sent");
  }
  bool right = true;
  for (const char* name : {"aos", "soa"})
    if (options.store == "both" || options.store == name) right = run_shape(world, place, options, name) && right;
  right = example::sum(place.comm, right ? 0 : 1) == 0;
  if (first)
    std::puts(right ? "verified: none lost, none twice, the same bits as one rank; bytes are of a rank in a step"
                    : "wrong: other particles than those of one rank");
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::Arguments arguments("particles",
                               "Particles in a periodic box, which migrate between the ranks that have its parts.");
  arguments.number<std::int64_t>("--count", options.count, 1, 1000000000, "particles");
  arguments.number("--steps", options.steps, 1, 1000000000, "steps");
  arguments.number("--speed", options.speed, 0.0, 1.0, "of the quickest in each dimension, in boxes a step");
  arguments.word("--store", options.store, {"aos", "soa", "both"}, "structs or arrays in memory");
  arguments.word("--spoil", options.spoil, {"no", "lost", "twice", "bit"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) { return work(world, options); });
}
