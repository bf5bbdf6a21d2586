// Particles in a periodic box that is cut over all ranks, in three dimensions. In each step those that have left a rank's part go to the
// neighbour that has it: one message to each neighbour, by an indexed layout of where they lie, and the neighbour learns by a probe how many
// come. The last ones then fill the holes. Rank 0 also moves all of them alone: none may be lost or doubled, and all bits are the same.
//
// --device cuda, a GPU for each rank: particles stay on the device. A kernel moves them, a scan lists those that leave, always in the same order,
// and the list alone comes to the processor, which sends them straight out of the arrays. They are compared with what the processor moves.
// Run: isthmus run -n 4 particles --count 1000000
//      isthmus run -n 2 particles --device cuda --count 10000000 --speed 0.005 --json particles.json
#include <cmath>
#include <optional>
#include <set>

#include "common/json_file.hpp"
#include "common/program.hpp"
#include "report.hpp"

namespace {

using particles::Box;
using particles::Line;
using particles::Machine;
using particles::Options;
using particles::Particle;
using particles::Shape;
using particles::Store;
using particles::Times;

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

// What the ranks of a place need to move their particles.
struct Setup {
  const isthmus::World& world;
  Machine& machine;
  const Place& place;
  const Options& options;
};

struct Run {
  double seconds = 0;  // of the slowest rank
  Times times;
  std::int64_t left = 0;
  std::vector<Particle> end;
};

Run run_steps(const Setup& setup, const std::vector<Particle>& start, Shape shape, int steps) {
  Store store(setup.world, setup.machine, shape);
  store.append(start);
  Run run;
  run.seconds = example::slowest_seconds(setup.place.comm, [&] {
    for (int n = 0; n < steps; ++n) run.left += step(setup.place, store, run.times);
  });
  run.end = store.all();
  if (setup.options.spoil == "count" && setup.place.comm.size() > 1 && !run.end.empty()) run.end.pop_back();
  particles::must_be_all(setup.place.comm, run.end, setup.options.count);
  return run;
}

// The median of three runs, behind two steps that are not counted.
Run measure(const Setup& setup, Shape shape) {
  const auto start = at_start(setup.options, setup.place.box, setup.place.own);
  run_steps(setup, start, shape, 2);
  return example::median_of_three([&] { return run_steps(setup, start, shape, setup.options.steps); });
}

// All particles, by one rank.
Place place_alone(const isthmus::World& world) { return {world.self(), {}, 0, {}}; }

// Where the processor of rank 0 moves them to, alone.
std::vector<Particle> by_processor(const isthmus::World& world, const Options& options) {
  const auto machine = particles::make_host_machine(world);
  const Place place = place_alone(world);
  const auto start = at_start(options, place.box, place.own);
  return run_steps({world, *machine, place, options}, start, Shape::aos, options.steps).end;
}

// Rank 0 has what they are compared with; the others have an empty line.
Line run_shape(const Setup& setup, const std::string& name, const std::vector<Particle>* known) {
  const isthmus::Comm& comm = setup.place.comm;
  const Shape shape = name == "soa" ? Shape::soa : Shape::aos;
  Line line{name, 0, 0, {}, 0, {}, {}};
  if (comm.rank() == 0) {
    const Place alone = place_alone(setup.world);
    const Run run = measure({setup.world, setup.machine, alone, setup.options}, shape);
    line.seconds_alone = run.seconds;
    line.faults_alone = particles::compare(alone.comm, run.end, known);
  }
  Run run = measure(setup, shape);
  line.seconds = run.seconds;
  line.left = example::sum(comm, run.left);
  const double of_all = 1.0 / setup.options.steps / comm.size();
  line.times = {example::sum(comm, run.times.moving) * of_all, example::sum(comm, run.times.migrating) * of_all};
  if (comm.rank() == comm.size() - 1) spoil(setup.options.spoil, run.end);
  line.faults = particles::compare(comm, run.end, known);
  return line;
}

void must_reach_neighbours_alone(const Options& options, const Box& box) {
  // A particle that passes a whole part in a step would come to a rank that is no neighbour.
  const int most = *std::max_element(box.parts.begin(), box.parts.end());
  if (options.speed * most > 1)
    throw example::Mistake("--speed is " + example::in_words(options.speed) + " of the box, and a part of " +
                           std::to_string(most) + " is narrower: with so many ranks it has to be " +
                           example::in_words(std::floor(1e6 / most) / 1e6) + " or less");
}

bool work(const isthmus::World& world, const Options& options) {
  const Place place = place_of(world);
  must_reach_neighbours_alone(options, place.box);
  example::must_be_writable(place.comm, options.json);
  const auto machine = options.device == "host" ? particles::make_host_machine(world) : particles::make_cuda_machine(world);
  std::optional<std::vector<Particle>> known;
  std::optional<particles::Report> report;
  if (place.comm.rank() == 0) {
    known = by_processor(world, options);
    report.emplace(options, machine->text(), place.box.parts);
  }
  bool right = true;
  for (const char* name : {"aos", "soa"}) {
    if (options.store != "both" && options.store != name) continue;
    const Line line = run_shape({world, *machine, place, options}, name, known ? &*known : nullptr);
    if (report) report->add(line);
    right = right && line.faults.count() + line.faults_alone.count() == 0;
  }
  right = example::sum(place.comm, right ? 0 : 1) == 0;
  if (report) {
    report->write_json(right);
    std::printf(right ? "verified: none lost, none twice, the same bits as one rank%s; bytes are of a rank in a step\n"
                      : "wrong: other particles than those of one rank%s\n",
                options.device == "host" ? "" : " and its processor");
  }
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
  arguments.word("--device", options.device, {"host", "cuda"}, "where particles lie and are moved");
  arguments.add("--json", "a file for the results", "none", [&](const std::string& path) { options.json = path; });
  arguments.word("--spoil", options.spoil, {"no", "lost", "twice", "bit", "count"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) { return work(world, options); });
}
