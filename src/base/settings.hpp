// Every knob of the library: one table, one row each.
//
// Who calls this : face/ reads them once per world; cli/ prints them; the manual page is made from them.
// Threads        : a Settings is a value, read-only after read().
// Ownership      : none.
// Errors         : a variable that cannot be read is IST_ERR_SETTING with its name, its value and what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"

namespace ist {

struct Settings {
  std::string log = "warning";
  std::string kinds = "all";
  Bytes eager_limit = kibibytes(64);
  std::uint64_t cells = 64;
  std::uint64_t ring_slots = 8;
  Bytes ring_slot_device = mebibytes(1);
  Bytes ring_slot_host = kibibytes(64);
  std::uint64_t ring_in_flight = 4;
  Bytes pinned_pool_limit = mebibytes(256);
  double boot_timeout = 60.0;
  std::string wait = "auto";

  static Result<Settings> read();
};

struct SettingRow {
  std::string_view name;
  std::string_view variable;
  std::string_view type;  // "bytes", "count", "seconds", "word", "switch"
  std::string default_text;
  std::string current_text;
  std::string_view help;
};

// The table with the values of `settings`, in the order of the manual page.
std::vector<SettingRow> describe(const Settings& settings);

}  // namespace ist
