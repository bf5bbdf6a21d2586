// Addresses in the words of errors.
//
// Who calls this : whoever tells of memory.
// Threads        : any.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace ist {

// "0x7f0012340000"
inline std::string hexadecimal(std::uint64_t address) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), address, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

}  // namespace ist
