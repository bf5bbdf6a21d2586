#include "memory/cuda/cuda_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "base/ranges.hpp"

namespace ist {
namespace {

// The kernel copies it, so that a bad address is an error and no signal.
bool can_be_read(const void* address) {
  char byte = 0;
  iovec to{&byte, 1};
  iovec from{const_cast<void*>(address), 1};
  return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == 1;
}

}  // namespace

CudaKind::CudaKind(const CudaApi& api, std::vector<CUdevice> handles, std::vector<DeviceInfo> devices,
                   const KindOptions& options)
    : api_(api),
      devices_(std::move(devices)),
      contexts_(api_, std::move(handles), [this](CudaContext& context) { pins_.start(context); }),
      sights_(api_, options.check),
      pins_(api_, contexts_, quiet_),
      kernels_(api_),
      run_lists_(run_list_calls()),
      workers_(api_, contexts_, kernels_),
      tickets_(api_, sights_),
      links_(api_, contexts_),
      facts_(api_),
      lending_(api_, contexts_, links_, facts_),
      borrowing_(api_, contexts_, links_, quiet_,
                 [this](const Piece& own) { return own.kind == KindId::cuda ? context_of(own) : context_of_locked(own); }),
      bounces_([this](int device, Bytes size) { return allocate(device, size); },
               [this](const Piece& piece) { static_cast<void>(release(piece)); }),
      channels_(api_, contexts_, kernels_, workers_, links_, lending_, quiet_),
      windows_(api_),
      turns_(api_),
      spaces_(api_, contexts_, links_, lending_),
      held_(api_) {
  quiet_.watch(*this);
  quiet_.watch(channels_);
  pins_.pin_with_first(sights_.page().data(), Bytes{sights_.page().size()});
}

// Channels ended with the world. What is held goes back while there are tickets.
CudaKind::~CudaKind() { refused_rows_.clear(), run_lists_.let_go(true), quiet_.finish(), contexts_.settle(); }

bool CudaKind::copies(KindId to, KindId from) const {
  const auto mine_or_host = [](KindId kind) { return kind == KindId::cuda || kind == KindId::host; };
  return mine_or_host(to) && mine_or_host(from) && (to == KindId::cuda || from == KindId::cuda);
}

std::optional<Recognised> CudaKind::recognise(const void* address) {
  if (address == nullptr) return std::nullopt;
  const PointerFacts facts = ask_driver(api_, reinterpret_cast<std::uint64_t>(address));
  // Where the driver does not answer, as after a fault of a kernel, what the processor cannot read is not the host's: check() asks again, and says why.
  if (facts.result != CUDA_SUCCESS && !can_be_read(address)) return Recognised{KindId::cuda, -1, MemoryClass::unknown, 0};
  if (!facts.known) return std::nullopt;
  Recognised found;
  found.kind = facts.on_host ? KindId::host : KindId::cuda;
  found.device = facts.on_host ? -1 : facts.device;
  found.memory_class = facts.memory_class;
  found.buffer_id = facts.buffer_id;
  return found;
}

Status CudaKind::check(Piece& piece) {
  PointerFacts facts;
  IST_TRY(check_cuda_piece(api_, piece, &facts));
  if (facts.known) facts_.keep(piece, facts);
  return {};
}

// The queue that comes with memory we allocate. The context must be current.
CUresult CudaKind::make_queue(CudaContext& context) {
  const std::lock_guard lock(mutex_);
  return context.queue == nullptr ? api_.cuStreamCreate(&context.queue, CU_STREAM_NON_BLOCKING) : CUDA_SUCCESS;
}

Result<Piece> CudaKind::allocate(int device, Bytes size) {
  Result<CudaContext*> found = contexts_.primary(device);
  if (!found.ok()) return found.status();
  return allocate_in(**found, size);
}

Result<Piece> CudaKind::allocate_beside(const Piece& neighbour, Bytes size) {
  Result<CudaContext*> found = context_of(neighbour);
  if (!found.ok()) return found.status();
  return allocate_in(**found, size);
}

bool CudaKind::together(const Piece& one, const Piece& other) {
  const Result<CudaContext*> first = context_of(one);
  const Result<CudaContext*> second = context_of(other);
  return first.ok() && second.ok() && *first == *second;
}

Result<Piece> CudaKind::allocate_in(CudaContext& context, Bytes size) {
  const std::string place = " on cuda device " + std::to_string(context.device);
  const ContextScope scope(api_, context);
  IST_TRY(scope.status());
  CUresult result = make_queue(context);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuStreamCreate" + place);
  CUdeviceptr address = 0;
  // The driver refuses to allocate nothing, but nothing is a legal size here and needs an address too.
  result = api_.cuMemAlloc_v2(&address, size.value == 0 ? 1 : size.value);
  if (result != CUDA_SUCCESS) {
    return cuda_error(api_, result, "cuMemAlloc of " + std::to_string(size.value) + " bytes" + place);
  }
  const PointerFacts facts = ask_driver(api_, address);
  if (facts.result != CUDA_SUCCESS) {
    api_.cuMemFree_v2(address);
    return cuda_error(api_, facts.result, "cuPointerGetAttributes of new memory" + place);
  }
  const std::lock_guard lock(mutex_);
  allocated_[address] = facts.buffer_id;
  Piece piece;
  piece.kind = KindId::cuda;
  piece.device = context.device;
  piece.object = address;
  piece.size = size;
  piece.queue = reinterpret_cast<std::uint64_t>(context.queue);
  return piece;
}

Status CudaKind::free_allocated(std::uint64_t address, std::uint64_t buffer_id) {
  const PointerFacts facts = ask_driver(api_, address);
  if (facts.result != CUDA_SUCCESS) {
    return cuda_error(api_, facts.result, "cuPointerGetAttributes of memory to be freed at " + hexadecimal(address));
  }
  if (!facts.known || facts.buffer_id != buffer_id) {
    return {IST_ERR_ARGUMENT,
            "the cuda memory at " + hexadecimal(address) + " to be freed was freed by other means already"};
  }
  Result<CudaContext*> context = contexts_.find(facts.context, facts.device);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  const CUresult result = api_.cuMemFree_v2(address);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuMemFree of memory at " + hexadecimal(address));
  return {};
}

void CudaKind::release_later(const Piece& piece) {
  quiet_.later([this, piece] { static_cast<void>(release(piece)); });
}

Status CudaKind::release(const Piece& piece) {
  std::uint64_t buffer_id = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = allocated_.extract(piece.object);
    if (entry.empty()) {
      return {IST_ERR_ARGUMENT, "the cuda memory to be freed, at " + hexadecimal(piece.object) +
                                    ", does not begin where memory was allocated here, or was freed before"};
    }
    buffer_id = entry.mapped();
  }
  Status freed = free_allocated(piece.object, buffer_id);
  if (freed.ok() || freed.code() == IST_ERR_ARGUMENT) return freed;
  const std::lock_guard lock(mutex_);
  allocated_[piece.object] = buffer_id;
  return freed;
}

