// C calls that copy into and out of symmetric heaps.
#include <cstring>

#include "face/heap/conditions.hpp"
#include "face/heap/device_words.hpp"
#include "heap/word.hpp"

namespace ist {
namespace {

Status check_signal(const std::uint64_t* signal, ist_signal operation) {
  if (operation != IST_SIGNAL_SET && operation != IST_SIGNAL_ADD)
    return {IST_ERR_ARGUMENT,
            "operation is " + std::to_string(static_cast<int>(operation)) + "; it must be IST_SIGNAL_SET or _ADD"};
  if (reinterpret_cast<std::uint64_t>(signal) % sizeof *signal != 0)
    return {IST_ERR_ARGUMENT, "the signal's address is no multiple of 8"};
  return {};
}

}  // namespace

Result<PlaceInHeap> place_of(CollectiveHeap& heap, const Signal& signal, int pe) {
  IST_TRY(check_signal(signal.address, signal.operation));
  auto place = place_in(heap, {signal.address, Bytes{sizeof(std::uint64_t)}, pe});
  // Before anything is copied: who waits for the word would not hear of it.
  if (place.ok() && signal.operation == IST_SIGNAL_ADD && !heap.on_host()) IST_TRY(can_change_on_device(heap, place->pe));
  return place;
}

namespace {

enum class Direction { put, get };
enum class Completes { now, at_quiet };

bool plain_host(const CollectiveHeap& heap, const ist_buffer& local, Bytes size) {
  return heap.on_host() && local.kind == IST_KIND_HOST && size <= kCopiedByCaller;
}

Status null_buffer(Bytes size) {
  return {IST_ERR_ARGUMENT, "the local buffer is null, and " + std::to_string(size.value) + " bytes were to be copied"};
}

// add(Transfer): of a copy that may go on behind its call, what is left to do; not called where the bytes are there.
template <class Add>
Status copy(CollectiveHeap& heap, Direction direction, const Named& named, const ist_buffer& local, Completes completes,
            const Add& add) {
  if (named.size == Bytes{}) return heap.memory().check(named.pe);
  const auto place = place_in(heap, named);
  if (!place.ok()) return place.status();
  if (local.object == 0 && local.kind != IST_KIND_OPENCL) return null_buffer(named.size);
  if (plain_host(heap, local, named.size)) {
    void* const far = heap.memory().at(place->pe, place->offset);
    void* const near = reinterpret_cast<void*>(local.object + local.offset);
    std::memmove(direction == Direction::put ? far : near, direction == Direction::put ? near : far, named.size.value);
    return {};
  }
  const auto near = heap.world().kinds().resolve(local, named.size);
  if (!near.ok()) return near.status();
  const Piece far = heap.memory().piece(place->pe, place->offset, named.size);
  const Piece& to = direction == Direction::put ? far : *near;
  const Piece& from = direction == Direction::put ? *near : far;
  if (completes == Completes::now) return copy_pieces(heap.world(), to, from);
  Transfer transfer{heap.world().kinds(), heap.world().pool(), to, from};
  const auto done = transfer.step();
  if (!done.ok()) return done.status();
  if (!*done) add(std::move(transfer));
  return {};
}

Status copy(CollectiveHeap& heap, Direction direction, const Named& named, const ist_buffer& local, Completes completes) {
  return copy(heap, direction, named, local, completes, [&heap](Transfer rest) { heap.add(std::move(rest)); });
}

// One of several elements that are equally far apart, on either side.
struct Strided {
  std::uint64_t far = 0;
  std::uint64_t near = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
};

Result<Bytes> span_of(std::uint64_t stride, const Strided& shape, const char* name) {
  if (stride < shape.size)
    return Status{IST_ERR_ARGUMENT, std::string{name} + " is " + std::to_string(stride) + " bytes, less than the " +
                                        std::to_string(shape.size) + " of an element"};
  std::uint64_t span = 0;
  if (__builtin_mul_overflow(stride, shape.count - 1, &span) || __builtin_add_overflow(span, shape.size, &span))
    return Status{IST_ERR_OVERFLOW,
                  std::to_string(shape.count) + " elements " + std::to_string(stride) + " bytes apart do not fit 64 bits"};
  return Bytes{span};
}

Status copy_strided(CollectiveHeap& heap, Direction direction, const void* address, const ist_buffer& local,
                    const Strided& shape, int pe) {
  if (shape.size == 0 || shape.count == 0) return heap.memory().check(pe);
  const bool puts = direction == Direction::put;
  const auto far = span_of(shape.far, shape, puts ? "dest_stride" : "source_stride");
  if (!far.ok()) return far.status();
  const auto near = span_of(shape.near, shape, puts ? "source_stride" : "dest_stride");
  if (!near.ok()) return near.status();
  // Nothing is copied where not all of it may be.
  const auto place = place_in(heap, {address, *far, pe});
  if (!place.ok()) return place.status();
  if (local.kind != IST_KIND_HOST)
    if (const auto whole = heap.world().kinds().resolve(local, *near); !whole.ok()) return whole.status();
  for (std::uint64_t i = 0; i < shape.count; ++i) {
    const Named each{static_cast<const std::byte*>(address) + i * shape.far, Bytes{shape.size}, pe};
    IST_TRY(copy(heap, direction, each, ist_buffer_at(local, i * shape.near), Completes::at_quiet));
  }
  return heap.quiet();
}

Status set_signal(CollectiveHeap& heap, const PlaceInHeap& place, std::uint64_t value, ist_signal operation) {
  if (heap.on_host()) {
    change<std::uint64_t>(heap.memory().at(place.pe, place.offset),
                          operation == IST_SIGNAL_ADD ? IST_ATOMIC_ADD : IST_ATOMIC_SET, value);
    return {};
  }
  if (operation == IST_SIGNAL_ADD)
    return change_on_device(heap, place, Bytes{sizeof value}, {WordChange::What::add, value, 0}).status();
  return copy_pieces(heap.world(), heap.memory().piece(place.pe, place.offset, Bytes{sizeof value}),
                     host_piece(&value, Bytes{sizeof value}));
}

Status put_signal_nbi(CollectiveHeap& heap, const Named& named, const ist_buffer& source, const Signal& signal) {
  const auto place = place_of(heap, signal, named.pe);
  if (!place.ok()) return place.status();
  bool goes_on = false;
  IST_TRY(copy(heap, Direction::put, named, source, Completes::at_quiet, [&](Transfer rest) {
    goes_on = true;
    heap.add(std::move(rest),
             [&heap, where = *place, signal] { return set_signal(heap, where, signal.value, signal.operation); });
  }));
  return goes_on ? Status{} : set_signal(heap, *place, signal.value, signal.operation);
}

Status put_signal(CollectiveHeap& heap, const Named& named, const ist_buffer& source, const Signal& signal) {
  const auto place = place_of(heap, signal, named.pe);
  if (!place.ok()) return place.status();
  IST_TRY(copy(heap, Direction::put, named, source, Completes::now));
  return set_signal(heap, *place, signal.value, signal.operation);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_heap_put(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, int pe) try {
  return ist::in_heap("ist_heap_put", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy(in, ist::Direction::put, {dest, ist::Bytes{bytes}, pe}, source, ist::Completes::now);
  });
} catch (...) {
  return ist::report_exception("ist_heap_put");
}

int ist_heap_get(ist_heap heap, ist_buffer dest, const void* source, uint64_t bytes, int pe) try {
  return ist::in_heap("ist_heap_get", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy(in, ist::Direction::get, {source, ist::Bytes{bytes}, pe}, dest, ist::Completes::now);
  });
} catch (...) {
  return ist::report_exception("ist_heap_get");
}

int ist_heap_put_nbi(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, int pe) try {
  return ist::in_heap("ist_heap_put_nbi", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy(in, ist::Direction::put, {dest, ist::Bytes{bytes}, pe}, source, ist::Completes::at_quiet);
  });
} catch (...) {
  return ist::report_exception("ist_heap_put_nbi");
}

