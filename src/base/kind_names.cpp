#include "base/kind_names.hpp"

#include <algorithm>

namespace ist {

std::string kind_names() {
  std::string names;
  for (const std::string_view name : kKindNames) names += (names.empty() ? "" : ", ") + std::string{name};
  return names;
}

bool lists_kinds(std::string_view text) {
  for (;;) {
    const auto comma = text.find(',');
    const auto word = text.substr(0, comma);
    if (word != "all" && std::find(kKindNames.begin(), kKindNames.end(), word) == kKindNames.end()) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace ist
