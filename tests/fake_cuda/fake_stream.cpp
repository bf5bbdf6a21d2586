// Streams and events: queues with a thread each, and places in them.
#include <unistd.h>

#include <algorithm>
#include <random>
#include <type_traits>

#include "fake_world.hpp"

using fake::current;
using fake::Lock;
using fake::world;

namespace fake {

namespace {

bool reached(const FakePoint& point) { return point.stream == nullptr || point.stream->done >= point.position; }

void run(CUstream stream) {
  World& w = world();
  std::minstd_rand random(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(stream) >> 4));
  Lock lock(w.lock);
  while (true) {
    stream->wake.wait(lock, [&] { return !stream->queue.empty() || stream->destroyed; });
    if (stream->queue.empty()) break;
    FakeOperation& operation = stream->queue.front();
    const auto may_start = [&] { return std::all_of(operation.after.begin(), operation.after.end(), reached); };
    w.changed.wait(lock, may_start);
    const unsigned delay = w.delay_us > 0 && random() % 4 == 0 ? static_cast<unsigned>(random() % w.delay_us) : 0;
    const bool lost = stream->context->lost != CUDA_SUCCESS;
    if (operation.work || delay > 0) {
      lock.unlock();
      if (delay > 0) ::usleep(delay);
      if (operation.work && !lost) operation.work();
      if (operation.skipped && lost) operation.skipped();
      lock.lock();
    }
    stream->queue.pop_front();
    ++stream->done;
    w.changed.notify_all();
  }
  stream->running = false;
}

}  // namespace

CUstream make_stream(CUcontext context, bool blocking) {
  auto* stream = new CUstream_st;
  stream->context = context;
  stream->blocking = blocking;
  context->streams.push_back(stream);
  return stream;
}

CUresult resolve(CUstream handle, CUstream& stream) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    CUcontext context = current();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    stream = context->legacy;
    if (handle != CU_STREAM_PER_THREAD) return context->lost;
    CUstream& own = context->per_thread[std::this_thread::get_id()];
    if (own == nullptr) own = make_stream(context, true);
    stream = own;
    return context->lost;
  }
  stream = handle;
  if (handle->context->destroyed) misused("a stream call");
  return handle->destroyed ? CUDA_ERROR_INVALID_HANDLE : handle->context->lost;
}

void enqueue(CUstream stream, std::function<void()> work, std::vector<FakePoint> after, std::function<void()> skipped) {
  if (stream->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    if (work) stream->captured.push_back(std::move(work));
    return;
  }
  if (stream->legacy) {
    for (CUstream other : stream->context->streams) {
      if (other->blocking) after.push_back({other, other->last});
    }
  } else if (stream->blocking) {
    after.push_back({stream->context->legacy, stream->context->legacy->last});
  }
  stream->queue.push_back({std::move(work), std::move(after), std::move(skipped)});
  ++stream->last;
  if (!stream->running) {
    stream->running = true;
    std::thread(run, stream).detach();
  }
  stream->wake.notify_one();
}

// The legacy stream is busy while any stream it is ordered with is.
bool idle(CUstream stream) {
  if (stream->done != stream->last) return false;
  if (!stream->legacy) return true;
  const auto& all = stream->context->streams;
  return std::none_of(all.begin(), all.end(), [](CUstream other) { return other->blocking && other->done != other->last; });
}

void wait_for(Lock& lock, CUstream stream) {
  const std::uint64_t last = stream->last;
  world().changed.wait(lock, [&] { return stream->done >= last; });
}

void wait_for_all(Lock& lock) {
  std::vector<CUstream> all;
  for (CUcontext context : world().contexts) all.insert(all.end(), context->streams.begin(), context->streams.end());
  for (CUstream stream : all) wait_for(lock, stream);
}

