#include "options.hpp"

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lbm {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view found, std::string_view wanted) {
  throw std::invalid_argument(std::string{name} + " is '" + std::string{found} + "'; it must be " + std::string{wanted});
}

template <class Number>
Number number(std::string_view name, std::string_view text, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least && value <= most))
    refuse(name, text, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

std::array<int, 3> grid_of(std::string_view text, int ranks) {
  std::array<int, 3> made{};
  std::string_view rest = text;
  std::int64_t product = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::size_t end = d < 2 ? rest.find('x') : rest.size();
    if (end == std::string_view::npos) refuse("--grid", text, "AxBxC, such as 1x2x2");
    made[d] = number("--grid", rest.substr(0, end), 0, 10000);
    if (made[d] != 0) product *= made[d];
    rest.remove_prefix(d < 2 ? end + 1 : end);
  }
  const bool chosen = made[0] == 0 || made[1] == 0 || made[2] == 0;
  if (chosen ? ranks % product != 0 : product != ranks)
    refuse("--grid", text, "of " + std::to_string(ranks) + " ranks, as many as are running");
  return made;
}

}  // namespace

Options read_options(int count, const char* const* words, int ranks) {
  Options options;
  std::vector<std::string_view> plain;
  std::string_view grid;
  for (int n = 1; n < count; ++n) {
    const std::string_view word = words[n];
    if (word.substr(0, 2) != "--") {
      plain.push_back(word);
      continue;
    }
    if (word != "--exchange" && word != "--grid" && word != "--steps")
      throw std::invalid_argument("there is no option " + std::string{word});
    if (++n == count) throw std::invalid_argument(std::string{word} + " wants a value behind it");
    const std::string_view value = words[n];
    if (word == "--grid") grid = value;
    if (word == "--steps") options.steps = number<std::int64_t>("--steps", value, 1, 1'000'000'000);
    if (word == "--exchange" && value != "messages" && value != "one-sided")
      refuse("--exchange", value, "messages or one-sided");
    if (word == "--exchange") options.way = value == "messages" ? isthmus::HaloWay::messages : isthmus::HaloWay::one_sided;
  }
  if (!plain.empty() && plain[0] != "tgv" && plain[0] != "cavity") refuse("the case", plain[0], "tgv or cavity");
  options.cavity = !plain.empty() && plain[0] == "cavity";
  if (plain.size() > 3) throw std::invalid_argument("there is no use for '" + std::string{plain[3]} + "'");
  if (plain.size() > 1) options.cells = number<std::int64_t>(options.cavity ? "N" : "L", plain[1], 8, 1024);
  if (plain.size() > 2 && options.cavity) options.reynolds = number("RE", plain[2], 1.0, 10000.0);
  if (plain.size() > 2 && !options.cavity) options.steps = number<std::int64_t>("STEPS", plain[2], 1, 1'000'000'000);
  options.grid = {options.cavity ? 1 : 0, 0, 0};
  if (!grid.empty()) options.grid = grid_of(grid, ranks);
  return options;
}

}  // namespace lbm
