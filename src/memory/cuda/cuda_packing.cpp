// Packing on the device: ordered and promised like copies.
#include <algorithm>
#include <thread>

#include "base/log.hpp"
#include "base/ranges.hpp"
#include "memory/cuda/cuda_memory.hpp"
#include "memory/cuda/cuda_packer.hpp"

namespace ist {
namespace {

packing::Work work_of(const PackWork& given, std::int64_t width, const CudaRunLists::List& list) {
  const Form& form = *given.form;
  const auto units = [width](std::int64_t bytes) { return static_cast<std::uint64_t>(bytes / width); };
  packing::Work work;
  work.memory = given.memory.address();
  work.packed = given.packed.address();
  work.room = given.memory.size.value;
  work.bytes = given.packed.size.value;
  work.first = units(given.from);
  work.units = units(given.to - given.from);
  work.origin = given.origin + form.offset;
  work.block = units(form.strided() ? form.block : std::max(list.each, width));
  if (work.block < packing::kNear) work.block_by = packing::divisor(work.block);
  work.dimensions = static_cast<std::uint32_t>(form.dimensions);  // of one block the stride is 0
  for (std::size_t d = 0; d + 1 < form.dimensions; ++d) {
    work.stride[d] = form.dimension[d].stride;
    work.count[d] = static_cast<std::uint64_t>(form.dimension[d].count);
    if (work.count[d] < packing::kNear) work.count_by[d] = packing::divisor(work.count[d]);
  }
  if (form.dimensions > 0) work.stride[3] = form.dimension[form.dimensions - 1].stride;
  work.scale = list.scale;
  work.places = reinterpret_cast<const std::int32_t*>(list.places);
  work.offsets = reinterpret_cast<const std::int64_t*>(list.offsets);
  work.begins = reinterpret_cast<const std::int64_t*>(list.begins);
  work.runs = list.runs;
  if (!form.strided() && form.dimensions > 0) work.list = units(form.list_bytes());
  if (work.list > 0 && work.list < packing::kNear) work.list_by = packing::divisor(work.list);
  return work;
}

// `numbers`: whatever else has to be a multiple, or-ed together.
std::int64_t width_with(const PackWork& work, const CudaRunLists::List& list, std::uint64_t numbers) {
  return work.form->strided() ? pack_width(*work.form, numbers)
                              : pack_width(Form{}, numbers | static_cast<std::uint64_t>(list.width));
}

// A kernel does it then.
void say_no_rows(const Status& why) {
  log::once(log::Level::info, "rows", "layouts are packed by kernels, and not in rows: " + why.text());
}

}  // namespace

Status CudaKind::can_pack(int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= devices_.size())
    return {IST_ERR_ARGUMENT, "packing on cuda device " + std::to_string(device) + " was asked for, but this machine has " +
                                  std::to_string(devices_.size())};
  return kernels_.runs_on(device, "packing");
}

CudaRunLists::Calls CudaKind::run_list_calls() {
  return {[this](CudaContext& context, Bytes size) { return allocate_in(context, size); },
          [this](const Piece& to, const std::byte* from) { return bring(to, from); },
          [this](const Piece& piece) { release_later(piece); },
          [this](const Piece& piece) {
            return Allocated{*this, piece};
          }};
}

// Returns when it is there: once for each layout and context.
Status CudaKind::bring(const Piece& to, const std::byte* from) {
  auto ticket = copy(to, host_piece(from, to.size), Ticket{});
  if (!ticket.ok()) return ticket.status();
  for (;;) {
    const auto over = finished(*ticket);
    if (!over.ok() || *over) return over.status();
    std::this_thread::yield();
  }
}

// The context must be current.
Result<Ticket> CudaKind::start_packing(CudaContext& context, const PackLaunch& launch, const PackWork& given,
                                       const Ticket& after) {
  Result<Route> route = plan(context, CopyDirection::between_devices, after);
  if (!route.ok()) return route.status();
  const std::uint64_t id = route->ticket->id();
  const Range range("isthmus: cuda pack");
  const Status started = start_kernel(
      *route, [&] { return kernels_.launch_blocks(launch.kernel, launch.told, launch.blocks, route->stream); },
      [&] {
        return (given.unpacks ? " for unpacking " : " for packing ") + std::to_string(given.to - given.from) + " bytes of " +
               describe_piece(given.memory);
      });
  if (started.ok()) return under_way(*route->ticket, id);
  give_back(*route->ticket);
  return started;
}

// None where the form has strides alone.
Result<CudaRunLists::List> CudaKind::runs_of(const PackWork& work, CudaContext& context) {
  if (work.form->strided()) return CudaRunLists::List{};
  return run_lists_.of(work.form, context);
}

