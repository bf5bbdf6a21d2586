// C calls that put messages into OpenCL command queues, of what lies in one piece and of layouts.
#include <isthmus/layout_stream.h>

#include "base/ranges.hpp"
#include "face/message/errors.hpp"
#include "face/message/layout_calls.hpp"
#include "face/message/stream_calls.hpp"

namespace ist {
namespace {

constexpr int kBothSides = IST_SENDS | IST_RECEIVES;

template <class Given>
struct QueueHalf {
  const Given& data;
  int partner;
  int tag;
  ChannelSide side;
};

struct QueuePlace {
  std::uint64_t queue;
  QueueEvents events;
  ist_comm comm;
};

// Where a half's bytes lie, and how, if not in one piece.
struct QueueBytes {
  Piece piece;
  std::optional<PackWork> work = std::nullopt;
};

Result<QueueBytes> queue_bytes(World& world, const Data& data, ChannelSide /*side*/) {
  const auto piece = to_piece(world, data);
  return piece.ok() ? Result<QueueBytes>{QueueBytes{*piece}} : piece.status();
}

Result<QueueBytes> queue_bytes(World& world, const LaidData& data, ChannelSide side) {
  auto laid = lay(world, data, side == ChannelSide::receives);
  if (!laid.ok()) return laid.status();
  if (const auto whole = in_one_piece(*laid)) return QueueBytes{*whole};
  laid->memory.queue = 0;  // what it holds is not waited for
  return QueueBytes{laid->memory, work_of(*laid)};
}

// A half of a call, checked; empty: nobody is there.
template <class Given>
Result<std::optional<QueueChannels::Half>> check(const QueueHalf<Given>& half, const QueuePlace& place, World*& world) {
  const auto with = half.side == ChannelSide::sends ? destination(place.comm, half.partner, half.tag)
                                                    : exact_origin(place.comm, half.partner, half.tag);
  if (!with.ok()) return with.status();
  world = with->world;
  auto bytes = queue_bytes(*world, half.data, half.side);
  if (!bytes.ok()) return bytes.status();
  const auto queues = world->queue_channels().kind();
  if (!queues.ok()) return queues.status();
  IST_TRY((*queues)->admit(place.queue, bytes->piece));
  bytes->piece.queue = 0;  // what it holds is not waited for
  if (with->rank == IST_PROC_NULL) return std::optional<QueueChannels::Half>{};
  if (bytes->work) IST_TRY(can_pack(world->kinds(), bytes->piece));
  const ChannelName name{with->comm, Rank{with->rank}, half.tag, half.side};
  SharedLayout types = world->settings().check ? types_of(half.data) : nullptr;
  return std::optional<QueueChannels::Half>{{name, bytes->piece, std::move(bytes->work), std::move(types)}};
}

template <class Given>
Status put(const QueueHalf<Given>* in, const QueueHalf<Given>* out, const QueuePlace& place) {
  World* world = nullptr;
  QueueChannels::Call call{place.queue, place.events, {}, {}};
  for (const auto& [half, checked] : {std::pair{out, &call.out}, std::pair{in, &call.in}}) {
    if (half == nullptr) continue;
    auto found = check(*half, place, world);
    if (!found.ok()) return found.status();
    *checked = std::move(*found);
  }
  return world->queue_channels().put(call);
}

// With the call's name.
template <class Given>
int put(const char* call, const QueueHalf<Given>* in, const QueueHalf<Given>* out, const QueuePlace& place) {
  const Range range(call);
  return told(call, put(in, out, place));
}

Status prepare(std::uint64_t queue, int partner, int tag, int sides, ist_comm comm) {
  if (sides < 1 || sides > kBothSides)
    return {IST_ERR_ARGUMENT, "sides is " + std::to_string(sides) + "; it must be IST_SENDS, IST_RECEIVES, or both added"};
  const auto with = destination(comm, partner, tag, "partner");
  if (!with.ok()) return with.status();
  QueueChannels& channels = with->world->queue_channels();
  const auto queues = channels.kind();
  if (!queues.ok()) return queues.status();
  IST_TRY((*queues)->admit(queue, host_piece(nullptr, Bytes{})));
  if (with->rank == IST_PROC_NULL) return {};
  for (const ChannelSide side : {ChannelSide::sends, ChannelSide::receives}) {
    if ((sides & (side == ChannelSide::sends ? IST_SENDS : IST_RECEIVES)) == 0) continue;
    IST_TRY(channels.prepare({with->comm, Rank{with->rank}, tag, side}));
  }
  return {};
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_send_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                      uint32_t waits, const void* wait_list, void* event) try {
  const ist::Data data{buffer, count, type};
  const ist::QueueHalf<ist::Data> half{data, dest, tag, ist::ChannelSide::sends};
  return ist::put<ist::Data>("ist_send_on_queue", nullptr, &half, {ist::number_of(queue), {waits, wait_list, event}, comm});
} catch (...) {
  return ist::report_exception("ist_send_on_queue");
}

int ist_recv_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm,
                      uint32_t waits, const void* wait_list, void* event) try {
  const ist::Data data{buffer, count, type};
  const ist::QueueHalf<ist::Data> half{data, source, tag, ist::ChannelSide::receives};
  return ist::put<ist::Data>("ist_recv_on_queue", &half, nullptr, {ist::number_of(queue), {waits, wait_list, event}, comm});
} catch (...) {
  return ist::report_exception("ist_recv_on_queue");
}

int ist_sendrecv_on_queue(void* queue, ist_buffer send_buffer, int64_t send_count, ist_type send_type, int dest,
                          int send_tag, ist_buffer recv_buffer, int64_t recv_count, ist_type recv_type, int source,
                          int recv_tag, ist_comm comm, uint32_t waits, const void* wait_list, void* event) try {
  const ist::Data send{send_buffer, send_count, send_type}, receive{recv_buffer, recv_count, recv_type};
  const ist::QueueHalf<ist::Data> out{send, dest, send_tag, ist::ChannelSide::sends};
  const ist::QueueHalf<ist::Data> in{receive, source, recv_tag, ist::ChannelSide::receives};
  return ist::put("ist_sendrecv_on_queue", &in, &out, {ist::number_of(queue), {waits, wait_list, event}, comm});
} catch (...) {
  return ist::report_exception("ist_sendrecv_on_queue");
}

int ist_send_layout_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag,
                             ist_comm comm, uint32_t waits, const void* wait_list, void* event) try {
  const ist::LaidData data{buffer, count, layout};
  const ist::QueueHalf<ist::LaidData> half{data, dest, tag, ist::ChannelSide::sends};
  return ist::put<ist::LaidData>("ist_send_layout_on_queue", nullptr, &half,
                                 {ist::number_of(queue), {waits, wait_list, event}, comm});
} catch (...) {
  return ist::report_exception("ist_send_layout_on_queue");
}

