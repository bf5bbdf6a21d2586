// C calls about symmetric heaps: making and growing them, what is allocated in them, and who is where.
#include "base/ranges.hpp"
#include "face/heap/heap_calls.hpp"
#include "face/message/errors.hpp"

namespace ist {
namespace {

int create_heap(ist_comm comm, const CollectiveHeap::Wanted& wanted, ist_heap* heap) {
  constexpr const char* kCall = "ist_heap_create";
  const Range range(kCall);
  if (heap == nullptr) return null_argument(kCall, "heap");
  *heap = IST_HEAP_NULL;
  const auto found = look_up(comm);
  if (!found.ok()) return report(in_call(kCall, found.status()));
  auto made = CollectiveHeap::create(*found->world, *found->comm, wanted);
  if (!made.ok()) return report(in_call(kCall, made.status()));
  const auto name = found->world->heaps().add(std::move(*made));
  if (!name)
    return report(IST_ERR_MEMORY, std::string{kCall} + ": this world already has 65536 heaps; destroy some of them first");
  *heap = heap_handle(comm, *name);
  found->world->heaps().find(*name)->look_at_board();  // who died before the watcher could see the heap
  return IST_OK;
}

int destroy_heap(ist_heap* heap) {
  constexpr const char* kCall = "ist_heap_destroy";
  if (heap == nullptr) return null_argument(kCall, "heap");
  const auto found = look_up(*heap);
  if (!found.ok()) return report(in_call(kCall, found.status()));
  const Status ended = (*found)->end();
  (*found)->world().heaps().remove(name_in(*heap));
  *heap = IST_HEAP_NULL;
  return ended.ok() ? IST_OK : report(in_call(kCall, ended));
}

struct Allocation {
  const char* call;
  std::uint64_t bytes;
  std::uint64_t alignment = OffsetAllocator::kLine;
  bool zero = false;
  Status wrong = {};
};

int allocate(ist_heap heap, const Allocation& wanted, void** address) {
  const Range range(wanted.call);
  // Said to all, as everything that is wrong at one PE: the others are on their way into the call.
  Status wrong = wanted.wrong;
  if (address == nullptr)
    wrong = {IST_ERR_ARGUMENT, "address is null; pass the address of a variable"};
  else
    *address = nullptr;
  return in_heap(wanted.call, heap, [&](CollectiveHeap& in) -> Status {
    const auto made = in.allocate(wanted.call, wanted.bytes, wanted.alignment, wanted.zero, wrong);
    if (made.ok()) *address = *made;
    return made.status();
  });
}

Allocation product(std::uint64_t count, std::uint64_t size) {
  Allocation wanted{"ist_heap_calloc", 0, OffsetAllocator::kLine, true, {}};
  if (__builtin_mul_overflow(count, size, &wanted.bytes))
    wanted.wrong = {IST_ERR_OVERFLOW,
                    std::to_string(count) + " times " + std::to_string(size) + " bytes do not fit 64 bits"};
  return wanted;
}

template <class T>
int tell(const char* call, ist_heap heap, T* place, T (*what)(CollectiveHeap&)) {
  if (place == nullptr) return null_argument(call, "the result");
  return in_heap(call, heap, [&](CollectiveHeap& in) -> Status {
    *place = what(in);
    return {};
  });
}

}  // namespace

int null_argument(const char* call, const char* argument) {
  return report(IST_ERR_ARGUMENT, std::string{call} + ": " + argument + " is null; pass the address of a variable");
}

}  // namespace ist

