// C calls that put collective operations into streams.
#include <isthmus/stream.h>

#include "base/ranges.hpp"
#include "face/message/collective_calls.hpp"
#include "face/message/errors.hpp"
#include "face/message/operators.hpp"
#include "face/message/stream_calls.hpp"
#include "face/message/stream_notes.hpp"

namespace ist {
namespace {

using What = MeetingCall::What;

// A call as the user made it. No buffer: the call has none, or this rank's does not matter.
struct OnStream {
  std::uint64_t stream;
  ist_comm comm;
  What what = What::barrier;
  const ist_buffer* send = nullptr;
  const ist_buffer* recv = nullptr;
  std::int64_t count = 0;
  ist_type type = IST_BYTE;
  ist_op op = IST_OP_NULL;
  int root = 0;
  bool all = false;  // no root: everybody
};

// The communicator, ready for the stream.
struct AtTable {
  World* world = nullptr;
  const Communicator* comm = nullptr;
  StreamTable* table = nullptr;
};

// `long_calls`: as StreamMeetings::ready().
Result<AtTable> sit_down(std::uint64_t stream, ist_comm comm, const Piece* beside, bool long_calls) {
  const auto found = look_up(comm);
  if (!found.ok()) return found.status();
  const auto table = found->world->stream_meetings().ready(*found->comm, stream, beside, long_calls);
  if (!table.ok()) return table.status();
  return AtTable{found->world, found->comm, *table};
}

// What all ranks give alike.
Status check(const OnStream& given, const Communicator& comm, MeetingCall& call) {
  if (given.what == What::barrier) return {};
  if (!given.all) IST_TRY(check_root(given.root, comm));
  const auto elements = elements_of(given.count, given.type);
  if (!elements.ok()) return elements.status();
  call.size = elements->bytes();
  if (given.what == What::bcast) return {};
  const auto combiner = combiner_of(given.op, given.type);
  if (!combiner.ok()) return combiner.status();
  if (combiner->function != nullptr)
    return {
        IST_ERR_ARGUMENT,
        "the operation is one of ist_op_create, whose function runs on the processor; give one of the library's own, or use "
        "ist_reduce or ist_allreduce once the stream has finished"};
  call.reduction = combiner->reduction;
  call.element = *element_of(given.type);
  call.type = given.type;
  return {};
}

// The address that kernels of the table's device use.
Result<std::uint64_t> address_of(const AtTable& at, const OnStream& given, const char* name, const ist_buffer& buffer) {
  const auto named = [name](const Status& why) { return Status{why.code(), std::string{name} + ": " + why.text()}; };
  const auto piece = is_in_place(buffer)
                         ? Result<Piece>{Status{IST_ERR_ARGUMENT, "IST_IN_PLACE is not allowed here on this rank"}}
                         : stream_piece(*at.world, {buffer, given.count, given.type});
  if (!piece.ok()) return named(piece.status());
  const auto address = (*at.world->stream_channels().kind())->admit(*piece, at.table->device());
  return address.ok() ? address : Result<std::uint64_t>{named(address.status())};
}

Status find_buffers(const AtTable& at, const OnStream& given, MeetingCall& call) {
  if (given.what == What::barrier || call.size == Bytes{}) return {};
  const bool gets = given.all || given.root == at.comm->rank() || given.what == What::bcast;
  if (gets) {
    const auto to = address_of(at, given, given.what == What::bcast ? "buffer" : "recv", *given.recv);
    if (!to.ok()) return to.status();
    call.to = *to;
  }
  call.from = call.to;
  if (given.what == What::bcast || (gets && is_in_place(*given.send))) return {};
  const auto from = address_of(at, given, "send", *given.send);
  if (!from.ok()) return from.status();
  call.from = *from;
  if (!gets || call.from == call.to) return {};
  const auto at_address = [&](std::uint64_t address) {
    return Piece{KindId::cuda, at.table->device(), address, {}, call.size, 0};
  };
  const Piece send = at_address(call.from);
  const Piece recv = at_address(call.to);
  return shared_bytes(send, recv) > Bytes{} ? overlapping(send, recv) : Status{};
}

// To be compared where the setting check is 1.
StreamNote note_for(const OnStream& given) {
  GivenAlike alike = given_alike(given.op, given.type, given.count, given.all ? 0 : given.root);
  alike.name(given.what == What::barrier ? "ist_barrier_on"
             : given.what == What::bcast ? "ist_bcast_on"
             : given.all                 ? "ist_allreduce_on"
                                         : "ist_reduce_on");
  return stream_note(alike);
}

Status put(const OnStream& given) {
  const auto found = look_up(given.comm);
  if (!found.ok()) return found.status();
  MeetingCall call;
  call.what = given.what;
  call.root = given.all ? -1 : given.root;
  IST_TRY(check(given, *found->comm, call));
  // The stream's device, where it is one of those that say nothing of it, is that of the memory.
  const ist_buffer* const buffer = given.recv != nullptr && found->comm->rank() == given.root ? given.recv
                                   : given.send != nullptr && !is_in_place(*given.send)       ? given.send
                                                                                              : given.recv;
  const Piece near = buffer == nullptr ? Piece{} : Piece{static_cast<KindId>(buffer->kind),
                                                         buffer->device,
                                                         buffer->object,
                                                         Offset{buffer->offset},
                                                         call.size,
                                                         buffer->queue};
  const auto at =
      sit_down(given.stream, given.comm, buffer == nullptr ? nullptr : &near, StreamMeetings::is_long(*found->comm, call));
  if (!at.ok()) return at.status();
  IST_TRY(find_buffers(*at, given, call));
  StreamMeetings& meetings = at->world->stream_meetings();
  IST_TRY(meetings.trouble(*at->comm, *at->table));
  if (!at->world->settings().check) [[likely]]
    return meetings.put(*at->comm, *at->table, {given.stream}, call);
  const StreamNote note = note_for(given);
  return meetings.put(*at->comm, *at->table, {given.stream, &note}, call);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_prepare_collectives_on(void* stream, ist_comm comm) try {
  const ist::Range range("ist_prepare_collectives_on");
  const auto at = ist::sit_down(ist::number_of(stream), comm, nullptr, true);
  return ist::told("ist_prepare_collectives_on", at.ok() ? ist::Status{} : at.status());
} catch (...) {
  return ist::report_exception("ist_prepare_collectives_on");
}

int ist_barrier_on(void* stream, ist_comm comm) try {
  const ist::Range range("ist_barrier_on");
  return ist::told("ist_barrier_on", ist::put({ist::number_of(stream), comm, ist::What::barrier, nullptr, nullptr, 0,
                                               IST_BYTE, IST_OP_NULL, 0, true}));
} catch (...) {
  return ist::report_exception("ist_barrier_on");
}

int ist_bcast_on(void* stream, ist_buffer buffer, int64_t count, ist_type type, int root, ist_comm comm) try {
  const ist::Range range("ist_bcast_on");
  const ist::OnStream given{
      ist::number_of(stream), comm, ist::What::bcast, nullptr, &buffer, count, type, IST_OP_NULL, root};
  return ist::told("ist_bcast_on", ist::put(given));
} catch (...) {
  return ist::report_exception("ist_bcast_on");
}

int ist_reduce_on(void* stream, ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, int root,
                  ist_comm comm) try {
  const ist::Range range("ist_reduce_on");
  const ist::OnStream given{ist::number_of(stream), comm, ist::What::reduce, &send, &recv, count, type, op, root};
  return ist::told("ist_reduce_on", ist::put(given));
} catch (...) {
  return ist::report_exception("ist_reduce_on");
}

int ist_allreduce_on(void* stream, ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op,
                     ist_comm comm) try {
  const ist::Range range("ist_allreduce_on");
  return ist::told("ist_allreduce_on",
                   ist::put({ist::number_of(stream), comm, ist::What::reduce, &send, &recv, count, type, op, 0, true}));
} catch (...) {
  return ist::report_exception("ist_allreduce_on");
}
}
