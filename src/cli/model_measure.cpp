#include "cli/model_measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "cli/bench_measure.hpp"
#include "cli/failure.hpp"
#include "memory/reduction.hpp"
#include "path/shm/pair_slots.hpp"
#include "protocol/copy_beliefs.hpp"

namespace ist::cli {
namespace {

// One repetition is timed so often that a round takes about this long: short, so that most rounds are not interrupted.
constexpr double kRoundSeconds = 0.002;
constexpr double kFewest = 2;
constexpr double kMostRepetitions = 5000;
// On a busy machine there are fewer rounds, but never fewer than these.
constexpr double kLongestSeconds = 6;
constexpr int kFewestRounds = 5;

// Something that both ranks do together, over and over; x: bytes, or messages.
struct Trial {
  double x = 0;
  double share = 1;  // how many of what is looked for one repetition has
  std::function<void()> once;
  std::uint64_t repetitions = 0;
  std::vector<double> rounds = {};  // seconds, by rank 0
};
using Trials = std::vector<Trial>;

double seconds_for(const Trial& trial, std::uint64_t repetitions) {
  const auto start = Clock::now();
  for (std::uint64_t n = 0; n < repetitions; ++n) trial.once();
  return microseconds_since(start) * 1e-6;
}

// Rank 0 finds out how often, and tells.
void plan(Session& session, Trial& trial) {
  constexpr std::uint64_t kWarmUp = 4;
  seconds_for(trial, kWarmUp);
  const double one = seconds_for(trial, kWarmUp) / static_cast<double>(kWarmUp);
  const double wanted = std::clamp(kRoundSeconds / std::max(one, 1e-9), kFewest, kMostRepetitions);
  trial.repetitions = session.from_first(static_cast<std::uint64_t>(wanted));
}

// Round after round through all of them, so that a busy moment of the machine spoils a little of each and not all of one.
void run(Session& session, const std::vector<Trials*>& all, int rounds) {
  const auto start = Clock::now();
  for (Trials* trials : all)
    for (Trial& trial : *trials) plan(session, trial);
  for (int round = 0; round < rounds; ++round) {
    const bool late = round >= kFewestRounds && microseconds_since(start) > kLongestSeconds * 1e6;
    if (session.from_first(late ? 1 : 0) == 1) return;
    for (Trials* trials : all) {
      for (Trial& trial : *trials) {
        session.meet();
        const double share = static_cast<double>(trial.repetitions) * trial.share;
        trial.rounds.push_back(seconds_for(trial, trial.repetitions) / share);
      }
    }
  }
}

// How much longer than the quickest round the usual one took, over all trials; 1 where nothing else runs.
double unrest(const std::vector<Trials*>& all) {
  std::vector<double> factors;
  for (const Trials* trials : all)
    for (const Trial& trial : *trials)
      factors.push_back(median_of(trial.rounds) / *std::min_element(trial.rounds.begin(), trial.rounds.end()));
  return median_of(factors);
}

Line line_through(const Trials& trials) {
  std::vector<Point> points;
  for (const Trial& trial : trials) points.push_back({trial.x, median_of(trial.rounds)});
  return fit_line(points);
}

// Half round trips of messages of these sizes.
Trials one_way(Session& session, const std::vector<std::size_t>& sizes) {
  Trials trials;
  for (const std::size_t bytes : sizes) {
    const auto round_trip = [&session, bytes] {
      if (session.rank() == 0) session.send(0, bytes);
      session.receive(0, bytes);
      if (session.rank() != 0) session.send(0, bytes);
    };
    trials.push_back({static_cast<double>(bytes), 2, round_trip});
  }
  return trials;
}

// So many small messages from each to the other, all under way before the first is received.
Trials exchanges(Session& session) {
  Trials trials;
  for (const int number : {1, 2, 4, 8, 16}) {
    const auto exchange = [&session, number] {
      for (int n = 0; n < number; ++n) session.send(0, 8);
      for (int n = 0; n < number; ++n) session.receive(0, 8);
    };
    trials.push_back({static_cast<double>(number - 1), 1, exchange});
  }
  return trials;
}

// On rank 0 alone, while the other one sleeps.
double seconds_per_byte_combined(Session& session, int rounds) {
  std::vector<Point> points;
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{16384}, std::size_t{65536}, std::size_t{262144}}) {
    if (session.rank() == 0) {
      std::vector<float> into(bytes / sizeof(float), 1.0F);
      const std::vector<float> with(into.size(), 1.0F);
      Trial trial{static_cast<double>(bytes), 1, [&] {
                    combine_on_host(Reduction::sum, IST_FLOAT, into.data(), with.data(),
                                    static_cast<std::int64_t>(into.size()));
                  }};
      const double one = seconds_for(trial, 10) / 10;
      trial.repetitions =
          static_cast<std::uint64_t>(std::clamp(kRoundSeconds / std::max(one, 1e-9), kFewest, kMostRepetitions));
      for (int round = 0; round < rounds; ++round)
        trial.rounds.push_back(seconds_for(trial, trial.repetitions) / static_cast<double>(trial.repetitions));
      points.push_back({trial.x, median_of(trial.rounds)});
    }
  }
  session.meet_asleep();
  return session.rank() == 0 ? fit_line(points).slope : 0;
}

