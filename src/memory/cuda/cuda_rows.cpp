// Layouts in rows, by copies in two or three dimensions: within a device, over a link, and to and from page-locked host memory. Ordered and
// promised like any copy.
#include "base/ranges.hpp"
#include "memory/cuda/cuda_memory.hpp"

namespace ist {

// Byte 0 of each side, in the addresses of the context that copies.
struct CudaKind::RowEnds {
  struct End {
    std::uint64_t base = 0;
    bool on_host = false;
  };
  End memory, other;
  bool into_memory = false;
  CopyDirection direction = CopyDirection::between_devices;
  std::string said;         // in an error
  bool* refused = nullptr;  // where to say that the error is a refusal of such copies, if anybody asks
};

namespace {

std::uint64_t start_of(const Piece& piece, std::int64_t origin) {
  return piece.object + piece.offset.value + static_cast<std::uint64_t>(origin);
}

CopyDirection direction_between(bool to_host, bool from_host) {
  if (to_host) return CopyDirection::out_of_device;
  return from_host ? CopyDirection::into_device : CopyDirection::between_devices;
}

// Of what it is asked for, and no error of the device or of work before.
bool is_refusal(CUresult result) { return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace

bool CudaKind::reaches_rows(const CudaContext& context, const Form& form) const {
  int longest = 0;
  if (api_.cuMemcpy3DAsync_v2 == nullptr || api_.cuDeviceGetAttribute == nullptr) return false;
  const CUresult result =
      api_.cuDeviceGetAttribute(&longest, CU_DEVICE_ATTRIBUTE_MAX_PITCH, contexts_.device(context.device));
  return result == CUDA_SUCCESS && form.dimension[0].stride <= longest;
}

const char* CudaKind::refuses_rows(const PackWork& work) {
  if (const char* const why = why_no_rows(*work.form)) return why;
  if (const char* const why = refused_rows_.why()) return why;
  const auto locked = [this](const Piece& piece) { return piece.kind == KindId::cuda || context_of_locked(piece).ok(); };
  if (!locked(work.memory) || (work.packed.kind == KindId::host && !locked(work.packed)))
    return "one side is host memory that is not page-locked";
  const Piece& on_device = work.memory.kind == KindId::cuda ? work.memory : work.packed;
  if (on_device.kind != KindId::cuda) return "neither side is a device's memory";
  const auto context = context_of(on_device);
  if (!context.ok()) return "the driver does not know the memory";
  if (facts_.of(on_device).memory_class == MemoryClass::managed) return "managed memory is where it was used last";
  return reaches_rows(**context, *work.form) ? nullptr : "the rows lie further apart than the device's copies reach";
}

// Between a device and the host; what is in flight when the driver refuses goes on by blocks.
Result<Ticket> CudaKind::rows_over_bus(const PackWork& work, const Ticket& after) {
  const Piece& on_device = work.memory.kind == KindId::cuda ? work.memory : work.packed;
  if (on_device.kind != KindId::cuda || (work.memory.kind != KindId::host && work.packed.kind != KindId::host))
    return Status{IST_ERR_ARGUMENT, "the cuda kind cannot copy rows between " + describe_piece(work.memory) + " and " +
                                        describe_piece(work.packed)};
  if (refused_rows_.why() != nullptr && work.memory.kind != KindId::host) return refused_rows_.by_block(*this, work, after);
  Result<CudaContext*> context = context_of(on_device);
  if (!context.ok()) return context.status();
  bool refused = false;
  auto rows = start_rows(**context, work, after, &refused);
  return refused ? refused_rows_.instead(*this, work, after, rows.status()) : std::move(rows);
}

Result<Ticket> CudaKind::start_rows(CudaContext& context, const PackWork& work, const Ticket& after, bool* refused) {
  RowEnds ends;
  ends.refused = refused;
  ends.memory = {start_of(work.memory, work.origin), work.memory.kind == KindId::host};
  ends.other = {start_of(work.packed, 0), work.packed.kind == KindId::host};
  ends.into_memory = work.unpacks;
  const bool to_host = work.unpacks ? ends.memory.on_host : ends.other.on_host;
  ends.direction = direction_between(to_host, work.unpacks ? ends.other.on_host : ends.memory.on_host);
  ends.said = std::to_string(work.to - work.from) + " bytes of rows of " + std::to_string(work.form->block) + " in " +
              describe_piece(work.memory);
  return start_rows(context, ends, row_copies(*work.form, work.from, work.to), after);
}

// From rows to rows, as many and as long on both sides.
Result<Ticket> CudaKind::start_rows(CudaContext& context, const PackWork& from, const PackWork& to, const Ticket& after) {
  RowEnds ends;
  ends.memory = {start_of(to.memory, to.origin), to.memory.kind == KindId::host};
  ends.other = {start_of(from.memory, from.origin), from.memory.kind == KindId::host};
  ends.into_memory = true;
  ends.direction = direction_between(ends.memory.on_host, ends.other.on_host);
  ends.said = std::to_string(to.to - to.from) + " bytes of rows of " + std::to_string(to.form->block) + " into rows in " +
              describe_piece(to.memory);
  return start_rows(context, ends, row_copies(*to.form, *from.form, to.from, to.to), after);
}

Result<Ticket> CudaKind::start_rows(CudaContext& context, const RowEnds& ends, const std::vector<RowCopy>& copies,
                                    const Ticket& after) {
  IST_TRY(order_across(context, after));
  const ContextScope scope(api_, context);
  IST_TRY(scope.status());
  Result<Route> route = plan(context, ends.direction, after);
  if (!route.ok()) return route.status();
  const std::uint64_t id = route->ticket->id();
  const Range range("isthmus: cuda rows");
  const char* call = "cuStreamWaitEvent";
  CUresult result = enter(*route);
  bool moved = false;
  for (auto rows = copies.begin(); rows != copies.end() && result == CUDA_SUCCESS; ++rows) {
    call = "cuMemcpy3DAsync";
    result = copy_rows(ends, *rows, route->stream);
    moved |= result == CUDA_SUCCESS;
    if (ends.refused != nullptr) *ends.refused = is_refusal(result);
  }
  if (result == CUDA_SUCCESS) {
    call = "cuEventRecord";
    result = leave(*route, true);
  } else if (moved) {
    api_.cuStreamSynchronize(route->stream);  // what was begun ends before its memory is given back
  }
  if (result == CUDA_SUCCESS) return under_way(*route->ticket, id);
  give_back(*route->ticket);
  return cuda_error(api_, result, std::string(call) + " of " + ends.said);
}

CUresult CudaKind::copy_rows(const RowEnds& ends, const RowCopy& rows, CUstream stream) const {
  const RowEnds::End &to = ends.into_memory ? ends.memory : ends.other, &from = ends.into_memory ? ends.other : ends.memory;
  const RowSide &to_side = ends.into_memory ? rows.memory : rows.other,
                &from_side = ends.into_memory ? rows.other : rows.memory;
  CUDA_MEMCPY3D told{};
  told.WidthInBytes = static_cast<std::size_t>(rows.width);
  told.Height = static_cast<std::size_t>(rows.height);
  told.Depth = static_cast<std::size_t>(rows.depth);
  const std::uint64_t source = from.base + static_cast<std::uint64_t>(from_side.at);
  told.srcMemoryType = from.on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (from.on_host)
    told.srcHost = reinterpret_cast<const void*>(source);
  else
    told.srcDevice = source;
  told.srcPitch = static_cast<std::size_t>(from_side.pitch);
  told.srcHeight = static_cast<std::size_t>(from_side.heights);
  const std::uint64_t target = to.base + static_cast<std::uint64_t>(to_side.at);
  told.dstMemoryType = to.on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (to.on_host)
    told.dstHost = reinterpret_cast<void*>(target);
  else
    told.dstDevice = target;
  told.dstPitch = static_cast<std::size_t>(to_side.pitch);
  told.dstHeight = static_cast<std::size_t>(to_side.heights);
  return api_.cuMemcpy3DAsync_v2(&told, stream);
}

}  // namespace ist
