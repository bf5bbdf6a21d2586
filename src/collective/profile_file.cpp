// The file of a profile: JSON, so that people and scripts can read it.
#include <unistd.h>
#include <algorithm>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "collective/profile.hpp"

namespace ist {
namespace {

using Json = nlohmann::ordered_json;

// Version 1 named no devices: what it has of them, somebody wrote by hand.
constexpr int kVersion = 3;
constexpr int kOldestVersion = 1;
// Before version 3 no slot was longer than 64 KiB, which stood for slots that were quicker to their end.
constexpr double kLongestSlotBefore = 65536;
// Of a file that someone wrote so that different machines choose alike.
constexpr const char* kAnyMachine = "any";
// Nothing that is measured here takes a second, and no count of peers is that large.
constexpr double kMostSeconds = 1.0;
constexpr double kMostNumber = 1e6;
constexpr double kMostBytes = 1e15;

// FNV-1a (Fowler, Noll, Vo): names of files, nothing secret.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::ostringstream digits;
  digits << std::hex << hash;
  return digits.str();
}

std::string processor_name() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

Status unusable(const std::string& file, const std::string& why) {
  return {IST_ERR_SETTING, "the machine's profile " + file + " cannot be used: " + why};
}

// Why the number is none that the profile can have; empty if it is.
std::string read_value(const Json& group, const ProfileValue& value, Profile& profile) {
  const std::string name{value.name};
  const double most = value.unit.empty() ? kMostNumber : value.unit == "byte" ? kMostBytes : kMostSeconds;
  const std::string wanted = name + " must be a number from 0 to " + std::to_string(static_cast<long>(most));
  if (!group[name].is_number()) return wanted + ", and is " + group[name].dump();
  const double number = group[name].get<double>();
  if (!std::isfinite(number) || number < 0 || number > most) return wanted + ", and is " + group[name].dump();
  value.of(profile) = number;
  return "";
}

std::string read_values(const Json& all, Profile& profile) {
  std::uint64_t bit = 1;
  for (const ProfileValue& value : profile_values()) {
    std::string group{value.group};
    if (!all.contains(group) || !all[group].is_object()) return "it has no group \"" + group + "\"";
    if (all[group].contains(std::string{value.name})) {
      if (const std::string why = read_value(all[group], value, profile); !why.empty()) return group.append(".").append(why);
      profile.measured |= bit;
    }
    bit <<= 1U;
  }
  return "";
}

// The first that is mistyped, or of another version of the library; empty: there is none.
std::string unknown_number(const Json& all) {
  for (const char* group : {"message", "collective"})
    for (const auto& each : all[group].items()) {
      const auto is_it = [&](const ProfileValue& value) { return value.group == group && value.name == each.key(); };
      if (std::none_of(profile_values().begin(), profile_values().end(), is_it)) return group + ("." + each.key());
    }
  return "";
}

std::string read_devices(const Json& all, Profile& profile) {
  const auto devices = all.find("devices");
  if (devices == all.end()) return "";
  const auto is_word = [](const Json& value) { return value.is_string(); };
  const Json uuids = devices->is_object() ? devices->value("uuids", Json{}) : Json{};
  const Json driver = devices->is_object() ? devices->value("driver", Json{}) : Json{};
  if (!uuids.is_array() || !std::all_of(uuids.begin(), uuids.end(), is_word) || !driver.is_string())
    return "\"devices\" must have \"uuids\", a list of words, and \"driver\", a word, and is " + devices->dump();
  profile.devices = {uuids.get<std::vector<std::string>>(), driver.get<std::string>()};
  return "";
}

// As where it was never measured.
void forget_slots(Profile& profile) {
  std::uint64_t bit = 1;
  for (const ProfileValue& value : profile_values()) {
    if (value.message == &MachineProfile::slots_up_to) profile.measured &= ~bit;
    bit <<= 1U;
  }
  profile.message.slots_up_to = 0;
}

}  // namespace

std::string machine_name() {
  return processor_name() + ", " + std::to_string(::sysconf(_SC_NPROCESSORS_CONF)) + " processors";
}

std::string profile_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  // A relative path means nothing (XDG Base Directory Specification).
  if (cache != nullptr && *cache == '/') {
    folder = cache;
  } else if (home != nullptr && *home == '/') {
    folder = std::filesystem::path{home} / ".cache";
  } else {
    return "";
  }
  return (folder / "isthmus" / ("profile-" + hash_of(machine_name()) + ".json")).string();
}

Result<Profile> read_profile(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return unusable(file, "there is no such file");
  std::ifstream stream{file};
  if (!stream) return unusable(file, "it cannot be opened");
  const Json all = Json::parse(stream, nullptr, false);
  if (!all.is_object()) return unusable(file, "it is no JSON object");
  const auto version = all.value("isthmus_profile", Json{});
  if (!version.is_number_integer() || version < Json(kOldestVersion) || version > Json(kVersion))
    return unusable(file, "it is of version " + version.dump() + ", and this library reads versions " +
                              std::to_string(kOldestVersion) + " to " + std::to_string(kVersion) +
                              "; measure again: isthmus model fit");
  const auto machine = all.value("machine", Json{});
  if (machine != Json(kAnyMachine) && machine != Json(machine_name()))
    return unusable(file, "it is of another machine, " + machine.dump() + ", and this one is \"" + machine_name() + "\"");
  Profile profile;
  profile.source = file;
  if (const std::string why = read_values(all, profile); !why.empty()) return unusable(file, why);
  if (const std::string why = read_devices(all, profile); !why.empty()) return unusable(file, why);
  profile.unknown = unknown_number(all);
  if (version < Json(kVersion) && profile.message.slots_up_to == kLongestSlotBefore) forget_slots(profile);
  // A cell is told of in a slot, and where none was measured it is no quicker than what was.
  const auto message = all.value("message", Json::object());
  if (!message.contains("cell_alpha"))
    profile.message.cell_alpha = std::max(profile.message.cell_alpha, profile.message.slot_alpha);
  return profile;
}

Status write_profile(const std::string& file, const Profile& profile, const std::string& note) {
  Json all{{"isthmus_profile", kVersion}, {"machine", machine_name()}};
  if (!profile.devices.uuids.empty())
    all["devices"] = {{"driver", profile.devices.driver}, {"uuids", profile.devices.uuids}};
  all["note"] = note;
  std::uint64_t bit = 1;
  for (const ProfileValue& value : profile_values()) {
    Json& group = all[std::string{value.group}];
    if (group.is_null()) group = Json::object();
    if ((profile.measured & bit) != 0) group[std::string{value.name}] = value.of(profile);
    bit <<= 1U;
  }
  if (write_in_one_step(file, all.dump(2) + "\n")) return {};
  return {IST_ERR_SETTING, "the file " + file + " cannot be written; is its folder there, and yours?"};
}

bool write_in_one_step(const std::string& file, const std::string& text) {
  std::error_code error;
  const std::filesystem::path target{file};
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), error);
  const std::string beside = file + "." + std::to_string(::getpid());
  std::ofstream stream{beside, std::ios::trunc};
  stream << text;
  stream.close();
  if (stream && std::rename(beside.c_str(), file.c_str()) == 0) return true;
  std::filesystem::remove(beside, error);
  return false;
}

}  // namespace ist
