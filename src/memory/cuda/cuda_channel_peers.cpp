// The other half of a channel, or another rank's mailbox: whether it may be reached, and where it is in this process.
#include <cstring>

#include "memory/cuda/cuda_channels.hpp"

namespace ist {
namespace {

std::string from_device(int device) { return " on cuda device " + std::to_string(device); }

}  // namespace

Status CudaChannelEnd::connect(const ChannelCard& peers) {
  IST_TRY(channels_.believe(peer_rank_, home_, peers, same_process_));
  const std::lock_guard lock(channels_.mutex_);
  const auto mapped = channels_.map(peer_rank_, home_, peers, same_process_);
  if (!mapped.ok()) return mapped.status();
  one_device_ = peers.device == card_.device;
  peer_ = *mapped;
  if (one_device_) channels_.start_letting_go();
  return {};
}

// A half of its own stands for the one that is gone with its rank.
Status CudaChannelEnd::connect_to_nobody(const ChannelCard& peers) {
  const std::lock_guard lock(channels_.mutex_);
  const ContextScope scope(channels_.api_, *home_.context);
  IST_TRY(scope.status());
  const auto half = channels_.take_half(home_, peers.side);
  if (!half.ok()) return half.status();
  one_device_ = peers.device == card_.device;
  peer_ = half->address;
  if (one_device_) channels_.start_letting_go();
  return {};
}

// Of another device of this process, for a rank that sends to itself.
Status CudaChannels::reach(const CudaChannelHome& home, const ChannelCard& peers) {
  if (peers.device == contexts_.uuid(home.context->device)) return {};
  for (const auto& [device, other] : homes_) {
    if (contexts_.uuid(device) != peers.device) continue;
    const ContextScope scope(api_, *home.context);
    IST_TRY(scope.status());
    const CUresult result = api_.cuCtxEnablePeerAccess != nullptr ? api_.cuCtxEnablePeerAccess(other.context->handle, 0)
                                                                  : CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return {};
    return cuda_error(api_, result,
                      "cuCtxEnablePeerAccess of device " + std::to_string(device) + from_device(home.context->device));
  }
  return {IST_ERR_INTERNAL, "the other half of a channel of this rank with itself is on no device of its"};
}

// What kernels store over a link is as lost as what is copied over it.
Status CudaChannels::believe(Rank peer, const CudaChannelHome& home, const ChannelCard& peers, bool same_process) {
  CudaContext& context = *home.context;
  if (peers.device == contexts_.uuid(context.device)) return {};
  Loan loan;
  loan.device = peers.device;
  loan.door = peers.door;
  const Status found =
      same_process ? links_.believe_within(context, peers.device) : links_.believe(context, loan, peer, ends_letting_go_);
  if (found.ok()) return {};
  const std::string which = links_.words_for(context, peers.device, same_process ? kNobody : peer);
  if (links_.off(context, peers.device)) return {IST_ERR_UNREACHABLE, which + ", is off: " + found.text()};
  return {IST_ERR_DEVICE, which + ", could not be tried: " + found.text() + kNamespaces};
}

Result<CUdeviceptr> CudaChannels::map(Rank peer, const CudaChannelHome& home, const ChannelCard& peers, bool same_process) {
  if (same_process) {
    IST_TRY(reach(home, peers));
    return CUdeviceptr{peers.address};
  }
  const int device = home.context->device;
  const std::tuple key{peer, peers.allocation, device};
  if (const auto known = mapped_.find(key); known != mapped_.end()) return known->second + peers.offset;
  const ContextScope scope(api_, *home.context);
  IST_TRY(scope.status());
  CUipcMemHandle handle;
  std::memcpy(&handle, peers.handle.data(), sizeof handle);
  CUdeviceptr address = 0;
  const CUresult result = api_.cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (result != CUDA_SUCCESS) {
    const Status why = cuda_error(api_, result, "cuIpcOpenMemHandle of the other end's memory" + from_device(device));
    return Status{why.code(), why.text() + "; without a direct way between the two devices use ist_send and ist_recv"};
  }
  mapped_.emplace(key, address);
  return address + peers.offset;
}

}  // namespace ist
