// `isthmus model`: measures what messages and arithmetic cost on this machine, for the library to choose by.
//
// Who calls this : main.
// Threads        : one.
// Ownership      : none.
// Errors         : a Failure; the file is written last, and whole or not at all.
#pragma once

#include <CLI/CLI.hpp>

namespace ist::cli {

// `fit`, outside a world, starts `isthmus run -n 2` with itself.
void add_model_command(CLI::App& app);

}  // namespace ist::cli
