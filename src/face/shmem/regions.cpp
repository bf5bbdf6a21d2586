#include "face/shmem/regions.hpp"

#include <string>

#include "base/hexadecimal.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/world.hpp"

namespace ist::shmem {
Hot hot;

const Span* span_of(const volatile void* address, std::size_t bytes) {
  for (const Span& span : hot.spans) {
    const std::size_t there = span.bytes.load(std::memory_order_relaxed);
    const std::uintptr_t offset = offset_in(span, address);
    if (offset < there && bytes <= there - offset) return &span;
  }
  return nullptr;
}

Place look(const volatile void* address, std::size_t bytes, int pe) {
  if (pe < 0 || pe >= hot.pes) return {};
  if (const Span* const span = span_of(address, bytes); span != nullptr) {
    if (pe == hot.pe) return {const_cast<std::byte*>(static_cast<const volatile std::byte*>(address)), nullptr};
    return {copy_at(*span, offset_in(*span, address), pe), nullptr};
  }
  if (!hot.devices.load(std::memory_order_acquire)) return {};
  for (std::size_t number = 0; number < kDeviceKinds.size(); ++number) {
    const DeviceHeap device = world().device_heap(number);
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - device.begin;
    if (offset < device.bytes && bytes <= device.bytes - offset)
      return {const_cast<std::byte*>(static_cast<const volatile std::byte*>(address)), device.heap};
  }
  return {};
}

void* reach_on_device(const Place& place, int pe) {
  void* there = nullptr;
  return ist_heap_pointer(place.device, place.at, pe, &there) == IST_OK ? there : nullptr;
}

bool check_pe(const char* call, int pe) {
  if (pe >= 0 && pe < hot.pes) [[likely]]
    return true;
  if (hot.pes == 0)
    fail(call, "OpenSHMEM is not initialised here; call shmem_init first, and nothing after shmem_finalize");
  else
    fail(call, "PE " + std::to_string(pe) + " was named; there are PEs 0 to " + std::to_string(hot.pes - 1));
  return false;
}

Place find(const char* call, const volatile void* address, std::size_t bytes, int pe) {
  if (!check_pe(call, pe)) return {};
  const Place place = look(address, bytes, pe);
  if (place.at != nullptr) [[likely]]
    return place;
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const Span& heap = hot.heap();
  std::string text = std::to_string(bytes) + " bytes at " + hexadecimal(number) +
                     " were named, which are not symmetric; the symmetric heap of this PE goes from " +
                     hexadecimal(heap.begin) + " to " + hexadecimal(heap.begin + heap.bytes.load());
  const std::uintptr_t from_all = number - reinterpret_cast<std::uintptr_t>(heap.first);
  if (const auto other = from_all / heap.stride; other < static_cast<std::uintptr_t>(hot.pes))
    text += other == static_cast<std::uintptr_t>(hot.pe)
                ? ", and the bytes end behind it"
                : ", and that is an address in the part of PE " + std::to_string(other);
  const SymmetricGlobals* const globals = world().globals();
  if (globals != nullptr && !globals->symmetric())
    fail(call,
         text + "; name memory that shmem_malloc gave this PE, since global variables are not symmetric: " + globals->why());
  else
    fail(call, text + "; name memory that shmem_malloc gave this PE, or its own global variable, and the PE beside it");
  return {};
}

}  // namespace ist::shmem
