// C calls on symmetric heaps of devices in the order of users' streams.
#include <isthmus/heap_stream.h>

#include "base/ranges.hpp"
#include "face/heap/one_sided_words.hpp"
#include "face/heap/stream_calls.hpp"
#include "heap/word.hpp"
#include "memory/stream_order.hpp"
#include "protocol/choose.hpp"
#include "request/wait.hpp"

namespace ist {

Piece InStream::own_word() const {
  return heap_.memory().piece(heap_.memory().shape().pe, Offset{}, Bytes{sizeof(std::uint64_t)});
}

// Nothing is put into a stream that would wait for somebody who is gone.
Result<InStream> InStream::enter(CollectiveHeap& heap, void* stream) {
  if (heap.memory().shape().kind == KindId::opencl)
    return Status{
        IST_ERR_KIND,
        "the heap is of OpenCL memory, and CUDA streams have heaps of IST_KIND_CUDA; make the call without a stream"};
  if (heap.on_host())
    return Status{
        IST_ERR_KIND,
        "the heap is of host memory; streams have heaps of IST_KIND_CUDA, and kernels' puts are in isthmus/device.cuh"};
  StreamOrder* const order = heap.world().kinds().find(heap.memory().shape().kind)->stream_order();
  if (order == nullptr) return Status{IST_ERR_UNSUPPORTED, "this driver has not what kernels in streams need"};
  InStream in(heap, *order, reinterpret_cast<std::uint64_t>(stream));
  IST_TRY(heap.nobody_left());
  IST_TRY(order->belongs(in.stream_, in.own_word()));
  return in;
}

void InStream::settle() const {
  order_.use_streams();
  progress_until(heap_.world().engine(), [this] { return order_.settled(); });
}

Status InStream::copy(const Piece& to, const Piece& from) const { return order_.copy_in(stream_, own_word(), to, from); }

namespace {

template <class What>
int in_stream(const char* call, ist_heap heap, void* stream, const What& what) {
  const Range range(call);
  return in_heap(call, heap, [&](CollectiveHeap& in) -> Status {
    const auto entered = InStream::enter(in, stream);
    return entered.ok() ? what(*entered) : entered.status();
  });
}

// What is copied, checked: that PE's side and this one's. Both empty where there are no bytes.
struct Sides {
  Piece far;
  Piece near;
};
Result<Sides> sides_of(const InStream& in, const Named& named, const ist_buffer& local) {
  if (named.size == Bytes{}) {
    IST_TRY(in.heap().memory().check(named.pe));
    return Sides{};
  }
  const auto place = place_in(in.heap(), named);
  if (!place.ok()) return place.status();
  IST_TRY(in.heap().has_addresses(place->pe));
  const auto near = in.heap().world().kinds().resolve(local, named.size);
  if (!near.ok()) return near.status();
  if (near->kind == KindId::opencl)
    return Status{IST_ERR_KIND, "the local buffer is OpenCL memory; a CUDA stream copies between CUDA and host memory"};
  return Sides{in.heap().memory().piece(place->pe, place->offset, named.size), *near};
}

Status copy_on(const InStream& in, bool puts, const Named& named, const ist_buffer& local) {
  const auto sides = sides_of(in, named, local);
  if (!sides.ok()) return sides.status();
  if (named.size == Bytes{}) return {};
  return puts ? in.copy(sides->far, sides->near) : in.copy(sides->near, sides->far);
}

Status put_signal_on(const InStream& in, const Named& named, const ist_buffer& source, const std::uint64_t* word,
                     const SignalChange& signal) {
  IST_TRY(check_signal(signal, reinterpret_cast<std::uint64_t>(word)));
  const auto place = place_of_signal(in.heap(), Named{word, Bytes{sizeof *word}, named.pe}, signal);
  if (!place.ok()) return place.status();
  IST_TRY(in.heap().has_addresses(place->pe));
  if (signal.operation == IST_SIGNAL_ADD) IST_TRY(in.heap().changes_words_of(place->pe));
  const auto sides = sides_of(in, named, source);
  if (!sides.ok()) return sides.status();
  StreamPut put{sides->far, sides->near, in.heap().memory().piece(place->pe, place->offset, Bytes{sizeof signal.value}),
                signal.value, signal.operation == IST_SIGNAL_ADD};
  put.stores =
      stores_in_stream(named.size, (put.to.object + put.to.offset.value) ^ (put.from.object + put.from.offset.value),
                       in.heap().world().engine().parts().machine);
  return in.order().put_signal_in(in.stream(), in.own_word(), put);
}

WordWait::How how_of(ist_compare compare) {
  using How = WordWait::How;
  constexpr How kAll[] = {How::equal, How::not_equal, How::greater, How::greater_equal, How::less, How::less_equal};
  return kAll[compare];
}

Status wait_until_on(const InStream& in, const void* address, const Condition& wanted) {
  IST_TRY(check_condition(wanted, reinterpret_cast<std::uint64_t>(address)));
  const WordType type = word_type(wanted.type);
  SymmetricHeap& memory = in.heap().memory();
  const auto offset = memory.locate(address, Bytes{type.size});
  if (!offset.ok()) return offset.status();
  const WordWait wait{how_of(wanted.compare), type.is_signed, static_cast<std::uint64_t>(wanted.value),
                      in.heap().abort_word()};
  in.settle();
  return in.order().wait_in(in.stream(), memory.piece(memory.shape().pe, *offset, Bytes{type.size}), wait);
}

Status meet_on(const InStream& in) {
  IST_TRY(in.heap().has_addresses());
  IST_TRY(in.heap().kernels_meet());
  ist_team_view view{};
  in.heap().memory().fill(view);
  view.abort_word = in.heap().abort_word();
  if (view.pes > StreamOrder::kMostMeeting)
    return {IST_ERR_UNSUPPORTED, "the heap has " + std::to_string(view.pes) + " PEs; in streams at most " +
                                     std::to_string(StreamOrder::kMostMeeting) +
                                     " meet: use barrier() of isthmus/device.cuh in a kernel, or ist_heap_barrier"};
  in.settle();
  return in.order().meet_in(in.stream(), in.own_word(), view);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_heap_put_on(ist_heap heap, void* stream, void* dest, ist_buffer source, uint64_t bytes, int pe) try {
  return ist::in_stream("ist_heap_put_on", heap, stream, [&](const ist::InStream& in) {
    return ist::copy_on(in, true, {dest, ist::Bytes{bytes}, pe}, source);
  });
} catch (...) {
  return ist::report_exception("ist_heap_put_on");
}

int ist_heap_get_on(ist_heap heap, void* stream, ist_buffer dest, const void* source, uint64_t bytes, int pe) try {
  return ist::in_stream("ist_heap_get_on", heap, stream, [&](const ist::InStream& in) {
    return ist::copy_on(in, false, {source, ist::Bytes{bytes}, pe}, dest);
  });
} catch (...) {
  return ist::report_exception("ist_heap_get_on");
}

int ist_heap_put_signal_on(ist_heap heap, void* stream, void* dest, ist_buffer source, uint64_t bytes, uint64_t* signal,
                           uint64_t value, ist_signal operation, int pe) try {
  return ist::in_stream("ist_heap_put_signal_on", heap, stream, [&](const ist::InStream& in) {
    return ist::put_signal_on(in, {dest, ist::Bytes{bytes}, pe}, source, signal, {value, operation});
  });
} catch (...) {
  return ist::report_exception("ist_heap_put_signal_on");
}

int ist_heap_wait_until_on(ist_heap heap, void* stream, const void* address, ist_type type, ist_compare compare,
                           int64_t value) try {
  return ist::in_stream("ist_heap_wait_until_on", heap, stream, [&](const ist::InStream& in) {
    return ist::wait_until_on(in, address, {type, compare, value});
  });
} catch (...) {
  return ist::report_exception("ist_heap_wait_until_on");
}

int ist_heap_barrier_on(ist_heap heap, void* stream) try {
  return ist::in_stream("ist_heap_barrier_on", heap, stream, [](const ist::InStream& in) { return ist::meet_on(in); });
} catch (...) {
  return ist::report_exception("ist_heap_barrier_on");
}
}
