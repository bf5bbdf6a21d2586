// `isthmus explain`: how a message or a collective call would be carried, at what price, and why not otherwise.
//
// Who calls this : main.
// Threads        : one.
// Ownership      : none.
// Errors         : a Failure with status 2 that tells what was written and what is possible.
#pragma once

#include <CLI/CLI.hpp>

namespace ist::cli {

void add_explain_command(CLI::App& app);

}  // namespace ist::cli
