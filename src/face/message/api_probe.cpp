// C calls that look at messages before they are received.
#include <mutex>

#include "base/ranges.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"
#include "request/type_check.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

// What a probe asks for, and what it has found: for a matched one the claimed message, otherwise the status alone.
struct Question {
  const char* call;
  int source;
  int tag;
  ist_comm comm;
  ist_message* message = nullptr;  // null: the message stays
};

Outcome describe(const Unexpected& message) {
  return {Status{}, message.source, message.envelope.tag, IST_CARRIER_NONE, Bytes{message.envelope.bytes}, nullptr, false};
}

// Looks once, under the lock; true if there is such a message.
Result<bool> look(const Partner& from, const Question& asked, ist_status* status) {
  Engine& engine = from.world->engine();
  const Scope& scope = from.comm->scope();
  const Unexpected* found = engine.probe(from.rank, asked.tag, scope);
  if (found == nullptr) {
    const Status possible = engine.check_source(from.rank, scope.group.get());
    if (possible.ok()) return false;
    const bool last = engine.take_last_arrivals();
    found = engine.probe(from.rank, asked.tag, scope);
    if (found == nullptr) return last ? Result<bool>{possible} : Result<bool>{false};
  }
  set_status(status, describe(*found), scope.group.get());
  if (asked.message == nullptr) return true;
  const auto id = engine.claim(from.rank, asked.tag, scope);
  if (!id.ok()) return id.status();
  *asked.message = message_handle(asked.comm, *id);
  return true;
}

Result<bool> probe_nobody(const Question& asked, const Partner& from, ist_status* status) {
  set_empty(status, IST_PROC_NULL);
  if (asked.message == nullptr) return true;
  const std::lock_guard lock(from.world->engine().lock());
  const auto id = from.world->engine().start_complete(from_nobody(), true);
  if (!id.ok()) return id.status();
  *asked.message = message_handle(asked.comm, *id);
  return true;
}

Result<bool> probe(const Question& asked, bool waits, ist_status* status) {
  const auto from = origin(asked.comm, asked.source, asked.tag);
  if (!from.ok()) return from.status();
  if (from->rank == IST_PROC_NULL) return probe_nobody(asked, *from, status);
  Engine& engine = from->world->engine();
  const Scope& scope = from->comm->scope();
  Patience patience{engine, [&] { return engine.probe(from->rank, asked.tag, scope) != nullptr; }};
  for (;;) {
    bool moved = false;
    bool must_poll = false;
    {
      const std::lock_guard lock(engine.lock());
      moved = engine.progress();
      auto found = look(*from, asked, status);
      if (!found.ok() || *found || !waits) return found;
      must_poll = engine.must_poll();
    }
    patience.after_look(moved, must_poll);
  }
}

int answer(const Question& asked, bool waits, int* found, ist_status* status) {
  if (asked.message != nullptr) *asked.message = IST_MESSAGE_NULL;
  if (found != nullptr) *found = 0;
  const auto there = probe(asked, waits, status);
  if (!there.ok()) return report(in_call(asked.call, there.status()));
  if (found != nullptr) *found = *there ? 1 : 0;
  return IST_OK;
}

// Starts the receive of a claimed message; its id is then that of the operation.
Result<InWorld> receive(const Data& data, ist_message* message) {
  if (message == nullptr) return Status{IST_ERR_ARGUMENT, "message is null"};
  const auto found = look_up(*message);
  if (!found.ok()) return found.status();
  const auto piece = to_piece(*found->world, data);
  if (!piece.ok()) return piece.status();
  Engine& engine = found->world->engine();
  const std::lock_guard lock(engine.lock());
  const TypeCheck::Stated types{engine.types(), [&] { return types_of(data); }};
  IST_TRY(engine.receive_claimed(found->operation, *piece));
  return *found;
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_probe(int source, int tag, ist_comm comm, ist_status* status) try {
  const ist::Range range("ist_probe");
  return ist::answer({"ist_probe", source, tag, comm}, true, nullptr, status);
} catch (...) {
  return ist::report_exception("ist_probe");
}

int ist_iprobe(int source, int tag, ist_comm comm, int* found, ist_status* status) try {
  if (found == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_iprobe: found is null");
  return ist::answer({"ist_iprobe", source, tag, comm}, false, found, status);
} catch (...) {
  return ist::report_exception("ist_iprobe");
}

int ist_mprobe(int source, int tag, ist_comm comm, ist_message* message, ist_status* status) try {
  const ist::Range range("ist_mprobe");
  if (message == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_mprobe: message is null");
  return ist::answer({"ist_mprobe", source, tag, comm, message}, true, nullptr, status);
} catch (...) {
  return ist::report_exception("ist_mprobe");
}

int ist_improbe(int source, int tag, ist_comm comm, int* found, ist_message* message, ist_status* status) try {
  if (found == nullptr || message == nullptr)
    return ist::report(IST_ERR_ARGUMENT, "ist_improbe: found and message must not be null");
  return ist::answer({"ist_improbe", source, tag, comm, message}, false, found, status);
} catch (...) {
  return ist::report_exception("ist_improbe");
}

int ist_mrecv(ist_buffer buffer, int64_t count, ist_type type, ist_message* message, ist_status* status) try {
  const ist::Range range("ist_mrecv");
  const auto started = ist::receive({buffer, count, type}, message);
  if (!started.ok()) return ist::report(ist::in_call("ist_mrecv", started.status()));
  *message = IST_MESSAGE_NULL;
  return ist::finish_blocking("ist_mrecv", {started->world, started->operation, false}, status);
} catch (...) {
  return ist::report_exception("ist_mrecv");
}

int ist_imrecv(ist_buffer buffer, int64_t count, ist_type type, ist_message* message, ist_request* request) try {
  const ist::Range range("ist_imrecv");
  if (request == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_imrecv: request is null");
  *request = IST_REQUEST_NULL;
  const auto started = ist::receive({buffer, count, type}, message);
  if (!started.ok()) return ist::report(ist::in_call("ist_imrecv", started.status()));
  *request = ist::request_handle(*message, started->operation);
  *message = IST_MESSAGE_NULL;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_imrecv");
}

int ist_get_count(const ist_status* status, ist_type type, int64_t* count) {
  const auto size = static_cast<std::int64_t>(ist_type_size(type));
  if (status == nullptr || count == nullptr || size == 0)
    return ist::report(IST_ERR_ARGUMENT,
                       "ist_get_count: status and count must not be null, and type must be one of ist_type");
  *count = status->bytes % size == 0 ? status->bytes / size : IST_UNDEFINED;
  return IST_OK;
}
}
