// C calls that copy into and out of symmetric heaps.
#include "face/heap/heap_calls.hpp"

namespace ist {
namespace {

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

Status put_with_signal(CollectiveHeap& heap, const Named& named, const ist_buffer& source, const std::uint64_t* word,
                       const SignalChange& signal, Completes completes) {
  IST_TRY(check_signal(signal, reinterpret_cast<std::uint64_t>(word)));
  return put_signal(heap, named, source, Named{word, Bytes{sizeof *word}, named.pe}, signal, completes);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_heap_put(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, int pe) try {
  return ist::in_heap("ist_heap_put", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy(in, ist::Direction::put, ist::Named{dest, ist::Bytes{bytes}, pe}, source, ist::Completes::now);
  });
} catch (...) {
  return ist::report_exception("ist_heap_put");
}

int ist_heap_get(ist_heap heap, ist_buffer dest, const void* source, uint64_t bytes, int pe) try {
  return ist::in_heap("ist_heap_get", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy(in, ist::Direction::get, ist::Named{source, ist::Bytes{bytes}, pe}, dest, ist::Completes::now);
  });
} catch (...) {
  return ist::report_exception("ist_heap_get");
}

int ist_heap_put_nbi(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, int pe) try {
  return ist::in_heap("ist_heap_put_nbi", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy(in, ist::Direction::put, ist::Named{dest, ist::Bytes{bytes}, pe}, source, ist::Completes::at_quiet);
  });
} catch (...) {
  return ist::report_exception("ist_heap_put_nbi");
}

int ist_heap_get_nbi(ist_heap heap, ist_buffer dest, const void* source, uint64_t bytes, int pe) try {
  return ist::in_heap("ist_heap_get_nbi", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy(in, ist::Direction::get, ist::Named{source, ist::Bytes{bytes}, pe}, dest, ist::Completes::at_quiet);
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
    return ist::put_with_signal(in, {dest, ist::Bytes{bytes}, pe}, source, signal, {value, operation}, ist::Completes::now);
  });
} catch (...) {
  return ist::report_exception("ist_heap_put_signal");
}

int ist_heap_put_signal_nbi(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, uint64_t* signal, uint64_t value,
                            ist_signal operation, int pe) try {
  return ist::in_heap("ist_heap_put_signal_nbi", heap, [&](ist::CollectiveHeap& in) {
    return ist::put_with_signal(in, {dest, ist::Bytes{bytes}, pe}, source, signal, {value, operation},
                                ist::Completes::at_quiet);
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
