// C calls for persistent requests.
#include <mutex>

#include "base/ranges.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"
#include "request/type_check.hpp"

namespace ist {
namespace {

int make(const char* call, Verb verb, const Data& data, int peer, int tag, ist_comm comm, ist_request* request) {
  if (request == nullptr) return report(IST_ERR_ARGUMENT, std::string{call} + ": request is null");
  *request = IST_REQUEST_NULL;
  const auto partner = verb == Verb::receive ? origin(comm, peer, tag) : destination(comm, peer, tag);
  if (!partner.ok()) return report(in_call(call, partner.status()));
  const auto piece = to_piece(*partner->world, data);
  if (!piece.ok()) return report(in_call(call, piece.status()));
  Engine& engine = partner->world->engine();
  const std::lock_guard lock(engine.lock());
  const TypeCheck::Stated types{engine.types(), [&] { return types_of(data); }};
  const auto id = engine.make_persistent(verb, *piece, partner->rank, tag, partner->comm->scope());
  if (!id.ok()) return report(in_call(call, id.status()));
  *request = request_handle(comm, *id);
  return IST_OK;
}

Status start(ist_request request) {
  const auto found = look_up(request);
  if (!found.ok()) return found.status();
  if (!found->persistent)
    return {IST_ERR_ARGUMENT, "the request is not persistent; make it with ist_send_init, ist_ssend_init or ist_recv_init"};
  const std::lock_guard lock(found->world->engine().lock());
  const Status started = found->world->engine().start_again(found->operation);
  if (started.ok()) found->world->engine().move_on_others();
  return started;
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_send_init(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                  ist_request* request) try {
  return ist::make("ist_send_init", ist::Verb::send, {buffer, count, type}, dest, tag, comm, request);
} catch (...) {
  return ist::report_exception("ist_send_init");
}

int ist_ssend_init(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                   ist_request* request) try {
  return ist::make("ist_ssend_init", ist::Verb::synchronous_send, {buffer, count, type}, dest, tag, comm, request);
} catch (...) {
  return ist::report_exception("ist_ssend_init");
}

int ist_recv_init(ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm,
                  ist_request* request) try {
  return ist::make("ist_recv_init", ist::Verb::receive, {buffer, count, type}, source, tag, comm, request);
} catch (...) {
  return ist::report_exception("ist_recv_init");
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
