#include "face/message/calls.hpp"

#include <charconv>
#include <mutex>
#include <string_view>

#include "face/message/at_once.hpp"
#include "face/message/errors.hpp"
#include "layout/constructors.hpp"
#include "layout/extent.hpp"
#include "memory/transfer.hpp"
#include "request/type_check.hpp"
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

// The engine names ranks as the world counts them: here the communicator's number goes first, where it is another one.
std::string in_ranks_of(const Group& group, const std::string& text) {
  constexpr std::string_view kBefore = "rank ";
  constexpr std::string_view kBehind = " (process ";
  std::string told;
  std::size_t done = 0;
  for (std::size_t at = text.find(kBehind); at != std::string::npos; at = text.find(kBehind, at + 1)) {
    const std::size_t name = text.rfind(kBefore, at);
    if (name == std::string::npos || name < done) continue;
    const std::size_t number = name + kBefore.size();
    std::int32_t world = -1;
    const auto read = std::from_chars(text.data() + number, text.data() + at, world);
    if (read.ec != std::errc{} || read.ptr != text.data() + at || !group.knows(Rank{world})) continue;
    const int here = group.from_world(Rank{world});
    if (here == world) continue;
    told += text.substr(done, name - done);
    told += here < 0 ? "rank " + std::to_string(world) + " of the world (process "
                     : "rank " + std::to_string(here) + " (rank " + std::to_string(world) + " of the world, process ";
    done = at + kBehind.size();
  }
  return told + text.substr(done);
}

// As the user of the communicator counts, and with its name.
Status in_words_of(const Group* group, const Status& status) {
  if (status.ok()) return status;
  const std::string text = group != nullptr ? in_ranks_of(*group, status.text()) : status.text();
  return {status.code(), text + " (communicator \"" + name_of(group) + "\")"};
}

struct HostReceive {
  const char* call;
  const Communicator& comm;
  std::byte* buffer;
  Bytes room;
};

// source: a rank of the world, or any.
int receive_into(const HostReceive& what, std::int32_t source, int tag, ist_status* status) {
  const Scope& scope = what.comm.scope();
  AwaitedReceive receive{what.buffer, what.room, {scope.context, source, tag}, scope.group.get()};
  const Status waited = receive_and_wait(what.comm.engine(), receive, scope);
  return waited.ok() ? finish(what.call, receive.outcome, scope.group.get(), status)
                     : report(in_call(what.call, in_words_of(scope.group.get(), waited)));
}

}  // namespace

Status in_call(const char* call, const Status& status) { return {status.code(), std::string{call} + ": " + status.text()}; }

Result<Partner> destination(ist_comm comm, int dest, int tag, const char* name) {
  return partner(comm, name, dest, tag, false);
}

Result<Partner> origin(ist_comm comm, int source, int tag) { return partner(comm, "source", source, tag, true); }

Result<Partner> exact_origin(ist_comm comm, int source, int tag) { return partner(comm, "source", source, tag, false); }

Result<Piece> to_piece(World& world, const Data& data) {
  const auto size = extent(data.count, data.type);
  if (!size.ok()) return size.status();
  if (*size == Bytes{}) return host_piece(nullptr, Bytes{});  // nothing is read or written, whatever the buffer says
  return world.kinds().resolve(data.buffer, *size);
}

SharedLayout types_of(std::int64_t count, const SharedLayout& layout) {
  const auto all = contiguous_layout(count, layout);
  return all.ok() ? *all : nullptr;
}

SharedLayout types_of(const Data& data) {
  const auto one = Layout::basic(data.type);
  return one.ok() ? types_of(data.count, *one) : nullptr;
}

Status copy_pieces(World& world, const Piece& to, const Piece& from) {
  Transfer transfer{world.kinds(), world.pool(), to, from};
  transfer.may_go_into_queue();
  return finish_transfer(world, transfer);
}

Status finish_transfer(World& world, Transfer& transfer) {
  // Messages that this thread has started may hold the blocks that a staged copy waits for: they move on meanwhile.
  return until_over(
      world.engine(), [&] { return transfer.step(); }, transfer.is_opencl_alone());
}

