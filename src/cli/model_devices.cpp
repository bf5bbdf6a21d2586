#include "cli/model_devices.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "cli/failure.hpp"
#include "cli/model_rows.hpp"
#include "cli/model_trials.hpp"
#include "path/shm/pair_slot.hpp"

namespace ist::cli {
namespace {

// For each of the two pairs of memories.
constexpr double kLongestOnDevices = 3;
// Orders to a worker are no calls of the driver.
constexpr const char* kNoWorker = "worker=0";
constexpr std::size_t kLongMessage = 1 << 20;
constexpr std::size_t kLongestMessage = 16 << 20;

using Uuid = std::array<char, 64>;

BenchOptions method_between(const char* from, const char* to) {
  BenchOptions method;
  method.benchmark = "latency";
  method.from = Place::read(from);
  method.to = Place::read(to);
  method.most = kLongestMessage;
  return method;
}

// Of the device that a rank's buffer is on; empty: of none.
std::vector<std::string> used_devices(Session& session) {
  Uuid mine{};
  const Place& place = session.place(session.rank());
  const MemoryKind* const cuda = session.kinds().find(KindId::cuda);
  if (cuda != nullptr && place.on_device())
    for (const DeviceInfo& device : cuda->devices())
      if (device.ordinal == place.device) std::strncpy(mine.data(), device.uuid.c_str(), mine.size() - 1);
  std::vector<std::string> used;
  for (const Uuid& uuid : session.from_all(std::span<const Uuid>{&mine, 1})) used.emplace_back(uuid.data());
  return used;
}

void add_device(Profile& profile, const std::string& uuid) {
  auto& known = profile.devices.uuids;
  if (!uuid.empty() && std::find(known.begin(), known.end(), uuid) == known.end()) known.push_back(uuid);
}

// Memory of another process is opened beside the first messages, which takes milliseconds. Both ways, or false.
bool goes_in_one_copy(Session& session) {
  constexpr int kMostMessages = 200;
  constexpr std::chrono::milliseconds kPause{5};
  const Trials trials = one_way(session, {kLongMessage});
  for (int n = 0; n < kMostMessages; ++n) {
    trials.front().once();
    const int carrier = session.carrier();
    const auto all = session.from_all(std::span<const int>{&carrier, 1});
    if (std::all_of(all.begin(), all.end(), [](int each) { return each == IST_CARRIER_DEVICE; })) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

// Once more where rank 0 cannot use what came out: a busy machine can make a long message look quicker than a short one.
void run_until(Session& session, const std::vector<Trials*>& all, int rounds, const std::function<bool()>& sound) {
  constexpr int kTries = 2;
  for (int n = 0; n < kTries; ++n) {
    run(session, all, rounds, kLongestOnDevices);
    if (session.from_first(session.rank() != 0 || sound() ? 1 : 0) == 1) return;
  }
}

// Rank 0's notes, and what it has to say.
class DeviceNotes {
 public:
  DeviceNotes(Profile& profile, std::vector<std::string>& said) : profile_(profile), said_(said) {}
  void note(double& where, const char* name, double value) {
    if (value > 0)
      set_measured(profile_, where, value);
    else
      built_in(name, "it came out as nothing; the machine is too busy to be measured");
  }
  void built_in(const std::string& names, const std::string& why) { said_.push_back(names + " as built in: " + why); }
  Profile& profile() { return profile_; }

 private:
  Profile& profile_;
  std::vector<std::string>& said_;
};

// Page-locked host memory on rank 0, a device on rank 1.
void measure_bus(const Settings& settings, int rounds, DeviceNotes& notes) {
  Session session(method_between("pinned", "cuda"), kNoWorker);
  session.prepare(settings);
  const std::size_t slot = std::min(pair_slot_limit(settings.eager_limit, 2), settings.eager_limit).value;
  std::vector<std::size_t> sizes;
  if (slot >= 1024) sizes = {8, 256, 1024};
  // All that rank 0 sees: they are taken to be alike.
  notes.profile().devices = devices_of(session.kinds());
  const bool in_one_copy = goes_in_one_copy(session);
  Trials small = one_way(session, sizes);
  Trials large = one_way(session, in_one_copy ? std::vector<std::size_t>{kLongMessage, 4 * kLongMessage, kLongestMessage}
                                              : std::vector<std::size_t>{});
  MachineProfile& machine = notes.profile().message;
  // One way in a slot, and back in a cell, which is no quicker, though between hosts none may have been used.
  const double on_host = (machine.slot_alpha + std::max(machine.cell_alpha, machine.slot_alpha)) / 2;
  run_until(session, {&small, &large}, rounds, [&] {
    return (sizes.empty() || line_through(small).start > on_host) && (!in_one_copy || line_through(large).slope > 0);
  });
  for (const std::string& uuid : used_devices(session)) add_device(notes.profile(), uuid);
  if (session.rank() != 0) return;
  if (!sizes.empty())
    notes.note(machine.device_copy_alpha, "device_copy_alpha", line_through(small).start - on_host);
  else
    notes.built_in("device_copy_alpha", "no small message goes at once, since ISTHMUS_EAGER_LIMIT is below 1 KiB");
  if (in_one_copy)
    notes.note(machine.device_copy_beta, "device_copy_beta", line_through(large).slope);
  else
    notes.built_in(
        "device_copy_beta",
        "neither process can open the other's device memory (ISTHMUS_LOG=info says why), and the ring tells of the host's "
        "copies");
  const auto rows = measure_rows(session.kinds(), machine.device_copy_beta, machine.device_copy_alpha);
  if (!rows.ok())
    return notes.built_in(
        "device_pack_beta, device_rows_alpha, device_row_each, device_rows_beta, device_mapped_beta, "
        "device_mapped_load_beta",
        rows.status().text());
  notes.note(machine.device_pack_beta, "device_pack_beta", rows->kernel_byte);
  notes.note(machine.device_rows_alpha, "device_rows_alpha", rows->start);
  notes.note(machine.device_row_each, "device_row_each", rows->each);
  notes.note(machine.device_rows_beta, "device_rows_beta", rows->byte);
  if (rows->mapped_byte == 0)
    return notes.built_in("device_mapped_beta, device_mapped_load_beta", "kernels of the device reach no host memory");
  notes.note(machine.device_mapped_beta, "device_mapped_beta", rows->mapped_byte);
  notes.note(machine.device_mapped_load_beta, "device_mapped_load_beta", rows->mapped_load_byte);
}

// A device on each rank; nothing where that is the same one.
void measure_link(const Settings& settings, int rounds, DeviceNotes& notes) {
  constexpr const char* kNames = "device_link_alpha, device_link_beta";
  Session session(method_between("cuda", "cuda"), kNoWorker);
  session.prepare(settings);
  const std::vector<std::string> used = used_devices(session);
  for (const std::string& uuid : used) add_device(notes.profile(), uuid);
  if (used.front() == used.back()) return notes.built_in(kNames, "both ranks have the same GPU");
  if (!goes_in_one_copy(session))
    return notes.built_in(kNames, "neither process can open the other's device memory; ISTHMUS_LOG=info says why");
  Trials trials = one_way(session, {8, 4096, 65536, kLongMessage, 4 * kLongMessage, kLongestMessage});
  MachineProfile& machine = notes.profile().message;
  const double telling = machine.slot_alpha + machine.handshake_alpha;
  run_until(session, {&trials}, rounds,
            [&] { return line_through(trials).start > telling && line_through(trials).slope > 0; });
  // Did the last ones still go that way?
  const bool still = goes_in_one_copy(session);
  if (session.rank() != 0) return;
  if (!still) return notes.built_in(kNames, "some messages went another way than in one copy");
  const Line line = line_through(trials);
  notes.note(machine.device_link_alpha, "device_link_alpha", line.start - telling);
  notes.note(machine.device_link_beta, "device_link_beta", line.slope);
}

}  // namespace

std::vector<std::string> measure_devices(Settings settings, int rounds, Profile& profile) {
  std::vector<std::string> said;
  DeviceNotes notes(profile, said);
  settings.worker = false;
  try {
    measure_bus(settings, rounds, notes);
    measure_link(settings, rounds, notes);
  } catch (const Failure& failure) {
    notes.built_in("numbers of devices that are not measured", failure.what());
  }
  if (!profile.devices.uuids.empty()) notes.built_in("device_turn, device_load_factor", "they are not measured");
  return said;
}

}  // namespace ist::cli
