// The user's streams: is their work over, and how does a copy come after it?
#include "memory/cuda/cuda_memory.hpp"

namespace ist {
namespace {

// The legacy default stream waits for others, so that the driver says nothing of it while one of those is being captured.
Status stream_error(const CudaApi& api, CUresult result, const char* call, const Piece& piece) {
  Status why =
      cuda_error(api, result, std::string(call) + " of stream " + hexadecimal(piece.queue) + " of " + describe_piece(piece));
  if (!of_a_capture(result)) return why;
  return {IST_ERR_NOT_CAPTURABLE, why.text() + "; a message cannot wait for it: end the capture first"};
}

}  // namespace

// Special handles name a stream of whatever context is current, so theirs is the buffer's own. An event must come from the
// context of the stream it is recorded in, which need not be the buffer's.
Result<CudaContext*> CudaKind::context_of_stream(CUstream stream, CudaContext& fallback) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return &fallback;
  CUcontext handle = nullptr;
  if (api_.cuStreamGetCtx(stream, &handle) != CUDA_SUCCESS || handle == fallback.handle) return &fallback;
  CUdevice device = -1;
  const DriverScope scope(api_, handle);
  IST_TRY(scope.status());
  const CUresult result = api_.cuCtxGetDevice(&device);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuCtxGetDevice of the context of a buffer's stream");
  return contexts_.find(handle, contexts_.ordinal(device));
}

Result<CudaKind::Queue> CudaKind::queue_of(const Piece& piece) {
  Result<CudaContext*> own = context_of(piece);
  if (!own.ok()) return own.status();
  const auto stream = reinterpret_cast<CUstream>(piece.queue);
  Result<CudaContext*> home = context_of_stream(stream, **own);
  if (!home.ok()) return home.status();
  return Queue{*home, stream, *home == *own};
}

// Before anything is asked of it, because a query would make the capture invalid.
Status CudaKind::must_not_be_captured(const Queue& queue, const Piece& piece) const {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = api_.cuStreamIsCapturing(queue.stream, &capture);
  if (result != CUDA_SUCCESS) return stream_error(api_, result, "cuStreamIsCapturing", piece);
  if (capture == CU_STREAM_CAPTURE_STATUS_NONE) return {};
  return {IST_ERR_NOT_CAPTURABLE,
          "stream " + hexadecimal(piece.queue) + " of " + describe_piece(piece) +
              " is being captured into a graph; a message cannot wait for it: end the capture first"};
}

Result<Ticket> CudaKind::ready(const Piece& piece) {
  if (piece.size.value == 0) return Ticket{};
  const Result<Queue> queue = queue_of(piece);
  if (!queue.ok()) return queue.status();
  const ContextScope scope(api_, *queue->context);
  IST_TRY(scope.status());
  IST_TRY(must_not_be_captured(*queue, piece));
  return ask_for(*queue, piece);
}

// The context must be current.
Result<Ticket> CudaKind::ask_for(const Queue& queue, const Piece& piece) {
  const CUresult result = api_.cuStreamQuery(queue.stream);
  if (result == CUDA_SUCCESS) return Ticket{};
  if (result != CUDA_ERROR_NOT_READY) return stream_error(api_, result, "cuStreamQuery", piece);
  return record(queue, piece);
}

// The context must be current.
Result<Ticket> CudaKind::record(const Queue& queue, const Piece& piece) {
  CudaTicket* ticket = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Result<CudaTicket*> taken = tickets_.take(*queue.context, nullptr);
    if (!taken.ok()) return taken.status();
    ticket = *taken;
  }
  const std::uint64_t id = ticket->id();
  const CUresult result = api_.cuEventRecord(ticket->event, queue.stream);
  if (result == CUDA_SUCCESS) return Ticket{this, id};
  give_back(*ticket);
  return stream_error(api_, result, "cuEventRecord", piece);
}

// Not for CU_STREAM_PER_THREAD: another thread may start the copy.
Result<Ticket> CudaKind::in_order(const Piece& piece) {
  if (piece.size.value == 0) return Ticket{};
  // A worker is in no queue: it needs to know that this one is idle, which takes less time than a copy in it.
  if (workers_.takes(piece) && workers_.runs(piece.device)) return ready(piece);
  const Result<Queue> queue = queue_of(piece);
  if (!queue.ok()) return queue.status();
  const ContextScope scope(api_, *queue->context);
  IST_TRY(scope.status());
  IST_TRY(must_not_be_captured(*queue, piece));
  if (!queue->own || queue->stream == CU_STREAM_PER_THREAD) return ask_for(*queue, piece);
  const std::lock_guard lock(mutex_);
  Result<CudaTicket*> taken = tickets_.take(*queue->context, nullptr);
  if (!taken.ok()) return taken.status();
  (*taken)->unasked = true;
  (*taken)->queue = queue->stream;
  return Ticket{this, (*taken)->id()};
}

bool CudaKind::goes_into_queue(const Ticket& ticket) {
  if (ticket.kind() != this || CudaWorkers::owns(ticket.id())) return false;
  const std::lock_guard lock(mutex_);
  const CudaTicket* const found = tickets_.find(ticket.id());
  return found != nullptr && found->unasked;
}

// Somebody wants to know after all, or another context is to wait for it.
Status CudaKind::record_unasked(CudaTicket& ticket) {
  const ContextScope scope(api_, *ticket.context);
  IST_TRY(scope.status());
  const CUresult result = api_.cuEventRecord(ticket.event, ticket.queue);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuEventRecord in the stream of a buffer that is sent");
  ticket.unasked = false;
  return {};
}

// A copy goes into the user's own queue only in the context of that.
Status CudaKind::order_across(const CudaContext& context, const Ticket& after) {
  CudaTicket* before = nullptr;
  if (after.kind() == this) {
    const std::lock_guard lock(mutex_);
    before = tickets_.find(after.id());
  }
  return before != nullptr && before->unasked && before->context != &context ? record_unasked(*before) : Status{};
}

// Where it still works, its event will tell when this work is over: later work of the queue is nobody's concern.
CUresult CudaKind::ask_queue(CudaTicket& ticket) {
  CUresult result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  {
    const ContextScope scope(api_, *ticket.context);
    if (scope.status().ok()) result = api_.cuStreamQuery(ticket.queue);
  }
  if (result == CUDA_ERROR_NOT_READY && !record_unasked(ticket).ok()) return CUDA_ERROR_UNKNOWN;
  return result;
}

}  // namespace ist