// The context must be current. Runs are brought to it the first time, which waits for them.
Result<CudaKind::Packer> CudaKind::packer_of(const PackWork& work, CudaContext& context) {
  const auto found = runs_of(work, context);
  if (!found.ok()) return found.status();
  const CudaRunLists::List& list = *found;
  const std::uint64_t numbers = (work.memory.object + work.memory.offset.value + static_cast<std::uint64_t>(work.origin)) |
                                (work.packed.object + work.packed.offset.value) |
                                static_cast<std::uint64_t>(work.from | work.to);
  const std::int64_t width = width_with(work, list, numbers);
  const packing::Work told = work_of(work, width, list);
  const auto kernel = kernels_.find(context, {work.unpacks, !work.form->strided(), !packing::is_near(told), width});
  if (!kernel.ok()) return kernel.status();
  const auto each = packing::at_once(static_cast<std::uint64_t>(width));
  return Packer{*kernel, CudaKernels::blocks_for(told.units, each), told};
}

const char* CudaKind::refuses_mapped(const Piece& memory, std::span<const std::byte> host) {
  const auto context = context_of(memory);
  if (!context.ok()) return "the driver does not know the memory";
  if (!pins_.reached(**context, {})) return "the device maps no host memory for its kernels";
  return pins_.reached(**context, host) ? nullptr : "the ring's slots are not page-locked and mapped for the device";
}

// Between device memory and host memory of the library's, as the device has that mapped. Where it is no longer, by a block.
Result<Ticket> CudaKind::pack_mapped(const PackWork& work, const Ticket& after) {
  Result<CudaContext*> context = context_of(work.memory);
  if (!context.ok()) return context.status();
  const auto found = pins_.reached(**context, {work.packed.address(), work.packed.size.value});
  if (!found) return refused_rows_.by_block(*this, work, after);
  Piece mapped{KindId::cuda, work.memory.device, *found, Offset{}, work.packed.size};
  mapped.ready = true;  // it comes with no queue
  return start_pack(**context, work.in(mapped), after);
}

Result<Ticket> CudaKind::pack_bytes(const PackWork& work, const Ticket& after) {
  const bool over_bus = work.rows && work.memory.kind != work.packed.kind;
  if (!work.rows && work.memory.kind == KindId::cuda && work.packed.kind == KindId::host) {
    IST_TRY(settle_order(after));
    return pack_mapped(work, after);
  }
  if (!over_bus && (work.memory.kind != KindId::cuda || work.packed.kind != KindId::cuda))
    return Status{IST_ERR_ARGUMENT,
                  "the cuda kind cannot pack " + describe_piece(work.memory) + " to " + describe_piece(work.packed)};
  IST_TRY(settle_order(after));
  if (over_bus) return rows_over_bus(work, after);
  Result<CudaContext*> context = context_of_both(work.memory, work.packed);
  if (!context.ok()) return context.status();
  return start_pack(**context, work, after);
}

// The packed side may be another rank's, as long as this context has it mapped.
Result<Ticket> CudaKind::start_pack(CudaContext& context, const PackWork& work, const Ticket& after) {
  if (work.rows) {
    auto rows = start_rows(context, work, after);
    if (rows.ok()) return rows;
    say_no_rows(rows.status());
  }
  const ContextScope scope(api_, context);
  IST_TRY(scope.status());
  auto packer = packer_of(work, context);
  if (!packer.ok()) return packer.status();
  return start_packing(context, {packer->kernel, packer->blocks, &packer->work}, work, after);
}

// The memory on either side may be another rank's, as long as this context has it mapped.
Result<Ticket> CudaKind::start_relay(CudaContext& context, const PackWork& from, const PackWork& to, const Ticket& after) {
  if (to.rows) {
    auto rows = start_rows(context, from, to, after);
    if (rows.ok()) return rows;
    say_no_rows(rows.status());
  }
  const ContextScope scope(api_, context);
  IST_TRY(scope.status());
  auto relayer = relayer_of(from, to, context);
  if (!relayer.ok()) return relayer.status();
  return start_packing(context, {relayer->kernel, relayer->blocks, &relayer->work}, to, after);
}

// The context must be current. Runs are brought to it the first time, which waits for them.
Result<CudaKind::Relayer> CudaKind::relayer_of(const PackWork& from, const PackWork& to, CudaContext& context) {
  CudaRunLists::List lists[2];
  std::int64_t width = 16;
  for (const bool into : {false, true}) {
    const PackWork& side = into ? to : from;
    const auto list = runs_of(side, context);
    if (!list.ok()) return list.status();
    const std::uint64_t numbers = (side.memory.object + side.memory.offset.value + static_cast<std::uint64_t>(side.origin)) |
                                  static_cast<std::uint64_t>(side.from | side.to);
    width = std::min(width, width_with(side, *list, numbers));
    lists[into ? 1 : 0] = *list;
  }
  const packing::Relay told{work_of(from, width, lists[0]), work_of(to, width, lists[1])};
  const bool any = told.from.runs != 0 || told.to.runs != 0 || !packing::is_near(told.from) || !packing::is_near(told.to);
  const auto kernel = kernels_.find(context, PackKernel{.far = any, .width = width, .relays = true});
  if (!kernel.ok()) return kernel.status();
  const auto each = packing::at_once(static_cast<std::uint64_t>(width));
  return Relayer{*kernel, CudaKernels::blocks_for(told.to.units, each), told};
}

}  // namespace ist
