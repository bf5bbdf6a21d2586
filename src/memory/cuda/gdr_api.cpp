#include "memory/cuda/gdr_api.hpp"

#include <dlfcn.h>

#include "base/dynamic_library.hpp"

namespace ist::gdr {
namespace {

// With other first numbers handles and calls are others.
constexpr int kMajor = 2;

std::string text_of(int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); }

}  // namespace

Result<Api> load_api(const std::string& file) {
  const auto library = DynamicLibrary::open(file);
  if (!library.ok())
    return Status{IST_ERR_KIND,
                  library.status().text() + "; install gdrcopy 2.4 or newer, its library and its kernel module gdrdrv"};
  Api api;
  api.file = file;
  std::string absent;
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(library->find(name));
    if (call == nullptr && absent.empty()) absent = name;
  };
#define IST_GDR_FIND(name) find(api.name, #name)
  IST_GDR_FIND(gdr_open);
  IST_GDR_FIND(gdr_close);
  IST_GDR_FIND(gdr_pin_buffer);
  IST_GDR_FIND(gdr_unpin_buffer);
  IST_GDR_FIND(gdr_get_info_v2);
  IST_GDR_FIND(gdr_map);
  IST_GDR_FIND(gdr_unmap);
  IST_GDR_FIND(gdr_copy_to_mapping);
  IST_GDR_FIND(gdr_copy_from_mapping);
  IST_GDR_FIND(gdr_runtime_get_version);
  IST_GDR_FIND(gdr_driver_get_version);
#undef IST_GDR_FIND
  if (!absent.empty()) return Status{IST_ERR_KIND, file + " has no " + absent + "; install gdrcopy 2.4 or newer"};
  return api;
}

Result<Opened> open(const Api& api) {
  int major = 0;
  int minor = 0;
  api.gdr_runtime_get_version(&major, &minor);
  if (major != kMajor)
    return Status{IST_ERR_KIND, api.file + " is gdrcopy " + text_of(major, minor) + "; a version 2 is needed"};
  Opened opened;
  opened.versions = text_of(major, minor);
  opened.session = api.gdr_open();
  if (opened.session == nullptr)
    return Status{IST_ERR_KIND, api.file +
                                    " finds no driver (gdr_open): load the kernel module gdrdrv, and let /dev/gdrdrv be "
                                    "opened"};
  const int result = api.gdr_driver_get_version(opened.session, &major, &minor);
  if (result == 0 && major == kMajor) {
    opened.versions += ", driver " + text_of(major, minor);
    return opened;
  }
  api.gdr_close(opened.session);
  if (result != 0)
    return Status{IST_ERR_KIND,
                  api.file + " cannot ask its driver (gdr_driver_get_version: " + std::to_string(result) + ")"};
  return Status{IST_ERR_KIND, "the kernel module gdrdrv is of version " + text_of(major, minor) + "; a version 2 is needed"};
}

}  // namespace ist::gdr
