#include "memory/cuda/cuda_windows.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace ist {
namespace {

// What the device maps at once; gdr_map takes nothing that begins elsewhere.
constexpr std::uint64_t kPage = 65536;
// A device shows only so much of its memory at a time (its BAR1), to all processes together.
constexpr std::size_t kMostWindows = 64;
constexpr std::size_t kMostClosed = 1024;

std::uint64_t page_of(std::uint64_t address) { return address / kPage * kPage; }

Status refused(const char* call, int result, std::uint64_t size) {
  return {IST_ERR_DEVICE, std::string{call} + " of " + std::to_string(size) + " bytes: error " + std::to_string(result)};
}

}  // namespace

CudaWindows::~CudaWindows() {
  for (const Window& each : windows_) close(each);
  if (session_ != nullptr) api_.gdr_close(session_);
}

void CudaWindows::load() {
  std::call_once(loaded_, [this] {
    const auto api = gdr::load_api(file_);
    const auto opened = api.ok() ? gdr::open(*api) : Result<gdr::Opened>{api.status()};
    if (!opened.ok()) {
      absent_ = opened.status();
    } else if (cuda_.cuPointerSetAttribute == nullptr) {
      api->gdr_close(opened->session);
      absent_ = {IST_ERR_KIND, "the CUDA driver has no cuPointerSetAttribute; install a newer one"};
    } else {
      api_ = *api;
      session_ = opened->session;
      versions_ = opened->versions;
      present_ = true;
      return;
    }
    log::debug("no windows onto device memory: " + absent_.text());
  });
}

Result<std::string> CudaWindows::versions() {
  load();
  if (!present_) return absent_;
  return versions_;
}

bool CudaWindows::serves(CopyDirection direction, Bytes size) {
  if (size > kMostInto || size == Bytes{} || direction == CopyDirection::between_devices) return false;
  if (direction == CopyDirection::out_of_device && size > kMostOut) return false;
  load();
  return present_.load(std::memory_order_relaxed);
}

bool CudaWindows::copy_into(CudaContext& context, const PointerFacts& memory, std::uint64_t address, const void* from,
                            Bytes size) {
  const std::lock_guard lock(mutex_);
  const Window* const window = find(context, memory, address, size);
  return window != nullptr &&
         api_.gdr_copy_to_mapping(window->handle, window->place + (address - window->start), from, size.value) == 0;
}

bool CudaWindows::copy_out(CudaContext& context, const PointerFacts& memory, std::uint64_t address, void* to, Bytes size) {
  const std::lock_guard lock(mutex_);
  const Window* const window = find(context, memory, address, size);
  return window != nullptr &&
         api_.gdr_copy_from_mapping(window->handle, to, window->place + (address - window->start), size.value) == 0;
}

std::size_t CudaWindows::open_windows() {
  const std::lock_guard lock(mutex_);
  return windows_.size();
}

CudaWindows::Window* CudaWindows::find(CudaContext& context, const PointerFacts& memory, std::uint64_t address, Bytes size) {
  // Managed memory moves, and of mapped and pooled memory gdrcopy knows nothing.
  const bool whole = memory.known && !memory.on_host && address >= memory.start && address - memory.start <= memory.size &&
                     size.value <= memory.size - (address - memory.start);
  if (!whole || memory.memory_class != MemoryClass::device || memory.buffer_id == 0) return nullptr;
  const auto holds = [&](const Window& window) {
    return window.buffer_id == memory.buffer_id && address >= window.start &&
           address - window.start + size.value <= window.size;
  };
  if (const auto known = std::find_if(windows_.begin(), windows_.end(), holds); known != windows_.end()) {
    windows_.splice(windows_.begin(), windows_, known);
    return &windows_.front();
  }
  if (closed_.contains(memory.buffer_id)) return nullptr;
  close_others(memory);
  const Status made = make(context, memory, address, size);
  if (made.ok()) return &windows_.front();
  log::once(log::Level::info, "gdrcopy",
            "a window onto device memory cannot be opened, so that the driver copies: " + made.text());
  if (closed_.size() >= kMostClosed) closed_.clear();
  closed_.insert(memory.buffer_id);
  return nullptr;
}

// What was freed where this memory is now. A window of a neighbour on the same page stays: that lives.
void CudaWindows::close_others(const PointerFacts& memory) {
  for (auto each = windows_.begin(); each != windows_.end();) {
    const bool overlaps = each->start < memory.start + memory.size && memory.start < each->start + each->size;
    const PointerFacts now = overlaps && each->buffer_id != memory.buffer_id ? ask_driver(cuda_, each->asked_for) : memory;
    if (!overlaps || each->buffer_id == memory.buffer_id || (now.known && now.buffer_id == each->buffer_id)) {
      ++each;
      continue;
    }
    close(*each);
    each = windows_.erase(each);
  }
}

Status CudaWindows::make(CudaContext& context, const PointerFacts& memory, std::uint64_t address, Bytes size) {
  // Else a copy of the driver's may not be over where the driver says so.
  const ContextScope scope(cuda_, context);
  IST_TRY(scope.status());
  unsigned yes = 1;
  if (const CUresult result = cuda_.cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory.start);
      result != CUDA_SUCCESS)
    return cuda_error(cuda_, result, "cuPointerSetAttribute of memory at " + hexadecimal(memory.start));
  while (windows_.size() >= kMostWindows) {
    close(windows_.back());
    windows_.pop_back();
  }
  Window window;
  window.buffer_id = memory.buffer_id;
  window.asked_for = address;
  const std::uint64_t start = page_of(address);
  const std::uint64_t length = page_of(address + size.value - 1) + kPage - start;
  if (const int result = api_.gdr_pin_buffer(session_, start, length, 0, 0, &window.handle); result != 0)
    return refused("gdr_pin_buffer", result, length);
  if (const Status mapped = map(window); !mapped.ok()) {
    api_.gdr_unpin_buffer(session_, window.handle);
    return mapped;
  }
  if (address >= window.start && address - window.start + size.value <= window.size) {
    windows_.push_front(window);
    return {};
  }
  close(window);
  return {IST_ERR_DEVICE, "gdrcopy mapped " + std::to_string(window.size) + " bytes at " + hexadecimal(window.start) +
                              ", where " + hexadecimal(address) + " was asked for"};
}

// The driver may have begun before what was asked for: gdr_get_info_v2 says where.
Status CudaWindows::map(Window& window) const {
  gdr::Info info;
  if (const int result = api_.gdr_get_info_v2(session_, window.handle, &info); result != 0)
    return refused("gdr_get_info_v2", result, 0);
  window.mapped_size = info.size;
  if (const int result = api_.gdr_map(session_, window.handle, &window.mapped, info.size); result != 0)
    return refused("gdr_map", result, info.size);
  window.place = static_cast<std::byte*>(window.mapped);
  window.start = info.start;
  window.size = info.size;
  return {};
}

void CudaWindows::close(const Window& window) const {
  api_.gdr_unmap(session_, window.handle, window.mapped, window.mapped_size);
  api_.gdr_unpin_buffer(session_, window.handle);
}

}  // namespace ist