// Both ranks send each other so many messages that the library has tried both ways often, and rank 0 asks what its own found: times of
// the copies alone, in the very way in which a run goes on to compare them.
void learn_copies(Session& session, Profile& profile) {
  constexpr double kBytesEachWay = 512 << 20;
  constexpr int kMostMessages = 400;
  for (const CopyBelief& belief : kCopyBeliefs) {
    const std::size_t bytes = belief.size.value;
    const int messages = std::min(kMostMessages, static_cast<int>(kBytesEachWay / static_cast<double>(bytes)));
    session.meet();
    for (int n = 0; n < messages; ++n) {
      if (session.rank() == 0) session.send(0, bytes);
      session.receive(0, bytes);
      if (session.rank() != 0) session.send(0, bytes);
    }
    const auto [ring, single] = session.copies().best(belief.size);
    // Where nobody may read another process's memory there is nothing to choose.
    if (!std::isfinite(ring) || !std::isfinite(single)) continue;
    profile.message.*belief.ring = ring;
    profile.message.*belief.single = single;
    for (std::size_t i = 0; i < profile_values().size(); ++i)
      if (profile_values()[i].message == belief.ring || profile_values()[i].message == belief.single)
        profile.measured |= std::uint32_t{1} << i;
  }
}

// Keeps a number in the profile, if it is one.
class Notes {
 public:
  void note(double& where, double value) {
    const auto values = profile_values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (&values[i].of(profile_) != &where) continue;
      if (!(value > 0)) doubt_ = std::string{values[i].group} + "." + std::string{values[i].name};
      profile_.measured |= std::uint32_t{1} << i;
      where = value;
    }
  }
  Profile& profile() { return profile_; }
  // The name of a number that came out as none; empty: all are sound.
  const std::string& doubt() const { return doubt_; }
  double unrest = 1;

 private:
  Profile profile_;
  std::string doubt_;
};

// Both ranks measure; rank 0 makes notes.
void measure(Session& session, const Settings& settings, int rounds, Notes& notes) {
  std::vector<std::size_t> cells;
  std::vector<std::size_t> many_slots;
  // Shorter ones go in slots.
  const std::size_t slot_limit = pair_slot_limit(settings.eager_limit, 2).value;
  const std::size_t longest = std::min<std::size_t>(settings.eager_limit.value, 256 << 10);
  if (longest > 2 * slot_limit) cells = {2 * slot_limit, slot_limit + longest / 2, longest};
  if (slot_limit >= 4096) many_slots = {slot_limit / 4, slot_limit / 2, slot_limit};
  Trials in_slots = one_way(session, {8, 64, 128, PairSlot::kPayload});
  Trials in_many_slots = one_way(session, many_slots);
  Trials in_cells = one_way(session, cells);
  Trials announced = one_way(session, {256 << 10, 1 << 20, 4 << 20});
  Trials at_once = exchanges(session);
  run(session, {&in_slots, &in_many_slots, &in_cells, &announced, &at_once}, rounds);
  const double gamma = seconds_per_byte_combined(session, rounds);
  if (session.rank() != 0) return;
  notes.unrest = unrest({&in_slots, &in_many_slots, &in_cells, &announced, &at_once});
  const Line slot = line_through(in_slots);
  const Line large = line_through(announced);
  Profile& profile = notes.profile();
  notes.note(profile.message.slot_alpha, slot.start);
  notes.note(profile.collective.alpha, slot.start);
  // A cell is told of in a slot, and an announcement is a message: neither is ever quicker than what it is made of.
  if (!cells.empty()) notes.note(profile.message.cell_alpha, std::max(line_through(in_cells).start, slot.start));
  // Two copies. Such messages differ little in length: where nothing can be seen of that, the bytes of long ones tell, whose two
  // copies are made at the same time.
  if (!many_slots.empty()) {
    const double slope = line_through(in_many_slots).slope;
    notes.note(profile.message.host_copy_beta, slope > 0 ? slope / 2 : large.slope);
  }
  notes.note(profile.collective.alpha_large, std::max(large.start, slot.start));
  if (large.start > slot.start) notes.note(profile.message.handshake_alpha, large.start - slot.start);
  notes.note(profile.collective.beta, large.slope);
  notes.note(profile.collective.gamma, gamma);
  notes.note(profile.collective.post, line_through(at_once).slope);
}

}  // namespace

Line fit_line(const std::vector<Point>& points) {
  double weights = 0;
  double x = 0;
  double y = 0;
  for (const Point& point : points) {
    const double weight = 1 / (point.seconds * point.seconds);
    weights += weight;
    x += weight * point.x;
    y += weight * point.seconds;
  }
  x /= weights;
  y /= weights;
  double together = 0;
  double spread = 0;
  for (const Point& point : points) {
    const double weight = 1 / (point.seconds * point.seconds);
    together += weight * (point.x - x) * (point.seconds - y);
    spread += weight * (point.x - x) * (point.x - x);
  }
  const double slope = spread > 0 ? together / spread : 0;
  return {y - slope * x, slope};
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return percentile(values, 0.5);
}

Measured measure_profile(Session& session, const Settings& settings, int rounds) {
  // A machine that is busy with something else can make a long message look quicker than a short one.
  constexpr int kTries = 3;
  Notes notes;
  for (int n = 0; n < kTries; ++n) {
    notes = {};
    measure(session, settings, rounds, notes);
    if (session.from_first(notes.doubt().empty() ? 1 : 0) == 0) continue;
    learn_copies(session, notes.profile());
    return {notes.profile(), notes.unrest};
  }
  throw Failure(1, session.rank() != 0 ? ""
                                       : notes.doubt() + " came out as nothing, " + std::to_string(kTries) +
                                             " times: the machine is too busy to be measured; try again when it is quiet");
}

}  // namespace ist::cli