void wait_for_device(Lock& lock) {
  ++world().held_up;
  wait_for_all(lock);
  --world().held_up;
  world().changed.notify_all();
}

}  // namespace fake

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  FAKE_ENTER_UNSAFE(cuStreamCreate);
  const Lock lock(world().lock);
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  *stream = fake::make_stream(current(), (flags & CU_STREAM_NON_BLOCKING) == 0);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  FAKE_ENTER(cuCtxGetStreamPriorityRange);
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  FAKE_ENTER_UNSAFE(cuStreamCreateWithPriority);
  const Lock lock(world().lock);
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  *stream = fake::make_stream(current(), (flags & CU_STREAM_NON_BLOCKING) == 0);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  FAKE_ENTER(cuStreamDestroy_v2);
  const Lock lock(world().lock);
  if (stream->context->destroyed) fake::misused("cuStreamDestroy");
  if (stream->destroyed) return CUDA_ERROR_INVALID_HANDLE;
  stream->destroyed = true;
  stream->wake.notify_all();
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
  FAKE_ENTER_UNSAFE(cuStreamQuery);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  if (stream->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return fake::idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream handle) {
  FAKE_ENTER_UNSAFE(cuStreamSynchronize);
  Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  fake::note("cuStreamSynchronize", stream);
  if (stream->legacy) {
    for (CUstream other : std::vector<CUstream>(stream->context->streams)) {
      if (other->blocking) fake::wait_for(lock, other);
    }
  }
  fake::wait_for(lock, stream);
  return stream->context->lost;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  FAKE_ENTER(cuStreamGetCtx);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  const CUresult result = fake::resolve(handle, stream);
  if (result != CUDA_SUCCESS && stream == nullptr) return result;
  *context = stream->context;
  return result;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  FAKE_ENTER(cuStreamWaitEvent);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  if (event->context->destroyed) fake::misused("cuStreamWaitEvent");
  if (event->destroyed) return CUDA_ERROR_INVALID_HANDLE;
  fake::enqueue(stream, {}, {event->point});
  return CUDA_SUCCESS;
}

namespace {

template <class Word>
CUresult wait_value(CUstream handle, CUdeviceptr address, Word value, unsigned flags) {
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  const auto* const word = reinterpret_cast<const Word*>(fake::place(address, sizeof(Word)));
  if (word == nullptr || address % sizeof *word != 0 || flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_INVALID_VALUE;
  fake::enqueue(stream, [word, value] {
    while (static_cast<std::make_signed_t<Word>>(__atomic_load_n(word, __ATOMIC_ACQUIRE) - value) < 0) ::usleep(20);
  });
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamWaitValue32_v2(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  FAKE_ENTER(cuStreamWaitValue32_v2);
  return wait_value(handle, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  FAKE_ENTER(cuStreamWaitValue64_v2);
  return wait_value(handle, address, value, flags);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* argument) {
  FAKE_ENTER(cuLaunchHostFunc);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  fake::enqueue(stream, [function, argument] { function(argument); });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  FAKE_ENTER(cuEventCreate);
  const Lock lock(world().lock);
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  *event = new CUevent_st;
  (*event)->context = current();
  world().events.push_back(*event);
  ++world().live_events;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  FAKE_ENTER(cuEventDestroy_v2);
  const Lock lock(world().lock);
  if (event->context->destroyed) fake::misused("cuEventDestroy");
  if (event->destroyed) return CUDA_ERROR_INVALID_HANDLE;
  event->destroyed = true;
  --world().live_events;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
  FAKE_ENTER(cuEventRecord);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  if (event->destroyed || event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  fake::enqueue(stream, {});
  event->point = {stream, stream->last};
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
  FAKE_ENTER_UNSAFE(cuEventQuery);
  const Lock lock(world().lock);
  if (event->destroyed) return CUDA_ERROR_INVALID_HANDLE;
  if (event->context->destroyed) fake::misused("cuEventQuery");
  if (event->context->lost != CUDA_SUCCESS) return event->context->lost;
  fake::note("cuEventQuery", event);
  return fake::reached(event->point) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  FAKE_ENTER_UNSAFE(cuEventSynchronize);
  Lock lock(world().lock);
  if (event->destroyed) return CUDA_ERROR_INVALID_HANDLE;
  fake::note("cuEventSynchronize", event);
  world().changed.wait(lock, [&] { return fake::reached(event->point); });
  return event->context->lost;
}
