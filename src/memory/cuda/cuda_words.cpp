// Words that the device changes as a whole: ordered and promised like copies.
#include "memory/cuda/cuda_memory.hpp"
#include "memory/cuda/word_protocol.hpp"

namespace ist {

void CudaKind::load_words(int device) {
  const Result<CudaContext*> context = contexts_.primary(device);
  if (!context.ok()) return;
  const ContextScope scope(api_, **context);
  if (!scope.status().ok()) return;
  for (std::size_t kernel = 0; kernel < kOrderKernels; ++kernel)
    if (!kernels_.find(**context, static_cast<OrderKernel>(kernel)).ok()) return;  // whoever needs it tells why
}

bool CudaKind::reaches_processors_words(int device) const {
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

}  // namespace ist
