#include "collective/nccl_api.hpp"

#include <dlfcn.h>

#include "base/dynamic_library.hpp"

namespace ist::nccl {
namespace {

std::string text_of(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

std::string file_of(void* symbol, const std::string& otherwise) {
  Dl_info found{};
  return ::dladdr(symbol, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : otherwise;
}

}  // namespace

Result<Api> load_api(const std::string& file) {
  auto library = DynamicLibrary::open(file);
  if (!library.ok())
    return Status{IST_ERR_KIND, library.status().text() +
                                    "; install NCCL 2.18 or newer and name its libnccl.so.2 in ISTHMUS_NCCL, or its "
                                    "folder in LD_LIBRARY_PATH"};
  Api api;
  std::string absent;
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(library->find(name));
    if (call == nullptr && absent.empty()) absent = name;
  };
#define IST_NCCL_FIND(name) find(api.name, #name)
  IST_NCCL_FIND(ncclGetVersion);
  IST_NCCL_FIND(ncclGetErrorString);
  IST_NCCL_FIND(ncclGetLastError);
  IST_NCCL_FIND(ncclGetUniqueId);
  IST_NCCL_FIND(ncclCommInitRankConfig);
  IST_NCCL_FIND(ncclCommSplit);
  IST_NCCL_FIND(ncclCommGetAsyncError);
  IST_NCCL_FIND(ncclCommAbort);
  IST_NCCL_FIND(ncclGroupStart);
  IST_NCCL_FIND(ncclGroupEnd);
  IST_NCCL_FIND(ncclAllReduce);
  IST_NCCL_FIND(ncclReduce);
  IST_NCCL_FIND(ncclBroadcast);
  IST_NCCL_FIND(ncclAllGather);
  IST_NCCL_FIND(ncclReduceScatter);
  IST_NCCL_FIND(ncclSend);
  IST_NCCL_FIND(ncclRecv);
#undef IST_NCCL_FIND
  if (api.ncclGetVersion != nullptr && api.ncclGetVersion(&api.version) != Code::success) api.version = 0;
  api.file = api.ncclGetVersion != nullptr ? file_of(reinterpret_cast<void*>(api.ncclGetVersion), file) : file;
  if (!absent.empty() || api.version < kOldest)
    return Status{IST_ERR_KIND, api.file + (api.version > 0 ? " is NCCL " + text_of(api.version) : std::string{}) +
                                    (absent.empty() ? "" : " and has no " + absent) +
                                    "; 2.18 or newer is needed: name one in ISTHMUS_NCCL"};
  return api;
}

std::string Api::version_text() const { return text_of(version); }

std::string Api::words(Code code, Comm comm) const {
  std::string text = ncclGetErrorString(code);
  const char* last = ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') text += std::string{": "} + last;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace ist::nccl
