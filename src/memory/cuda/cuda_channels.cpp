#include "memory/cuda/cuda_channels.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/log.hpp"
#include "base/quiet_thread.hpp"
#include "memory/cuda/cuda_meetings.hpp"
#include "memory/cuda/cuda_pointer.hpp"

namespace ist {
namespace {

// Of device memory taken at a time, for several channels: what is lent to other processes is mapped as a whole.
constexpr std::uint64_t kSlab = std::uint64_t{18} << 20;
constexpr std::uint64_t kLine = 256;

std::uint64_t round_up(std::uint64_t size, std::uint64_t unit) { return (size + unit - 1) / unit * unit; }

std::string on(int device) { return " on cuda device " + std::to_string(device); }

}  // namespace

// ---- an end ----

CudaChannelEnd::~CudaChannelEnd() {
  const std::lock_guard lock(channels_.mutex_);
  std::erase(channels_.ends_, this);
  if (report_ != nullptr && !channels_.unfinished_) channels_.reports_.push_back(report_);
}

CUdeviceptr CudaChannelEnd::waits_for() const {
  return own_ + (side_ == ChannelSide::sends ? offsetof(channel::Outbox, room) : offsetof(channel::Inbox, ready));
}

channel::SendWork CudaChannelEnd::send_work(std::uint64_t address, Bytes size) const {
  return {reinterpret_cast<channel::Outbox*>(own_),
          reinterpret_cast<channel::Inbox*>(peer_),
          reinterpret_cast<const std::byte*>(address),
          size.value,
          gone_,
          report_};
}

channel::ReceiveWork CudaChannelEnd::receive_work(std::uint64_t address, Bytes room, bool counted) const {
  return {reinterpret_cast<channel::Inbox*>(own_),
          reinterpret_cast<channel::Outbox*>(peer_),
          reinterpret_cast<std::byte*>(address),
          room.value,
          gone_,
          report_,
          counted ? 1U : 0U};
}

// The report is written by kernels: what it says of a truncation comes before the count, in the order of release and acquire.
std::optional<ChannelTrouble> CudaChannelEnd::trouble() {
  ChannelTrouble found;
  found.failed = __atomic_load_n(&report_->failed, __ATOMIC_ACQUIRE) != 0;
  const std::uint32_t truncations = __atomic_load_n(&report_->truncations, __ATOMIC_ACQUIRE);
  if (truncations != truncations_) {
    found.truncated = true;
    found.message = channel::load_relaxed(&report_->message);
    found.bytes = Bytes{channel::load_relaxed(&report_->bytes)};
    found.room = Bytes{channel::load_relaxed(&report_->room)};
    truncations_ = truncations;
  }
  if (!found.failed && !found.truncated) return std::nullopt;
  return found;
}

std::vector<UnlikeNotes> CudaNotes::unlike() {
  std::vector<UnlikeNotes> found;
  for (std::size_t i = 0; log != nullptr && i < told_.size(); ++i) {
    const channel::NotePair& pair = log->pairs[i];
    const std::uint64_t times = __atomic_load_n(&pair.times, __ATOMIC_ACQUIRE);
    if (times == told_[i]) continue;
    told_[i] = times;
    const std::uint64_t about = channel::load_relaxed(&pair.about);
    found.push_back({about, static_cast<int>(about), pair.sent, pair.received});
  }
  return found;
}

// ---- all of them ----

CudaChannels::CudaChannels(const CudaApi& api, CudaContexts& contexts, CudaKernels& kernels, CudaWorkers& workers,
                           CudaLinks& links, CudaLending& lending, CudaQuiet& quiet)
    : api_(api),
      contexts_(contexts),
      kernels_(kernels),
      workers_(workers),
      links_(links),
      lending_(lending),
      quiet_(quiet),
      meetings_(std::make_unique<CudaMeetings>(*this)) {}

Meetings& CudaChannels::meetings() { return *meetings_; }

bool CudaChannels::present() const {
  return kernels_.present() && api_.cuMemHostAlloc && api_.cuMemFreeHost && api_.cuMemsetD8Async && api_.cuIpcGetMemHandle &&
         api_.cuIpcOpenMemHandle_v2 && api_.cuIpcCloseMemHandle && api_.cuStreamWaitValue32_v2 && api_.cuCtxSynchronize;
}

CudaChannels::~CudaChannels() {
  quiet_.forget(*this);
  ends_letting_go_.store(true);
  interrupts_.fetch_add(1);
  interrupts_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Kernels that may still run keep what they reach: it goes with the process.
  if (unfinished_) return;
  for (auto& [device, home] : homes_) {
    const ContextScope scope(api_, *home.context);
    if (!scope.status().ok()) continue;
    for (const auto& [key, address] : mapped_)
      if (std::get<2>(key) == device) api_.cuIpcCloseMemHandle(address);
    for (const auto& slab : home.slabs) api_.cuMemFree_v2(slab.address);
    if (home.stream != nullptr) api_.cuStreamDestroy_v2(home.stream);
    if (home.module != nullptr) api_.cuModuleUnload(home.module);
    if (home.meetings != nullptr) api_.cuModuleUnload(home.meetings);
  }
  if (locked_.empty()) return;
  const ContextScope scope(api_, *homes_.begin()->second.context);
  for (void* block : locked_) api_.cuMemFreeHost(block);
}

Status CudaChannels::load(CudaChannelHome& home) const {
  const int device = home.context->device;
  CUresult result = api_.cuStreamCreate(&home.stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuStreamCreate for channels" + on(device));
  result = api_.cuModuleLoadData(&home.module, isthmus_cuda_channel_kernels);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuModuleLoadData of the kernels of channels" + on(device));
  for (std::size_t i = 0; i < home.kernels.size(); ++i) {
    const std::string name = std::string{"isthmus_channel_"} + CudaChannelHome::kNames[i];
    result = api_.cuModuleGetFunction(&home.kernels[i], home.module, name.c_str());
    if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuModuleGetFunction of " + name + on(device));
  }
  IST_TRY(warm_up(home));
  // Now, though no collective call may come: later a stream may wait, and the driver with it.
  return meetings_->load(home);
}

// Without work each of them ends at once.
Status CudaChannels::warm_up(CudaChannelHome& home) const {
  alignas(16) std::byte nothing[sizeof(meeting::TellWork)]{};
  static_assert(sizeof(channel::PutWork) <= sizeof nothing && sizeof(channel::TakeWork) <= sizeof nothing);
  static_assert(sizeof(channel::SendReceiveWork) <= sizeof nothing && sizeof(channel::TellWork) <= sizeof nothing);
  static_assert(sizeof(channel::CompareWork) <= sizeof nothing && sizeof(meeting::CompareWork) <= sizeof nothing);
  for (std::size_t i = 0; i < home.kernels.size(); ++i)
    IST_TRY(launch(home, reinterpret_cast<std::uint64_t>(home.stream), {static_cast<Kernel>(i), 1, 32, nothing}));
  const CUresult result = api_.cuStreamSynchronize(home.stream);
  return result == CUDA_SUCCESS ? Status{}
                                : cuda_error(api_, result, "cuStreamSynchronize for channels" + on(home.context->device));
}

Result<CudaChannelHome*> CudaChannels::home(int device) {
  if (const auto known = homes_.find(device); known != homes_.end()) return &known->second;
  IST_TRY(kernels_.runs_on(device, "channels"));
  workers_.prepare(device);
  const auto context = contexts_.primary(device);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  CudaChannelHome made;
  made.context = *context;
  Status loaded = load(made);
  if (loaded.ok()) {
    kernels_.prepare(**context);
    loaded = kernels_.warm_up_packing(**context, made.stream);
  }
  if (!loaded.ok()) {
    if (made.module != nullptr) api_.cuModuleUnload(made.module);
    if (made.meetings != nullptr) api_.cuModuleUnload(made.meetings);
    if (made.stream != nullptr) api_.cuStreamDestroy_v2(made.stream);
    return loaded;
  }
  return &homes_.emplace(device, std::move(made)).first->second;
}

// The home's context must be current.
Result<CudaChannelHome::Slab*> CudaChannels::slab(CudaChannelHome& home, std::uint64_t size) {
  for (auto& slab : home.slabs)
    if (slab.size - slab.used >= size) return &slab;
  const std::string place = on(home.context->device);
  CudaChannelHome::Slab made;
  made.size = std::max(kSlab, size);
  const char* call = "cuMemAlloc";
  CUresult result = api_.cuMemAlloc_v2(&made.address, made.size);
  if (result != CUDA_SUCCESS)
    return cuda_error(api_, result, "cuMemAlloc of " + std::to_string(made.size) + " bytes for channels" + place);
  if (call = "cuIpcGetMemHandle"; result == CUDA_SUCCESS) result = api_.cuIpcGetMemHandle(&made.handle, made.address);
  // Over before anybody hears of the slab.
  if (result == CUDA_SUCCESS) {
    call = "cuMemsetD8Async";
    result = api_.cuMemsetD8Async(made.address, 0, made.size, home.stream);
  }
  if (result == CUDA_SUCCESS) {
    call = "cuStreamSynchronize";
    result = api_.cuStreamSynchronize(home.stream);
  }
  if (result == CUDA_SUCCESS) {
    made.allocation = ask_driver(api_, made.address).buffer_id;
    home.slabs.push_back(made);
    return &home.slabs.back();
  }
  api_.cuMemFree_v2(made.address);
  return cuda_error(api_, result, std::string{call} + " for channels" + place);
}

// Some context must be current. Portable: for every context of the process.
Result<void*> CudaChannels::locked_block(std::size_t size) {
  void* made = nullptr;
  const CUresult result = api_.cuMemHostAlloc(&made, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (result != CUDA_SUCCESS)
    return cuda_error(api_, result, "cuMemHostAlloc of " + std::to_string(size) + " bytes for channels");
  std::memset(made, 0, size);
  locked_.push_back(made);
  return made;
}

Result<std::uint32_t*> CudaChannels::gone_word(Rank peer) {
  const auto number = static_cast<std::size_t>(peer.value);
  if (number / kGoneWords >= kGoneBlocks)
    return Status{IST_ERR_MEMORY, "channels reach ranks 0 to " + std::to_string(kGoneWords * kGoneBlocks - 1)};
  auto& block = gone_[number / kGoneWords];
  if (block.load() == nullptr) {
    const auto made = locked_block(kGoneWords * sizeof(std::uint32_t));
    if (!made.ok()) return made.status();
    block.store(static_cast<std::uint32_t*>(*made));
  }
  return block.load() + number % kGoneWords;
}

Result<channel::Report*> CudaChannels::report() {
  constexpr std::size_t kAtOnce = 64;
  if (reports_.empty()) {
    const auto made = locked_block(kAtOnce * sizeof(channel::Report));
    if (!made.ok()) return made.status();
    for (std::size_t i = 0; i < kAtOnce; ++i) reports_.push_back(static_cast<channel::Report*>(*made) + i);
  }
  channel::Report* const found = reports_.back();
  reports_.pop_back();
  *found = {};
  return found;
}

// Of a debugging run: it stays until the channels go.
Result<channel::NoteLog*> CudaChannels::note_log() {
  const auto made = locked_block(sizeof(channel::NoteLog));
  return made.ok() ? Result<channel::NoteLog*>{static_cast<channel::NoteLog*>(*made)} : made.status();
}

Result<std::uint32_t*> CudaChannels::gone_of_seat() {
  constexpr std::size_t kAtOnce = 64;
  if (gone_of_seats_.empty()) {
    const auto made = locked_block(kAtOnce * sizeof(std::uint32_t));
    if (!made.ok()) return made.status();
    for (std::size_t i = 0; i < kAtOnce; ++i) gone_of_seats_.push_back(static_cast<std::uint32_t*>(*made) + i);
  }
  std::uint32_t* const found = gone_of_seats_.back();
  gone_of_seats_.pop_back();
  __atomic_store_n(found, 0U, __ATOMIC_RELEASE);
  return found;
}

// The home's context must be current.
Result<ChannelCard> CudaChannels::take_half(CudaChannelHome& home, std::uint64_t size) {
  const auto room = slab(home, round_up(size, kLine));
  if (!room.ok()) return room.status();
  ChannelCard card;
  static_assert(sizeof card.handle == sizeof(*room)->handle);
  std::memcpy(card.handle.data(), &(*room)->handle, sizeof card.handle);
  card.device = contexts_.uuid(home.context->device);
  card.allocation = (*room)->allocation;
  card.offset = (*room)->used;
  card.address = (*room)->address + (*room)->used;
  card.door = lending_.door();
  (*room)->used += round_up(size, kLine);
  return card;
}

Result<ChannelCard> CudaChannels::take_half(CudaChannelHome& home, ChannelSide side) {
  return take_half(home, side == ChannelSide::sends ? sizeof(channel::Outbox) : sizeof(channel::Inbox));
}

Status CudaChannels::open_half(CudaChannelEnd& end, CudaChannelHome& home, bool compares) {
  const ContextScope scope(api_, *home.context);
  IST_TRY(scope.status());
  const auto gone = gone_word(end.peer_rank_);
  if (!gone.ok()) return gone.status();
  end.gone_ = *gone;
  const auto words = report();
  if (!words.ok()) return words.status();
  end.report_ = *words;
  if (compares) {
    const auto log = note_log();
    if (!log.ok()) return log.status();
    end.notes_.log = *log;
  }
  const auto half = take_half(home, end.side_);
  if (!half.ok()) return half.status();
  end.card_ = *half;
  end.card_.side = end.side_;
  end.own_ = half->address;
  return {};
}

Result<std::unique_ptr<ChannelEnd>> CudaChannels::open(ChannelSide side, int device, Rank own, Rank peer, bool compares) {
  std::unique_ptr<CudaChannelEnd> made;  // outlives the lock, which its end takes
  const std::lock_guard lock(mutex_);
  const auto at = home(device);
  if (!at.ok()) return at.status();
  made = std::make_unique<CudaChannelEnd>(*this, **at, side, peer, own == peer);
  if (Status opened = open_half(*made, **at, compares); !opened.ok()) return opened;
  ends_.push_back(made.get());
  return std::unique_ptr<ChannelEnd>(std::move(made));
}

// ---- the end of waiting ----

// No lock and no driver call: the words are there from the first end on. A word that comes into being at the same time is found set
// by its first kernel's caller, who looks at the board after it.
void CudaChannels::interrupt(Rank peer) {
  meetings_->interrupt(peer);
  const auto number = static_cast<std::size_t>(peer.value);
  if (number / kGoneWords >= kGoneBlocks) return;
  std::uint32_t* const block = gone_[number / kGoneWords].load();
  if (block == nullptr) return;
  __atomic_store_n(block + number % kGoneWords, 1U, __ATOMIC_RELEASE);
  interrupts_.fetch_add(1);
  interrupts_.notify_all();
}

// The stream of an end on one device goes on; its kernels find nothing there, and say so.
Status CudaChannels::let_go(CudaChannelEnd& end) const {
  if (!end.one_device_ || end.let_go_) return {};
  end.let_go_ = true;
  const ContextScope scope(api_, *end.home_.context);
  IST_TRY(scope.status());
  channel::LetGoWork work{reinterpret_cast<std::uint32_t*>(end.waits_for())};
  return launch(end.home_, reinterpret_cast<std::uint64_t>(end.home_.stream), {Kernel::let_go, 1, 32, &work});
}

void CudaChannels::let_go_of_gone() {
  const std::lock_guard lock(mutex_);
  for (CudaChannelEnd* end : ends_) {
    if (__atomic_load_n(end->gone_, __ATOMIC_ACQUIRE) == 0) continue;
    if (const Status status = let_go(*end); !status.ok())
      log::once(log::Level::warning, "a stream that waits for a rank that is gone cannot be let go on: " + status.text());
  }
}

void CudaChannels::start_letting_go() {
  if (thread_.joinable()) return;
  auto thread = quiet_thread("streams that wait for other ranks", [this] {
    for (std::uint32_t seen = 0; !ends_letting_go_.load();) {
      interrupts_.wait(seen);
      seen = interrupts_.load();
      if (!ends_letting_go_.load()) let_go_of_gone();
    }
  });
  if (thread.ok())
    thread_ = std::move(*thread);
  else
    log::once(log::Level::warning,
              "streams that wait for other ranks are not let go on if those die: " + thread.status().text());
}

Status CudaChannels::close_all() {
  meetings_->interrupt_all();
  for (auto& block : gone_)
    for (std::size_t i = 0; block.load() != nullptr && i < kGoneWords; ++i)
      __atomic_store_n(block.load() + i, 1U, __ATOMIC_RELEASE);
  const std::lock_guard lock(mutex_);
  Status status;
  const auto note = [&](const Status& found) {
    if (status.ok()) status = found;
  };
  for (CudaChannelEnd* end : ends_) note(let_go(*end));
  for (const auto& [device, home] : homes_) {
    const ContextScope scope(api_, *home.context);
    note(scope.status());
    if (!scope.status().ok()) continue;
    const CUresult result = api_.cuCtxSynchronize();
    if (result != CUDA_SUCCESS) note(cuda_error(api_, result, "cuCtxSynchronize at the end of the channels" + on(device)));
  }
  unfinished_ = !status.ok();
  return status;
}

}  // namespace ist
