// C calls for persistent requests.
#include <isthmus/layout.h>

#include <mutex>

#include "base/ranges.hpp"
#include "face/message/errors.hpp"
#include "face/message/layout_calls.hpp"
#include "request/type_check.hpp"

namespace ist {
namespace {

struct PersistentCall {
  Verb verb;
  int peer;
  int tag;
  ist_comm comm;
};

// Where the bytes lie; `laid`: as of state::Persistent.
struct Lying {
  Piece piece;
  std::shared_ptr<const PackWork> laid;
};

Result<Lying> lying(const Partner& partner, const Data& data, Verb /*verb*/) {
  const auto piece = to_piece(*partner.world, data);
  return piece.ok() ? Result<Lying>{Lying{*piece, nullptr}} : piece.status();
}

Result<Lying> lying(const Partner& partner, const LaidData& data, Verb verb) {
  const auto laid = lay(*partner.world, data, verb == Verb::receive);
  if (!laid.ok()) return laid.status();
  if (const auto whole = in_one_piece(*laid)) return Lying{*whole, nullptr};
  if (partner.rank != IST_PROC_NULL) IST_TRY(can_pack(partner.world->kinds(), laid->memory));
  auto work = std::make_shared<PackWork>(work_of(*laid));
  work->memory.facts = work->packed.facts = 0;  // known for one operation, and this is for many
  return Lying{laid->memory, std::move(work)};
}

template <class Given>
int make(const char* call, const PersistentCall& asked, const Given& given, ist_request* request) {
  if (request == nullptr) return report(IST_ERR_ARGUMENT, std::string{call} + ": request is null");
  *request = IST_REQUEST_NULL;
  const auto& [verb, peer, tag, comm] = asked;
  const auto partner = verb == Verb::receive ? origin(comm, peer, tag) : destination(comm, peer, tag);
  if (!partner.ok()) return report(in_call(call, partner.status()));
  auto found = lying(*partner, given, verb);
  if (!found.ok()) return report(in_call(call, found.status()));
  Engine& engine = partner->world->engine();
  const std::lock_guard lock(engine.lock());
  const TypeCheck::Stated types{engine.types(), [&] { return types_of(given); }};
  const auto id = engine.make_persistent({verb, tag, partner->comm->scope(), {}, false, nullptr, std::move(found->laid)},
                                         found->piece, partner->rank);
  if (!id.ok()) return report(in_call(call, id.status()));
  *request = request_handle(comm, *id);
  return IST_OK;
}

// A block of this start's own: packed before it begins, or to be unpacked behind it.
Result<std::unique_ptr<LaidOut>> block_of_start(Engine& engine, const PackWork& work, Verb verb, Rank peer) {
  return verb == Verb::receive ? to_be_received(engine, work)
                               : to_be_sent(engine, work, peer, {verb == Verb::synchronous_send, false});
}

Status start(ist_request request) {
  const auto found = look_up(request);
  if (!found.ok()) return found.status();
  if (!found->persistent)
    return {IST_ERR_ARGUMENT,
            "the request is not persistent; make it with ist_send_init, ist_ssend_init or ist_recv_init, or with "
            "ist_send_layout_init and its like"};
  Engine& engine = found->world->engine();
  std::unique_lock lock(engine.lock());
  std::unique_ptr<LaidOut> block;
  const Operation& made = engine.persistent(found->operation);
  const auto& what = std::get<state::Persistent>(made.state);
  if (what.laid != nullptr && !what.started && made.peer.value != IST_PROC_NULL) {
    // What is packed by the processor is so without the lock; the request is this call's.
    const std::shared_ptr<const PackWork> work = what.laid;
    const auto [verb, peer] = std::pair{what.verb, made.peer};
    lock.unlock();
    auto taken = block_of_start(engine, *work, verb, peer);
    if (!taken.ok()) return taken.status();
    block = std::move(*taken);
    lock.lock();
  }
  const Status started = engine.start_again(found->operation, std::move(block));
  if (started.ok()) engine.move_on_others();
  return started;
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_send_init(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                  ist_request* request) try {
  return ist::make("ist_send_init", {ist::Verb::send, dest, tag, comm}, ist::Data{buffer, count, type}, request);
} catch (...) {
  return ist::report_exception("ist_send_init");
}

int ist_ssend_init(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                   ist_request* request) try {
  return ist::make("ist_ssend_init", {ist::Verb::synchronous_send, dest, tag, comm}, ist::Data{buffer, count, type},
                   request);
} catch (...) {
  return ist::report_exception("ist_ssend_init");
}

int ist_recv_init(ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm,
                  ist_request* request) try {
  return ist::make("ist_recv_init", {ist::Verb::receive, source, tag, comm}, ist::Data{buffer, count, type}, request);
} catch (...) {
  return ist::report_exception("ist_recv_init");
}

int ist_send_layout_init(ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag, ist_comm comm,
                         ist_request* request) try {
  return ist::make("ist_send_layout_init", {ist::Verb::send, dest, tag, comm}, ist::LaidData{buffer, count, layout},
                   request);
} catch (...) {
  return ist::report_exception("ist_send_layout_init");
}

int ist_ssend_layout_init(ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag, ist_comm comm,
                          ist_request* request) try {
  return ist::make("ist_ssend_layout_init", {ist::Verb::synchronous_send, dest, tag, comm},
                   ist::LaidData{buffer, count, layout}, request);
} catch (...) {
  return ist::report_exception("ist_ssend_layout_init");
}

int ist_recv_layout_init(ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag, ist_comm comm,
                         ist_request* request) try {
  return ist::make("ist_recv_layout_init", {ist::Verb::receive, source, tag, comm}, ist::LaidData{buffer, count, layout},
                   request);
} catch (...) {
  return ist::report_exception("ist_recv_layout_init");
}

int ist_start(ist_request* request) try {
  const ist::Range range("ist_start");
  if (request == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_start: request is null");
  const ist::Status started = ist::start(*request);
  return started.ok() ? IST_OK : ist::report(ist::in_call("ist_start", started));
} catch (...) {
  return ist::report_exception("ist_start");
}

int ist_startall(int count, ist_request* requests) try {
  const ist::Range range("ist_startall");
  if (count < 0 || (count > 0 && requests == nullptr))
    return ist::report(IST_ERR_ARGUMENT, "ist_startall: count is " + std::to_string(count) + " and requests is " +
                                             (requests == nullptr ? "null" : "not null"));
  for (int i = 0; i < count; ++i)
    if (const ist::Status started = ist::start(requests[i]); !started.ok())
      return ist::report(ist::in_call(("ist_startall: request " + std::to_string(i)).c_str(), started));
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_startall");
}
}
