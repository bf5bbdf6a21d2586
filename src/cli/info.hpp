// `isthmus info`: what this build can do on this machine, what is off, and why.
//
// Who calls this : main.
// Threads        : one.
// Ownership      : none.
// Errors         : a setting that cannot be read is a Failure; a missing vendor library is a line of the output.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

namespace ist::cli {

// "isthmus 0.1.0 (commit 0123456789ab)"
std::string version_line();
std::string commit_of_sources();
void add_info_command(CLI::App& app);

// The facts that both the text and --json show. `links`: those between devices are tried, too.
nlohmann::ordered_json collect_info(bool links = false);
std::string info_text(const nlohmann::ordered_json& facts);

}  // namespace ist::cli
