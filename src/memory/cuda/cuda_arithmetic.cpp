// Reductions on the device: ordered and promised like copies.
#include "memory/cuda/cuda_memory.hpp"

namespace ist {

struct CudaKind::Launch {
  CUfunction kernel = nullptr;
  const Operands& operands;
  const Piece& into;
  const Piece& with;
  Bytes size;  // of an element
};

Status CudaKind::can(Reduction reduction, ist_type type, int device) {
  IST_TRY(applicable(reduction, type));
  if (device < 0 || static_cast<std::size_t>(device) >= devices_.size())
    return {IST_ERR_ARGUMENT, "a reduction on cuda device " + std::to_string(device) +
                                  " was asked for, but this machine has " + std::to_string(devices_.size())};
  return kernels_.runs_on(device);
}

// A kernel reaches what belongs to its context, and managed memory.
Result<CudaContext*> CudaKind::context_of_both(const Piece& into, const Piece& with) {
  Result<CudaContext*> home = context_of(into);
  if (!home.ok()) return home.status();
  Result<CudaContext*> other = context_of(with);
  if (!other.ok()) return other.status();
  const auto managed = [this](const Piece& piece) {
    return ask_driver(api_, piece.object + piece.offset.value).memory_class == MemoryClass::managed;
  };
  if (*home == *other || managed(with)) return *home;
  if (managed(into)) return *other;
  return Status{IST_ERR_KIND, "a kernel on " + describe_piece(with) + " on cuda device " + std::to_string((*other)->device) +
                                  " and " + describe_piece(into) + " on device " + std::to_string((*home)->device) +
                                  " was asked for, which belong to two contexts; copy one into the other's first"};
}

Status CudaKind::start(const Route& route, const Launch& launch) {
  const auto address = [](const Piece& piece) { return piece.object + piece.offset.value; };
  return start_kernel(
      route,
      [&] {
        return kernels_.launch(*route.context, launch.kernel, address(launch.into), address(launch.with),
                               launch.operands.count, launch.size, route.stream);
      },
      [&] { return " for a reduction of " + describe_piece(launch.with) + " into " + describe_piece(launch.into); });
}

Result<Ticket> CudaKind::combine(Reduction reduction, ist_type type, const Piece& into, const Piece& with,
                                 const Ticket& after) {
  if (into.kind != KindId::cuda || with.kind != KindId::cuda)
    return Status{IST_ERR_ARGUMENT,
                  "the cuda kind cannot combine " + describe_piece(with) + " with " + describe_piece(into)};
  const Result<Operands> operands = operands_of(reduction, type, into, with, true);
  if (!operands.ok()) return operands.status();
  if (operands->count == 0) return copy(into, with, after);
  IST_TRY(settle_order(after));
  Result<CudaContext*> context = context_of_both(into, with);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  const Result<CUfunction> kernel = kernels_.find(**context, reduction, operands->element);
  if (!kernel.ok()) return kernel.status();
  Result<Route> route = plan(**context, CopyDirection::between_devices, after);
  if (!route.ok()) return route.status();
  const std::uint64_t id = route->ticket->id();
  const Status started = start(*route, Launch{*kernel, *operands, into, with, size_of(type)});
  if (started.ok()) return under_way(*route->ticket, id);
  give_back(*route->ticket);
  return started;
}

}  // namespace ist
