// Whether all that was put into users' streams has happened: the device counts it in each half, and is asked without waiting for a stream.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "memory/cuda/cuda_channels.hpp"
#include "memory/cuda/cuda_meetings.hpp"

namespace ist {
namespace {

// So many halves are looked at together; what is read of each: its count and the word `broken`.
constexpr std::size_t kLooksAtOnce = 128;
constexpr std::size_t kLook = 32;
static_assert(offsetof(channel::Outbox, sent_and_credit) == 0 && offsetof(channel::Inbox, taken) == 0 &&
              offsetof(meeting::Mailbox, met) == 0);
static_assert(std::max({offsetof(channel::Outbox, broken), offsetof(channel::Inbox, broken),
                        offsetof(meeting::Mailbox, broken)}) +
                  sizeof(std::uint32_t) <=
              kLook);
// A copy of a few bytes out of a device takes some 20 us; where it takes longer, somebody asks again.
constexpr std::chrono::milliseconds kPatience{2};

}  // namespace

CudaQuiet::Putting CudaChannels::putting(std::uint64_t stream) const {
  auto held = quiet_.putting();
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = api_.cuStreamIsCapturing(reinterpret_cast<CUstream>(stream), &capture);
  if (asked == CUDA_SUCCESS && capture != CU_STREAM_CAPTURE_STATUS_NONE) quiet_.captured();
  return held;
}

bool CudaChannels::over() {
  const std::lock_guard lock(mutex_);
  return std::all_of(homes_.begin(), homes_.end(), [this](auto& home) { return over_on(home.second); });
}

// A stream that was let go on, and whoever has given up, wait for nobody.
bool CudaChannels::over_on(CudaChannelHome& home) {
  std::vector<CudaLook> looks;
  for (CudaChannelEnd* end : ends_) {
    const std::uint64_t put = end->put_.load();
    if (&end->home_ != &home || put == end->over_ || end->let_go_) continue;
    const bool sends = end->side_ == ChannelSide::sends;
    looks.push_back(
        {end->own_, sends ? offsetof(channel::Outbox, broken) : offsetof(channel::Inbox, broken), put, &end->over_});
  }
  meetings_->add_looks(home, looks);
  if (looks.empty()) return true;
  const ContextScope scope(api_, *home.context);
  // Where the last look has not come back its bytes may still arrive.
  if (!scope.status().ok() || api_.cuStreamQuery(home.stream) != CUDA_SUCCESS) return false;
  if (looked_ == nullptr) {
    const auto made = locked_block(kLooksAtOnce * kLook);
    if (!made.ok()) return false;
    looked_ = static_cast<std::byte*>(*made);
  }
  const std::size_t many = std::min(looks.size(), kLooksAtOnce);
  for (std::size_t i = 0; i < many; ++i)
    if (api_.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(looked_ + i * kLook), looks[i].state, kLook, home.stream) !=
        CUDA_SUCCESS)
      return false;
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  CUresult answer = CUDA_ERROR_NOT_READY;
  while ((answer = api_.cuStreamQuery(home.stream)) == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < patience)
    std::this_thread::yield();
  if (answer != CUDA_SUCCESS) return false;
  bool over = many == looks.size();
  for (std::size_t i = 0; i < many; ++i) {
    std::uint64_t happened = 0;
    std::uint32_t broken = 0;
    std::memcpy(&happened, looked_ + i * kLook, sizeof happened);
    std::memcpy(&broken, looked_ + i * kLook + looks[i].broken, sizeof broken);
    if (happened >= looks[i].put || broken != 0)
      *looks[i].over = looks[i].put;
    else
      over = false;
  }
  return over;
}

}  // namespace ist
