#include "base/unknown_variables.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/log.hpp"

namespace ist {
namespace {

constexpr std::string_view kOurs = "ISTHMUS_";

// Set by `isthmus run`.
constexpr std::array<std::string_view, 7> kLauncher{"ISTHMUS_RANK",        "ISTHMUS_SIZE",    "ISTHMUS_LOCAL_RANK",
                                                    "ISTHMUS_LOCAL_SIZE",  "ISTHMUS_BOOT_FD", "ISTHMUS_BOOT_INODE",
                                                    "ISTHMUS_BOOT_VERSION"};
// Read by scripts.
constexpr std::array<std::string_view, 4> kElsewhere{"ISTHMUS_DEPS_DIR", "ISTHMUS_COMMIT", "ISTHMUS_STEP_LIMIT",
                                                     "ISTHMUS_BENCH_OPTIONS"};
constexpr std::string_view kTests = "ISTHMUS_TEST";

template <class List>
bool contains(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// How many letters must be put in, taken out or replaced to make one word of the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[to.size()];
}

}  // namespace

// Who leaves a name's end away means one that begins so, however long that is.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& names) {
  const auto longer = std::find_if(names.begin(), names.end(), [&](std::string_view one) { return one.starts_with(name); });
  if (longer != names.end() && !name.empty()) return *longer;
  const auto nearest = std::min_element(names.begin(), names.end(), [&](std::string_view one, std::string_view other) {
    return distance(name, one) < distance(name, other);
  });
  return nearest == names.end() ? std::string_view{} : *nearest;
}

std::optional<std::string> unknown_variable_text(std::string_view name, const std::vector<std::string_view>& settings) {
  if (!name.starts_with(kOurs) || name.starts_with(kTests)) return std::nullopt;
  if (contains(settings, name) || contains(kLauncher, name) || contains(kElsewhere, name)) return std::nullopt;
  std::string text = "the variable " + std::string{name} + " is set, but there is no such setting, and it has no effect; ";
  if (!settings.empty()) text += "the nearest name is " + std::string{nearest_name(name, settings)} + ", and ";
  return text + "isthmus info --settings lists all";
}

void warn_of_unknown_variables(const std::vector<std::string_view>& settings) {
  // Every rank of a job has the same variables; one of them says it.
  const char* rank = std::getenv("ISTHMUS_RANK");
  if (rank && std::string_view{rank} != "0") return;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view assignment{*entry};
    const auto text = unknown_variable_text(assignment.substr(0, assignment.find('=')), settings);
    if (text) log::once(log::Level::warning, *text);
  }
}

}  // namespace ist
