// The options of an example program, each with a value behind it, as CLI11 reads them.
//
// Who calls this : jacobi, pixels, particles, lbm and himeno.
// Threads        : one.
// Ownership      : refers to the variables that it fills.
// Errors         : Mistake.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
}

namespace example {

// Of the user's. Work throws it for what follows from arguments and number of ranks, so that no rank goes on without the others.
class Mistake : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  Arguments(std::string program, const std::string& purpose);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // int, std::int64_t or double, from `least` to `most`, both inclusive. What the variable is beforehand is told as what it is unless named.
  template <class Number>
  void number(const std::string& name, Number& value, std::type_identity_t<Number> least, std::type_identity_t<Number> most,
              const std::string& help);
  // An option without help is not shown.
  void word(const std::string& name, std::string& value, const std::vector<std::string>& words, const std::string& help);
  // Of any other form; `take` throws what is wrong with it.
  void add(const std::string& name, const std::string& help, const std::string& preset,
           const std::function<void(const std::string&)>& take);
  // False: help is asked for.
  bool read(int argc, char** argv);
  std::string usage() const;
  const std::string& program() const { return program_; }

 private:
  std::string program_;
  std::unique_ptr<CLI::App> app_;
};

}  // namespace example