Result<CudaContext*> CudaKind::context_at(const Piece& piece, CudaContext* home, PointerFacts& facts) {
  if (home != nullptr) return home;  // of memory that is there as long as its range is known
  facts = facts_.of(piece);
  if (facts.result != CUDA_SUCCESS) {
    return cuda_error(api_, facts.result, "cuPointerGetAttributes of " + describe_piece(piece));
  }
  if (!facts.known || facts.on_host) {
    return Status{IST_ERR_DEVICE, "cuPointerGetAttributes of " + describe_piece(piece) +
                                      ": not device memory (any more); was it released too early?"};
  }
  return contexts_.find(facts.context, facts.device);
}

Result<CudaContext*> CudaKind::context_of_locked(const Piece& piece) {
  const std::uint64_t address = piece.object + piece.offset.value;
  const PointerFacts facts = ask_driver(api_, address);
  const bool whole = facts.known && facts.on_host && facts.start <= address && piece.size.value <= facts.size &&
                     address - facts.start <= facts.size - piece.size.value;
  if (!whole) return Status{IST_ERR_DEVICE, describe_piece(piece) + " is not page-locked for cuda devices"};
  if (facts.context != nullptr) return contexts_.find(facts.context, facts.device);
  if (CudaContext* some = contexts_.any(); some != nullptr) return some;
  return Status{IST_ERR_DEVICE, "no cuda context is in use in this process"};
}

