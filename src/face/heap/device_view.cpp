#include "face/heap/device_view.hpp"

#include <chrono>
#include <cstring>
#include <new>
#include <string>

#include "face/heap/collective_heap.hpp"
#include "face/message/calls.hpp"

namespace ist {
namespace {

// A kernel takes a ticket and writes it within microseconds, unless the ring is full.
constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::chrono::milliseconds kShortPatience{20};
constexpr Bytes kRing{sizeof(device::ProxyRing)};
constexpr Bytes kRoom{sizeof(device::ProxyRing) + sizeof(std::uint32_t)};

device::ProxyRing& ring_in(const PinnedPool::Block& room) { return *reinterpret_cast<device::ProxyRing*>(room.data()); }

}  // namespace

// The thread first: it reads what goes then. Pages are unlocked before they are unmapped.
DeviceView::~DeviceView() {
  abort_word_.store(nullptr);
  serving_.store(nullptr);
  proxy_.reset();
  for (std::byte* const address : pinned_) kind_->pins()->unpin(address);
  if (has_desk_) kind_->release_later(desk_);
}

void DeviceView::add(Offset from, Bytes size) {
  const std::lock_guard lock(mutex_);
  stretches_.push_back({from, size});
}

Status DeviceView::choose_device(const SymmetricHeap& memory, int device) {
  const auto kind = world_.kinds().usable(IST_KIND_CUDA);
  if (!kind.ok())
    return {kind.status().code(), "kernels need a CUDA device: " + kind.status().text() + "; host code uses ist_heap_view"};
  const bool own = memory.shape().kind != KindId::host;
  if (device == IST_OWN_DEVICE) device = own ? memory.shape().device : world_.own_device(**kind);
  const auto devices = static_cast<int>((*kind)->devices().size());
  if (device < 0 || device >= devices)
    return {IST_ERR_ARGUMENT,
            "device is " + std::to_string(device) + "; the kind has devices 0 to " + std::to_string(devices - 1)};
  const int before = own ? memory.shape().device : device_;
  if (before >= 0 && before != device)
    return {IST_ERR_ARGUMENT, "device is " + std::to_string(device) + ", and views of this heap are for device " +
                                  std::to_string(before) + " of this PE; name that one"};
  kind_ = *kind;
  device_ = device;
  return {};
}

// The desk first: memory of the device starts its use, before which nothing is page-locked for it.
Status DeviceView::make_room() {
  if (!has_desk_) {
    const auto desk = kind_->allocate(device_, Bytes{sizeof(device::ProxyDesk)});
    if (!desk.ok()) return desk.status();
    desk_ = *desk;
    has_desk_ = true;
    world_.kinds().mark_used(kind_->id());
  }
  if (!desk_is_zero_) {
    const std::vector<std::byte> zeros(sizeof(device::ProxyDesk));
    IST_TRY(copy_pieces(world_, desk_, host_piece(zeros.data(), Bytes{zeros.size()})));
    desk_is_zero_ = true;
  }
  if (!room_.empty()) return {};
  auto room = world_.pool().take_locked(kRoom, kind_->id());
  if (!room.ok()) return room.status();
  std::memset(room->data(), 0, kRoom.value);
  room_ = std::move(*room);
  return {};
}

// One number for all parts, and for what was allocated in them: what kernels do with addresses is the same then as what hosts do.
Result<std::int64_t> DeviceView::find_shift() const {
  std::int64_t first = 0;
  for (std::byte* const address : pinned_) {
    const auto found = kind_->pins()->mapped(address, device_);
    if (!found.ok()) return found.status();
    const std::int64_t shift = *found - address;
    if (address == pinned_.front()) first = shift;
    if (shift != first)
      return Status{IST_ERR_UNSUPPORTED, "kernels on device " + std::to_string(device_) + " find one part of this heap " +
                                             std::to_string(first) + " bytes behind its address, and another one " +
                                             std::to_string(shift) + "; put what they use into a heap of IST_KIND_CUDA"};
  }
  return first;
}

Status DeviceView::pin(const SymmetricHeap& memory, Stretch& stretch) {
  for (; stretch.pinned < memory.shape().pes; ++stretch.pinned) {
    std::byte* const address = memory.at(Pe{stretch.pinned}, stretch.from);
    const Status locked = kind_->pins()->pin(address, stretch.size);
    if (!locked.ok())
      return {locked.code(), "the part of PE " + std::to_string(stretch.pinned) + ", all " +
                                 std::to_string(memory.bytes().value) + " bytes of it, cannot be page-locked for kernels: " +
                                 locked.text() + "; make a smaller heap for what they use"};
    pinned_.push_back(address);
  }
  return {};
}

Status DeviceView::start_proxy(const SymmetricHeap& memory) {
  if (proxy_ != nullptr) {
    proxy_->tell_bytes(memory.bytes());
    return {};
  }
  auto proxy = std::make_unique<WordProxy>(
      ring_in(room_),
      WordProxy::Parts{memory.at(Pe{0}, Offset{}), memory.shape().stride, memory.shape().pes, memory.bytes()});
  IST_TRY(proxy->start());
  proxy_ = std::move(proxy);
  serving_.store(proxy_.get(), std::memory_order_release);
  abort_word_.store(reinterpret_cast<std::uint32_t*>(room_.data() + kRing.value), std::memory_order_release);
  return {};
}

Status DeviceView::drain(bool dead) {
  const WordProxy* const proxy = serving_.load(std::memory_order_acquire);
  if (proxy == nullptr || proxy->drain(dead || given_up_.load() ? kShortPatience : kPatience)) return {};
  given_up_.store(true);
  return {IST_ERR_DEVICE, "a kernel on device " + std::to_string(device_) +
                              " has given up asking for the change of a word of this heap, and what was asked for behind "
                              "that is not done: look at the "
                              "status of its calls (isthmus/device/host_words.cuh), and make another heap"};
}

// Only where there is something to tell: kernels whose words are all in reach of them look at nothing.
Status DeviceView::tell_words(const CollectiveHeap& heap, ist_device_view& view) {
  if (heap.kernels_change_words().ok()) return {};
  std::vector<std::byte> lacks;
  for (int pe = 0; pe < heap.memory().shape().pes; ++pe)
    lacks.push_back(std::byte{heap.kernels_change_words_of(Pe{pe}).ok() ? std::uint8_t{0} : std::uint8_t{1}});
  if (!has_desk_) {
    const auto desk = kind_->allocate(device_, Bytes{lacks.size()});
    if (!desk.ok()) return desk.status();
    desk_ = *desk;
    has_desk_ = true;
  }
  IST_TRY(copy_pieces(world_, desk_, host_piece(lacks.data(), Bytes{lacks.size()})));
  view.desk = reinterpret_cast<unsigned char*>(desk_.address());
  return {};
}

Status DeviceView::fill(const CollectiveHeap& heap, int device, ist_device_view& view) {
  const SymmetricHeap& memory = heap.memory();
  const std::lock_guard lock(mutex_);
  IST_TRY(choose_device(memory, device));
  view = {};
  memory.fill(view.team);
  view.team.abort_word = heap.abort_word_for_kernels();
  if (!heap.on_host()) return tell_words(heap, view);
  IST_TRY(make_room());
  for (Stretch& stretch : stretches_) IST_TRY(pin(memory, stretch));
  const auto shift = find_shift();
  if (!shift.ok()) return shift.status();
  IST_TRY(start_proxy(memory));
  const auto ring = kind_->pins()->mapped(room_.data(), device_);
  if (!ring.ok()) return ring.status();
  view.team.base += *shift;
  view.team.abort_word = reinterpret_cast<const std::uint32_t*>(*ring + kRing.value);
  view.shift = *shift;
  view.ring = reinterpret_cast<unsigned char*>(*ring);
  view.desk = reinterpret_cast<unsigned char*>(desk_.address());
  return {};
}

}  // namespace ist
