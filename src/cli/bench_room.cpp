#include "cli/bench_room.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "base/units.hpp"
#include "cli/bench_timing.hpp"
#include "cli/failure.hpp"
#include "cli/machine.hpp"
#include "memory/pinned_pool.hpp"

namespace ist::cli {
namespace {

// A message of the check may be one byte longer than the longest timed one, and has a guard behind it.
constexpr std::size_t kBeyondMost = 4096;
// Small messages of a checked window get places of their own in this much.
constexpr std::size_t kLeastCapacity = 1 << 20;
// What comes both ways at once lies as if it were allocated by itself.
constexpr std::size_t kDevicePage = 2 << 20;
// By hand: room for a window of the method up to 4 MiB, and for two messages that are longer than all of it.
constexpr std::size_t kMostStaged = 256 << 20;
constexpr std::size_t kFewestPlaces = 2;
// Of the rank itself, its rings and libraries.
constexpr std::uint64_t kRankItself = 64 << 20;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::uint64_t number_in(const std::string& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? value : kNoLimit;  // "max", too
}

// The number behind a word that begins a line.
std::uint64_t number_behind(const std::string& file, const std::string& word, std::uint64_t otherwise) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream parts(line);
    std::string first;
    std::uint64_t value = 0;
    if (parts >> first >> value && first == word) return value;
  }
  return otherwise;
}

// Pages of files that nobody has used for long count as used, and go when others need the room.
std::uint64_t free_in_group(const std::string& limit, const std::string& used, const std::string& folder,
                            const std::string& idle_pages) {
  const std::uint64_t most = number_in(folder + limit);
  const std::uint64_t now = number_in(folder + used);
  if (most == kNoLimit || now == kNoLimit) return kNoLimit;
  const std::uint64_t idle = number_behind(folder + "/memory.stat", idle_pages, 0);
  const std::uint64_t held = now - std::min(idle, now);
  return most - std::min(held, most);
}

// The path of this process's group: of the second version the line begins with "0::", of the first it names memory.
std::string group_path(const std::string& file, bool second) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    const auto name = line.find(':');
    const auto path = name == std::string::npos ? name : line.find(':', name + 1);
    if (path == std::string::npos) continue;
    const std::string controllers = "," + line.substr(name + 1, path - name - 1) + ",";
    if (second ? line.starts_with("0::") : controllers.find(",memory,") != std::string::npos) return line.substr(path + 1);
  }
  return "";
}

// A group's own limit and those of all above it; in a container the path may be the host's, and its root is the container's.
std::uint64_t free_in_groups(const std::string& root) {
  std::uint64_t least = kNoLimit;
  for (const bool second : {true, false}) {
    const std::string top = root + (second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    for (std::string path = group_path(root + "/proc/self/cgroup", second);; path.resize(path.rfind('/'))) {
      const std::string folder = top + path;
      least = std::min(
          least, second ? free_in_group("/memory.max", "/memory.current", folder, "inactive_file")
                        : free_in_group("/memory.limit_in_bytes", "/memory.usage_in_bytes", folder, "total_inactive_file"));
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

bool stages(const BenchOptions& options, const Place& place) { return options.staged && place.on_device(); }

// What bytes are made of and compared with, of all ranks at once.
std::uint64_t check_bytes_of(const BenchOptions& options, std::uint64_t ranks) {
  const BufferLayout layout = layout_of(options, static_cast<int>(ranks));
  if (const CollectiveCall* const call = options.timed_call())
    return ranks * (call->input_bytes(options.most, static_cast<int>(ranks)) * ranks +
                    3 * call->result_bytes(options.most, static_cast<int>(ranks)));
  // What each sends, what it expects and what came.
  return ranks * 3 * layout.capacity;
}

}  // namespace

BufferLayout layout_of(const BenchOptions& options, int ranks) {
  const std::size_t longest = options.most + kBeyondMost;
  BufferLayout layout;
  layout.capacity = std::max(longest, kLeastCapacity);
  if (options.fresh)
    layout.capacity = std::max(layout.capacity, static_cast<std::size_t>(window_of(options.most)) * longest);
  if (const CollectiveCall* const call = options.timed_call()) {
    layout.recv_offset = call->input_bytes(longest, ranks);
    layout.capacity = layout.whole = layout.recv_offset + call->result_bytes(longest, ranks);
    if (options.into) {
      layout.result = layout.whole - layout.recv_offset;
      layout.whole = layout.recv_offset;
    }
    return layout;
  }
  if (options.bidirectional() || (options.ordered() && options.one_at_a_time()))
    layout.recv_offset = layout.capacity = (layout.capacity / kDevicePage + 1) * kDevicePage;
  layout.whole = layout.recv_offset + layout.capacity;
  return layout;
}

std::size_t places_by_hand(std::size_t bytes) {
  return std::max(kMostStaged / std::max<std::size_t>(bytes, 1), kFewestPlaces);
}

std::size_t staging_bytes(const BenchOptions& options, int ranks) {
  const std::size_t longest = layout_of(options, ranks).capacity;
  if (options.one_at_a_time()) return longest;
  // Of no size more than of the longest, or of what all places take together.
  return (options.bidirectional() ? 2 : 1) * std::max(kMostStaged, kFewestPlaces * longest);
}

std::uint64_t host_bytes_needed(const BenchOptions& options, int ranks) {
  // One process, and in it what is copied from, and to.
  if (options.limits()) return kRankItself + 2 * options.most;
  const BufferLayout layout = layout_of(options, ranks);
  const auto all = static_cast<std::uint64_t>(ranks);
  const std::uint64_t of_first = options.pairs() ? all / 2 : std::min<std::uint64_t>(all, 1);
  std::uint64_t needed = all * kRankItself;
  for (const auto& [place, count] : {std::pair{&options.from, of_first}, {&options.to, all - of_first}}) {
    if (place->kind != IST_KIND_CUDA) needed += count * layout.whole;
    if (stages(options, *place)) needed += count * PinnedPool::rounded(Bytes{staging_bytes(options, ranks)}).value;
  }
  if (options.into && options.into->kind != IST_KIND_CUDA) needed += all * layout.result;
  // A memcpy of the longest size is timed when the check is over.
  return needed + std::max(check_bytes_of(options, all), options.limited_by_memcpy() ? 2 * options.most : 0);
}

std::uint64_t free_host_bytes(const std::string& root) {
  const std::uint64_t kibibytes = number_behind(root + "/proc/meminfo", "MemAvailable:", kNoLimit);
  return std::min(kibibytes == kNoLimit ? kNoLimit : kibibytes * 1024, free_in_groups(root));
}

void must_have_room(const BenchOptions& options, int ranks, std::uint64_t free_bytes) {
  const std::uint64_t needed = host_bytes_needed(options, ranks);
  if (needed <= free_bytes) return;
  throw Failure(
      1,
      options.name() + " of up to " + std::to_string(options.most) + " bytes from " + options.from.text() + " to " +
          options.to.text() + " takes " + in_words(Bytes{needed}) + " of host memory" +
          (options.limits() ? "" : " on " + std::to_string(ranks) + " ranks, for buffers and what they are compared with") +
          ", and " + in_words(Bytes{free_bytes}) + " are free here: give a smaller --max or --sizes");
}

}  // namespace ist::cli
