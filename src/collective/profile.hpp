// What a machine's messages and arithmetic cost: the numbers that carriers and algorithms are chosen by, and where they are
// from.
//
// Who calls this : face/message/world, which hands rank 0's numbers for collective calls to all ranks; `isthmus model` and
//                  `isthmus explain`.
// Threads        : values.
// Ownership      : none.
// Errors         : a file that cannot be used is a Status, and load_profile() makes a warning of it and goes on with the
//                  numbers that are built in. Of other devices than those of the file their numbers alone are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "collective/choose.hpp"
#include "memory/kinds.hpp"
#include "protocol/choose.hpp"

namespace ist {

// CUDA devices that numbers were measured on, or that a process sees, and their driver.
struct DevicesNamed {
  std::vector<std::string> uuids;
  std::string driver;
};
DevicesNamed devices_of(const Kinds& kinds);

struct Profile {
  MachineProfile message;           // of the sender's choice of a carrier: each rank's own
  CollectiveProfile collective;     // of all ranks' choice of an algorithm: the same on each
  std::string source = "built in";  // or the file
  std::uint64_t measured = 0;       // one bit per number of profile_values(): not what is built in
  DevicesNamed devices = {};        // that numbers of devices are of; none: of no particular ones
  std::string left_out = {};        // why those are not used; empty: they are, or there are none
  std::string unknown = {};         // the first name in the file that is none of profile_values(); empty: there is none
  std::string learned = {};  // the file of learned_copies.hpp, where any of its numbers count; they are no measured ones
};

// One number of it: how files, tables and messages call it.
struct ProfileValue {
  std::string_view group;  // "message", "collective"
  std::string_view name;
  std::string_view unit;  // "s", "s/byte", "byte", ""
  std::string_view meaning;
  double MachineProfile::*message;  // one of these two is null
  double CollectiveProfile::*collective;
  double& of(Profile& profile) const {
    return message != nullptr ? profile.message.*message : profile.collective.*collective;
  }
  double of(const Profile& profile) const {
    return message != nullptr ? profile.message.*message : profile.collective.*collective;
  }
  // Another one on another GPU, or with another driver.
  bool of_device() const { return name.starts_with("device_") || name.starts_with("gpu_"); }
};
std::span<const ProfileValue> profile_values();
// `number` is one of that profile's: from now on it is measured. Gives its name with its group's.
std::string set_measured(Profile& profile, double& number, double value);

// What follows for calls of so many ranks from the settings and the numbers of messages: from which size on messages are announced. Of ranks
// that may not read each other's memory, or that share processors, this is not known yet: it prices calls, and each message goes as it can.
void know_slots(Profile& profile, const Settings& settings, int ranks);

// Where the measured ones are from, in words; empty: all are built in.
std::string in_words(const Profile& profile);

// The numbers for collective calls in one text, and out of it again.
std::string pack(const CollectiveProfile& machine);
Result<CollectiveProfile> unpack_profile(const std::string& text);

// By ISTHMUS_PROFILE. Says once, at that level, that a file cannot be used, or names what is no number. `seen` is asked only where the file names devices, and may start
// their driver: if this process sees one that is not among them, or their driver is another one, the numbers of devices are those
// that are built in, which is said once for who wants to know (info). A part of them, as by CUDA_VISIBLE_DEVICES, is as good as all.
Profile load_profile(const Settings& settings, log::Level level, const std::function<DevicesNamed()>& seen);

// profile_file.cpp
// The processor's name and how many there are: machines that are called alike share a file.
std::string machine_name();
// Where `isthmus model fit` writes, and ISTHMUS_PROFILE=auto reads; empty if there is neither XDG_CACHE_HOME nor HOME.
std::string profile_path();
Result<Profile> read_profile(const std::string& file);
// The measured numbers, in one step: nobody ever reads a half. `note` is kept in the file for people: who measured it, and when.
Status write_profile(const std::string& file, const Profile& profile, const std::string& note);
// The same of any text, and of the folders before it. False: it could not be written, and nothing is left of it.
bool write_in_one_step(const std::string& file, const std::string& text);

}  // namespace ist
