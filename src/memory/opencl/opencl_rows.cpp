// Layouts in rows: rectangles between a buffer and host memory. In the queues and with the promises of copies.
#include <array>

#include "base/ranges.hpp"
#include "memory/opencl/opencl_kind.hpp"
#include "memory/rows.hpp"

namespace ist {
namespace {

constexpr cl_mem_flags kNoHost = CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY;

// Where a side's rows lie, from the beginning of its object. An origin is a number of bytes, rows and planes; the first of them may be beyond
// one row.
struct Side {
  Side(const Piece& piece, std::int64_t from, const RowSide& rows)
      : origin{static_cast<std::size_t>(static_cast<std::int64_t>(piece.offset.value) + from + rows.at), 0, 0},
        row(static_cast<std::size_t>(rows.pitch)),
        plane(row * static_cast<std::size_t>(rows.heights)) {}
  std::array<std::size_t, 3> origin;
  std::size_t row, plane;
};

// Of what it is asked for, and no error of the device or of work before.
bool is_refusal(cl_int error) { return error == CL_INVALID_VALUE || error == CL_INVALID_OPERATION; }

}  // namespace

const char* OpenclKind::refuses_rows(const PackWork& work) {
  if (const char* const why = why_no_rows(*work.form)) return why;
  if (const char* const why = refused_rows_.why()) return why;
  const Piece& on_device = work.memory.kind == KindId::opencl ? work.memory : work.packed;
  if (on_device.kind != KindId::opencl) return "neither side is a device's memory";
  // clEnqueueCopyBufferRect wants equal pitches within one buffer, and a packed side has others; between two the tests failed beside Ubuntu 24.04's PoCL, why
  // is not known.
  if (work.memory.kind == work.packed.kind) return "both sides are OpenCL memory, which kernels pack";
  cl_mem_flags flags = 0;
  api_.clGetMemObjectInfo(memory_of(on_device), CL_MEM_FLAGS, sizeof flags, &flags, nullptr);
  if ((flags & kNoHost) != 0) return "the cl_mem is not for every access by the host";
  return nullptr;
}

Result<Ticket> OpenclKind::pack_rows(const PackWork& work, const Ticket& after) {
  if (refused_rows_.why() != nullptr && work.memory.kind != KindId::host) return refused_rows_.by_block(*this, work, after);
  if (const char* const why = refuses_rows(work))
    return Status{IST_ERR_UNSUPPORTED, std::string{"rows by rectangles: "} + why};
  bool refused = false;
  auto rows = start_rows(work, after, refused);
  return refused ? refused_rows_.instead(*this, work, after, rows.status()) : std::move(rows);
}

// One event after the other: the last one stands for all of them.
Result<Ticket> OpenclKind::start_rows(const PackWork& work, const Ticket& after, bool& refused) {
  const bool in_rows = work.memory.kind == KindId::opencl;
  const Piece& on_device = in_rows ? work.memory : work.packed;
  const auto context = contexts_.context_of(memory_of(on_device));
  if (!context.ok()) return context.status();
  const auto queue = contexts_.queue(*context, on_device.device);
  if (!queue.ok()) return queue.status();
  auto before = wait_for(after, *context);
  if (!before.ok()) return before.status();
  const Range range("isthmus: opencl rows");
  cl_event last = *before;
  Status started;
  bool moved = false;
  for (const RowCopy& rows : row_copies(*work.form, work.from, work.to)) {
    cl_event done = nullptr;
    const auto [call, error] = enqueue_rows(*queue, work, rows, last, &done);
    refused = is_refusal(error);
    started = opencl_status(error, std::string{call} + " of " + std::to_string(rows.height * rows.depth) + " rows of " +
                                       std::to_string(rows.width) + " bytes");
    if (!started.ok()) break;
    if (last) api_.clReleaseEvent(last);
    last = done;
    moved = true;
  }
  if (started.ok()) return promise(*queue, last, work.packed, work.memory);
  if (moved) api_.clFinish(*queue);  // what was begun ends before its memory is given back
  if (last) api_.clReleaseEvent(last);
  return started;
}

std::pair<const char*, cl_int> OpenclKind::enqueue_rows(cl_command_queue queue, const PackWork& work, const RowCopy& rows,
                                                        cl_event after, cl_event* done) {
  const Side memory(work.memory, work.origin, rows.memory), other(work.packed, 0, rows.other);
  const std::array<std::size_t, 3> region{static_cast<std::size_t>(rows.width), static_cast<std::size_t>(rows.height),
                                          static_cast<std::size_t>(rows.depth)};
  const cl_uint waits = after ? 1 : 0;
  const cl_event* const list = after ? &after : nullptr;
  const Side &to = work.unpacks ? memory : other, &from = work.unpacks ? other : memory;
  const Piece &to_piece = work.unpacks ? work.memory : work.packed, &from_piece = work.unpacks ? work.packed : work.memory;
  const char* call = "clEnqueueReadBufferRect";
  cl_int error = CL_SUCCESS;
  if (to_piece.kind == KindId::host) {
    error = api_.clEnqueueReadBufferRect(queue, memory_of(from_piece), CL_FALSE, from.origin.data(), to.origin.data(),
                                         region.data(), from.row, from.plane, to.row, to.plane,
                                         reinterpret_cast<void*>(to_piece.object), waits, list, done);
  } else {
    call = "clEnqueueWriteBufferRect";
    error = api_.clEnqueueWriteBufferRect(queue, memory_of(to_piece), CL_FALSE, to.origin.data(), from.origin.data(),
                                          region.data(), to.row, to.plane, from.row, from.plane,
                                          reinterpret_cast<const void*>(from_piece.object), waits, list, done);
  }
  return {call, error};
}

}  // namespace ist
