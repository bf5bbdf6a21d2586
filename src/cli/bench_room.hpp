// How much memory a benchmark takes, and whether the machine has so much: what it has not is told, before the system ends a rank for it.
//
// Who calls this : bench_session, on every rank alike; bench_device_limits.
// Threads        : any.
// Ownership      : values.
// Errors         : a Failure that tells how much is needed and how much there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/bench_options.hpp"

namespace ist::cli {

// One rank's buffer, and where options.into names one, another one for what a call leaves.
struct BufferLayout {
  std::size_t capacity = 0;
  std::size_t recv_offset = 0;  // where received messages lie that do not lie at the start
  std::size_t whole = 0;
  std::size_t result = 0;
};
BufferLayout layout_of(const BenchOptions& options, int ranks);

// Messages of a size that are under way at once where a rank stages by hand, and the most memory it stages them in.
std::size_t places_by_hand(std::size_t bytes);
std::size_t staging_bytes(const BenchOptions& options, int ranks);

// Memory of the host that all ranks take together: buffers, what bytes are compared with, staging, and a little for each rank. That
// of OpenCL counts, since its devices may be processors.
std::uint64_t host_bytes_needed(const BenchOptions& options, int ranks);
// What can be had without another process losing its own, within the limits of the groups (cgroups) that this process is in. `root`: where
// the system's own files are, for tests.
std::uint64_t free_host_bytes(const std::string& root = "");
void must_have_room(const BenchOptions& options, int ranks, std::uint64_t free_bytes);

}  // namespace ist::cli
