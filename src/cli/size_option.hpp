// Sizes on the command line.
//
// Who calls this : cli/bench and cli/explain, of their options.
// Threads        : any.
// Ownership      : none.
// Errors         : of what is no size, or beyond all memory: what was given, and which forms there are.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "base/byte_counts.hpp"

namespace ist::cli {

inline CLI::Validator as_size() {
  // Beyond this some of what is worked out of sizes would not fit its number.
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 50;
  return {
      [](std::string& text) -> std::string {
        const auto bytes = read_bytes(text);
        if (bytes && *bytes <= kLargest) {
          text = std::to_string(*bytes);
          return {};
        }
        return "\"" + text +
               "\" is no size up to 1024 TiB: a whole number of bytes is expected, or of KiB, MiB, GiB or TiB, as in 64KiB";
      },
      ""};
}

}  // namespace ist::cli