int ist_recv_layout_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag,
                             ist_comm comm, uint32_t waits, const void* wait_list, void* event) try {
  const ist::LaidData data{buffer, count, layout};
  const ist::QueueHalf<ist::LaidData> half{data, source, tag, ist::ChannelSide::receives};
  return ist::put<ist::LaidData>("ist_recv_layout_on_queue", &half, nullptr,
                                 {ist::number_of(queue), {waits, wait_list, event}, comm});
} catch (...) {
  return ist::report_exception("ist_recv_layout_on_queue");
}

int ist_sendrecv_layout_on_queue(void* queue, ist_buffer send_buffer, int64_t send_count, ist_layout send_layout, int dest,
                                 int send_tag, ist_buffer recv_buffer, int64_t recv_count, ist_layout recv_layout,
                                 int source, int recv_tag, ist_comm comm, uint32_t waits, const void* wait_list,
                                 void* event) try {
  const ist::LaidData send{send_buffer, send_count, send_layout}, receive{recv_buffer, recv_count, recv_layout};
  const ist::QueueHalf<ist::LaidData> out{send, dest, send_tag, ist::ChannelSide::sends};
  const ist::QueueHalf<ist::LaidData> in{receive, source, recv_tag, ist::ChannelSide::receives};
  return ist::put("ist_sendrecv_layout_on_queue", &in, &out, {ist::number_of(queue), {waits, wait_list, event}, comm});
} catch (...) {
  return ist::report_exception("ist_sendrecv_layout_on_queue");
}

int ist_prepare_on_queue(void* queue, int partner, int tag, int sides, ist_comm comm) try {
  const ist::Range range("ist_prepare_on_queue");
  return ist::told("ist_prepare_on_queue", ist::prepare(ist::number_of(queue), partner, tag, sides, comm));
} catch (...) {
  return ist::report_exception("ist_prepare_on_queue");
}
}
