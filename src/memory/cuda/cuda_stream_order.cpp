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
  const Result<CudaContext*> context = context_of(own);
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
  const Result<CudaContext*> context = context_of(own);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  return work(**context);
}

// With the stream's context current.
Status CudaKind::copy_there(std::uint64_t stream, const Piece& to, const Piece& from) const {
  const CUresult result =
      api_.cuMemcpyAsync(address_of(to), address_of(from), to.size.value, reinterpret_cast<CUstream>(stream));
  return result == CUDA_SUCCESS
             ? Status{}
             : cuda_error(api_, result,
                          "cuMemcpyAsync of " + describe_piece(from) + " to " + describe_piece(to) + " in a stream");
}

Status CudaKind::copy_in(std::uint64_t stream, const Piece& own, const Piece& to, const Piece& from) {
  return in_stream_of(own, [&](CudaContext&) { return copy_there(stream, to, from); });
}

Status CudaKind::launch_in(CudaContext& context, std::uint64_t stream, OrderKernel which, void* work, unsigned threads) {
  const auto kernel = kernels_.find(context, which);
  if (!kernel.ok()) return kernel.status();
  const CUresult result = kernels_.launch(*kernel, work, reinterpret_cast<CUstream>(stream), threads);
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

struct CudaKind::Holding {
  OrderKernel kernel;
  void* work;
  std::uint64_t** over;  // of the work: where it counts itself
  unsigned threads;
};

// As what channels put into streams (cuda_quiet.hpp): nothing is let go of while it is there.
Status CudaKind::hold_in(CudaContext& context, std::uint64_t stream, const Holding& one) {
  const auto putting = quiet_.putting();
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (api_.cuStreamIsCapturing(reinterpret_cast<CUstream>(stream), &capture) == CUDA_SUCCESS &&
      capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    quiet_.captured();  // a graph is launched as often as anybody likes, and counts nothing
    return launch_in(context, stream, one.kernel, one.work, one.threads);
  }
  const auto counted = held_.begin(context);
  if (!counted.ok()) return counted.status();
  *one.over = *counted;
  Status launched = launch_in(context, stream, one.kernel, one.work, one.threads);
  if (!launched.ok()) held_.never(context);
  return launched;
}

// Not of managed memory, which the driver moves as it likes, and not of another context's, which a kernel of this one may not touch.
bool CudaKind::loads_from(const CudaContext& context, const Piece& from) {
  if (from.kind != KindId::cuda) return false;
  PointerFacts facts;
  const Result<CudaContext*> of_source = context_at(from, spaces_.home_of(from), facts);
  return of_source.ok() && *of_source == &context && facts.memory_class != MemoryClass::managed;
}

// As CudaKind::write_behind(). What a captured stream may take of it depends on the driver, and an attempt would end the capture.
bool CudaKind::write_in(std::uint64_t stream, const Piece& word, std::uint64_t value) const {
  const auto queue = reinterpret_cast<CUstream>(stream);
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  return api_.cuStreamWriteValue64_v2 != nullptr && api_.cuStreamIsCapturing(queue, &capture) == CUDA_SUCCESS &&
         capture == CU_STREAM_CAPTURE_STATUS_NONE &&
         api_.cuStreamWriteValue64_v2(queue, address_of(word), value, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
}

Status CudaKind::put_signal_in(std::uint64_t stream, const Piece& own, const StreamPut& put) {
  return in_stream_of(own, [&](CudaContext& context) -> Status {
    words::PutSignal work;
    work.word = reinterpret_cast<std::uint64_t*>(put.word.address());
    work.value = put.value;
    work.adds = put.adds;
    const bool some = put.to.size != Bytes{};
    if (some && put.stores && loads_from(context, put.from)) {
      work.to = put.to.address();
      work.from = put.from.address();
      work.bytes = put.to.size.value;
    } else if (some) {
      IST_TRY(copy_there(stream, put.to, put.from));
      if (!put.adds && write_in(stream, put.word, put.value)) return {};
    }
    return launch_in(context, stream, OrderKernel::put_signal, &work, words::threads_for(work));
  });
}

Status CudaKind::wait_in(std::uint64_t stream, const Piece& word, const WordWait& wait) {
  words::Wait work{word.address(), wait, static_cast<std::uint32_t>(word.size.value), nullptr};
  return in_stream_of(word, [&](CudaContext& context) {
    return hold_in(context, stream, {OrderKernel::wait, &work, &work.over, 1});
  });
}

Status CudaKind::meet_in(std::uint64_t stream, const Piece& own, const ist_team_view& view) {
  words::Meet work = words::meet_of(view);
  return in_stream_of(own, [&](CudaContext& context) {
    return hold_in(context, stream, {OrderKernel::meet, &work, &work.over, words::kMeetThreads});
  });
}

}  // namespace ist
