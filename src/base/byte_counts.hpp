// Sizes as people write them.
//
// Who calls this : base/settings, and cli/, of its options.
// Threads        : any.
// Ownership      : none.
// Errors         : none; what is no size is nothing.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ist {

inline std::optional<std::uint64_t> read_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "65536", "64KiB", and the same as "64K", "64KB" or "64k": all are powers of two. Also M, G and T.
inline std::optional<std::uint64_t> read_bytes(std::string_view text) {
  constexpr std::string_view kLetters = "kmgt";
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  const auto drop = [&](char letter) {
    if (text.empty() || lower(text.back()) != letter) return false;
    text.remove_suffix(1);
    return true;
  };
  const bool bytes = drop('b');
  const bool binary = bytes && drop('i');
  const auto letter = text.empty() ? std::string_view::npos : kLetters.find(lower(text.back()));
  if (letter == std::string_view::npos && binary) return std::nullopt;
  if (letter != std::string_view::npos) text.remove_suffix(1);
  const unsigned shift = letter == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(letter) + 1);
  const auto number = read_count(text);
  if (!number || (*number << shift) >> shift != *number) return std::nullopt;
  return *number << shift;
}

inline std::string print_bytes(std::uint64_t value) {
  for (const auto& [bits, suffix] : {std::pair{30U, "GiB"}, {20U, "MiB"}, {10U, "KiB"}})
    if (value != 0 && value % (std::uint64_t{1} << bits) == 0) return std::to_string(value >> bits) + suffix;
  return std::to_string(value);
}

}  // namespace ist