int ist_heap_get_nbi(ist_heap heap, ist_buffer dest, const void* source, uint64_t bytes, int pe) try {
  return ist::in_heap("ist_heap_get_nbi", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy(in, ist::Direction::get, {source, ist::Bytes{bytes}, pe}, dest, ist::Completes::at_quiet);
  });
} catch (...) {
  return ist::report_exception("ist_heap_get_nbi");
}

int ist_heap_iput(ist_heap heap, void* dest, uint64_t dest_stride, ist_buffer source, uint64_t source_stride, uint64_t size,
                  uint64_t count, int pe) try {
  return ist::in_heap("ist_heap_iput", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy_strided(in, ist::Direction::put, dest, source, {dest_stride, source_stride, size, count}, pe);
  });
} catch (...) {
  return ist::report_exception("ist_heap_iput");
}

int ist_heap_iget(ist_heap heap, ist_buffer dest, uint64_t dest_stride, const void* source, uint64_t source_stride,
                  uint64_t size, uint64_t count, int pe) try {
  return ist::in_heap("ist_heap_iget", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy_strided(in, ist::Direction::get, source, dest, {source_stride, dest_stride, size, count}, pe);
  });
} catch (...) {
  return ist::report_exception("ist_heap_iget");
}

int ist_heap_put_signal(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, uint64_t* signal, uint64_t value,
                        ist_signal operation, int pe) try {
  return ist::in_heap("ist_heap_put_signal", heap, [&](ist::CollectiveHeap& in) {
    return ist::put_signal(in, {dest, ist::Bytes{bytes}, pe}, source, {signal, value, operation});
  });
} catch (...) {
  return ist::report_exception("ist_heap_put_signal");
}

int ist_heap_put_signal_nbi(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, uint64_t* signal, uint64_t value,
                            ist_signal operation, int pe) try {
  return ist::in_heap("ist_heap_put_signal_nbi", heap, [&](ist::CollectiveHeap& in) {
    return ist::put_signal_nbi(in, {dest, ist::Bytes{bytes}, pe}, source, {signal, value, operation});
  });
} catch (...) {
  return ist::report_exception("ist_heap_put_signal_nbi");
}

// Copies of devices have an order only where they are waited for.
int ist_heap_fence(ist_heap heap) try {
  return ist::in_heap("ist_heap_fence", heap, [](ist::CollectiveHeap& in) { return in.quiet(); });
} catch (...) {
  return ist::report_exception("ist_heap_fence");
}

int ist_heap_quiet(ist_heap heap) try {
  return ist::in_heap("ist_heap_quiet", heap, [](ist::CollectiveHeap& in) { return in.quiet(); });
} catch (...) {
  return ist::report_exception("ist_heap_quiet");
}
}
