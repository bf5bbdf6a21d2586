// Words that the device changes as a whole: ordered and promised like copies.
#include <algorithm>
#include <array>
#include <optional>

#include "memory/cuda/cuda_memory.hpp"
#include "memory/cuda/word_protocol.hpp"

namespace ist {

void CudaKind::load_words(int device) {
  const Result<CudaContext*> context = contexts_.primary(device);
  if (!context.ok()) return;
  const ContextScope scope(api_, **context);
  if (!scope.status().ok()) return;
  // Whoever needs it tells why it is not there.
  for (std::size_t kernel = 0; kernel < kOrderKernels; ++kernel)
    if (!kernels_.find(**context, static_cast<OrderKernel>(kernel)).ok()) return;
  static_cast<void>(held_.prepare(**context));
}

#if CUDA_VERSION >= 13000
namespace {

// What kernels ask their proxy for, of words of both sizes; nothing where the driver does not answer.
std::optional<bool> changes_host_words(const CudaApi& api, CUdevice device) {
  constexpr std::array kAsked{CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_AND,      CU_ATOMIC_OPERATION_OR,
                              CU_ATOMIC_OPERATION_XOR,         CU_ATOMIC_OPERATION_EXCHANGE, CU_ATOMIC_OPERATION_CAS};
  constexpr unsigned kBoth = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
  std::array<unsigned, kAsked.size()> can{};
  if (api.cuDeviceGetHostAtomicCapabilities == nullptr ||
      api.cuDeviceGetHostAtomicCapabilities(can.data(), kAsked.data(), kAsked.size(), device) != CUDA_SUCCESS)
    return std::nullopt;
  return std::all_of(can.begin(), can.end(), [](unsigned each) { return (each & kBoth) == kBoth; });
}

}  // namespace
#endif

// One operation after the other, by drivers for CUDA 13 and later; older ones say it of all together.
bool CudaKind::reaches_processors_words(int device) const {
#if CUDA_VERSION >= 13000
  if (const auto all = changes_host_words(api_, contexts_.device(device))) return *all;
#endif
  int native = 0;
  return api_.cuDeviceGetAttribute != nullptr &&
         api_.cuDeviceGetAttribute(&native, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, contexts_.device(device)) ==
             CUDA_SUCCESS &&
         native != 0;
}

Result<Ticket> CudaKind::change(const WordChange& change, const Piece& word, const Piece& before) {
  if (word.kind != KindId::cuda)
    return Status{IST_ERR_ARGUMENT, "the cuda kind cannot change a word of " + describe_piece(word)};
  Result<CudaContext*> context = context_of(word);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  const auto kernel = kernels_.find(**context, OrderKernel::change);
  if (!kernel.ok()) return kernel.status();
  Result<Route> route = plan(**context, CopyDirection::between_devices, Ticket{});
  if (!route.ok()) return route.status();
  const std::uint64_t id = route->ticket->id();
  words::Work work{word.address(), reinterpret_cast<std::uint64_t*>(before.address()), change,
                   static_cast<std::uint32_t>(word.size.value)};
  const Status started = start_kernel(
      *route, [&] { return kernels_.launch(*kernel, &work, route->stream); },
      [&] { return " for a change of a word of " + describe_piece(word); });
  if (started.ok()) return under_way(*route->ticket, id);
  give_back(*route->ticket);
  return started;
}

CopyDirection CudaKind::direction_of(const CudaContext& context, const Ticket& copy) {
  const std::lock_guard lock(mutex_);
  const CudaTicket* const found = copy.kind() == this ? tickets_.find(copy.id()) : nullptr;
  const auto is_its_lane = [&](const std::unique_ptr<CudaLane>& lane) { return lane.get() == found->lane; };
  for (std::size_t direction = 0; found != nullptr && direction < context.lanes.size(); ++direction)
    if (std::any_of(context.lanes[direction].begin(), context.lanes[direction].end(), is_its_lane))
      return static_cast<CopyDirection>(direction);
  return CopyDirection::between_devices;
}

// A word of 8 bytes is stored by the stream itself: no multiprocessor has to be free for it.
Result<Ticket> CudaKind::change_behind(const WordChange& change, const Piece& word, const Ticket& after) {
  Result<CudaContext*> context = context_of(word);
  if (!context.ok()) return context.status();
  IST_TRY(settle_order(after));
  IST_TRY(order_across(**context, after));
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  if (change.what == WordChange::What::store) return write_behind(**context, word, change.operand, after);
  const auto kernel = kernels_.find(**context, OrderKernel::change);
  if (!kernel.ok()) return kernel.status();
  Result<Route> route = plan(**context, direction_of(**context, after), after);
  if (!route.ok()) return route.status();
  const std::uint64_t id = route->ticket->id();
  words::Work work{word.address(), nullptr, change, static_cast<std::uint32_t>(word.size.value)};
  const Status started = start_kernel(
      *route, [&] { return kernels_.launch(*kernel, &work, route->stream); },
      [&] { return " for a change of a word of " + describe_piece(word) + " behind a copy"; });
  if (started.ok()) return under_way(*route->ticket, id);
  give_back(*route->ticket);
  return started;
}

// Drivers and devices without such a call say so at once, and nothing is in the stream but a wait. The context must be current.
Result<Ticket> CudaKind::write_behind(CudaContext& context, const Piece& word, std::uint64_t value, const Ticket& after) {
  if (api_.cuStreamWriteValue64_v2 == nullptr || word.size != Bytes{sizeof value}) return Ticket{};
  Result<Route> route = plan(context, direction_of(context, after), after);
  if (!route.ok()) return route.status();
  const std::uint64_t id = route->ticket->id();
  const auto address = reinterpret_cast<CUdeviceptr>(word.address());
  CUresult result = enter(*route);
  if (result == CUDA_SUCCESS)
    result = api_.cuStreamWriteValue64_v2(route->stream, address, value, CU_STREAM_WRITE_VALUE_DEFAULT);
  if (result != CUDA_SUCCESS) {
    give_back(*route->ticket);
    return Ticket{};
  }
  result = leave(*route, true);
  if (result == CUDA_SUCCESS) return under_way(*route->ticket, id);
  give_back(*route->ticket);
  return cuda_error(api_, result, "cuEventRecord behind the store of a word of " + describe_piece(word));
}

}  // namespace ist
