// What is put into users' streams: kernels, and on one device waits before them. Nothing here allocates, waits or asks a stream for
// its state, so that all of it can be captured into a graph.
#include <algorithm>

#include "memory/cuda/cuda_channels.hpp"
#include "memory/cuda/cuda_pointer.hpp"

namespace ist {
namespace {

// Blocks that copy one part of a message on one device: enough for the memory's speed to be in sight.
constexpr std::uint64_t kShare = 16 << 10;
constexpr unsigned kMostBlocks = 16;

static_assert(kMostInPackets.value == channel::kSmall);

bool special(std::uint64_t stream) { return stream <= reinterpret_cast<std::uint64_t>(CU_STREAM_PER_THREAD); }

unsigned blocks_of_part(std::uint64_t bytes) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>((bytes + kShare - 1) / kShare, 1, kMostBlocks));
}

}  // namespace

CudaChannels::Current::Current(const CudaApi& api, CUcontext context) : api_(api) {
  CUcontext found = nullptr;
  if (api_.cuCtxGetCurrent(&found) == CUDA_SUCCESS && found == context) return;
  result_ = api_.cuCtxPushCurrent_v2(context);
  pushed_ = result_ == CUDA_SUCCESS;
}

CudaChannels::Current::~Current() {
  CUcontext popped = nullptr;
  if (pushed_) api_.cuCtxPopCurrent_v2(&popped);
}

Status CudaChannels::not_put(CUresult result, const std::string& call, std::uint64_t stream) const {
  Status why = cuda_error(api_, result, call + " in stream " + hexadecimal(stream));
  if (!of_a_capture(result)) return why;
  return {IST_ERR_NOT_CAPTURABLE,
          why.text() + "; end or give up that capture, or use a stream that is not the legacy default one"};
}

Result<StreamPlace> CudaChannels::find_stream(std::uint64_t stream, const Piece* beside, bool look) {
  StreamPlace place{stream, -1, false, !special(stream)};
  const auto handle = reinterpret_cast<CUstream>(stream);
  CUcontext context = nullptr;
  CUresult result = CUDA_SUCCESS;
  const char* call = "cuStreamGetCtx";
  if (!special(stream)) {
    result = api_.cuStreamGetCtx(handle, &context);
  } else if (beside != nullptr && beside->kind == KindId::cuda) {
    const PointerFacts facts = ask_driver(api_, beside->object + beside->offset.value);
    place.device = facts.known && !facts.on_host ? facts.device : beside->device;
  }
  if (special(stream) && place.device < 0) {
    call = "cuCtxGetCurrent";
    result = api_.cuCtxGetCurrent(&context);
    if (context == nullptr) return place;
  }
  if (result == CUDA_SUCCESS && place.device < 0) {
    const Current current(api_, context);
    CUdevice device = -1;
    call = "cuCtxGetDevice";
    result = current.result() == CUDA_SUCCESS ? api_.cuCtxGetDevice(&device) : current.result();
    if (result == CUDA_SUCCESS) place.device = contexts_.ordinal(device);
  }
  if (result != CUDA_SUCCESS) return not_put(result, call, stream);
  const auto home = contexts_.primary(place.device);
  if (!home.ok()) return home.status();
  if (context != nullptr && (*home)->handle != context)
    return Status{IST_ERR_ARGUMENT,
                  "stream " + hexadecimal(stream) +
                      " belongs to a context made by cuCtxCreate; channels work in the primary context of a "
                      "device, which cudaSetDevice and cuDevicePrimaryCtxRetain give"};
  if (!look) return place;
  const Current current(api_, (*home)->handle);
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  result = api_.cuStreamIsCapturing(handle, &capture);
  if (result != CUDA_SUCCESS) return not_put(result, "cuStreamIsCapturing", stream);
  place.capturing = capture != CU_STREAM_CAPTURE_STATUS_NONE;
  return place;
}

