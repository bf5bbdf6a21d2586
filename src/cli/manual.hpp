// The manual page isthmus(1), in roff, from the commands' own help and the settings table.
//
// Who calls this : info --man, run by the build.
// Threads        : values.
// Ownership      : looks at the application.
// Errors         : none.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ist::cli {

std::string manual_page(const CLI::App& app);

}  // namespace ist::cli
