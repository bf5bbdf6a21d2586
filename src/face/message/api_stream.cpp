// C calls that put messages into streams.
#include <isthmus/stream.h>

#include "base/ranges.hpp"
#include "face/message/errors.hpp"
#include "face/message/stream_calls.hpp"

namespace ist {
namespace {

constexpr int kBothSides = IST_SENDS | IST_RECEIVES;

struct Half {
  Data data;
  int partner;
  int tag;
  ChannelSide side;
};

// A half of a call, checked, and its end ready; no end: nobody is there.
struct Ready {
  World* world = nullptr;
  ChannelEnd* end = nullptr;
  std::uint64_t address = 0;
  Bytes size;
};

Result<Partner> partner_of(const Half& half, ist_comm comm) {
  return half.side == ChannelSide::sends ? destination(comm, half.partner, half.tag)
                                         : exact_origin(comm, half.partner, half.tag);
}

Result<Ready> make_ready(const Half& half, std::uint64_t stream, ist_comm comm) {
  const auto with = partner_of(half, comm);
  if (!with.ok()) return with.status();
  Ready ready{with->world, nullptr, 0, {}};
  const auto piece = stream_piece(*with->world, half.data, with->rank == IST_PROC_NULL);
  if (!piece.ok()) return piece.status();
  if (with->rank == IST_PROC_NULL) return ready;
  StreamChannels& channels = with->world->stream_channels();
  const ChannelName name{with->comm, Rank{with->rank}, half.tag, half.side};
  const auto kind = channels.kind();
  if (!kind.ok()) return kind.status();
  // Host memory is looked at before anybody waits for the other rank, which may never hear of a call that is wrong.
  const bool on_host = piece->kind == KindId::host;
  auto address = on_host ? (*kind)->admit(*piece, channels.device()) : Result<std::uint64_t>{0};
  if (!address.ok()) return address.status();
  const auto end = channels.ready(name, stream, &*piece);
  if (!end.ok()) return end.status();
  IST_TRY(channels.trouble(name, **end));
  if (!on_host) address = (*kind)->admit(*piece, (*end)->device());
  if (!address.ok()) return address.status();
  ready.end = *end;
  ready.address = *address;
  ready.size = piece->size;
  return ready;
}

Status put(const Half& half, std::uint64_t stream, ist_comm comm) {
  const auto ready = make_ready(half, stream, comm);
  if (!ready.ok()) return ready.status();
  if (ready->end == nullptr) return {};
  Channels& channels = **ready->world->stream_channels().kind();
  return half.side == ChannelSide::sends ? channels.send(*ready->end, stream, ready->address, ready->size)
                                         : channels.receive(*ready->end, stream, ready->address, ready->size);
}

Status put_both(const Half& out, const Half& in, std::uint64_t stream, ist_comm comm) {
  const auto sends = make_ready(out, stream, comm);
  if (!sends.ok()) return sends.status();
  const auto receives = make_ready(in, stream, comm);
  if (!receives.ok()) return receives.status();
  if (sends->end == nullptr && receives->end == nullptr) return {};
  Channels& channels = **sends->world->stream_channels().kind();
  if (receives->end == nullptr) return channels.send(*sends->end, stream, sends->address, sends->size);
  if (sends->end == nullptr) return channels.receive(*receives->end, stream, receives->address, receives->size);
  return channels.send_and_receive(stream, {*sends->end, sends->address, sends->size},
                                   {*receives->end, receives->address, receives->size});
}

Status prepare(std::uint64_t stream, int partner, int tag, int sides, ist_comm comm) {
  if (sides < 1 || sides > kBothSides)
    return {IST_ERR_ARGUMENT, "sides is " + std::to_string(sides) + "; it must be IST_SENDS, IST_RECEIVES, or both added"};
  const auto with = destination(comm, partner, tag);
  if (!with.ok()) return with.status();
  if (with->rank == IST_PROC_NULL) return {};
  for (const ChannelSide side : {ChannelSide::sends, ChannelSide::receives}) {
    if ((sides & (side == ChannelSide::sends ? IST_SENDS : IST_RECEIVES)) == 0) continue;
    const ChannelName name{with->comm, Rank{with->rank}, tag, side};
    const auto end = with->world->stream_channels().ready(name, stream, nullptr);
    if (!end.ok()) return end.status();
  }
  return {};
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_send_on(void* stream, ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm) try {
  const ist::Range range("ist_send_on");
  const ist::Half half{{buffer, count, type}, dest, tag, ist::ChannelSide::sends};
  return ist::told("ist_send_on", ist::put(half, ist::number_of(stream), comm));
} catch (...) {
  return ist::report_exception("ist_send_on");
}

int ist_recv_on(void* stream, ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm) try {
  const ist::Range range("ist_recv_on");
  const ist::Half half{{buffer, count, type}, source, tag, ist::ChannelSide::receives};
  return ist::told("ist_recv_on", ist::put(half, ist::number_of(stream), comm));
} catch (...) {
  return ist::report_exception("ist_recv_on");
}

int ist_sendrecv_on(void* stream, ist_buffer send_buffer, int64_t send_count, ist_type send_type, int dest, int send_tag,
                    ist_buffer recv_buffer, int64_t recv_count, ist_type recv_type, int source, int recv_tag,
                    ist_comm comm) try {
  const ist::Range range("ist_sendrecv_on");
  const ist::Half out{{send_buffer, send_count, send_type}, dest, send_tag, ist::ChannelSide::sends};
  const ist::Half in{{recv_buffer, recv_count, recv_type}, source, recv_tag, ist::ChannelSide::receives};
  return ist::told("ist_sendrecv_on", ist::put_both(out, in, ist::number_of(stream), comm));
} catch (...) {
  return ist::report_exception("ist_sendrecv_on");
}

int ist_prepare_on(void* stream, int partner, int tag, int sides, ist_comm comm) try {
  const ist::Range range("ist_prepare_on");
  return ist::told("ist_prepare_on", ist::prepare(ist::number_of(stream), partner, tag, sides, comm));
} catch (...) {
  return ist::report_exception("ist_prepare_on");
}
}
