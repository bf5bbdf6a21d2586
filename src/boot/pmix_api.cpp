#include "boot/pmix_api.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "base/dynamic_library.hpp"

namespace ist {
namespace {

constexpr const char* kFile = "libpmix.so.2";

// An MPI library in this process has loaded the right one. Otherwise the one of the Open MPI or PMIx that the job's
// environment tells of goes first: it is of the server's own version, and the loader's may be another.
std::vector<std::string> places() {
  if (::dlopen(kFile, RTLD_NOW | RTLD_NOLOAD)) return {kFile};
  std::vector<std::string> files;
  for (const char* variable : {"PMIX_PREFIX", "PMIX_INSTALL_PREFIX", "OPAL_PREFIX"})
    if (const char* prefix = std::getenv(variable))
      for (const char* folder : {"/lib/", "/lib64/", "/lib/openmpi/"}) files.push_back(std::string{prefix} + folder + kFile);
  files.emplace_back(kFile);
  return files;
}

Result<PmixApi> load() {
  std::string reason;
  for (const std::string& file : places()) {
    auto library = DynamicLibrary::open(file);
    if (!library.ok()) {
      reason = library.status().text();
      continue;
    }
    PmixApi api;
    const char* lacking = nullptr;
#define IST_PMIX_FIND(name, ...)                                         \
  api.name = reinterpret_cast<decltype(api.name)>(library->find(#name)); \
  if (!api.name && !lacking) lacking = #name;
    IST_PMIX_FUNCTIONS(IST_PMIX_FIND)
#undef IST_PMIX_FIND
    if (!lacking) return api;
    reason = file + " has no " + lacking + "; PMIx 2 or later is needed";
  }
  return Status{IST_ERR_BOOT, reason +
                                  "; install PMIx (Debian: libpmix2), or put the folder of libpmix.so.2 into "
                                  "LD_LIBRARY_PATH"};
}

}  // namespace

Result<const PmixApi*> PmixApi::get() {
  static const Result<PmixApi> loaded = load();
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

std::string PmixApi::error_name(pmix::Code code) const {
  const char* name = PMIx_Error_string(code);
  return std::string{name ? name : "error"} + " (" + std::to_string(code) + ")";
}

}  // namespace ist
