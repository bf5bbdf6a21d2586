// Variables that begin with ISTHMUS_ and that nobody reads: most likely misspelt.
//
// Who calls this : settings, whenever it reads the environment.
// Threads        : as getenv: nobody changes the environment meanwhile.
// Ownership      : none.
// Errors         : none; a warning per variable and process, in one rank of a job only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ist {

// Compares the environment with `settings` and with what the launcher, the tests, the tools and the build read.
void warn_of_unknown_variables(const std::vector<std::string_view>& settings);

// That of `names` which differs from `name` by the fewest letters; empty if there are none.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& names);

// What to say of a variable; nothing if it is known, or none of ours.
std::optional<std::string> unknown_variable_text(std::string_view name, const std::vector<std::string_view>& settings);

}  // namespace ist
