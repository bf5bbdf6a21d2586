// What a machine's messages and arithmetic cost: the numbers that carriers and algorithms are chosen by, and where they are
// from.
//
// Who calls this : face/message/world, which hands rank 0's numbers for collective calls to all ranks; `isthmus model` and
//                  `isthmus explain`.
// Threads        : values.
// Ownership      : none.
// Errors         : a file that cannot be used is a Status, and load_profile() makes a warning of it and goes on with the
//                  numbers that are built in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "collective/choose.hpp"
#include "protocol/choose.hpp"

namespace ist {

struct Profile {
  MachineProfile message;           // of the sender's choice of a carrier: each rank's own
  CollectiveProfile collective;     // of all ranks' choice of an algorithm: the same on each
  std::string source = "built in";  // or the file
  std::uint32_t measured = 0;       // one bit per number of profile_values(): not what is built in
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
};
std::span<const ProfileValue> profile_values();

// The numbers for collective calls in one text, and out of it again.
std::string pack(const CollectiveProfile& machine);
Result<CollectiveProfile> unpack_profile(const std::string& text);

// By ISTHMUS_PROFILE. Says once, at that level, that a file cannot be used.
Profile load_profile(const Settings& settings, log::Level level);

// profile_file.cpp
// The processor's name and how many there are: machines that are called alike share a file.
std::string machine_name();
// Where `isthmus model fit` writes, and ISTHMUS_PROFILE=auto reads; empty if there is neither XDG_CACHE_HOME nor HOME.
std::string profile_path();
Result<Profile> read_profile(const std::string& file);
// The measured numbers, in one step: nobody ever reads a half. `note` is kept in the file for people: who measured it, and when.
Status write_profile(const std::string& file, const Profile& profile, const std::string& note);

}  // namespace ist