Result<std::uint64_t> CudaChannels::admit(const Piece& piece, int device) {
  if (piece.size.value == 0) return std::uint64_t{0};
  const std::uint64_t address = piece.object + piece.offset.value;
  const PointerFacts facts = ask_driver(api_, address);
  if (facts.result != CUDA_SUCCESS)
    return cuda_error(api_, facts.result, "cuPointerGetAttributes of " + describe_piece(piece));
  if (!facts.known && piece.kind == KindId::cuda)
    return Status{IST_ERR_ARGUMENT, describe_piece(piece) +
                                        " is not known to the CUDA driver (host memory? then name it with "
                                        "ist_host; or released already)"};
  if (!facts.known)
    return Status{IST_ERR_ARGUMENT,
                  describe_piece(piece) +
                      " is not page-locked: kernels read and write device memory and page-locked host memory; "
                      "page-lock it with ist_register, or allocate it so"};
  if (piece.size.value > facts.size || address - facts.start > facts.size - piece.size.value)
    return Status{IST_ERR_ARGUMENT, describe_piece(piece) + " reaches past the end of its allocation of " +
                                        std::to_string(facts.size) + " bytes at " + hexadecimal(facts.start)};
  if (facts.on_host != (piece.kind == KindId::host))
    return Status{IST_ERR_ARGUMENT,
                  describe_piece(piece) + (facts.on_host ? " is page-locked host memory; name it with ist_host"
                                                         : " is memory of a device; name it with ist_cuda")};
  if (piece.device >= 0 && piece.kind == KindId::cuda && facts.memory_class != MemoryClass::managed &&
      facts.device != piece.device)
    return Status{IST_ERR_ARGUMENT, describe_piece(piece) + " is said to be on device " + std::to_string(piece.device) +
                                        " but is on device " + std::to_string(facts.device)};
  if (facts.on_host && facts.memory_class == MemoryClass::registered) {
    // The driver answers for the context that is current.
    const auto own = contexts_.primary(device);
    if (!own.ok()) return own.status();
    const Current current(api_, (*own)->handle);
    CUdeviceptr seen = 0;
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
    void* answer = &seen;
    const CUresult result = api_.cuPointerGetAttributes(1, &attribute, &answer, address);
    if (result != CUDA_SUCCESS || seen == 0)
      return cuda_error(api_, result, "cuPointerGetAttributes for the device's address of " + describe_piece(piece));
    return std::uint64_t{seen};
  }
  if (facts.on_host || facts.memory_class == MemoryClass::managed) return address;
  const auto home = contexts_.primary(device);
  if (!home.ok()) return home.status();
  if (facts.device == device && (facts.context == nullptr || facts.context == (*home)->handle)) return address;
  return Status{IST_ERR_ARGUMENT, describe_piece(piece) + " is on cuda device " + std::to_string(facts.device) +
                                      (facts.device == device ? ", in a context made by cuCtxCreate," : "") +
                                      " and the stream on device " + std::to_string(device) +
                                      "; give a stream of its own device"};
}

Status CudaChannels::launch(const CudaChannelHome& home, std::uint64_t stream, const Launch& what) const {
  return launch(home.kernels[what.kernel], stream, what.blocks, what.threads, what.work);
}

Status CudaChannels::launch(CUfunction kernel, std::uint64_t stream, unsigned blocks, unsigned threads, void* work) const {
  void* arguments[] = {work};
  const CUresult result =
      api_.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, reinterpret_cast<CUstream>(stream), arguments, nullptr);
  return result == CUDA_SUCCESS ? Status{} : not_put(result, "cuLaunchKernel", stream);
}

// ---- on one device ----

Status CudaChannels::wait(const CudaChannelEnd& end, std::uint64_t stream, std::uint32_t value) const {
  const CUresult result =
      api_.cuStreamWaitValue32_v2(reinterpret_cast<CUstream>(stream), end.waits_for(), value, CU_STREAM_WAIT_VALUE_GEQ);
  return result == CUDA_SUCCESS ? Status{} : not_put(result, "cuStreamWaitValue32", stream);
}

Status CudaChannels::put_part(const CudaChannelEnd& end, std::uint64_t stream, channel::PutWork& work) const {
  IST_TRY(wait(end, stream, channel::kRoom));
  const std::uint64_t left = work.send.bytes - std::min(work.send.bytes, work.part * channel::kPart);
  return launch(end.home_, stream,
                {Kernel::put, blocks_of_part(std::min<std::uint64_t>(left, channel::kPart)), channel::kThreads, &work});
}

Status CudaChannels::take_part(const CudaChannelEnd& end, std::uint64_t stream, channel::TakeWork& work) const {
  IST_TRY(wait(end, stream, 1));
  const std::uint64_t left = work.receive.room - std::min(work.receive.room, work.part * channel::kPart);
  return launch(end.home_, stream,
                {Kernel::take, blocks_of_part(std::min<std::uint64_t>(left, channel::kPart)), channel::kThreads, &work});
}

// Both ways in turn: what this rank receives makes room for what the other one has still to send.
Status CudaChannels::through_parts(const CudaChannelEnd* sends, const channel::SendWork* out, const CudaChannelEnd* receives,
                                   const channel::ReceiveWork* in, std::uint64_t stream) const {
  const std::uint64_t puts = out != nullptr ? channel::parts_of(out->bytes) : 0;
  const std::uint64_t takes = in != nullptr ? channel::parts_of(in->room) : 0;
  for (std::uint64_t part = 0; part < std::max(puts, takes); ++part) {
    if (part < puts) {
      channel::PutWork work{*out, part};
      IST_TRY(put_part(*sends, stream, work));
    }
    if (part < takes) {
      channel::TakeWork work{*in, part, takes};
      IST_TRY(take_part(*receives, stream, work));
    }
  }
  return {};
}

// ---- notes beside messages ----

