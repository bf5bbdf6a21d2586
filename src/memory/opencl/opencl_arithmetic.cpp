// Reductions on the device, in the queues and with the promises of copies.
#include "memory/opencl/opencl_kind.hpp"
#include "memory/opencl/opencl_source.hpp"

namespace ist {

Status OpenclKind::can(Reduction reduction, ist_type type, int device) {
  IST_TRY(applicable(reduction, type));
  if (device < 0 || static_cast<std::size_t>(device) >= devices().size())
    return {IST_ERR_ARGUMENT, "a reduction on OpenCL device " + std::to_string(device) +
                                  " was asked for; there are devices 0 to " + std::to_string(devices().size() - 1)};
  const Element element = *element_of(type);
  const cl_device_id id = contexts_.device(device);
  const std::string place =
      "OpenCL device " + std::to_string(device) + " (" + devices()[static_cast<std::size_t>(device)].name + ")";
  cl_bool compiler = CL_FALSE;
  api_.clGetDeviceInfo(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, nullptr);
  if (compiler == CL_FALSE) return {IST_ERR_KIND, place + " has no compiler, which reductions need"};
  cl_device_fp_config numbers = 0;
  const cl_device_info which = needs_double(element) ? CL_DEVICE_DOUBLE_FP_CONFIG : CL_DEVICE_SINGLE_FP_CONFIG;
  if (api_.clGetDeviceInfo(id, which, sizeof numbers, &numbers, nullptr) != CL_SUCCESS) numbers = 0;
  if (needs_double(element) && numbers == 0)
    return {IST_ERR_KIND, place + " has no double precision, which a reduction of " + name_of(type) + " needs"};
  if (needs_small_floats(element) && (numbers & CL_FP_DENORM) == 0)
    return {IST_ERR_KIND, place + " takes the smallest floats for zero, so a reduction of " + name_of(type) +
                              " would differ from that of a processor"};
  return {};
}

bool OpenclKind::by_processor(int device) const {
  return device >= 0 && static_cast<std::size_t>(device) < devices().size() && contexts_.is_processor(device);
}

Result<Ticket> OpenclKind::combine(Reduction reduction, ist_type type, const Piece& into, const Piece& with,
                                   const Ticket& after) {
  if (into.kind != KindId::opencl || with.kind != KindId::opencl)
    return Status{IST_ERR_ARGUMENT, "a reduction of " + std::to_string(into.size.value) +
                                        " bytes on an OpenCL device was asked for, and not both sides are OpenCL buffers"};
  const auto operands = operands_of(reduction, type, into, with, true);
  if (!operands.ok()) return operands.status();
  if (operands->count == 0) return copy(into, with, after);
  auto context = contexts_.context_of(memory_of(into));
  if (!context.ok()) return context.status();
  if (!reaches(into, with))
    return Status{IST_ERR_KIND,
                  "a reduction between OpenCL buffers of two contexts was asked for; copy one into the other's first"};
  const auto queue = contexts_.queue(*context, into.device);
  if (!queue.ok()) return queue.status();
  cl_device_id device = nullptr;
  IST_TRY(opencl_status(api_.clGetCommandQueueInfo(*queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr),
                        "clGetCommandQueueInfo"));
  const auto kernel = programs_.find(*context, device, reduction, operands->element);
  if (!kernel.ok()) return kernel.status();
  const auto before = wait_for(after, *context);
  if (!before.ok()) return before.status();
  cl_event done = nullptr;
  const Status started = programs_.launch(*queue, {*kernel, device, into, with, operands->count}, *before, &done);
  if (*before) api_.clReleaseEvent(*before);
  IST_TRY(started);
  return promise(*queue, done, into, with);
}

}  // namespace ist
