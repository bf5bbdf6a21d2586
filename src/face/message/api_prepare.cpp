// C calls that have two ranks open each other's device memory ahead of their messages.
#include <mutex>

#include "base/ranges.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"
#include "request/preparing.hpp"

namespace ist {
namespace {

Result<Started> start_preparing(const Data& data, int peer, ist_comm comm) {
  const auto with = destination(comm, peer, 0, "peer");
  if (!with.ok()) return with.status();
  const auto piece = to_piece(*with->world, data);
  if (!piece.ok()) return piece.status();
  if (peer == IST_PROC_NULL) return Started{with->world, {}, true};
  Engine& engine = with->world->engine();
  const std::lock_guard lock(engine.lock());
  const auto id = Preparing::start(engine, *piece, Rank{with->rank}, with->comm->internal());
  if (!id.ok()) return id.status();
  return Started{with->world, *id, id->value == 0};
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_prepare(ist_buffer buffer, int64_t count, ist_type type, int peer, ist_comm comm) try {
  const ist::Range range("ist_prepare");
  const auto started = ist::start_preparing({buffer, count, type}, peer, comm);
  if (!started.ok()) return ist::report(ist::in_call("ist_prepare", started.status()));
  return ist::finish_blocking("ist_prepare", *started, nullptr);
} catch (...) {
  return ist::report_exception("ist_prepare");
}

int ist_iprepare(ist_buffer buffer, int64_t count, ist_type type, int peer, ist_comm comm, ist_request* request) try {
  const ist::Range range("ist_iprepare");
  if (request == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_iprepare: request is null");
  *request = IST_REQUEST_NULL;
  const auto started = ist::start_preparing({buffer, count, type}, peer, comm);
  if (!started.ok()) return ist::report(ist::in_call("ist_iprepare", started.status()));
  if (!started->done) *request = ist::request_handle(comm, started->id);
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_iprepare");
}
}
