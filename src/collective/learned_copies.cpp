#include "collective/learned_copies.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "collective/profile.hpp"
#include "protocol/copy_beliefs.hpp"

namespace ist {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCopiesVersion = 2;  // in 1 no slot was longer than 64 KiB

// As the profile calls that number.
std::string name_of_number(double MachineProfile::*number) {
  for (const ProfileValue& value : profile_values())
    if (value.message == number) return std::string{value.name};
  return "";
}

// An object without numbers: no such file, or none of this machine and version.
Json read_copies(const std::string& file) {
  Json none{{"isthmus_copies", kCopiesVersion}, {"machine", machine_name()}};
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return none;
  try {
    std::ifstream stream{file};
    Json all = Json::parse(stream, nullptr, false);
    const bool ours = all.is_object() && all.value("isthmus_copies", Json{}) == Json(kCopiesVersion) &&
                      all.value("machine", Json{}) == none["machine"];
    return ours ? all : none;
  } catch (const std::exception&) {  // a stream that fails half way
    return none;
  }
}

// Seconds per byte; 0: it is not there, or no such number.
double number_in(const Json& all, double MachineProfile::*number) {
  const Json found = all.value(name_of_number(number), Json{});
  const double value = found.is_number() ? found.get<double>() : 0;
  return std::isfinite(value) && value > 0 && value < 1 ? value : 0;
}

// A machine that is always busy is not asked for ever.
constexpr int kMostSlotTrials = 3;
constexpr const char* kSlotTrials = "slot_trials";
// What one world found. A processor's copies may be slow for the seconds that it tried: the next one tries again, and the more counts.
constexpr const char* kSlotsOfOne = "slots_up_to_of_one";

int slot_trials(const Json& all) {
  const Json found = all.value(kSlotTrials, Json{});
  return found.is_number_integer() ? found.get<int>() : 0;
}

// Bytes; 0: not there, or no such number.
double slots_in(const Json& all, const std::string& name) {
  const Json found = all.value(name, Json{});
  const double value = found.is_number() ? found.get<double>() : 0;
  return std::isfinite(value) && value >= 1 ? value : 0;
}

double slots_in(const Json& all) { return slots_in(all, name_of_number(&MachineProfile::slots_up_to)); }

// Or made, with the folders before it.
bool can_be_written(const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error)) return ::access(file.c_str(), W_OK) == 0;
  std::filesystem::path folder = std::filesystem::path{file}.parent_path();
  while (folder.has_relative_path() && !std::filesystem::exists(folder, error)) folder = folder.parent_path();
  return std::filesystem::is_directory(folder, error) && ::access(folder.c_str(), W_OK) == 0;
}

}  // namespace

bool can_be_learned(double MachineProfile::*number) {
  const auto is_of = [number](const CopyBelief& belief) { return number == belief.ring || number == belief.single; };
  return number == &MachineProfile::slots_up_to || std::any_of(kCopyBeliefs.begin(), kCopyBeliefs.end(), is_of);
}

std::string learned_copies_path() {
  const std::string profile = profile_path();
  if (profile.empty()) return "";
  std::filesystem::path path{profile};
  const std::string name = path.filename().string();
  return path.replace_filename("copies" + name.substr(name.find('-'))).string();
}

bool add_learned_copies(const std::string& file, MachineProfile& machine) {
  const Json all = read_copies(file);
  bool any = false;
  for (const CopyBelief& belief : kCopyBeliefs) {
    const double ring = number_in(all, belief.ring);
    const double single = number_in(all, belief.single);
    if (is_known(belief, machine) || ring == 0 || single == 0) continue;
    machine.*belief.ring = ring;
    machine.*belief.single = single;
    any = true;
  }
  if (const double up_to = slots_in(all); machine.slots_up_to == 0 && up_to > 0) {
    machine.slots_up_to = up_to;
    any = true;
  }
  return any;
}

bool lacks_slots(const std::string& file, const MachineProfile& machine) {
  if (file.empty() || machine.slots_up_to > 0) return false;
  const Json all = read_copies(file);
  return slots_in(all) == 0 && slot_trials(all) < kMostSlotTrials && can_be_written(file);
}

double slots_of_one_world(const std::string& file) { return slots_in(read_copies(file), kSlotsOfOne); }

bool keep_learned_slots(const std::string& file, double up_to) {
  Json all = read_copies(file);
  const double before = slots_in(all, kSlotsOfOne);
  const bool found = up_to > 0;
  if (!found) all[kSlotTrials] = slot_trials(all) + 1;
  const bool settled =
      found ? before > 0 || up_to >= static_cast<double>(kPairPayload) : before > 0 && slot_trials(all) >= kMostSlotTrials;
  if (settled) {
    all[name_of_number(&MachineProfile::slots_up_to)] = found ? std::max(up_to, before) : before;
    all.erase(kSlotsOfOne);
  } else if (found) {
    all[kSlotsOfOne] = up_to;
  }
  return write_in_one_step(file, all.dump(2) + "\n");
}

bool keep_learned_copies(const std::string& file, const CopyChoice& found, const MachineProfile& began_with) {
  Json all;
  bool any = false;
  for (const CopyBelief& belief : kCopyBeliefs) {
    if (is_known(belief, began_with)) continue;
    const Bytes size = found.is_settled(belief.size) ? belief.size : Bytes{belief.size.value / 2};
    if (!found.is_settled(size)) continue;
    if (all.is_null()) all = read_copies(file);
    if (number_in(all, belief.ring) > 0 && number_in(all, belief.single) > 0) continue;
    const auto [ring, single] = found.best(size);
    if (!std::isfinite(ring) || !std::isfinite(single)) continue;
    all[name_of_number(belief.ring)] = ring;
    all[name_of_number(belief.single)] = single;
    any = true;
  }
  return any && write_in_one_step(file, all.dump(2) + "\n");
}

}  // namespace ist
