// Environment variables; numbers in them are read strictly.
//
// Who calls this : the boots.
// Threads        : as getenv: nobody changes the environment meanwhile.
// Ownership      : none.
// Errors         : IST_ERR_BOOT naming the variable, its value and what was expected.
#pragma once

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/status.hpp"

namespace ist {

inline std::string text_variable(const char* name, const char* otherwise = "") {
  const char* text = std::getenv(name);
  return text ? text : otherwise;
}

inline Result<long> number_variable(const char* name, long least, long most) {
  const std::string range = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  const char* text = std::getenv(name);
  if (!text) return Status{IST_ERR_BOOT, std::string{name} + " is not set: expected " + range};
  const char* end = text + std::strlen(text);
  long value = 0;
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stopped != end || value < least || value > most)
    return Status{IST_ERR_BOOT, std::string{name} + "=\"" + text + "\" cannot be used: expected " + range};
  return value;
}

}  // namespace ist
