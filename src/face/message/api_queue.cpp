// C calls that put messages into OpenCL command queues.
#include <isthmus/queue.h>

#include "base/ranges.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"

namespace ist {
namespace {

constexpr int kBothSides = IST_SENDS | IST_RECEIVES;

struct QueueHalf {
  Data data;
  int partner;
  int tag;
  ChannelSide side;
};

struct Place {
  std::uint64_t queue;
  QueueEvents events;
  ist_comm comm;
};

std::uint64_t number_of(void* queue) { return reinterpret_cast<std::uint64_t>(queue); }

// A half of a call, checked; empty: nobody is there.
Result<std::optional<QueueChannels::Half>> check(const QueueHalf& half, const Place& place, World*& world) {
  const auto with = half.side == ChannelSide::sends ? destination(place.comm, half.partner, half.tag)
                                                    : exact_origin(place.comm, half.partner, half.tag);
  if (!with.ok()) return with.status();
  world = with->world;
  auto piece = to_piece(*world, half.data);
  if (!piece.ok()) return piece.status();
  const auto queues = world->queue_channels().kind();
  if (!queues.ok()) return queues.status();
  IST_TRY((*queues)->admit(place.queue, *piece));
  piece->queue = 0;  // what it holds is not waited for
  if (with->rank == IST_PROC_NULL) return std::optional<QueueChannels::Half>{};
  return std::optional<QueueChannels::Half>{{{with->comm, Rank{with->rank}, half.tag, half.side}, *piece}};
}

Status put(const QueueHalf* in, const QueueHalf* out, const Place& place) {
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

int told(const char* call, const Status& status) { return status.ok() ? IST_OK : report(in_call(call, status)); }

}  // namespace
}  // namespace ist

extern "C" {

int ist_send_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                      uint32_t waits, const void* wait_list, void* event) try {
  const ist::Range range("ist_send_on_queue");
  const ist::QueueHalf out{{buffer, count, type}, dest, tag, ist::ChannelSide::sends};
  return ist::told("ist_send_on_queue", ist::put(nullptr, &out, {ist::number_of(queue), {waits, wait_list, event}, comm}));
} catch (...) {
  return ist::report_exception("ist_send_on_queue");
}

int ist_recv_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm,
                      uint32_t waits, const void* wait_list, void* event) try {
  const ist::Range range("ist_recv_on_queue");
  const ist::QueueHalf in{{buffer, count, type}, source, tag, ist::ChannelSide::receives};
  return ist::told("ist_recv_on_queue", ist::put(&in, nullptr, {ist::number_of(queue), {waits, wait_list, event}, comm}));
} catch (...) {
  return ist::report_exception("ist_recv_on_queue");
}

int ist_sendrecv_on_queue(void* queue, ist_buffer send_buffer, int64_t send_count, ist_type send_type, int dest,
                          int send_tag, ist_buffer recv_buffer, int64_t recv_count, ist_type recv_type, int source,
                          int recv_tag, ist_comm comm, uint32_t waits, const void* wait_list, void* event) try {
  const ist::Range range("ist_sendrecv_on_queue");
  const ist::QueueHalf out{{send_buffer, send_count, send_type}, dest, send_tag, ist::ChannelSide::sends};
  const ist::QueueHalf in{{recv_buffer, recv_count, recv_type}, source, recv_tag, ist::ChannelSide::receives};
  return ist::told("ist_sendrecv_on_queue", ist::put(&in, &out, {ist::number_of(queue), {waits, wait_list, event}, comm}));
} catch (...) {
  return ist::report_exception("ist_sendrecv_on_queue");
}

int ist_prepare_on_queue(void* queue, int partner, int tag, int sides, ist_comm comm) try {
  const ist::Range range("ist_prepare_on_queue");
  return ist::told("ist_prepare_on_queue", ist::prepare(ist::number_of(queue), partner, tag, sides, comm));
} catch (...) {
  return ist::report_exception("ist_prepare_on_queue");
}
}
