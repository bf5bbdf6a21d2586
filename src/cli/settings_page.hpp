// The settings, for a command; and their table, for the terminal and for docs/settings.md.
//
// Who calls this : info; read_settings() every command that needs them.
// Threads        : values.
// Ownership      : none.
// Errors         : a Failure for a variable that cannot be read.
#pragma once

#include <string>

#include "base/settings.hpp"

namespace ist::cli {

Settings read_settings();
// With the values in force.
std::string settings_table(const Settings& settings);
// Without them: the same text on every machine.
std::string settings_markdown();

}  // namespace ist::cli
