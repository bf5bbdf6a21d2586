#include "boot/pmix_api.hpp"

#include <cstdlib>
#include <vector>

#include "base/dynamic_library.hpp"

namespace ist {
namespace {

// Where the loader looks, and then beside the Open MPI or PMIx that a job's environment tells of: those that come with a
// library of their own do not put it where the loader looks.
std::vector<std::string> places() {
  std::vector<std::string> files{"libpmix.so.2"};
  for (const char* variable : {"PMIX_INSTALL_PREFIX", "PMIX_PREFIX", "OPAL_PREFIX"})
    if (const char* prefix = std::getenv(variable)) files.push_back(std::string{prefix} + "/lib/libpmix.so.2");
  return files;
}

Result<PmixApi> load() {
  std::string reason;
  for (const std::string& file : places()) {
    auto library = DynamicLibrary::open(file);
    if (!library.ok()) {
      if (reason.empty()) reason = library.status().text();
      continue;
    }
    PmixApi api;
    const char* lacking = nullptr;
#define IST_PMIX_FIND(name, ...)                                         \
  api.name = reinterpret_cast<decltype(api.name)>(library->find(#name)); \
  if (!api.name) lacking = #name;
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
