// Copies, words and waits in users' streams.
#include "memory/cuda/cuda_memory.hpp"
#include "memory/cuda/stream_protocol.hpp"
#include "memory/cuda/word_protocol.hpp"

namespace ist {
namespace {

CUdeviceptr address_of(const Piece& piece) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(piece.address()));
}

}  // namespace

Status CudaKind::belongs(std::uint64_t stream, const Piece& own) {
  Result<CudaContext*> context = context_of(own);
  if (!context.ok()) return context.status();
  Result<CudaContext*> home = context_of_stream(reinterpret_cast<CUstream>(stream), **context);
  if (!home.ok()) return home.status();
  if (*home == *context) return {};
  return {IST_ERR_ARGUMENT, "stream " + hexadecimal(stream) + " is of cuda device " + std::to_string((*home)->device) +
                                ", and the heap of cuda device " + std::to_string((*context)->device) +
                                (((*home)->device == (*context)->device) ? " in its primary context" : "") +
                                "; give a stream of that"};
}

// `work` with the context of `own` current.
template <class Work>
Status CudaKind::in_stream_of(const Piece& own, const Work& work) {
  Result<CudaContext*> context = context_of(own);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  return work(**context);
}

Status CudaKind::copy_in(std::uint64_t stream, const Piece& own, const Piece& to, const Piece& from) {
  return in_stream_of(own, [&](CudaContext&) -> Status {
    const CUresult result =
        api_.cuMemcpyAsync(address_of(to), address_of(from), to.size.value, reinterpret_cast<CUstream>(stream));
    return result == CUDA_SUCCESS
               ? Status{}
               : cuda_error(api_, result,
                            "cuMemcpyAsync of " + describe_piece(from) + " to " + describe_piece(to) + " in a stream");
  });
}

Status CudaKind::launch_in(CudaContext& context, std::uint64_t stream, OrderKernel which, void* work) {
  const auto kernel = kernels_.find(context, which);
  if (!kernel.ok()) return kernel.status();
  const CUresult result = kernels_.launch(*kernel, work, reinterpret_cast<CUstream>(stream));
  return result == CUDA_SUCCESS ? Status{} : cuda_error(api_, result, "cuLaunchKernel in a stream");
}

bool CudaKind::captures(std::uint64_t stream, const Piece& own) {
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  static_cast<void>(in_stream_of(own, [&](CudaContext&) -> Status {
    static_cast<void>(api_.cuStreamIsCapturing(reinterpret_cast<CUstream>(stream), &found));
    return {};
  }));
  return found != CU_STREAM_CAPTURE_STATUS_NONE;
}

// As what channels put into streams (cuda_quiet.hpp): nothing is let go of while it is there.
Status CudaKind::hold_in(CudaContext& context, std::uint64_t stream, OrderKernel which, void* work) {
  const auto held = quiet_.putting();
  const auto queue = reinterpret_cast<CUstream>(stream);
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (api_.cuStreamIsCapturing(queue, &capture) == CUDA_SUCCESS && capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    quiet_.captured();
    return launch_in(context, stream, which, work);
  }
  forget_some_held();
  CudaTicket* ticket = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Result<CudaTicket*> taken = tickets_.take(context, nullptr);
    if (!taken.ok()) return taken.status();
    ticket = *taken;
  }
  const std::uint64_t id = ticket->id();
  Status launched = launch_in(context, stream, which, work);
  if (launched.ok()) {
    const CUresult result = api_.cuEventRecord(ticket->event, queue);
    if (result != CUDA_SUCCESS) {
      quiet_.captured();  // it is there, and nobody will hear when it is over
      launched = cuda_error(api_, result, "cuEventRecord behind a kernel that holds a stream");
    }
  }
  if (!launched.ok()) {
    give_back(*ticket);
    return launched;
  }
  const std::lock_guard lock(holding_mutex_);
  holding_.emplace_back(this, id);
  return {};
}

// Each call adds one and looks at two, or at one that is not over, which goes behind the others: so there are never more than some times as
// many as are not over, in whichever streams those are.
void CudaKind::forget_some_held() {
  const std::lock_guard lock(holding_mutex_);
  for (int looked = 0; looked < 2 && !holding_.empty(); ++looked) {
    Ticket first = std::move(holding_.front());
    holding_.pop_front();
    const auto over = finished(first);
    if (!over.ok() || *over) continue;
    holding_.push_back(std::move(first));
    return;
  }
}

bool CudaKind::held_are_over() {
  const std::lock_guard lock(holding_mutex_);
  std::erase_if(holding_, [this](Ticket& ticket) {
    const auto over = finished(ticket);
    return !over.ok() || *over;
  });
  return holding_.empty();
}

Status CudaKind::change_in(std::uint64_t stream, const Piece& own, const WordChange& change, const Piece& word) {
  words::Work work{word.address(), nullptr, change, static_cast<std::uint32_t>(word.size.value)};
  return in_stream_of(own, [&](CudaContext& context) { return launch_in(context, stream, OrderKernel::change, &work); });
}

Status CudaKind::wait_in(std::uint64_t stream, const Piece& word, const WordWait& wait) {
  words::Wait work{word.address(), wait, static_cast<std::uint32_t>(word.size.value)};
  return in_stream_of(word, [&](CudaContext& context) { return hold_in(context, stream, OrderKernel::wait, &work); });
}

Status CudaKind::meet_in(std::uint64_t stream, const Piece& own, const ist_team_view& view) {
  words::Meet work = words::meet_of(view);
  return in_stream_of(own, [&](CudaContext& context) { return hold_in(context, stream, OrderKernel::meet, &work); });
}

}  // namespace ist