CudaContext* CudaKind::context_of_ticket(const Ticket& ticket) {
  if (ticket.kind() != this) return nullptr;
  const std::lock_guard lock(mutex_);
  const CudaTicket* found = tickets_.find(ticket.id());
  return found ? found->context : nullptr;
}

Result<CudaKind::Route> CudaKind::plan(CudaContext& context, CopyDirection direction, const Ticket& after) {
  const std::lock_guard lock(mutex_);
  Route route;
  route.context = &context;
  const CudaTicket* before = after.kind() == this ? tickets_.find(after.id()) : nullptr;
  if (before != nullptr && !lives(api_, *before->context)) {
    return cuda_error(api_, CUDA_ERROR_CONTEXT_IS_DESTROYED, "cuStreamWaitEvent for the work that a copy comes after");
  }
  if (before != nullptr && before->unasked) {
    route.stream = before->queue;
    Result<CudaTicket*> ticket = tickets_.take(context, nullptr);
    if (!ticket.ok()) return ticket.status();
    route.ticket = *ticket;
    route.ticket->queue = route.stream;
    route.ticket->queued = true;
    return route;
  }
  const auto& lanes = context.lanes[static_cast<std::size_t>(direction)];
  const auto is_its_lane = [&](const std::unique_ptr<CudaLane>& lane) { return lane.get() == before->lane; };
  if (before != nullptr && before->lane != nullptr && std::any_of(lanes.begin(), lanes.end(), is_its_lane)) {
    route.lane = before->lane;
  } else {
    if (before != nullptr) route.wait_for = before->event;
    Result<CudaLane*> lane = tickets_.choose_lane(context, direction);
    if (!lane.ok()) return lane.status();
    route.lane = *lane;
  }
  Result<CudaTicket*> ticket = tickets_.take(context, route.lane);
  if (!ticket.ok()) return ticket.status();
  route.ticket = *ticket;
  route.stream = route.lane->stream;
  return route;
}

CUresult CudaKind::enter(const Route& route) const {
  if (route.wait_for == nullptr) return CUDA_SUCCESS;
  return api_.cuStreamWaitEvent(route.stream, route.wait_for, CU_EVENT_WAIT_DEFAULT);
}

CUresult CudaKind::leave(const Route& route, bool moved) const {
  const CUresult result = api_.cuEventRecord(route.ticket->event, route.stream);
  // The work is under way, and after the error its owner may free the memory: no event tells when, so this once we wait.
  if (result != CUDA_SUCCESS && moved) api_.cuStreamSynchronize(route.stream);
  return result;
}

Status CudaKind::start(const Route& route, const Piece& to, const Piece& from) {
  const Range range("isthmus: cuda copy");
  const bool moves = to.size.value > 0;
  const char* call = "cuStreamWaitEvent";
  CUresult result = enter(route);
  if (result == CUDA_SUCCESS && moves) {
    call = turns_.in_rows(route.context->device, to, from) ? "cuMemcpy3DAsync" : "cuMemcpyAsync";
    result = turns_.copy(route.context->device, to, from, route.stream);
  }
  if (result == CUDA_SUCCESS) {
    call = "cuEventRecord";
    result = leave(route, moves);
  }
  if (result == CUDA_SUCCESS) return {};
  return cuda_error(api_, result,
                    std::string(call) + " for a copy of " + describe_piece(from) + " to " + describe_piece(to));
}

