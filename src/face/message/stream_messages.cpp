#include "face/message/stream_messages.hpp"

#include <isthmus/stream.h>

#include "face/message/stream_notes.hpp"

namespace ist {
namespace {

constexpr int kBothSides = IST_SENDS | IST_RECEIVES;

ChannelName channel_name(const Partner& with, const StreamHalf& half) {
  return {with.comm, Rank{with.rank}, half.tag, half.side};
}

Status lay_in_block(StreamMessage& message, const ChannelName& name, const Laid& laid, Bytes extent, std::uint64_t stream) {
  StreamChannels& channels = message.world->stream_channels();
  const StreamPacking::Wanted wanted{laid.shape, message.address, extent, laid.origin, name.side == ChannelSide::receives};
  auto work = channels.packing(name).work_for({message.world->engine(), **channels.kind(), *message.end, stream}, wanted);
  if (!work.ok()) return work.status();
  message.address = work->packed.object + work->packed.offset.value;
  message.size = work->packed.size;
  message.work = std::move(*work);
  return {};
}

}  // namespace

Result<StreamBytes> stream_bytes(World& world, const Data& data, ChannelSide /*side*/, bool nobody) {
  auto piece = stream_piece(world, data, nobody);
  return piece.ok() ? Result<StreamBytes>{StreamBytes{*piece}} : piece.status();
}

Result<StreamBytes> stream_bytes(World& world, const LaidData& data, ChannelSide side, bool nobody) {
  auto shape = shape_of(data.count, data.layout, side == ChannelSide::receives);
  if (!shape.ok()) return shape.status();
  const Bounds reach = (*shape)->reach;
  if ((*shape)->form.size == 0) return StreamBytes{host_piece(nullptr, Bytes{})};
  const auto buffer = from_first_byte(data.buffer, reach);
  if (!buffer.ok()) return buffer.status();
  const auto piece = stream_piece(world, {*buffer, reach.extent(), IST_BYTE}, nobody);
  if (!piece.ok()) return piece.status();
  Laid laid{std::move(*shape), *piece, -reach.lower};
  if (const auto whole = in_one_piece(laid)) return StreamBytes{*whole};
  return StreamBytes{*piece, std::move(laid)};
}

Result<Partner> stream_partner(const StreamHalf& half, ist_comm comm) {
  return half.side == ChannelSide::sends ? destination(comm, half.partner, half.tag)
                                         : exact_origin(comm, half.partner, half.tag);
}

Result<StreamMessage> stream_message(const Partner& with, const StreamHalf& half, const StreamBytes& bytes,
                                     std::uint64_t stream) {
  StreamMessage ready;
  ready.world = with.world;
  if (with.rank == IST_PROC_NULL) return ready;
  StreamChannels& channels = with.world->stream_channels();
  const ChannelName name = channel_name(with, half);
  const auto kind = channels.kind();
  if (!kind.ok()) return kind.status();
  const Piece& piece = bytes.piece;
  // Host memory is looked at before anybody waits for the other rank, which may never hear of a call that is wrong.
  const bool on_host = piece.kind == KindId::host;
  auto address = on_host ? (*kind)->admit(piece, channels.device()) : Result<std::uint64_t>{0};
  if (!address.ok()) return address.status();
  const auto end = channels.ready(name, stream, &piece);
  if (!end.ok()) return end.status();
  IST_TRY(channels.trouble(name, **end));
  if (!on_host) address = (*kind)->admit(piece, (*end)->device());
  if (!address.ok()) return address.status();
  ready.end = *end;
  ready.address = *address;
  ready.size = piece.size;
  if (bytes.types != nullptr) [[unlikely]]
    ready.note = stream_note(*bytes.types);
  if (bytes.laid) IST_TRY(lay_in_block(ready, name, *bytes.laid, piece.size, stream));
  return ready;
}

Status put_in_stream(std::uint64_t stream, const StreamMessage* out, const StreamMessage* in) {
  const bool sends = out != nullptr && out->end != nullptr;
  const bool receives = in != nullptr && in->end != nullptr;
  if (!sends && !receives) return {};
  World& world = sends ? *out->world : *in->world;
  Channels& channels = **world.stream_channels().kind();
  BoxPacking* const packing = world.kinds().find(KindId::cuda)->box_packing();
  if (sends && out->work) IST_TRY(packing->pack_at(out->end->device(), stream, *out->work, 0));
  if (sends && out->note) [[unlikely]]
    IST_TRY(channels.tell(*out->end, stream, *out->note));
  const bool unpacks = receives && in->work;
  if (!receives)
    IST_TRY(channels.send(*out->end, stream, out->address, out->size));
  else if (!sends)
    IST_TRY(channels.receive(*in->end, stream, in->address, in->size, unpacks));
  else
    IST_TRY(
        channels.send_and_receive(stream, {*out->end, out->address, out->size}, {*in->end, in->address, in->size, unpacks}));
  if (receives && in->note) [[unlikely]]
    IST_TRY(channels.compare(*in->end, stream, *in->note));
  return unpacks ? packing->pack_at(in->end->device(), stream, *in->work, in->end->came()) : Status{};
}

Status prepare_streams(void* stream, int partner, int tag, int sides, ist_comm comm, const StreamLayout* layout) {
  if (sides < 1 || sides > kBothSides)
    return {IST_ERR_ARGUMENT, "sides is " + std::to_string(sides) + "; it must be IST_SENDS, IST_RECEIVES, or both added"};
  const auto with = destination(comm, partner, tag);
  if (!with.ok()) return with.status();
  for (const ChannelSide side : {ChannelSide::sends, ChannelSide::receives}) {
    if ((sides & (side == ChannelSide::sends ? IST_SENDS : IST_RECEIVES)) == 0) continue;
    SharedShape shape;
    if (layout != nullptr) {
      auto found = shape_of(layout->count, layout->layout, side == ChannelSide::receives);
      if (!found.ok()) return found.status();
      shape = std::move(*found);
    }
    if (with->rank == IST_PROC_NULL) continue;
    StreamMessage message;
    message.world = with->world;
    const ChannelName name = channel_name(*with, {partner, tag, side});
    const auto end = with->world->stream_channels().ready(name, number_of(stream), nullptr);
    if (!end.ok()) return end.status();
    if (shape == nullptr || shape->form.size == 0 || shape->form.in_one_piece()) continue;
    message.end = *end;
    const Bounds reach = shape->reach;
    const Laid laid{std::move(shape), host_piece(nullptr, Bytes{}), -reach.lower};
    IST_TRY(lay_in_block(message, name, laid, Bytes{static_cast<std::uint64_t>(reach.extent())}, number_of(stream)));
  }
  return {};
}

}  // namespace ist