Result<Started> start_send(const Data& data, int dest, int tag, ist_comm comm, SendMode mode) {
  const auto to = destination(comm, dest, tag);
  if (!to.ok()) return to.status();
  const auto piece = to_piece(*to->world, data);
  if (!piece.ok()) return piece.status();
  if (dest == IST_PROC_NULL) return Started{to->world, {}, true};
  Engine& engine = to->world->engine();
  const std::lock_guard lock(engine.lock());
  bool done = false;
  const TypeCheck::Stated types{engine.types(), [&] { return types_of(data); }};
  const auto id = engine.start_send(*piece, Rank{to->rank}, tag, to->comm->scope(), &done, mode);
  if (!id.ok()) return in_words_of(to->comm->scope().group.get(), id.status());
  // A blocking call looks in its wait.
  if (!mode.blocking && piece->kind != KindId::host) engine.look_around();
  if (!mode.blocking) engine.move_on_others();
  return Started{to->world, *id, done};
}

Result<Receiving> receiving(const Data& data, int source, int tag, ist_comm comm) {
  const auto from = origin(comm, source, tag);
  if (!from.ok()) return from.status();
  const auto piece = to_piece(*from->world, data);
  if (!piece.ok()) return piece.status();
  return Receiving{*from, tag, *piece, from->world->engine().types() != nullptr ? types_of(data) : nullptr};
}

Result<Started> start_receive(const Receiving& what) {
  World* world = what.from.world;
  if (what.from.rank == IST_PROC_NULL) return Started{world, {}, true};
  Engine& engine = world->engine();
  const std::lock_guard lock(engine.lock());
  const TypeCheck::Stated types{engine.types(), [&] { return what.types; }};
  const auto id = engine.start_receive(what.piece, what.from.rank, what.tag, what.from.comm->scope());
  if (!id.ok()) return in_words_of(what.from.comm->scope().group.get(), id.status());
  if (what.piece.kind != KindId::host) engine.look_around();
  engine.move_on_others();
  return Started{world, *id, false};
}

Result<Started> start_receive(const Data& data, int source, int tag, ist_comm comm) {
  const auto what = receiving(data, source, tag, comm);
  if (!what.ok()) return what.status();
  return start_receive(*what);
}

int receive_and_finish(const char* call, const Receiving& what, ist_status* status) {
  if (what.piece.kind != KindId::host || what.from.rank == IST_PROC_NULL || what.types != nullptr) {
    const auto started = start_receive(what);
    return started.ok() ? finish_blocking(call, *started, status) : report(in_call(call, started.status()));
  }
  return receive_into({call, *what.from.comm, what.piece.address(), what.piece.size}, what.from.rank, what.tag, status);
}

Half::~Half() {
  if (!waited_ && !started_.done) end_own(started_.world->engine(), started_.id);
}

Outcome from_nobody() { return {Status{}, Rank{IST_PROC_NULL}, IST_ANY_TAG, IST_CARRIER_NONE, Bytes{}, nullptr, false}; }

int finish(const char* call, const Outcome& outcome, ist_status* status) {
  return finish(call, outcome, outcome.group.get(), status);
}

int finish(const char* call, const Outcome& outcome, const Group* group, ist_status* status) {
  set_status(status, outcome, group);
  if (outcome.status.ok()) return IST_OK;
  return report(in_call(call, in_words_of(group, outcome.status)));
}

int finish_blocking(const char* call, const Started& started, ist_status* status) {
  if (started.done) {
    set_empty(status, IST_PROC_NULL);
    return IST_OK;
  }
  return finish(call, wait_for_own(started.world->engine(), started.id), status);
}

int finish_receive_after(int sent, Half& receives, ist_status* status) {
  const std::string why = sent == IST_OK ? std::string{} : ist_error_text();
  const int received = receives.finish(status);
  if (sent == IST_OK || received == IST_OK) return received != IST_OK ? received : sent;
  return report(static_cast<ist_code>(received), why + "; " + ist_error_text());
}

}  // namespace ist
