// Every knob of the library: one table, one row each.
//
// Who calls this : face/ reads them once per world; cli/ prints them; the manual page is made from them.
// Threads        : a Settings is a value, read-only after read().
// Ownership      : none.
// Errors         : a variable, or a word that a world was given, that cannot be read is IST_ERR_SETTING with its name, its value
//                  and what was expected. A variable that begins as ours do and is in no table is a warning; such a word is an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/kind_names.hpp"
#include "base/status.hpp"
#include "base/units.hpp"

namespace ist {

constexpr std::uint64_t kMostCells = 4096;

struct Settings {
  std::string log = "warning";
  std::string kinds = "all";
  std::int64_t device = -1;  // -1: the ranks of a host take its devices in turn
  Bytes eager_limit = kibibytes(16);
  std::uint64_t cells = 64;
  std::uint64_t ring_slots = 8;
  Bytes ring_slot_device = mebibytes(1);
  Bytes ring_slot_host = kibibytes(64);
  std::uint64_t ring_in_flight = 4;
  Bytes pinned_pool_limit = mebibytes(256);
  double boot_timeout = 60.0;
  std::string wait = "auto";
  std::string single_copy = "auto";
  Bytes shared_heap = mebibytes(65536);
  std::string device_ipc = "auto";
  Bytes mapped_limit = mebibytes(32768);
  Bytes bounce_limit = mebibytes(128);
  std::string copy_threads = "auto";
  bool progress_thread = false;
  bool worker = false;
  std::string threads = "multiple";
  std::string profile = "auto";
  std::string nccl = "auto";
  bool check = false;
  std::string trace = "off";
  bool single_threaded() const { return threads == "single"; }

  // What the environment says, and above it `given`: words "name=value" between spaces, the names those of describe().
  static Result<Settings> read(std::string_view given = {});
  // Threads beside the caller's that copy long host buffers, for a rank that has so many processors to itself.
  int copy_helpers(int processors) const;
  // The rank's own device among so many of a kind. What `device` names may be beyond them: the kind refuses it then. Kinds
  // with a single device, such as the host, leave no choice.
  int own_device(int local_rank, int devices) const {
    if (devices <= 1) return 0;
    return device >= 0 ? static_cast<int>(device) : local_rank % devices;
  }
};

struct SettingRow {
  std::string_view name;
  std::string_view variable;
  std::string_view type;  // "bytes", "count", "number", "seconds", "word", "switch", "file"
  std::string default_text;
  std::string current_text;
  std::string help;  // with the range, where there is one
};

// The table with the values of `settings`, in the order of the manual page.
std::vector<SettingRow> describe(const Settings& settings);

}  // namespace ist
