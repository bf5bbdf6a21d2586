// What ends a command: a text for the user and an exit status.
//
// Who calls this : every command; main() prints it as "isthmus COMMAND: text".
// Threads        : values.
// Ownership      : none.
// Errors         : thrown; nothing but main() catches it. An empty text: another rank tells. 2 stands for a wrong use, 1 for
// everything else.
#pragma once

#include <stdexcept>
#include <string>

#include "base/status.hpp"

namespace ist::cli {

class Failure : public std::runtime_error {
 public:
  Failure(int exit_status, const std::string& text) : std::runtime_error(text), exit_status_(exit_status) {}
  explicit Failure(const Status& status) : Failure(status.code() == IST_ERR_SETTING ? 2 : 1, status.text()) {}
  int exit_status() const { return exit_status_; }

 private:
  int exit_status_;
};

}  // namespace ist::cli
