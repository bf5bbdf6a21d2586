#include "memory/opencl/opencl_api.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "base/dynamic_library.hpp"

namespace ist {
namespace {

Result<OpenclApi> load() {
  auto library = DynamicLibrary::open("libOpenCL.so.1");
  if (!library.ok())
    return Status{IST_ERR_KIND,
                  library.status().text() + "; install an OpenCL loader (Debian: ocl-icd-libopencl1) and a driver"};
  OpenclApi api;
  const char* lacking = nullptr;
#define IST_OPENCL_FIND(name)                                            \
  api.name = reinterpret_cast<decltype(api.name)>(library->find(#name)); \
  if (!api.name) lacking = #name;
  IST_OPENCL_FUNCTIONS(IST_OPENCL_FIND)
#undef IST_OPENCL_FIND
  if (lacking)
    return Status{IST_ERR_KIND,
                  std::string{"libOpenCL.so.1 has no "} + lacking + "; a loader of OpenCL 1.2 or later is needed"};
  return api;
}

constexpr std::array kNames{
    std::pair{CL_DEVICE_NOT_FOUND, std::string_view{"CL_DEVICE_NOT_FOUND"}},
    std::pair{CL_DEVICE_NOT_AVAILABLE, std::string_view{"CL_DEVICE_NOT_AVAILABLE"}},
    std::pair{CL_COMPILER_NOT_AVAILABLE, std::string_view{"CL_COMPILER_NOT_AVAILABLE"}},
    std::pair{CL_MEM_OBJECT_ALLOCATION_FAILURE, std::string_view{"CL_MEM_OBJECT_ALLOCATION_FAILURE"}},
    std::pair{CL_OUT_OF_RESOURCES, std::string_view{"CL_OUT_OF_RESOURCES"}},
    std::pair{CL_OUT_OF_HOST_MEMORY, std::string_view{"CL_OUT_OF_HOST_MEMORY"}},
    std::pair{CL_MEM_COPY_OVERLAP, std::string_view{"CL_MEM_COPY_OVERLAP"}},
    std::pair{CL_BUILD_PROGRAM_FAILURE, std::string_view{"CL_BUILD_PROGRAM_FAILURE"}},
    std::pair{CL_MISALIGNED_SUB_BUFFER_OFFSET, std::string_view{"CL_MISALIGNED_SUB_BUFFER_OFFSET"}},
    std::pair{CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
              std::string_view{"CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"}},
    std::pair{CL_INVALID_VALUE, std::string_view{"CL_INVALID_VALUE"}},
    std::pair{CL_INVALID_PLATFORM, std::string_view{"CL_INVALID_PLATFORM"}},
    std::pair{CL_INVALID_DEVICE, std::string_view{"CL_INVALID_DEVICE"}},
    std::pair{CL_INVALID_CONTEXT, std::string_view{"CL_INVALID_CONTEXT"}},
    std::pair{CL_INVALID_QUEUE_PROPERTIES, std::string_view{"CL_INVALID_QUEUE_PROPERTIES"}},
    std::pair{CL_INVALID_COMMAND_QUEUE, std::string_view{"CL_INVALID_COMMAND_QUEUE"}},
    std::pair{CL_INVALID_MEM_OBJECT, std::string_view{"CL_INVALID_MEM_OBJECT"}},
    std::pair{CL_INVALID_EVENT_WAIT_LIST, std::string_view{"CL_INVALID_EVENT_WAIT_LIST"}},
    std::pair{CL_INVALID_EVENT, std::string_view{"CL_INVALID_EVENT"}},
    std::pair{CL_INVALID_OPERATION, std::string_view{"CL_INVALID_OPERATION"}},
    std::pair{CL_INVALID_BUFFER_SIZE, std::string_view{"CL_INVALID_BUFFER_SIZE"}},
    std::pair{-1001, std::string_view{"CL_PLATFORM_NOT_FOUND_KHR"}},
};

}  // namespace

Result<const OpenclApi*> OpenclApi::get() {
  static const Result<OpenclApi> loaded = load();
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

std::string opencl_error_name(cl_int error) {
  for (const auto& [number, name] : kNames)
    if (number == error) return std::string{name} + " (" + std::to_string(error) + ")";
  return "OpenCL error " + std::to_string(error);
}

Status opencl_status(cl_int error, const std::string& call, Code code, const std::string& more) {
  if (error == CL_SUCCESS) return {};
  return {code, call + ": " + opencl_error_name(error) + (more.empty() ? "" : "; " + more)};
}

}  // namespace ist
