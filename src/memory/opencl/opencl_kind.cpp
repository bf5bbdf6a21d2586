#include "memory/opencl/opencl_kind.hpp"

#include <algorithm>

namespace ist {

Result<std::unique_ptr<MemoryKind>> make_opencl_kind() {
  auto api = OpenclApi::get();
  if (!api.ok()) return api.status();
  auto kind = std::make_unique<OpenclKind>(**api);
  IST_TRY(kind->list_devices());
  return std::unique_ptr<MemoryKind>{std::move(kind)};
}

OpenclKind::~OpenclKind() {
  OpenclListeners::all().remove(listener_);
  refused_rows_.clear();
  for (const Promise& each : promises_)
    if (each.event) release_promise(each);
  for (cl_mem each : allocated_) api_.clReleaseMemObject(each);
}

bool OpenclKind::tell_ends(std::function<void()> over) {
  const auto number = [](const DeviceInfo& device) { return device.ordinal; };
  if (std::ranges::none_of(
          devices(), [this](int ordinal) { return by_processor(ordinal); }, number))
    return false;
  tells_ = static_cast<bool>(over);
  OpenclListeners::all().replace(listener_, [this, over = std::move(over)] {
    ends_.fetch_add(1);
    if (over) over();
  });
  return true;
}

bool OpenclKind::copies(KindId to, KindId from) const {
  const auto mine_or_host = [](KindId id) { return id == KindId::opencl || id == KindId::host; };
  return mine_or_host(to) && mine_or_host(from) && (to == KindId::opencl || from == KindId::opencl);
}

// Buffers of different contexts share nothing, not even on the same device.
bool OpenclKind::reaches(const Piece& to, const Piece& from) const {
  if (!copies(to.kind, from.kind)) return false;
  if (to.kind != from.kind) return true;
  const auto to_context = contexts_.context_of(memory_of(to));
  const auto from_context = contexts_.context_of(memory_of(from));
  return to_context.ok() && from_context.ok() && *to_context == *from_context;
}

std::optional<Recognised> OpenclKind::recognise(const void*) { return std::nullopt; }

Status OpenclKind::check(Piece& piece) {
  cl_mem memory = memory_of(piece);
  if (!memory) return {IST_ERR_ARGUMENT, "a null cl_mem was given for " + std::to_string(piece.size.value) + " bytes"};
  auto context = contexts_.context_of(memory);
  if (!context.ok()) return context.status();
  cl_mem_object_type type = 0;
  IST_TRY(opencl_status(api_.clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type, nullptr), "clGetMemObjectInfo"));
  if (type != CL_MEM_OBJECT_BUFFER)
    return {IST_ERR_ARGUMENT, "a cl_mem of type " + std::to_string(type) +
                                  " was given where a buffer is needed; copy the image to a buffer first"};
  // Of a sub-buffer this is its own size, and offsets count from its own start.
  std::size_t size = 0;
  IST_TRY(opencl_status(api_.clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof size, &size, nullptr), "clGetMemObjectInfo"));
  if (piece.offset.value > size || piece.size.value > size - piece.offset.value)
    return {IST_ERR_ARGUMENT, "asked " + std::to_string(piece.size.value) + " bytes at offset " +
                                  std::to_string(piece.offset.value) + " of an OpenCL buffer of " + std::to_string(size) +
                                  " bytes; check offset and count"};
  if (piece.queue != 0) IST_TRY(check_queue(piece, *context));
  auto device = contexts_.choose(*context, piece.device);
  if (!device.ok()) return device.status();
  piece.device = *device;
  return {};
}

Status OpenclKind::check_queue(Piece& piece, cl_context context) const {
  cl_context other = nullptr;
  cl_device_id device = nullptr;
  IST_TRY(opencl_status(api_.clGetCommandQueueInfo(queue_of(piece), CL_QUEUE_CONTEXT, sizeof other, &other, nullptr),
                        "clGetCommandQueueInfo", IST_ERR_HANDLE,
                        "the buffer's queue was released, or is not a cl_command_queue"));
  if (other != context)
    return {IST_ERR_ARGUMENT,
            "the buffer's queue belongs to another context than the buffer; name a queue of its context, or none"};
  IST_TRY(opencl_status(api_.clGetCommandQueueInfo(queue_of(piece), CL_QUEUE_DEVICE, sizeof device, &device, nullptr),
                        "clGetCommandQueueInfo"));
  const int ordinal = contexts_.ordinal_of(device);
  if (piece.device >= 0 && piece.device != ordinal)
    return {IST_ERR_ARGUMENT, "the buffer names OpenCL device " + std::to_string(piece.device) + " and a queue of device " +
                                  std::to_string(ordinal) + "; leave the device at -1"};
  piece.device = ordinal;
  return {};
}

Result<Piece> OpenclKind::allocate(int device, Bytes size) {
  auto own = contexts_.own(device);
  if (!own.ok()) return own.status();
  if (size > own->largest)
    return Status{IST_ERR_MEMORY, "an OpenCL buffer of " + std::to_string(size.value) + " bytes was asked for; device " +
                                      std::to_string(device) + " makes buffers of at most " +
                                      std::to_string(own->largest.value) + " bytes"};
  auto made = create(own->context, device, size);
  if (made.ok()) made->queue = reinterpret_cast<std::uint64_t>(own->queue);
  return made;
}

Result<Piece> OpenclKind::allocate_beside(const Piece& neighbour, Bytes size) {
  const auto context = contexts_.context_of(memory_of(neighbour));
  if (!context.ok()) return context.status();
  return create(*context, neighbour.device, size);
}

Result<Piece> OpenclKind::create(cl_context context, int device, Bytes size) {
  cl_int error = CL_SUCCESS;
  // OpenCL knows no empty buffers.
  const std::size_t bytes = size.value == 0 ? 1 : size.value;
  cl_mem memory = api_.clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  IST_TRY(opencl_status(error,
                        "clCreateBuffer of " + std::to_string(bytes) + " bytes on OpenCL device " + std::to_string(device),
                        IST_ERR_MEMORY));
  {
    const std::lock_guard lock(mutex_);
    allocated_.insert(memory);
  }
  contexts_.released().remove(memory);
  return Piece{KindId::opencl, device, reinterpret_cast<std::uint64_t>(memory), Offset{}, size, 0};
}

Status OpenclKind::release(const Piece& piece) {
  {
    const std::lock_guard lock(mutex_);
    if (allocated_.erase(memory_of(piece)) == 0)
      return {IST_ERR_ARGUMENT, "the OpenCL buffer to be freed was not allocated here, or was freed before"};
  }
  contexts_.released().add(memory_of(piece));
  return opencl_status(api_.clReleaseMemObject(memory_of(piece)), "clReleaseMemObject");
}

}  // namespace ist
