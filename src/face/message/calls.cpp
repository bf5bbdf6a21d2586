#include "face/message/calls.hpp"

#include <mutex>
#include <thread>

#include "face/message/errors.hpp"
#include "layout/extent.hpp"
#include "memory/transfer.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

Status check_rank(const char* name, int rank, const Communicator& comm, bool wildcard) {
  if ((rank >= 0 && rank < comm.size()) || rank == IST_PROC_NULL || (wildcard && rank == IST_ANY_SOURCE)) return {};
  return {IST_ERR_RANK, std::string{name} + " is " + std::to_string(rank) + "; communicator \"" + comm.name() +
                            "\" has ranks 0 to " + std::to_string(comm.size() - 1) +
                            (wildcard ? ", IST_ANY_SOURCE and" : " and") + " IST_PROC_NULL"};
}

Status check_tag(int tag, bool wildcard) {
  if (tag >= 0 || (wildcard && tag == IST_ANY_TAG)) return {};
  return {IST_ERR_ARGUMENT, "tag is " + std::to_string(tag) + "; it must be 0 to " + std::to_string(IST_TAG_MAX) +
                                (wildcard ? ", or IST_ANY_TAG" : "")};
}

Result<Partner> partner(ist_comm comm, const char* name, int rank, int tag, bool wildcards) {
  const auto found = look_up(comm);
  if (!found.ok()) return found.status();
  const Communicator& members = *found->comm;
  IST_TRY(check_rank(name, rank, members, wildcards));
  IST_TRY(check_tag(tag, wildcards));
  return Partner{found->world, found->comm, rank < 0 ? rank : members.to_world(rank).value};
}

}  // namespace

Status in_call(const char* call, const Status& status) { return {status.code(), std::string{call} + ": " + status.text()}; }

Result<Partner> destination(ist_comm comm, int dest, int tag) { return partner(comm, "dest", dest, tag, false); }

Result<Partner> origin(ist_comm comm, int source, int tag) { return partner(comm, "source", source, tag, true); }

Result<Piece> to_piece(World& world, const Data& data) {
  const auto size = extent(data.count, data.type);
  if (!size.ok()) return size.status();
  if (*size == Bytes{}) return host_piece(nullptr, Bytes{});  // nothing is read or written, whatever the buffer says
  return world.kinds().resolve(data.buffer, *size);
}

Status copy_pieces(World& world, const Piece& to, const Piece& from) {
  Transfer transfer{world.kinds(), world.pool(), to, from};
  for (;;) {
    auto done = transfer.step();
    if (!done.ok()) return done.status();
    if (*done) return {};
    // Messages that this thread has started may hold the blocks that a staged copy waits for: they move on meanwhile.
    {
      const std::lock_guard lock(world.engine().lock());
      world.engine().progress();
    }
    std::this_thread::yield();
  }
}

Result<Started> start_send(const Data& data, int dest, int tag, ist_comm comm, bool synchronous) {
  const auto to = destination(comm, dest, tag);
  if (!to.ok()) return to.status();
  const auto piece = to_piece(*to->world, data);
  if (!piece.ok()) return piece.status();
  if (dest == IST_PROC_NULL) return Started{to->world, {}, true};
  Engine& engine = to->world->engine();
  const std::lock_guard lock(engine.lock());
  bool done = false;
  const auto id = engine.start_send(*piece, Rank{to->rank}, tag, to->comm->scope(), &done, synchronous);
  if (!id.ok()) return id.status();
  return Started{to->world, *id, done};
}

Result<Started> start_receive(const Data& data, int source, int tag, ist_comm comm) {
  const auto from = origin(comm, source, tag);
  if (!from.ok()) return from.status();
  const auto piece = to_piece(*from->world, data);
  if (!piece.ok()) return piece.status();
  if (source == IST_PROC_NULL) return Started{from->world, {}, true};
  Engine& engine = from->world->engine();
  const std::lock_guard lock(engine.lock());
  const auto id = engine.start_receive(*piece, from->rank, tag, from->comm->scope());
  if (!id.ok()) return id.status();
  return Started{from->world, *id, false};
}

void withdraw(const Started& receive) {
  if (receive.done) return;
  Engine& engine = receive.world->engine();
  {
    const std::lock_guard lock(engine.lock());
    if (engine.cancel_receive(receive.id)) return;
  }
  wait_for(engine, receive.id);
}

Outcome from_nobody() { return {Status{}, Rank{IST_PROC_NULL}, IST_ANY_TAG, IST_CARRIER_NONE, Bytes{}, nullptr, false}; }

void set_empty(ist_status* status, int source) {
  if (status != nullptr) *status = {source, IST_ANY_TAG, IST_OK, IST_CARRIER_NONE, 0};
}

void set_status(ist_status* status, const Outcome& outcome) {
  if (status == nullptr) return;
  const bool ranks_of_group = outcome.group && outcome.source.value >= 0;
  *status = {ranks_of_group ? outcome.group->from_world(outcome.source) : outcome.source.value, outcome.tag,
             outcome.cancelled ? IST_CANCELLED : outcome.status.code(), outcome.carrier,
             static_cast<std::int64_t>(outcome.bytes.value)};
}

int finish(const char* call, const Outcome& outcome, ist_status* status) {
  set_status(status, outcome);
  if (outcome.status.ok()) return IST_OK;
  const std::string where = outcome.group ? " (communicator \"" + outcome.group->name() + "\")" : "";
  return report(in_call(call, {outcome.status.code(), outcome.status.text() + where}));
}

int finish_blocking(const char* call, const Started& started, ist_status* status) {
  if (started.done) {
    set_empty(status, IST_PROC_NULL);
    return IST_OK;
  }
  return finish(call, wait_for(started.world->engine(), started.id), status);
}

}  // namespace ist
