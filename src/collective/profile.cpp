#include "collective/profile.hpp"

#include <array>
#include <cstring>
#include <filesystem>

namespace ist {
namespace {

constexpr ProfileValue of_message(std::string_view name, std::string_view unit, double MachineProfile::*member,
                                  std::string_view meaning) {
  return {"message", name, unit, meaning, member, nullptr};
}
constexpr ProfileValue of_collective(std::string_view name, std::string_view unit, double CollectiveProfile::*member,
                                     std::string_view meaning) {
  return {"collective", name, unit, meaning, nullptr, member};
}

constexpr std::array kValues{
    of_message("slot_alpha", "s", &MachineProfile::slot_alpha, "a message in a slot"),
    of_message("cell_alpha", "s", &MachineProfile::cell_alpha, "a message in a cell"),
    of_message("handshake_alpha", "s", &MachineProfile::handshake_alpha, "announcing a message and clearing it"),
    of_message("host_copy_beta", "s/byte", &MachineProfile::host_copy_beta, "copying host memory"),
    of_message("two_copies_128k", "s/byte", &MachineProfile::two_copies_128k,
               "a long message in two copies, of 64 to 256 KiB"),
    of_message("one_copy_128k", "s/byte", &MachineProfile::one_copy_128k, "the same in one copy"),
    of_message("two_copies_512k", "s/byte", &MachineProfile::two_copies_512k, "of 256 KiB to 1 MiB in two copies"),
    of_message("one_copy_512k", "s/byte", &MachineProfile::one_copy_512k, "the same in one copy"),
    of_message("two_copies_2m", "s/byte", &MachineProfile::two_copies_2m, "of 1 to 4 MiB in two copies"),
    of_message("one_copy_2m", "s/byte", &MachineProfile::one_copy_2m, "the same in one copy"),
    of_message("two_copies_8m", "s/byte", &MachineProfile::two_copies_8m, "from 4 MiB on in two copies"),
    of_message("one_copy_8m", "s/byte", &MachineProfile::one_copy_8m, "the same in one copy"),
    of_message("device_copy_alpha", "s", &MachineProfile::device_copy_alpha, "a copy of a device: call and completion"),
    of_message("device_copy_beta", "s/byte", &MachineProfile::device_copy_beta, "copying over a device's bus"),
    of_message("device_link_beta", "s/byte", &MachineProfile::device_link_beta, "copying from one device to another"),
    of_message("device_arithmetic_above", "byte", &MachineProfile::device_arithmetic_above,
               "longest part of a reduction of a device's memory that is computed on the host"),
    of_message("device_arithmetic_above_shared", "byte", &MachineProfile::device_arithmetic_above_shared,
               "the same where another rank has that CUDA device, too"),
    of_collective("alpha", "s", &CollectiveProfile::alpha, "a small message"),
    of_collective("alpha_large", "s", &CollectiveProfile::alpha_large, "a message that is announced first"),
    of_collective("beta", "s/byte", &CollectiveProfile::beta, "bytes of a message"),
    of_collective("gamma", "s/byte", &CollectiveProfile::gamma, "combining"),
    of_collective("post", "s", &CollectiveProfile::post, "one more message at the same time"),
    of_collective("crowd", "", &CollectiveProfile::crowd, "what each further peer at once adds to beta"),
    of_collective("crowd_from", "", &CollectiveProfile::crowd_from, "peers at once that add nothing"),
};

static_assert(kValues.size() <= 32, "Profile::measured has a bit for each");

}  // namespace

std::span<const ProfileValue> profile_values() { return kValues; }

std::string pack(const CollectiveProfile& machine) {
  std::string text(sizeof machine, '\0');
  std::memcpy(text.data(), &machine, sizeof machine);
  return text;
}

Result<CollectiveProfile> unpack_profile(const std::string& text) {
  CollectiveProfile machine;
  if (text.size() != sizeof machine)
    return Status{IST_ERR_BOOT, "what rank 0 says about its machine cannot be read; do all ranks use the same Isthmus?"};
  std::memcpy(&machine, text.data(), sizeof machine);
  return machine;
}

Profile load_profile(const Settings& settings, log::Level level) {
  Profile builtin;
  if (settings.profile == "builtin") return builtin;
  const bool chosen = settings.profile != "auto";
  const std::string file = chosen ? settings.profile : profile_path();
  std::error_code ignored;
  // Nobody has measured this machine.
  if (!chosen && (file.empty() || !std::filesystem::exists(file, ignored))) return builtin;
  auto found = read_profile(file);
  if (found.ok()) return std::move(*found);
  log::once(level, found.status().text() + "; the numbers that are built in are used instead");
  return builtin;
}

}  // namespace ist
