// Whether what a ticket promises has happened.
#include "memory/cuda/cuda_memory.hpp"

namespace ist {

CUresult CudaKind::ask_event(const CudaRecord& ticket) const {
  const DriverScope scope(api_, nullptr);
  return tickets_.ask(ticket);
}

// After the error the owner of the copied memory takes it back, and the copy may still run: this once we wait.
void CudaKind::settle(const CudaTicket& ticket) const {
  if (ticket.lane == nullptr && !ticket.queued) return;
  const ContextScope scope(api_, *ticket.context);
  // A stream of the user's may be gone by now; the event is ours.
  if (!scope.status().ok()) return;
  if (ticket.lane != nullptr)
    api_.cuStreamSynchronize(ticket.lane->stream);
  else
    api_.cuEventSynchronize(ticket.event);
}

// Of a copy in a lane, what is known already may do; else of many in flight the last one may tell of all.
CUresult CudaKind::ask(CudaTicket& ticket) {
  std::optional<CudaRecord> last;
  {
    const std::lock_guard lock(mutex_);
    const CudaTickets::Known known = CudaTickets::known(ticket);
    if (known != CudaTickets::Known::nothing) return known == CudaTickets::Known::over ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    last = CudaTickets::last_behind(ticket);
  }
  if (last) {
    const CUresult result = ask_event(*last);
    const std::lock_guard lock(mutex_);
    if (result == CUDA_SUCCESS) {
      CudaTickets::is_over(*last);
      return CUDA_SUCCESS;
    }
    if (result == CUDA_ERROR_NOT_READY) CudaTickets::is_not_over(*last);
  }
  const CUresult result = ticket.unasked ? ask_queue(ticket) : ask_event(ticket);
  const std::lock_guard lock(mutex_);
  if (result == CUDA_SUCCESS) CudaTickets::is_over(ticket);
  if (result == CUDA_ERROR_NOT_READY) CudaTickets::is_not_over(ticket);
  return result;
}

CUresult CudaKind::look_for(CudaTicket& ticket) {
  CudaSight& sight = ticket.sight;
  if (sight.came()) {
    if (sight.is_word()) {
      const std::lock_guard lock(mutex_);
      CudaTickets::is_over(ticket);
      return CUDA_SUCCESS;
    }
    if (!sight.on_trial()) return CUDA_SUCCESS;
    sight.note();
  } else if (!sight.should_ask()) {
    return CUDA_ERROR_NOT_READY;
  }
  const CUresult result = ask(ticket);
  if (result == CUDA_SUCCESS) sights_.judge(ticket.context->device, sight);
  return result;
}

Result<bool> CudaKind::finished(Ticket& ticket) {
  if (ticket.empty()) return true;
  if (ticket.kind() == this && CudaWorkers::owns(ticket.id())) {
    auto over = workers_.finished(ticket.id());
    if (!over.ok() || *over) ticket.forget();
    return over;
  }
  CudaTicket* found = nullptr;
  if (ticket.kind() == this) {
    const std::lock_guard lock(mutex_);
    found = tickets_.find(ticket.id());
  }
  if (found == nullptr) return Status{IST_ERR_INTERNAL, "the cuda kind was asked about a ticket it never gave"};
  const CUresult result = found->sight.empty() ? ask(*found) : look_for(*found);
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (result != CUDA_SUCCESS) settle(*found);
  const bool was_ours = found->lane != nullptr;
  const char* const call = found->unasked ? "cuStreamQuery" : "cuEventQuery";
  const int device = found->context->device;
  ticket.forget();
  give_back(*found);
  if (result == CUDA_SUCCESS) return true;
  return cuda_error(api_, result,
                    std::string(call) + " after " +
                        (was_ours ? "a copy or reduction" : "work of a stream that is not ours") + " on cuda device " +
                        std::to_string(device));
}

void CudaKind::drop(std::uint64_t id) {
  if (CudaWorkers::owns(id)) return workers_.drop(id);
  const std::lock_guard lock(mutex_);
  if (CudaTicket* ticket = tickets_.find(id)) tickets_.drop(*ticket);
}

}  // namespace ist