Status CudaChannels::tell(ChannelEnd& given, std::uint64_t stream, const StreamNote& note) {
  auto& end = static_cast<CudaChannelEnd&>(given);
  const Current current(api_, end.home_.context->handle);
  if (current.result() != CUDA_SUCCESS) return not_put(current.result(), "cuCtxPushCurrent", stream);
  channel::TellWork work{reinterpret_cast<channel::Outbox*>(end.own_), reinterpret_cast<channel::Inbox*>(end.peer_), note};
  return launch(end.home_, stream, {Kernel::tell, 1, 32, &work});
}

Status CudaChannels::compare(ChannelEnd& given, std::uint64_t stream, const StreamNote& note) {
  auto& end = static_cast<CudaChannelEnd&>(given);
  if (end.notes_.log == nullptr) return {};
  const Current current(api_, end.home_.context->handle);
  if (current.result() != CUDA_SUCCESS) return not_put(current.result(), "cuCtxPushCurrent", stream);
  channel::CompareWork work{reinterpret_cast<channel::Inbox*>(end.own_), end.notes_.log, note};
  return launch(end.home_, stream, {Kernel::compare, 1, 32, &work});
}

// ---- all ----

Status CudaChannels::send(ChannelEnd& given, std::uint64_t stream, std::uint64_t address, Bytes size) {
  auto& end = static_cast<CudaChannelEnd&>(given);
  const Current current(api_, end.home_.context->handle);
  if (current.result() != CUDA_SUCCESS) return not_put(current.result(), "cuCtxPushCurrent", stream);
  channel::SendWork work = end.send_work(address, size);
  const auto held = putting(stream);
  if (end.one_device_)
    IST_TRY(through_parts(&end, &work, nullptr, nullptr, stream));
  else if (size.value <= channel::kSmall)
    IST_TRY(launch(end.home_, stream, {Kernel::send_small, 1, channel::threads_for(size.value), &work}));
  else
    IST_TRY(launch(end.home_, stream, {Kernel::send, channel::blocks_for(size.value), channel::kThreads, &work}));
  ++end.put_;
  return {};
}

Status CudaChannels::receive(ChannelEnd& given, std::uint64_t stream, std::uint64_t address, Bytes room, bool counted) {
  auto& end = static_cast<CudaChannelEnd&>(given);
  const Current current(api_, end.home_.context->handle);
  if (current.result() != CUDA_SUCCESS) return not_put(current.result(), "cuCtxPushCurrent", stream);
  channel::ReceiveWork work = end.receive_work(address, room, counted);
  const auto held = putting(stream);
  if (end.one_device_)
    IST_TRY(through_parts(nullptr, nullptr, &end, &work, stream));
  else if (room.value <= channel::kSmall)
    IST_TRY(launch(end.home_, stream, {Kernel::receive_small, 1, channel::threads_for(room.value), &work}));
  else
    IST_TRY(launch(end.home_, stream, {Kernel::receive, channel::blocks_for(room.value), channel::kThreads, &work}));
  ++end.put_;
  return {};
}

Status CudaChannels::send_and_receive(std::uint64_t stream, const Message& out, const Message& in) {
  auto& sends = static_cast<CudaChannelEnd&>(out.end);
  auto& receives = static_cast<CudaChannelEnd&>(in.end);
  const Current current(api_, sends.home_.context->handle);
  if (current.result() != CUDA_SUCCESS) return not_put(current.result(), "cuCtxPushCurrent", stream);
  channel::SendReceiveWork work{sends.send_work(out.address, out.size),
                                receives.receive_work(in.address, in.size, in.counted), channel::blocks_for(out.size.value)};
  const auto put_both = [&](const Status& put) {
    if (put.ok()) ++sends.put_, ++receives.put_;
    return put;
  };
  if (sends.one_device_ && receives.one_device_) {
    const auto held = putting(stream);
    return put_both(through_parts(&sends, &work.send, &receives, &work.receive, stream));
  }
  // One after the other, which no two ranks that do the same may wait for: so what is sent has to find room before it is taken.
  if (sends.one_device_ || receives.one_device_) {
    constexpr std::uint64_t kRoomForAll = std::uint64_t{channel::kParts} * channel::kPart;
    if (out.size.value > kRoomForAll)
      return {IST_ERR_ARGUMENT,
              "of two partners one is on this rank's device and one is not: " + std::to_string(out.size.value) +
                  " bytes cannot be sent and received in one stream, only up to " + std::to_string(kRoomForAll) +
                  "; send and receive in two streams"};
    IST_TRY(send(out.end, stream, out.address, out.size));
    return receive(in.end, stream, in.address, in.size, in.counted);
  }
  const bool small = out.size.value <= channel::kSmall && in.size.value <= channel::kSmall;
  const unsigned threads =
      small ? std::max(channel::threads_for(out.size.value), channel::threads_for(in.size.value)) : channel::kThreads;
  const auto held = putting(stream);
  return put_both(launch(sends.home_, stream,
                         {Kernel::send_receive, work.send_blocks + channel::blocks_for(in.size.value), threads, &work}));
}

}  // namespace ist
