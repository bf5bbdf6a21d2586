#include "collective/profile.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "collective/learned_copies.hpp"
#include "path/shm/pair_slot.hpp"
#include "protocol/copy_beliefs.hpp"

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
    of_message("slots_up_to", "byte", &MachineProfile::slots_up_to,
               "longest message between host buffers that goes in a slot where its receiver could copy it at once"),
    of_message("device_copy_alpha", "s", &MachineProfile::device_copy_alpha, "a copy of a device: call and completion"),
    of_message("device_copy_beta", "s/byte", &MachineProfile::device_copy_beta, "copying over a device's bus"),
    of_message("device_link_beta", "s/byte", &MachineProfile::device_link_beta, "copying from one device to another"),
    of_message("device_link_alpha", "s", &MachineProfile::device_link_alpha,
               "a copy from one device to another: call and completion"),
    of_message("device_pack_beta", "s/byte", &MachineProfile::device_pack_beta, "packing in a device's memory"),
    of_message("device_load_factor", "", &MachineProfile::device_load_factor,
               "a kernel's loads over a link between devices, beside its stores"),
    of_message("device_mapped_beta", "s/byte", &MachineProfile::device_mapped_beta,
               "a kernel's stores into page-locked host memory"),
    of_message("device_mapped_load_beta", "s/byte", &MachineProfile::device_mapped_load_beta,
               "a kernel's loads from page-locked host memory"),
    of_message("device_rows_alpha", "s", &MachineProfile::device_rows_alpha,
               "a copy of rows by a copy engine: call and completion"),
    of_message("device_row_each", "s", &MachineProfile::device_row_each, "the same, each row"),
    of_message("device_rows_beta", "s/byte", &MachineProfile::device_rows_beta,
               "the same, each byte within a device's memory"),
    of_message("device_turn", "s", &MachineProfile::device_turn, "a copy within a device that processes take turns on"),
    of_message("device_arithmetic_above", "byte", &MachineProfile::device_arithmetic_above,
               "longest part of a reduction of a CUDA device's memory that is computed on the host"),
    of_message("device_arithmetic_above_shared", "byte", &MachineProfile::device_arithmetic_above_shared,
               "the same where another rank has that CUDA device, too"),
    of_message("device_arithmetic_above_processor", "byte", &MachineProfile::device_arithmetic_above_processor,
               "the same of an OpenCL device that is the processor itself"),
    of_message("device_arithmetic_above_opencl", "byte", &MachineProfile::device_arithmetic_above_opencl,
               "the same of another OpenCL device"),
    of_message("device_arithmetic_above_opencl_shared", "byte", &MachineProfile::device_arithmetic_above_opencl_shared,
               "the same where the host has more ranks than such devices"),
    of_collective("alpha", "s", &CollectiveProfile::alpha, "a small message"),
    of_collective("alpha_large", "s", &CollectiveProfile::alpha_large, "a message that is announced first"),
    of_collective("beta", "s/byte", &CollectiveProfile::beta, "bytes of a message"),
    of_collective("gamma", "s/byte", &CollectiveProfile::gamma, "combining"),
    of_collective("post", "s", &CollectiveProfile::post, "one more message at the same time"),
    of_collective("crowd", "", &CollectiveProfile::crowd, "what each further peer at once adds to beta"),
    of_collective("gpu_alpha", "s", &CollectiveProfile::gpu_alpha, "a message from a GPU to another one"),
    of_collective("gpu_beta", "s/byte", &CollectiveProfile::gpu_beta, "bytes of that"),
    of_collective("shared_up_to", "byte", &CollectiveProfile::shared_up_to,
                  "bytes that a rank writes at most at a time where all ranks of its host read; 0: all goes by messages"),
    of_collective(
        "fixed_order", "", &CollectiveProfile::fixed_order,
        "0: these numbers choose in which order reductions combine, too; else operation, type, count and ranks alone do"),
    of_collective("crowd_from", "", &CollectiveProfile::crowd_from, "peers at once that add nothing"),
};

static_assert(kValues.size() <= 64, "Profile::measured has a bit for each");

