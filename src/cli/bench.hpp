// `isthmus bench`: checks the bytes, then measures.
//
// Who calls this : main.
// Threads        : one.
// Ownership      : none.
// Errors         : a Failure.
#pragma once

#include <CLI/CLI.hpp>

namespace ist::cli {

// Outside a world the command starts `isthmus run -n 2` with itself.
void add_bench_command(CLI::App& app);

}  // namespace ist::cli
