// Streams for libraries that work on cuda memory beside this kind, in the primary context of a device.
#include <algorithm>

#include "memory/cuda/cuda_memory.hpp"
#include "memory/guests.hpp"

namespace ist {

class CudaGuestStream : public GuestStream {
 public:
  CudaGuestStream(CudaKind& kind, CudaContext& context, CUstream stream) : kind_(kind), context_(context), stream_(stream) {
    const std::lock_guard lock(kind_.guests_mutex_);
    kind_.guests_.push_back(this);
  }
  // The driver keeps what work still needs.
  ~CudaGuestStream() override {
    {
      const std::lock_guard lock(kind_.guests_mutex_);
      std::erase(kind_.guests_, this);
    }
    const ContextScope scope(kind_.api_, context_);
    if (scope.status().ok()) kind_.api_.cuStreamDestroy_v2(stream_);
  }
  CudaGuestStream(const CudaGuestStream&) = delete;
  CudaGuestStream& operator=(const CudaGuestStream&) = delete;

  std::uint64_t handle() const override { return reinterpret_cast<std::uint64_t>(stream_); }
  int device() const override { return context_.device; }

  Status follow(const Ticket& work) override {
    if (work.empty()) return {};
    IST_TRY(kind_.settle_order(work));
    if (work.kind() == &kind_ && CudaWorkers::owns(work.id())) return {};
    CUevent event = nullptr;
    if (work.kind() == &kind_) {
      const std::lock_guard lock(kind_.mutex_);
      const CudaTicket* found = kind_.tickets_.find(work.id());
      if (found != nullptr && lives(kind_.api_, *found->context)) event = found->event;
    }
    if (event == nullptr)
      return {IST_ERR_DEVICE, "the work that another library's comes after is not known to the cuda kind any more"};
    const ContextScope scope(kind_.api_, context_);
    IST_TRY(scope.status());
    const CUresult result = kind_.api_.cuStreamWaitEvent(stream_, event, CU_EVENT_WAIT_DEFAULT);
    return result == CUDA_SUCCESS ? Status{} : failed(result, "cuStreamWaitEvent");
  }

  Status within(const std::function<void()>& body) override {
    const ContextScope scope(kind_.api_, context_);
    IST_TRY(scope.status());
    body();
    return {};
  }

  Status launch(std::uint64_t stream, const std::function<void()>& body) override {
    const auto putting = kind_.quiet_.putting();
    (stream == handle() ? unmarked_ : unmarked_in_users_).store(true);
    return within([&] {
      CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
      if (stream != handle() &&
          kind_.api_.cuStreamIsCapturing(reinterpret_cast<CUstream>(stream), &capture) == CUDA_SUCCESS &&
          capture != CU_STREAM_CAPTURE_STATUS_NONE)
        kind_.quiet_.captured();
      body();
    });
  }

  Result<Ticket> mark() override { return mark(handle()); }

  Result<Ticket> mark(std::uint64_t stream) override {
    const ContextScope scope(kind_.api_, context_);
    IST_TRY(scope.status());
    CudaTicket* ticket = nullptr;
    {
      const std::lock_guard lock(kind_.mutex_);
      Result<CudaTicket*> taken = kind_.tickets_.take(context_, nullptr);
      if (!taken.ok()) return taken.status();
      ticket = *taken;
    }
    const std::uint64_t id = ticket->id();
    const CUresult result = kind_.api_.cuEventRecord(ticket->event, reinterpret_cast<CUstream>(stream));
    if (result != CUDA_SUCCESS) {
      kind_.give_back(*ticket);
      return failed(result, "cuEventRecord");
    }
    if (stream != handle()) {
      const std::lock_guard lock(kind_.mutex_);
      marks_.push_back(id);
    }
    (stream == handle() ? unmarked_ : unmarked_in_users_).store(false);
    return Ticket{&kind_, id};
  }

  // Is all over that was launched? Tickets that nobody has any more were seen to be.
  bool over() {
    if (unmarked_.load()) return false;
    const ContextScope scope(kind_.api_, context_);
    if (!scope.status().ok() || kind_.api_.cuStreamQuery(stream_) == CUDA_ERROR_NOT_READY) return false;
    if (unmarked_in_users_.load()) return false;
    const std::lock_guard lock(kind_.mutex_);
    std::erase_if(marks_, [this](std::uint64_t id) {
      const CudaTicket* found = kind_.tickets_.find(id);
      return found == nullptr || kind_.tickets_.ask(*found) != CUDA_ERROR_NOT_READY;
    });
    return marks_.empty();
  }

 private:
  Status failed(CUresult result, const char* call) const {
    return cuda_error(
        kind_.api_, result,
        std::string(call) + " in the stream of another library on cuda device " + std::to_string(context_.device));
  }
  CudaKind& kind_;
  CudaContext& context_;
  CUstream stream_;
  // Something was launched that no mark is behind.
  std::atomic<bool> unmarked_{false}, unmarked_in_users_{false};
  std::vector<std::uint64_t> marks_;  // in users' streams; under the kind's lock
};

bool CudaKind::over() {
  if (!held_.over()) return false;
  const std::lock_guard lock(guests_mutex_);
  return std::all_of(guests_.begin(), guests_.end(), [](CudaGuestStream* one) { return one->over(); });
}

// The runtime API, which such libraries use, knows the primary context of each device and no other.
Status CudaKind::admits(const Piece& piece) {
  const PointerFacts facts = ask_driver(api_, piece.object + piece.offset.value);
  if (facts.result != CUDA_SUCCESS)
    return cuda_error(api_, facts.result, "cuPointerGetAttributes of " + describe_piece(piece));
  if (!facts.known || facts.on_host) return {IST_ERR_KIND, describe_piece(piece) + ": not device memory"};
  if (facts.memory_class == MemoryClass::managed)
    return {IST_ERR_KIND, describe_piece(piece) + ": managed memory, which migrates"};
  const Result<CudaContext*> context = contexts_.find(facts.context, facts.device);
  if (!context.ok()) return context.status();
  if (!(*context)->primary)
    return {IST_ERR_KIND, describe_piece(piece) + ": memory of a context that is not its device's primary one"};
  return {};
}

Result<std::unique_ptr<GuestStream>> CudaKind::open_stream(int device) {
  const Result<CudaContext*> context = contexts_.primary(device);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  CUstream stream = nullptr;
  const CUresult result = api_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuStreamCreate on cuda device " + std::to_string(device));
  return std::unique_ptr<GuestStream>{std::make_unique<CudaGuestStream>(*this, **context, stream)};
}

}  // namespace ist
