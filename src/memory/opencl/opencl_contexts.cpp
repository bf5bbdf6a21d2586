#include "memory/opencl/opencl_contexts.hpp"

namespace ist {
namespace {

constexpr int kInOrderQueues = 4;

// One text of a platform or device, without the blanks and the zero that drivers put around it.
template <class Get, class Id>
std::string text_of(Get get, Id id, cl_uint what) {
  std::size_t length = 0;
  if (get(id, what, 0, nullptr, &length) != CL_SUCCESS || length == 0) return {};
  std::string text(length, '\0');
  if (get(id, what, length, text.data(), nullptr) != CL_SUCCESS) return {};
  const auto first = text.find_first_not_of(std::string_view{" \0", 2});
  const auto last = text.find_last_not_of(std::string_view{" \0", 2});
  return first == std::string::npos ? std::string{} : text.substr(first, last - first + 1);
}

}  // namespace

OpenclContexts::~OpenclContexts() {
  for (const Lanes& each : lanes_)
    for (cl_command_queue queue : each.queues) api_.clReleaseCommandQueue(queue);
  for (const Own& each : own_) {
    if (each.queue) api_.clReleaseCommandQueue(each.queue);
    if (each.context) api_.clReleaseContext(each.context);
  }
}

Status OpenclContexts::list_devices() {
  // The first call that asks for devices sets drivers up, and one at least (PoCL) does not bear two at once.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  cl_uint count = 0;
  const cl_int found = api_.clGetPlatformIDs(0, nullptr, &count);
  if (found != CL_SUCCESS || count == 0)
    return opencl_status(found == CL_SUCCESS ? -1001 : found, "clGetPlatformIDs", IST_ERR_KIND,
                         "libOpenCL.so.1 knows no driver; install one (Debian, for processors: pocl-opencl-icd)");
  std::vector<cl_platform_id> platforms(count);
  IST_TRY(opencl_status(api_.clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs", IST_ERR_KIND));
  for (cl_platform_id platform : platforms) IST_TRY(add_platform(platform));
  own_.resize(ids_.size());
  if (ids_.empty())
    return {IST_ERR_KIND,
            "OpenCL has " + std::to_string(count) + " platform(s) and none of them a device; is the device visible?"};
  return {};
}

// A platform without devices is no error: drivers are often installed where their device is not.
Status OpenclContexts::add_platform(cl_platform_id platform) {
  cl_uint count = 0;
  if (api_.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_device_id> ids(count);
  IST_TRY(opencl_status(api_.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr), "clGetDeviceIDs",
                        IST_ERR_KIND));
  const std::string name = text_of(api_.clGetPlatformInfo, platform, CL_PLATFORM_NAME);
  for (cl_device_id id : ids) {
    devices_.push_back(describe(id, name));
    ids_.push_back(id);
    released_.learn(id);
  }
  return {};
}

DeviceInfo OpenclContexts::describe(cl_device_id device, const std::string& platform) const {
  DeviceInfo info;
  info.ordinal = static_cast<int>(ids_.size());
  info.name = text_of(api_.clGetDeviceInfo, device, CL_DEVICE_NAME);
  info.detail = platform + ", driver " + text_of(api_.clGetDeviceInfo, device, CL_DRIVER_VERSION);
  cl_ulong memory = 0;
  api_.clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, nullptr);
  info.memory = Bytes{memory};
  // cl_khr_device_uuid, where the driver has it.
  constexpr cl_device_info kUuid = 0x106A;
  std::array<unsigned char, 16> uuid{};
  if (api_.clGetDeviceInfo(device, kUuid, sizeof uuid, uuid.data(), nullptr) == CL_SUCCESS) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (std::size_t i = 0; i < uuid.size(); ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) info.uuid += '-';
      info.uuid += digits[uuid[i] >> 4U];
      info.uuid += digits[uuid[i] & 15U];
    }
  }
  return info;
}

Result<cl_context> OpenclContexts::context_of(cl_mem memory) const {
  if (released_.gone(memory))
    return Status{IST_ERR_HANDLE,
                  "an OpenCL buffer was named that ist_memory_free has released; free a buffer after its last use"};
  cl_context context = nullptr;
  IST_TRY(opencl_status(api_.clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, nullptr),
                        "clGetMemObjectInfo", IST_ERR_HANDLE, "the buffer was released, or is not a cl_mem"));
  return context;
}

