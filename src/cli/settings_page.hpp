// The settings table, for the terminal and for docs/settings.md.
//
// Who calls this : info.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <string>

#include "base/settings.hpp"

namespace ist::cli {

// With the values in force.
std::string settings_table(const Settings& settings);
// Without them: the same text on every machine.
std::string settings_markdown();

}  // namespace ist::cli
