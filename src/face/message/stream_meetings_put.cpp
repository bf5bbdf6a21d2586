// Collective calls as they are put into streams: kernels that meet, NCCL, or messages through rank 0.
#include <algorithm>

#include "face/message/stream_meetings.hpp"

namespace ist {

Status StreamMeetings::send(const StreamTable::Spoke& spoke, const Put& put, std::uint64_t address, Bytes size) {
  Channels& channels = **channels_.kind();
  if (put.note != nullptr) [[unlikely]]
    IST_TRY(channels.tell(*spoke.sends, put.stream, *put.note));
  return channels.send(*spoke.sends, put.stream, address, size);
}

Status StreamMeetings::receive(const StreamTable::Spoke& spoke, const Put& put, std::uint64_t address, Bytes size) {
  Channels& channels = **channels_.kind();
  IST_TRY(channels.receive(*spoke.receives, put.stream, address, size));
  return put.note == nullptr ? Status{} : channels.compare(*spoke.receives, put.stream, *put.note);
}

// One piece of a call. Whatever rank 0 sends, the others receive last; so nobody waits for who waits for it.
Status StreamMeetings::through_rank_0(const Communicator& comm, StreamTable& table, const Put& put,
                                      const MeetingCall& call) {
  const bool reduces = call.what == MeetingCall::What::reduce;
  const bool all = call.root < 0;
  // Does that member tell what it has, and is it told?
  const auto gives = [&](int member) { return reduces || all || call.root == member; };
  const auto gets = [&](int member) { return all || (reduces ? call.root == member : call.root != member); };
  if (comm.rank() != 0) {
    const auto& hub = table.spokes_.front();
    if (gives(comm.rank())) IST_TRY(send(hub, put, call.from, call.size));
    return gets(comm.rank()) ? receive(hub, put, call.to, call.size) : Status{};
  }
  MeetingCall here = call;
  if (reduces && !gets(0)) here.to = table.seat_->part(0);
  for (const auto& each : table.spokes_)
    if (gives(each.member)) IST_TRY(receive(each, put, reduces ? table.seat_->part(each.member) : here.to, call.size));
  if (reduces && call.size.value > 0) IST_TRY((*channels_.kind())->meetings().combine_parts(*table.seat_, put.stream, here));
  for (const auto& each : table.spokes_)
    if (gets(each.member)) IST_TRY(send(each, put, here.to, call.size));
  return {};
}

bool StreamMeetings::is_long(const Communicator& comm, const MeetingCall& call) {
  Combiner combiner;
  combiner.reduction = call.reduction;
  combiner.type = call.type;
  return NcclStream::suits(comm, call.what == MeetingCall::What::reduce ? &combiner : nullptr, call.size);
}

// True: the call is in the stream. Which calls these are follows from what all ranks give alike, so that none are where that is only found
// out.
Result<bool> StreamMeetings::by_nccl(const Communicator& comm, StreamTable& table, std::uint64_t stream,
                                     const MeetingCall& call) {
  Combiner combiner;
  combiner.reduction = call.reduction;
  combiner.type = call.type;
  const bool reduces = call.what == MeetingCall::What::reduce;
  if (table.nccl_.off() || engine_.types() != nullptr || !is_long(comm, call)) return false;
  const auto place = (*channels_.kind())->find_stream(stream, nullptr, true);
  if (!place.ok()) return place.status();
  if (place->capturing)
    return Status{
        IST_ERR_NOT_CAPTURABLE,
        "a call of " + std::to_string(call.size.value) +
            " bytes goes by NCCL, whose captured calls do not meet plain ones; set ISTHMUS_NCCL=never on every rank, "
            "and kernels carry it, in graphs too"};
  const std::uint64_t alignment = reduces ? alignment_of(call.element).value : 1;
  if (call.from % alignment != 0 || call.to % alignment != 0)
    return Status{IST_ERR_ARGUMENT, "the buffers of a call of " + std::to_string(call.size.value) +
                                        " bytes, which goes by NCCL, must begin at multiples of " +
                                        std::to_string(alignment) + " bytes"};
  const auto piece = [&](std::uint64_t address) {
    return Piece{KindId::cuda, table.device(), address, Offset{}, address != 0 ? call.size : Bytes{}, 0};
  };
  NcclWork work{.what = !reduces        ? ChosenCall::bcast
                        : call.root < 0 ? ChosenCall::allreduce
                                        : ChosenCall::reduce,
                .send = piece(call.from),
                .recv = piece(call.to),
                .count = call.size.value,
                .root = std::max(call.root, 0)};
  if (reduces) set_elements(work, combiner, call.size.value / size_of(call.type).value);
  IST_TRY(table.nccl_.put(work, stream));
  // The communicator's own team is asked how a call went that was offered to NCCL; this one was not offered, but carried.
  comm.nccl_team()->twin().note(Algorithm::nccl);
  comm.note(Algorithm::nccl);
  return true;
}

Status StreamMeetings::put(const Communicator& comm, StreamTable& table, const Put& put, const MeetingCall& call) {
  if (!table.by_channels_) {
    const auto carried = by_nccl(comm, table, put.stream, call);
    if (!carried.ok()) return carried.status();
    return *carried ? Status{} : meet(table, put, call);
  }
  table.used_ = true;
  MeetingCall piece = call;
  std::uint64_t done = 0;
  do {
    piece.size = std::min(table.seat_->part_size(), Bytes{call.size.value - done});
    IST_TRY(through_rank_0(comm, table, put, piece));
    done += piece.size.value;
    if (call.from != 0) piece.from = call.from + done;
    if (call.to != 0) piece.to = call.to + done;
  } while (done < call.size.value);
  return {};
}

Status StreamMeetings::meet(StreamTable& table, const Put& put, const MeetingCall& call) {
  Meetings& meetings = (*channels_.kind())->meetings();
  if (put.note == nullptr) [[likely]]
    return meetings.meet(*table.seat_, put.stream, call);
  IST_TRY(meetings.tell(*table.seat_, put.stream, *put.note));
  IST_TRY(meetings.meet(*table.seat_, put.stream, call));
  return meetings.compare(*table.seat_, put.stream, call);
}

}  // namespace ist
