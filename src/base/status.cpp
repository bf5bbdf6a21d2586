#include "base/status.hpp"

#include <cerrno>
#include <cstring>

namespace ist {

const std::string& Status::text() const {
  static const std::string none;
  return error_ ? error_->text : none;
}

Status system_error(const std::string& what) {
  const int number = errno;
  return {IST_ERR_SYSTEM, what + ": " + std::strerror(number) + " (errno " + std::to_string(number) + ")"};
}

}  // namespace ist
