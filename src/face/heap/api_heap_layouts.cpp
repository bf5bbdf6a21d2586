// C calls that copy layouts into and out of symmetric heaps.
#include <isthmus/heap_stream.h>

#include <algorithm>

#include "base/ranges.hpp"
#include "face/heap/stream_calls.hpp"
#include "face/message/layout_calls.hpp"
#include "layout/form.hpp"
#include "layout/signature.hpp"
#include "memory/stream_order.hpp"

namespace ist {
namespace {

// Of a device's memory, where bytes are packed on one side and unpacked on the other.
constexpr Bytes kBlock = mebibytes(64);

// So many layouts at an address of the caller's own part, and whose copy of them is meant.
struct FarData {
  const void* address;
  std::int64_t count;
  ist_layout layout;
  int pe;
};

Status of_side(const char* side, const Status& found) { return {found.code(), std::string{side} + ": " + found.text()}; }

// Bytes before the address are in the part, too.
Result<Laid> lay_far(const CollectiveHeap& heap, const FarData& data, bool written) {
  IST_TRY(heap.memory().check(data.pe));
  const auto shape = shape_of(data.count, data.layout, written);
  if (!shape.ok()) return shape.status();
  const Bounds& reach = (*shape)->reach;
  Laid laid{*shape, host_piece(nullptr, Bytes{}), -reach.lower};
  if (laid.shape->form.size == 0) return laid;
  const Bytes extent{static_cast<std::uint64_t>(reach.extent())};
  const std::uint64_t first = reinterpret_cast<std::uint64_t>(data.address) + static_cast<std::uint64_t>(reach.lower);
  const auto offset = heap.memory().locate(reinterpret_cast<const void*>(first), extent);
  if (!offset.ok())
    return Status{offset.status().code(), "the layout has bytes from " + std::to_string(reach.lower) + " up to " +
                                              std::to_string(reach.upper) + " of its address; " + offset.status().text()};
  laid.memory = heap.memory().piece(Pe{data.pe}, *offset, extent);
  return laid;
}

// One kernel into memory of the library's on a device of one of the sides, and one, or a copy, out of it.
Status through_block(World& world, const Laid& to, const Laid& from, const Laid& on_device) {
  const auto size = static_cast<std::int64_t>(to.size().value);
  const auto most = std::min(size, static_cast<std::int64_t>(kBlock.value));
  IST_TRY(can_pack(world.kinds(), on_device.memory));
  const auto block = world.engine().scratch().take(on_device.memory, Bytes{static_cast<std::uint64_t>(most)});
  if (!block.ok()) return block.status();
  for (std::int64_t at = 0; at < size; at += most) {
    const std::int64_t end = std::min(size, at + most);
    Piece packed = block->piece().part(Offset{}, Bytes{static_cast<std::uint64_t>(end - at)});
    packed.ready = true;  // whatever queue it came with
    IST_TRY(pack_part(world, from, {at, end, false}, packed));
    IST_TRY(pack_part(world, to, {at, end, true}, packed));
  }
  return {};
}

Status move_laid(World& world, const Laid& to, const Laid& from) {
  const auto size = static_cast<std::int64_t>(to.size().value);
  const auto to_row = in_one_piece(to), from_row = in_one_piece(from);
  const bool on_host = to.memory.kind == KindId::host && from.memory.kind == KindId::host;
  if (on_host && !(to_row && from_row && to.size() > kCopiedByCaller)) {
    move(to.shape->form, to.memory.address() + to.origin, from.shape->form, from.memory.address() + from.origin);
    return {};
  }
  if (to_row) return pack_part(world, from, {0, size, false}, *to_row);
  if (from_row) return pack_part(world, to, {0, size, true}, *from_row);
  return through_block(world, to, from, to.memory.kind != KindId::host ? to : from);
}

// What other PEs' memory is packed by is this PE's own device.
Laid for_own_device(const CollectiveHeap& heap, Laid far) {
  if (!heap.on_host() && !in_one_piece(far)) far.memory.device = heap.memory().shape().device;
  return far;
}

// Where the setting check asks for it: both sides are here.
Status compare_types(const World& world, const LaidData& to, const LaidData& from) {
  if (!world.settings().check) [[likely]]
    return {};
  const SharedLayout into = types_of(to), out_of = types_of(from);
  const auto found = into && out_of ? difference(note_of(*out_of), *into) : std::nullopt;
  if (!found) return {};
  return {IST_ERR_ARGUMENT, described(*found, {"source", note_of(*out_of)}, {"dest", note_of(*into)}) +
                                "; name the same types on both sides, or IST_BYTE on one (found by ISTHMUS_CHECK)"};
}

// Both sides, checked; nothing to copy where they are empty.
struct BothSides {
  Laid to;
  Laid from;
};
Result<BothSides> both_sides(CollectiveHeap& heap, bool puts, const FarData& far_data, const LaidData& near_data) {
  const auto far = lay_far(heap, far_data, puts);
  if (!far.ok()) return of_side(puts ? "dest" : "source", far.status());
  const auto near = lay(heap.world(), near_data, !puts);
  if (!near.ok()) return of_side(puts ? "source" : "dest", near.status());
  const Bytes to = puts ? far->size() : near->size();
  const Bytes from = puts ? near->size() : far->size();
  if (to != from)
    return Status{IST_ERR_ARGUMENT, "dest_count times dest_layout is " + std::to_string(to.value) +
                                        " bytes, source_count times source_layout " + std::to_string(from.value) +
                                        "; both must name as many"};
  if (to == Bytes{}) return BothSides{*far, *near};
  const LaidData far_types{near_data.buffer, far_data.count, far_data.layout};
  IST_TRY(puts ? compare_types(heap.world(), far_types, near_data) : compare_types(heap.world(), near_data, far_types));
  const Laid there = for_own_device(heap, *far);
  return puts ? BothSides{there, *near} : BothSides{*near, there};
}

// The other PE is asked for each run by itself: where in its part, and the bytes of the block with those from `from` on of the stream.
Status ask_for_runs(CollectiveHeap& heap, bool puts, const Laid& far, const PlaceInHeap& origin, const PackPart& part,
                    std::byte* block) {
  PartService& service = *heap.service_for(origin.pe);
  PartService::Batch runs;
  std::int64_t at = 0;
  Status asked;
  const auto run = [&](std::int64_t offset, std::int64_t length) {
    const std::int64_t first = std::max(at, part.from), last = std::min(at + length, part.to);
    const std::int64_t place = offset + first - at;
    at += length;
    if (first >= last || !asked.ok()) return;
    const Piece here = host_piece(block + (first - part.from), Bytes{static_cast<std::uint64_t>(last - first)});
    const PartService::Far there{origin.pe, origin.offset + Bytes{static_cast<std::uint64_t>(place)}};
    asked = puts ? service.put(there, here, nullptr, {false, &runs}) : service.get(here, there, {false, &runs});
  };
  each_run(far.shape->form, [&](const Run& each) { run(each.offset, each.bytes); });
  // Whatever went wrong, nothing touches the block any more.
  const Status over = service.end(runs);
  return asked.ok() ? over : asked;
}

// Where in that PE's part: a piece of it is named by that, or by an address.
Offset place_of(const CollectiveHeap& heap, Pe pe, const Piece& piece) {
  if (heap.memory().shape().reach == SpaceReach::owner) return piece.offset;
  return Offset{static_cast<std::uint64_t>(piece.address() - heap.at(pe, Offset{}))};
}

// No device of this PE's reaches there: bytes go in a row if they lie so on both sides, and else by a block of host memory.
Status copy_served(CollectiveHeap& heap, bool puts, const BothSides& sides, Pe pe) {
  const Laid& far = puts ? sides.to : sides.from;
  const Laid& near = puts ? sides.from : sides.to;
  PartService& service = *heap.service_for(pe);
  const auto row = in_one_piece(far), here = in_one_piece(near);
  if (row && here) {
    const PartService::Far there{pe, place_of(heap, pe, *row)};
    return puts ? service.put(there, *here, nullptr, {true}) : service.get(*here, there, {true});
  }
  // Byte 0 of the layout may lie before the part; its bytes do not.
  const PlaceInHeap origin{pe, Offset{place_of(heap, pe, far.memory).value + static_cast<std::uint64_t>(far.origin)}};
  const std::int64_t size = far.shape->form.size;
  const std::int64_t most = std::min(size, static_cast<std::int64_t>(kBlock.value));
  std::vector<std::byte> block(static_cast<std::size_t>(most));
  for (std::int64_t at = 0; at < size; at += most) {
    const PackPart part{at, std::min(size, at + most), !puts};
    const Piece packed = host_piece(block.data(), Bytes{static_cast<std::uint64_t>(part.to - part.from)});
    if (puts) IST_TRY(pack_part(heap.world(), near, part, packed));
    IST_TRY(ask_for_runs(heap, puts, far, origin, part, block.data()));
    if (!puts) IST_TRY(pack_part(heap.world(), near, part, packed));
  }
  return {};
}

Status copy_layouts(CollectiveHeap& heap, bool puts, const FarData& far_data, const LaidData& near_data) {
  const auto sides = both_sides(heap, puts, far_data, near_data);
  if (!sides.ok() || sides->to.size() == Bytes{}) return sides.status();
  if (const Pe pe{far_data.pe}; heap.service_for(pe) != nullptr) return copy_served(heap, puts, *sides, pe);
  return move_laid(heap.world(), sides->to, sides->from);
}

// A list of runs lies on the device for as long as its shape is there, and comes there by a copy that no graph may hold.
Status keep_runs(const InStream& in, const Laid& laid) {
  if (laid.shape->form.strided()) return {};
  const bool captures = in.order().captures(in.stream(), in.own_word());
  if (in.heap().keep(laid.shape, captures) || !captures) return {};
  return {IST_ERR_NOT_CAPTURABLE,
          "the layout is no regular one, and its runs are not on the device yet; make this very call, with this layout and "
          "count, once outside of the capture"};
}

// By one kernel, or one copy.
Status copy_layouts_on(const InStream& in, bool puts, const FarData& far_data, const LaidData& near_data) {
  const auto sides = both_sides(in.heap(), puts, far_data, near_data);
  if (!sides.ok() || sides->to.size() == Bytes{}) return sides.status();
  IST_TRY(in.heap().has_addresses(Pe{far_data.pe}));
  const Laid &to = sides->to, &from = sides->from;
  for (const Laid* side : {&to, &from})
    if (side->memory.kind != in.heap().memory().shape().kind)
      return {
          IST_ERR_KIND,
          "the local buffer is no CUDA memory; in a stream layouts are packed by kernels, on both sides of device memory"};
  const auto to_row = in_one_piece(to), from_row = in_one_piece(from);
  if (to_row && from_row) return in.copy(*to_row, *from_row);
  const Laid& laid = to_row ? from : to;
  IST_TRY(can_pack(in.heap().world().kinds(), laid.memory));
  for (const Laid* side : {&to, &from}) IST_TRY(keep_runs(in, *side));
  BoxPacking& packing = *in.heap().world().kinds().find(laid.memory.kind)->box_packing();
  const std::int64_t size = laid.shape->form.size;
  if (!to_row && !from_row)
    return packing.relay_in(in.stream(), {form_of(from.shape), from.memory, from.origin, {}, 0, size, false},
                            {form_of(to.shape), to.memory, to.origin, {}, 0, size, true});
  Piece packed = to_row ? *to_row : *from_row;
  packed.device = laid.memory.device;  // the kernel runs there, wherever the bytes are
  const PackWork work{form_of(laid.shape), laid.memory, laid.origin, packed, 0, size, !to_row};
  return packing.pack_in(in.stream(), std::span{&work, 1});
}

int copy_layouts_on(const char* call, ist_heap heap, void* stream, bool puts, const FarData& far, const LaidData& near) {
  const Range range(call);
  return in_heap(call, heap, [&](CollectiveHeap& of) -> Status {
    const auto in = InStream::enter(of, stream);
    return in.ok() ? copy_layouts_on(*in, puts, far, near) : in.status();
  });
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_heap_put_layout(ist_heap heap, void* dest, int64_t dest_count, ist_layout dest_layout, ist_buffer source,
                        int64_t source_count, ist_layout source_layout, int pe) try {
  const ist::Range range("ist_heap_put_layout");
  return ist::in_heap("ist_heap_put_layout", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy_layouts(in, true, {dest, dest_count, dest_layout, pe}, {source, source_count, source_layout});
  });
} catch (...) {
  return ist::report_exception("ist_heap_put_layout");
}

int ist_heap_get_layout(ist_heap heap, ist_buffer dest, int64_t dest_count, ist_layout dest_layout, const void* source,
                        int64_t source_count, ist_layout source_layout, int pe) try {
  const ist::Range range("ist_heap_get_layout");
  return ist::in_heap("ist_heap_get_layout", heap, [&](ist::CollectiveHeap& in) {
    return ist::copy_layouts(in, false, {source, source_count, source_layout, pe}, {dest, dest_count, dest_layout});
  });
} catch (...) {
  return ist::report_exception("ist_heap_get_layout");
}

int ist_heap_put_layout_on(ist_heap heap, void* stream, void* dest, int64_t dest_count, ist_layout dest_layout,
                           ist_buffer source, int64_t source_count, ist_layout source_layout, int pe) try {
  return ist::copy_layouts_on("ist_heap_put_layout_on", heap, stream, true, {dest, dest_count, dest_layout, pe},
                              {source, source_count, source_layout});
} catch (...) {
  return ist::report_exception("ist_heap_put_layout_on");
}

int ist_heap_get_layout_on(ist_heap heap, void* stream, ist_buffer dest, int64_t dest_count, ist_layout dest_layout,
                           const void* source, int64_t source_count, ist_layout source_layout, int pe) try {
  return ist::copy_layouts_on("ist_heap_get_layout_on", heap, stream, false, {source, source_count, source_layout, pe},
                              {dest, dest_count, dest_layout});
} catch (...) {
  return ist::report_exception("ist_heap_get_layout_on");
}
}
