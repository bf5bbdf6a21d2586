#include "cli/model_measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cli/failure.hpp"
#include "cli/model_trials.hpp"
#include "memory/reduction.hpp"
#include "path/shm/pair_slot.hpp"
#include "protocol/copy_beliefs.hpp"

namespace ist::cli {
namespace {

constexpr double kLongestSeconds = 6;

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
      trial.repetitions = repetitions_for(one);
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
    session.send_synchronously(true);  // announced, also where slots take as many bytes
    for (int n = 0; n < messages; ++n) {
      if (session.rank() == 0) session.send(0, bytes);
      session.receive(0, bytes);
      if (session.rank() != 0) session.send(0, bytes);
    }
    session.send_synchronously(false);
    const auto [ring, single] = session.copies().best(belief.size);
    // Where nobody may read another process's memory there is nothing to choose.
    if (!std::isfinite(ring) || !std::isfinite(single)) continue;
    set_measured(profile, profile.message.*belief.ring, ring);
    set_measured(profile, profile.message.*belief.single, single);
  }
}

// One message and its answer, and several in a row each with bytes of its own, whose sends are synchronous or not; of bytes just written.
Trials both_shapes(Session& session, std::size_t bytes, bool synchronous) {
  constexpr int kInARow = 16;
  const auto alone = [&session, bytes, synchronous] {
    session.send_synchronously(synchronous);
    if (session.rank() != 0) session.receive(0, bytes);
    session.write_lines(bytes);
    session.send(0, bytes);
    if (session.rank() == 0) session.receive(0, bytes);
    session.send_synchronously(false);
  };
  const auto row = [&session, bytes, synchronous] {
    session.send_synchronously(synchronous);
    if (session.rank() == 0) session.write_lines(kInARow * bytes);
    if (session.rank() == 0) session.send_window(kInARow, bytes, bytes);
    if (session.rank() != 0) session.receive_window(kInARow, bytes, bytes);
    session.send_synchronously(false);
    if (session.rank() == 0) session.receive(0, 0);
    if (session.rank() != 0) session.send(0, 0);
  };
  return {{static_cast<double>(bytes), 2, alone}, {static_cast<double>(bytes), kInARow, row}};
}

// Between the eager limit and a slot's longest message; by the mean of alone and several in a row, and one copy is not called quicker by less
// than is seen in two runs alike. Where nobody may read another process's memory there is nothing to compare.
void learn_slots(Session& session, const Settings& settings, int rounds, Profile& profile) {
  const bool reads = profile.message.one_copy_128k > 0 && profile.message.two_copies_128k > 0;
  if (session.from_first(reads ? 1 : 0) == 0) return;
  const auto announcing_is_quicker = [&](std::size_t size) {
    Trials slots = both_shapes(session, size, false);
    Trials announced = both_shapes(session, size, true);
    run(session, {&slots, &announced}, rounds, kLongestSeconds / 4);
    double ratio = 1;
    for (std::size_t i = 0; i < slots.size() && session.rank() == 0; ++i)
      ratio *= median_of(announced[i].rounds) / median_of(slots[i].rounds);
    return session.from_first(ratio < kSurelyQuicker * kSurelyQuicker ? 1 : 0) == 1;
  };
  const std::size_t from = std::max(settings.eager_limit, kAlwaysInSlots).value;
  const auto up_to = last_in_slots(from, pair_slot_limit(settings.eager_limit, 2).value, announcing_is_quicker);
  if (up_to) set_measured(profile, profile.message.slots_up_to, static_cast<double>(*up_to));
}

// Keeps a number in the profile, if it is one.
class Notes {
 public:
  void note(double& where, double value) {
    const std::string name = set_measured(profile_, where, value);
    if (!(value > 0)) doubt_ = name;
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
  Trials in_slots = one_way(session, {8, 64, 128, kAlwaysInSlots.value});
  Trials in_many_slots = one_way(session, many_slots);
  Trials in_cells = one_way(session, cells);
  Trials announced = one_way(session, {256 << 10, 1 << 20, 4 << 20});
  Trials at_once = exchanges(session);
  run(session, {&in_slots, &in_many_slots, &in_cells, &announced, &at_once}, rounds, kLongestSeconds);
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

Measured measure_profile(Session& session, const Settings& settings, int rounds) {
  // A machine that is busy with something else can make a long message look quicker than a short one.
  constexpr int kTries = 3;
  Notes notes;
  for (int n = 0; n < kTries; ++n) {
    notes = {};
    measure(session, settings, rounds, notes);
    if (session.from_first(notes.doubt().empty() ? 1 : 0) == 0) continue;
    learn_copies(session, notes.profile());
    learn_slots(session, settings, rounds, notes.profile());
    return {notes.profile(), notes.unrest};
  }
  throw Failure(1, session.rank() != 0 ? ""
                                       : notes.doubt() + " came out as nothing, " + std::to_string(kTries) +
                                             " times: the machine is too busy to be measured; try again when it is quiet");
}

}  // namespace ist::cli
