// Every byte compared, before anything is timed.
//
// Who calls this : bench, on both ranks.
// Threads        : one.
// Ownership      : looks at the session.
// Errors         : a Failure on both ranks that names the size, the message and the first byte that is wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cli/bench_session.hpp"

namespace ist::cli {

// The same bytes on every rank that is told the seed.
void fill_random(std::span<std::byte> bytes, std::uint64_t seed);

struct Difference {
  std::uint64_t wrong = 0;  // bytes that differ
  std::uint64_t first = 0;  // where the first of them is
};
// Of two stretches of one length.
Difference compare(std::span<const std::byte> found, std::span<const std::byte> expected);

// Sends messages of each size both ways, with fresh random bytes, into a destination where every byte is wrong at first and
// the bytes behind it are guarded. `progress` is told how many sizes are done.
void check_bytes(Session& session, const std::vector<std::uint64_t>& sizes,
                 const std::function<void(std::size_t)>& progress);

}  // namespace ist::cli
