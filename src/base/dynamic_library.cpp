#include "base/dynamic_library.hpp"

#include <dlfcn.h>

namespace ist {

Result<DynamicLibrary> DynamicLibrary::open(const std::string& file) {
  if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return DynamicLibrary{handle};
  const char* reason = ::dlerror();
  return Status{IST_ERR_KIND, reason ? reason : file + " cannot be loaded"};
}

void* DynamicLibrary::find(const char* symbol) const { return ::dlsym(handle_, symbol); }

}  // namespace ist