extern "C" {

int ist_heap_create(ist_comm comm, ist_kind kind, int device, uint64_t bytes, uint64_t most, ist_heap* heap) try {
  return ist::create_heap(comm, {kind, device, bytes, most}, heap);
} catch (...) {
  return ist::report_exception("ist_heap_create");
}

int ist_heap_destroy(ist_heap* heap) try { return ist::destroy_heap(heap); } catch (...) {
  return ist::report_exception("ist_heap_destroy");
}

int ist_heap_grow(ist_heap heap, uint64_t bytes) try {
  return ist::in_heap("ist_heap_grow", heap, [=](ist::CollectiveHeap& in) { return in.grow(bytes); });
} catch (...) {
  return ist::report_exception("ist_heap_grow");
}

int ist_heap_alloc(ist_heap heap, uint64_t bytes, void** address) try {
  return ist::allocate(heap, {"ist_heap_alloc", bytes}, address);
} catch (...) {
  return ist::report_exception("ist_heap_alloc");
}

int ist_heap_calloc(ist_heap heap, uint64_t count, uint64_t size, void** address) try {
  return ist::allocate(heap, ist::product(count, size), address);
} catch (...) {
  return ist::report_exception("ist_heap_calloc");
}

int ist_heap_aligned(ist_heap heap, uint64_t alignment, uint64_t bytes, void** address) try {
  return ist::allocate(heap, {"ist_heap_aligned", bytes, alignment}, address);
} catch (...) {
  return ist::report_exception("ist_heap_aligned");
}

int ist_heap_free(ist_heap heap, void* address) try {
  return ist::in_heap("ist_heap_free", heap,
                      [=](ist::CollectiveHeap& in) { return address == nullptr ? ist::Status{} : in.release(address); });
} catch (...) {
  return ist::report_exception("ist_heap_free");
}

int ist_heap_room(ist_heap heap, uint64_t* free_bytes, uint64_t* largest) try {
  return ist::in_heap("ist_heap_room", heap, [=](ist::CollectiveHeap& in) -> ist::Status {
    const auto room = in.memory().room();
    if (free_bytes != nullptr) *free_bytes = room.free.value;
    if (largest != nullptr) *largest = room.largest.value;
    return {};
  });
} catch (...) {
  return ist::report_exception("ist_heap_room");
}

int ist_heap_barrier(ist_heap heap) try {
  return ist::in_heap("ist_heap_barrier", heap, [](ist::CollectiveHeap& in) { return in.barrier(); });
} catch (...) {
  return ist::report_exception("ist_heap_barrier");
}

int ist_heap_pe(ist_heap heap, int* pe) try {
  return ist::tell<int>("ist_heap_pe", heap, pe, [](ist::CollectiveHeap& in) { return int{in.memory().shape().pe.value}; });
} catch (...) {
  return ist::report_exception("ist_heap_pe");
}

int ist_heap_pes(ist_heap heap, int* pes) try {
  return ist::tell<int>("ist_heap_pes", heap, pes, [](ist::CollectiveHeap& in) { return in.memory().shape().pes; });
} catch (...) {
  return ist::report_exception("ist_heap_pes");
}

int ist_heap_pointer(ist_heap heap, const void* address, int pe, void** remote) try {
  if (remote == nullptr) return ist::null_argument("ist_heap_pointer", "remote");
  *remote = nullptr;
  return ist::in_heap("ist_heap_pointer", heap, [=](ist::CollectiveHeap& in) -> ist::Status {
    const auto place = ist::place_in(in, {address, ist::Bytes{1}, pe});
    if (place.ok()) IST_TRY(in.has_addresses(place->pe));
    if (place.ok()) *remote = in.memory().at(place->pe, place->offset);
    return place.status();
  });
} catch (...) {
  return ist::report_exception("ist_heap_pointer");
}

int ist_heap_buffer(ist_heap heap, const void* address, ist_buffer* buffer) try {
  if (buffer == nullptr) return ist::null_argument("ist_heap_buffer", "buffer");
  *buffer = ist_buffer{};
  return ist::in_heap("ist_heap_buffer", heap, [=](ist::CollectiveHeap& in) -> ist::Status {
    const auto offset = in.memory().locate(address, ist::Bytes{1});
    if (offset.ok()) *buffer = in.memory().buffer(*offset);
    return offset.status();
  });
} catch (...) {
  return ist::report_exception("ist_heap_buffer");
}

int ist_heap_accessible(ist_heap heap, const void* address, int pe, int* accessible) try {
  if (accessible == nullptr) return ist::null_argument("ist_heap_accessible", "accessible");
  *accessible = 0;
  return ist::in_heap("ist_heap_accessible", heap, [=](ist::CollectiveHeap& in) -> ist::Status {
    *accessible = ist::place_in(in, {address, ist::Bytes{1}, pe}).ok() ? 1 : 0;
    return {};
  });
} catch (...) {
  return ist::report_exception("ist_heap_accessible");
}

int ist_heap_device_view(ist_heap heap, int device, ist_device_view* view) try {
  if (view == nullptr) return ist::null_argument("ist_heap_device_view", "view");
  *view = {};
  return ist::in_heap("ist_heap_device_view", heap, [=](ist::CollectiveHeap& in) {
    ist_device_view made{};
    ist::Status filled = in.view_from(device, made);
    if (filled.ok()) *view = made;
    return filled;
  });
} catch (...) {
  return ist::report_exception("ist_heap_device_view");
}

int ist_heap_view(ist_heap heap, ist_team_view* view) try {
  if (view == nullptr) return ist::null_argument("ist_heap_view", "view");
  return ist::in_heap("ist_heap_view", heap, [=](ist::CollectiveHeap& in) -> ist::Status {
    IST_TRY(in.has_addresses());
    IST_TRY(in.kernels_change_words());
    in.memory().fill(*view);
    view->abort_word = in.abort_word_for_kernels();
    return {};
  });
} catch (...) {
  return ist::report_exception("ist_heap_view");
}
}
