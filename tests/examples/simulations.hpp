// What the tests of simulations share.
//
// Who calls this : simulations_test.cpp, lattices_test.cpp.
// Threads        : one.
// Ownership      : values.
// Errors         : what a program says, and its status.
#pragma once

#include <cmath>
#include <string>

#include "programs.hpp"

namespace programs {

class Simulations : public Programs {
 protected:
  // Each rank gets $ISTHMUS_RANK in its words.
  Ended run_unlike(const std::string& program) const {
    return shell(BUILD_DIR "/bin/isthmus run -n 2 sh -c 'exec " BUILD_DIR "/bin/" + program + "'");
  }
};

// Set as long as this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// The number behind the first of these words, or nothing.
inline double number_behind(const std::string& text, const std::string& words) {
  const auto at = text.find(words);
  return at == std::string::npos ? std::nan("") : std::strtod(text.c_str() + at + words.size(), nullptr);
}

}  // namespace programs