int OpenclContexts::ordinal_of(cl_device_id device) const {
  while (device) {
    for (std::size_t i = 0; i < ids_.size(); ++i)
      if (ids_[i] == device) return static_cast<int>(i);
    cl_device_id parent = nullptr;
    if (api_.clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, nullptr) != CL_SUCCESS) break;
    device = parent;
  }
  return -1;
}

Result<int> OpenclContexts::choose(cl_context context, int ordinal) {
  const std::lock_guard lock(mutex_);
  auto found = lanes(context, ordinal);
  if (!found.ok()) return found.status();
  return (*found)->ordinal;
}

Result<cl_command_queue> OpenclContexts::queue(cl_context context, int ordinal) {
  const std::lock_guard lock(mutex_);
  auto found = lanes(context, ordinal);
  if (!found.ok()) return found.status();
  Lanes& chosen = **found;
  return chosen.queues[chosen.next++ % chosen.queues.size()];
}

Result<OpenclContexts::Lanes*> OpenclContexts::lanes(cl_context context, int ordinal) {
  for (Lanes& each : lanes_)
    if (each.context == context && (ordinal < 0 || each.ordinal == ordinal)) return &each;
  std::size_t size = 0;
  IST_TRY(opencl_status(api_.clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &size), "clGetContextInfo"));
  std::vector<cl_device_id> devices(size / sizeof(cl_device_id));
  IST_TRY(
      opencl_status(api_.clGetContextInfo(context, CL_CONTEXT_DEVICES, size, devices.data(), nullptr), "clGetContextInfo"));
  Lanes made;
  made.context = context;
  for (cl_device_id device : devices) {
    made.ordinal = ordinal_of(device);
    made.device = device;
    if (ordinal < 0 || made.ordinal == ordinal) break;
  }
  if (devices.empty() || (ordinal >= 0 && made.ordinal != ordinal))
    return Status{IST_ERR_ARGUMENT, "the buffer names OpenCL device " + std::to_string(ordinal) +
                                        ", which its context does not contain; leave the device at -1"};
  IST_TRY(make_queues(made));
  lanes_.push_back(std::move(made));
  return &lanes_.back();
}

Status OpenclContexts::make_queues(Lanes& lanes) const {
  cl_command_queue_properties offered = 0;
  api_.clGetDeviceInfo(lanes.device, CL_DEVICE_QUEUE_PROPERTIES, sizeof offered, &offered, nullptr);
  const cl_command_queue_properties wanted = offered & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  for (int i = 0; i < (wanted ? 1 : kInOrderQueues); ++i) {
    cl_int error = CL_SUCCESS;
    cl_command_queue queue = api_.clCreateCommandQueue(lanes.context, lanes.device, wanted, &error);
    if (error == CL_SUCCESS) {
      lanes.queues.push_back(queue);
      continue;
    }
    for (cl_command_queue each : lanes.queues) api_.clReleaseCommandQueue(each);
    return opencl_status(error, "clCreateCommandQueue");
  }
  return {};
}

Result<OpenclContexts::Own> OpenclContexts::own(int ordinal) {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= ids_.size())
    return Status{IST_ERR_ARGUMENT, "OpenCL device " + std::to_string(ordinal) + " was asked for; there are devices 0 to " +
                                        std::to_string(ids_.size() - 1)};
  const std::lock_guard lock(mutex_);
  Own& own = own_[static_cast<std::size_t>(ordinal)];
  const cl_device_id device = ids_[static_cast<std::size_t>(ordinal)];
  cl_int error = CL_SUCCESS;
  if (!own.context) {
    own.context = api_.clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    if (error != CL_SUCCESS) own.context = nullptr;
    IST_TRY(opencl_status(error, "clCreateContext on OpenCL device " + std::to_string(ordinal)));
  }
  if (!own.queue) {
    own.queue = api_.clCreateCommandQueue(own.context, device, 0, &error);
    if (error != CL_SUCCESS) own.queue = nullptr;
    IST_TRY(opencl_status(error, "clCreateCommandQueue on OpenCL device " + std::to_string(ordinal)));
    cl_ulong largest = 0;
    api_.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, nullptr);
    own.largest = Bytes{largest};
  }
  return own;
}

}  // namespace ist
