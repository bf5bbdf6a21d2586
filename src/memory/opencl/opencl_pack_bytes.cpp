// Packing on the device, in the queues and with the promises of copies.
#include "memory/opencl/opencl_kind.hpp"

namespace ist {

Status OpenclKind::can_pack(int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= devices().size())
    return {IST_ERR_ARGUMENT, "packing on OpenCL device " + std::to_string(device) +
                                  " was asked for; there are devices 0 to " + std::to_string(devices().size() - 1)};
  cl_bool compiler = CL_FALSE;
  api_.clGetDeviceInfo(contexts_.device(device), CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, nullptr);
  if (compiler == CL_FALSE)
    return {IST_ERR_KIND, "OpenCL device " + std::to_string(device) + " (" +
                              devices()[static_cast<std::size_t>(device)].name + ") has no compiler, which packing needs"};
  return {};
}

Result<Ticket> OpenclKind::pack_bytes(const PackWork& work, const Ticket& after) {
  if (work.rows) return pack_rows(work, after);
  if (work.memory.kind != KindId::opencl || work.packed.kind != KindId::opencl)
    return Status{IST_ERR_ARGUMENT, "packing of " + std::to_string(work.to - work.from) +
                                        " bytes on an OpenCL device was asked for, and not both sides are OpenCL buffers"};
  const auto context = contexts_.context_of(memory_of(work.memory));
  if (!context.ok()) return context.status();
  if (!reaches(work.packed, work.memory))
    return Status{IST_ERR_KIND,
                  "packing between OpenCL buffers of two contexts was asked for; copy one into the other's first"};
  const auto queue = contexts_.queue(*context, work.memory.device);
  if (!queue.ok()) return queue.status();
  cl_device_id device = nullptr;
  IST_TRY(opencl_status(api_.clGetCommandQueueInfo(*queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr),
                        "clGetCommandQueueInfo"));
  const auto before = wait_for(after, *context);
  if (!before.ok()) return before.status();
  cl_event done = nullptr;
  const Status started = packs_.launch({*context, device, *queue}, work, *before, &done);
  if (*before) api_.clReleaseEvent(*before);
  IST_TRY(started);
  return promise(*queue, done, work.packed, work.memory);
}

}  // namespace ist