// Why numbers that were measured on those devices say nothing of the ones that this process sees; empty: they do.
std::string of_others(const DevicesNamed& measured, const DevicesNamed& seen) {
  for (const std::string& uuid : seen.uuids)
    if (std::find(measured.uuids.begin(), measured.uuids.end(), uuid) == measured.uuids.end())
      return "they were not measured on " + uuid + ", which this process sees";
  if (seen.driver != measured.driver)
    return "they were measured with the " + measured.driver + ", and this is the " + seen.driver;
  return "";
}

void leave_devices_out(Profile& profile) {
  const Profile builtin;
  std::uint64_t bit = 1;
  for (const ProfileValue& value : profile_values()) {
    if (value.of_device()) {
      value.of(profile) = value.of(builtin);
      profile.measured &= ~bit;
    }
    bit <<= 1U;
  }
}

// What was measured of the host is as good as ever.
Profile for_these_devices(Profile profile, const std::function<DevicesNamed()>& seen) {
  if (profile.devices.uuids.empty()) return profile;
  const DevicesNamed here = seen();
  if (here.uuids.empty()) {
    leave_devices_out(profile);
  } else if (const std::string why = of_others(profile.devices, here); !why.empty()) {
    leave_devices_out(profile);
    profile.left_out = why + "; measure again: isthmus model fit";
    log::once(log::Level::info, "the numbers of devices in the machine's profile " + profile.source +
                                    " are left out, and those that are built in used: " + profile.left_out);
  }
  return profile;
}

}  // namespace

std::span<const ProfileValue> profile_values() { return kValues; }

std::string set_measured(Profile& profile, double& number, double value) {
  number = value;
  for (std::size_t i = 0; i < kValues.size(); ++i) {
    if (&kValues[i].of(profile) != &number) continue;
    profile.measured |= std::uint64_t{1} << i;
    return std::string{kValues[i].group} + "." + std::string{kValues[i].name};
  }
  return "";
}

void know_slots(Profile& profile, const Settings& settings, int ranks) {
  const Bytes longest = pair_slot_limit(settings.eager_limit, static_cast<std::uint32_t>(ranks));
  profile.collective.announced_above = static_cast<double>(smaller(longest, slots_up_to(profile.message, settings)).value);
}

std::string in_words(const Profile& profile) {
  if (profile.measured == 0) return "";
  return profile.source + (profile.left_out.empty() ? "" : "; of devices built in, since " + profile.left_out);
}

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

DevicesNamed devices_of(const Kinds& kinds) {
  DevicesNamed named;
  const MemoryKind* const cuda = kinds.find(KindId::cuda);
  if (cuda == nullptr) return named;
  for (const DeviceInfo& device : cuda->devices()) {
    named.uuids.push_back(device.uuid);
    named.driver = device.detail;
  }
  return named;
}

namespace {

Profile with_learned_copies(Profile profile) {
  if (const std::string file = learned_copies_path(); !file.empty() && add_learned_copies(file, profile.message))
    profile.learned = file;
  return profile;
}

}  // namespace

Profile load_profile(const Settings& settings, log::Level level, const std::function<DevicesNamed()>& seen) {
  Profile builtin;
  if (settings.profile == "builtin") return builtin;
  const bool chosen = settings.profile != "auto";
  const std::string file = chosen ? settings.profile : profile_path();
  std::error_code ignored;
  // Nobody has measured this machine.
  if (!chosen && (file.empty() || !std::filesystem::exists(file, ignored))) return with_learned_copies(std::move(builtin));
  auto found = read_profile(file);
  if (found.ok()) {
    if (!found->unknown.empty())
      log::once(level, "the machine's profile " + file + " has " + found->unknown +
                           ", which is no number of this library and is not used; isthmus model show lists those that are");
    Profile profile = for_these_devices(std::move(*found), seen);
    return chosen ? profile : with_learned_copies(std::move(profile));
  }
  log::once(level, found.status().text() + "; the numbers that are built in are used instead");
  return builtin;
}

}  // namespace ist
