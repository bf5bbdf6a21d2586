// A vendor library found at run time, or the reason why not.
//
// Who calls this : the one x_api file of each vendor.
// Threads        : open once, then read-only.
// Ownership      : the library stays loaded until the process ends: drivers do not survive being unloaded.
// Errors         : returned, naming the file and the loader's reason.
#pragma once

#include <string>

#include "base/status.hpp"

namespace ist {

class DynamicLibrary {
 public:
  static Result<DynamicLibrary> open(const std::string& file);
  // Null if the library has no such symbol.
  void* find(const char* symbol) const;

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace ist