Result<Ticket> CudaKind::copy(const Piece& to, const Piece& from, const Ticket& after) {
  if (to.size != from.size || !copies(to.kind, from.kind)) {
    return Status{IST_ERR_ARGUMENT, "the cuda kind cannot copy " + describe_piece(from) + " to " + describe_piece(to)};
  }
  IST_TRY(settle_order(after));
  CudaContext *const home_to = spaces_.home_of(to), *const home_from = spaces_.home_of(from);
  const bool in_space = home_to != nullptr || home_from != nullptr;
  // What a stream still has to do the driver orders better.
  if (!in_space && (after.empty() || CudaWorkers::owns(after.id())))
    if (const auto order = workers_.copy(to, from)) return Ticket{this, *order};
  CopyDirection direction = CopyDirection::between_devices;
  if (to.kind == KindId::host) direction = CopyDirection::out_of_device;
  if (from.kind == KindId::host) direction = CopyDirection::into_device;
  CudaContext* context = nullptr;
  PointerFacts memory;
  if (to.size.value == 0) {
    // Nothing moves, but whoever comes after this ticket still comes after `after`.
    context = context_of_ticket(after);
    if (context == nullptr) return Ticket{};
  } else {
    const bool by_source = from.kind == KindId::cuda && home_to == nullptr;
    Result<CudaContext*> found = context_at(by_source ? from : to, by_source ? home_from : home_to, memory);
    if (!found.ok()) return found.status();
    context = *found;
  }
  if (!in_space && copy_by_window(*context, memory, direction, to, from, after)) return Ticket{};
  if (direction == CopyDirection::into_device && after.empty() && memory.memory_class != MemoryClass::managed)
    if (auto written = copy_as_values(*context, to, from)) return std::move(*written);
  return copy_in(*context, direction, to, from, after);
}

bool CudaKind::copy_by_window(CudaContext& context, const PointerFacts& memory, CopyDirection direction, const Piece& to,
                              const Piece& from, const Ticket& after) {
  if (!windows_.serves(direction, to.size)) return false;
  if (after.kind() == this) {
    CudaTicket* before = nullptr;
    {
      const std::lock_guard lock(mutex_);
      before = tickets_.find(after.id());
    }
    if (before == nullptr || ask(*before) != CUDA_SUCCESS) return false;
  }
  const Range range("isthmus: cuda window");
  return direction == CopyDirection::into_device
             ? windows_.copy_into(context, memory, to.object + to.offset.value, from.address(), to.size)
             : windows_.copy_out(context, memory, from.object + from.offset.value, to.address(), to.size);
}

// Null: the driver, or what these bytes are, do not allow it, and they are to be copied; what of them was written is over.
std::optional<Ticket> CudaKind::copy_as_values(CudaContext& context, const Piece& to, const Piece& from) {
  if (!sights_.writes(context.device, to)) return std::nullopt;
  const auto page = pins_.reached(context, sights_.page());
  const auto word = page ? sights_.take_word() : std::nullopt;
  if (!word) return std::nullopt;
  const Range range("isthmus: cuda copy");
  const ContextScope scope(api_, context);
  Result<Route> route =
      scope.status().ok() ? plan(context, CopyDirection::into_device, Ticket{}) : Result<Route>{scope.status()};
  if (!route.ok()) {
    sights_.give_back(*word);
    return std::nullopt;
  }
  CudaTicket& ticket = *route->ticket;
  ticket.word = word;
  CudaSight sight;
  if (sights_.write(context.device, route->stream, to, from.address(), *word, *page, sight) == CUDA_SUCCESS &&
      leave(*route, true) == CUDA_SUCCESS) {
    ticket.sight = sight;
    workers_.wake(context, to.size);
    return under_way(ticket, ticket.id());
  }
  give_back(ticket);
  return std::nullopt;
}

Result<Ticket> CudaKind::copy_in(CudaContext& context, CopyDirection direction, const Piece& to, const Piece& from,
                                 const Ticket& after) {
  IST_TRY(settle_order(after));
  IST_TRY(order_across(context, after));
  const ContextScope scope(api_, context);
  IST_TRY(scope.status());
  Result<Route> route = plan(context, direction, after);
  if (!route.ok()) return route.status();
  const std::uint64_t id = route->ticket->id();
  const CudaSight sight = direction == CopyDirection::out_of_device ? sights_.expect(context.device, to, from) : CudaSight{};
  const Status started = start(*route, to, from);
  if (started.ok()) {
    route->ticket->sight = sight;
    if (direction != CopyDirection::between_devices) workers_.wake(context, to.size);
    return under_way(*route->ticket, id);
  }
  give_back(*route->ticket);
  return started;
}

Ticket CudaKind::under_way(CudaTicket& ticket, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  CudaTickets::recorded(ticket);
  return {this, id};
}

void CudaKind::give_back(CudaTicket& ticket) {
  const std::lock_guard lock(mutex_);
  tickets_.recycle(ticket);
}

}  // namespace ist
