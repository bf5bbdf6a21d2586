// The OpenCL devices of this machine, and the library's own queues in every context that a buffer came from.
//
// Who calls this : opencl_kind.
// Threads        : any.
// Ownership      : owns its queues, and through them keeps each context met alive until the world ends, so that the handle
//                  of a context is never mistaken for that of an older one.
// Errors         : returned with the name of the OpenCL call.
//
// Copies run in queues of the library and not in the user's: the user's may be held up by work that has nothing to do with
// the message. Out-of-order queues are used where the device has them, since there only events order copies; otherwise a few
// in-order queues in turn, and then a copy may be held up by an unrelated one before it.
#pragma once

#include <array>
#include <list>
#include <mutex>
#include <vector>

#include "memory/memory_kind.hpp"
#include "memory/opencl/opencl_api.hpp"
#include "memory/opencl/opencl_released.hpp"

namespace ist {

class OpenclContexts {
 public:
  struct Lanes {
    cl_context context = nullptr;
    cl_device_id device = nullptr;
    int ordinal = -1;
    std::vector<cl_command_queue> queues;
    std::size_t next = 0;
  };
  // The library's own context and queue on a device, for memory it allocates.
  struct Own {
    cl_context context = nullptr;
    cl_command_queue queue = nullptr;
    Bytes largest;
  };

  explicit OpenclContexts(const OpenclApi& api) : api_(api), released_(api) {}
  ~OpenclContexts();
  // Lists all devices of all platforms, in the order of the platforms. Fails if there is none.
  Status list_devices();
  const std::vector<DeviceInfo>& devices() const { return devices_; }

  // One of the list.
  cl_device_id device(int ordinal) const { return ids_[static_cast<std::size_t>(ordinal)]; }
  bool is_processor(int ordinal) const {
    cl_device_type type = 0;
    api_.clGetDeviceInfo(device(ordinal), CL_DEVICE_TYPE, sizeof type, &type, nullptr);
    return (type & CL_DEVICE_TYPE_CPU) != 0;
  }
  // The context of a buffer, asked before anything else about it: refuses one that was released.
  Result<cl_context> context_of(cl_mem memory) const;
  OpenclReleased& released() { return released_; }
  // The ordinal of a device, or of the device it is a part of; -1 if it is none of ours.
  int ordinal_of(cl_device_id device) const;
  // The ordinal that copies of this context use: `ordinal` if the context has it, any of the context's if that is -1.
  Result<int> choose(cl_context context, int ordinal);
  // A queue of the library for one copy.
  Result<cl_command_queue> queue(cl_context context, int ordinal);
  Result<Own> own(int ordinal);

 private:
  Status add_platform(cl_platform_id platform);
  DeviceInfo describe(cl_device_id device, const std::string& platform) const;
  Result<Lanes*> lanes(cl_context context, int ordinal);
  Status make_queues(Lanes& lanes) const;

  const OpenclApi& api_;
  mutable OpenclReleased released_;
  std::vector<DeviceInfo> devices_;
  std::vector<cl_device_id> ids_;
  std::mutex mutex_;
  std::list<Lanes> lanes_;
  std::vector<Own> own_;
};

}  // namespace ist
