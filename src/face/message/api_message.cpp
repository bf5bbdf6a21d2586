// C calls that send, receive and wait.
#include <mutex>
#include <utility>
#include <vector>

#include "collective/barrier.hpp"
#include "face/message/errors.hpp"
#include "face/message/handles.hpp"
#include "layout/extent.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

// Buffer, count and type as the user gave them.
struct Data {
  const ist_buffer& buffer;
  std::int64_t count;
  ist_type type;
};

// A started operation: perhaps complete without ever having been one.
struct Started {
  World* world = nullptr;
  OperationId id;
  bool done = false;
};

Status in_call(const char* call, const Status& status) { return {status.code(), std::string{call} + ": " + status.text()}; }

Status check_rank(const char* name, int rank, const Engine& engine, bool wildcard) {
  if ((rank >= 0 && rank < engine.size()) || rank == IST_PROC_NULL || (wildcard && rank == IST_ANY_SOURCE)) return {};
  return {IST_ERR_RANK, std::string{name} + " is " + std::to_string(rank) + "; this communicator has ranks 0 to " +
                            std::to_string(engine.size() - 1) + (wildcard ? ", IST_ANY_SOURCE and" : " and") +
                            " IST_PROC_NULL"};
}

Status check_tag(int tag, bool wildcard) {
  if (tag >= 0 || (wildcard && tag == IST_ANY_TAG)) return {};
  return {IST_ERR_ARGUMENT, "tag is " + std::to_string(tag) + "; it must be 0 to " + std::to_string(IST_TAG_MAX) +
                                (wildcard ? ", or IST_ANY_TAG" : "")};
}

Result<Piece> to_piece(World& world, const Data& data) {
  const auto size = extent(data.count, data.type);
  if (!size.ok()) return size.status();
  if (*size == Bytes{}) return host_piece(nullptr, Bytes{});  // nothing is read or written, whatever the buffer says
  return world.kinds().resolve(data.buffer, *size);
}

Result<Started> start_send(const Data& data, int dest, int tag, ist_comm comm) {
  const auto found = look_up(comm);
  if (!found.ok()) return found.status();
  World& world = *found->world;
  IST_TRY(check_rank("dest", dest, world.engine(), false));
  IST_TRY(check_tag(tag, false));
  const auto piece = to_piece(world, data);
  if (!piece.ok()) return piece.status();
  if (dest == IST_PROC_NULL) return Started{&world, {}, true};
  const std::lock_guard lock(world.engine().lock());
  bool done = false;
  const auto id = world.engine().start_send(*piece, Rank{dest}, tag, found->context, &done);
  if (!id.ok()) return id.status();
  return Started{&world, *id, done};
}

Result<Started> start_receive(const Data& data, int source, int tag, ist_comm comm) {
  const auto found = look_up(comm);
  if (!found.ok()) return found.status();
  World& world = *found->world;
  IST_TRY(check_rank("source", source, world.engine(), true));
  IST_TRY(check_tag(tag, true));
  const auto piece = to_piece(world, data);
  if (!piece.ok()) return piece.status();
  if (source == IST_PROC_NULL) return Started{&world, {}, true};
  const std::lock_guard lock(world.engine().lock());
  const auto id = world.engine().start_receive(*piece, source, tag, found->context);
  if (!id.ok()) return id.status();
  return Started{&world, *id, false};
}

// The send of a pair could not be started: the receive must not write into the buffer later.
void withdraw(const Started& receive) {
  if (receive.done) return;
  Engine& engine = receive.world->engine();
  {
    const std::lock_guard lock(engine.lock());
    if (engine.cancel_receive(receive.id)) return;
  }
  wait_for(engine, receive.id);
}

Outcome from_nobody() { return {Status{}, Rank{IST_PROC_NULL}, IST_ANY_TAG, IST_CARRIER_NONE, Bytes{}}; }

// What MPI says of a null request and of IST_PROC_NULL.
void set_empty(ist_status* status, int source) {
  if (status != nullptr) *status = {source, IST_ANY_TAG, IST_OK, IST_CARRIER_NONE, 0};
}

int finish(const char* call, const Outcome& outcome, ist_status* status) {
  if (status != nullptr) {
    *status = {outcome.source.value, outcome.tag, outcome.status.code(), outcome.carrier,
               static_cast<std::int64_t>(outcome.bytes.value)};
  }
  return outcome.status.ok() ? IST_OK : report(in_call(call, outcome.status));
}

int finish_blocking(const char* call, const Started& started, ist_status* status) {
  if (started.done) {
    set_empty(status, IST_PROC_NULL);
    return IST_OK;
  }
  return finish(call, wait_for(started.world->engine(), started.id), status);
}

int hand_out(const Started& started, ist_comm comm, ist_request* request) {
  // A send that needed no operation is complete: the null request says so.
  *request = started.done ? IST_REQUEST_NULL : request_handle(comm, started.id);
  return IST_OK;
}

int wait_one(const char* call, ist_request* request, ist_status* status) {
  if (*request == IST_REQUEST_NULL) {
    set_empty(status, IST_ANY_SOURCE);
    return IST_OK;
  }
  const auto found = look_up(*request);
  if (!found.ok()) {
    if (status != nullptr) *status = {IST_ANY_SOURCE, IST_ANY_TAG, IST_ERR_HANDLE, IST_CARRIER_NONE, 0};
    return report(in_call(call, found.status()));
  }
  *request = IST_REQUEST_NULL;
  return finish(call, wait_for(found->world->engine(), found->operation), status);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_send(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm) try {
  const auto started = ist::start_send({buffer, count, type}, dest, tag, comm);
  if (!started.ok()) return ist::report(ist::in_call("ist_send", started.status()));
  return ist::finish_blocking("ist_send", *started, nullptr);
} catch (...) {
  return ist::report_exception("ist_send");
}

int ist_recv(ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm, ist_status* status) try {
  const auto started = ist::start_receive({buffer, count, type}, source, tag, comm);
  if (!started.ok()) return ist::report(ist::in_call("ist_recv", started.status()));
  return ist::finish_blocking("ist_recv", *started, status);
} catch (...) {
  return ist::report_exception("ist_recv");
}

int ist_sendrecv(ist_buffer send_buffer, int64_t send_count, ist_type send_type, int dest, int send_tag,
                 ist_buffer recv_buffer, int64_t recv_count, ist_type recv_type, int source, int recv_tag, ist_comm comm,
                 ist_status* status) try {
  const auto receive = ist::start_receive({recv_buffer, recv_count, recv_type}, source, recv_tag, comm);
  if (!receive.ok()) return ist::report(ist::in_call("ist_sendrecv (receive)", receive.status()));
  const auto send = ist::start_send({send_buffer, send_count, send_type}, dest, send_tag, comm);
  if (!send.ok()) {
    ist::withdraw(*receive);
    return ist::report(ist::in_call("ist_sendrecv (send)", send.status()));
  }
  const int sent = ist::finish_blocking("ist_sendrecv (send)", *send, nullptr);
  const int received = ist::finish_blocking("ist_sendrecv (receive)", *receive, status);
  return received != IST_OK ? received : sent;
} catch (...) {
  return ist::report_exception("ist_sendrecv");
}

int ist_isend(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm, ist_request* request) try {
  if (request == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_isend: request is null");
  *request = IST_REQUEST_NULL;
  const auto started = ist::start_send({buffer, count, type}, dest, tag, comm);
  if (!started.ok()) return ist::report(ist::in_call("ist_isend", started.status()));
  return ist::hand_out(*started, comm, request);
} catch (...) {
  return ist::report_exception("ist_isend");
}

int ist_irecv(ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm,
              ist_request* request) try {
  if (request == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_irecv: request is null");
  *request = IST_REQUEST_NULL;
  auto started = ist::start_receive({buffer, count, type}, source, tag, comm);
  if (!started.ok()) return ist::report(ist::in_call("ist_irecv", started.status()));
  if (started->done) {
    // From nobody: the status has to say so when the request is waited for.
    const std::lock_guard lock(started->world->engine().lock());
    const auto id = started->world->engine().start_complete(ist::from_nobody());
    if (!id.ok()) return ist::report(ist::in_call("ist_irecv", id.status()));
    *started = {started->world, *id, false};
  }
  return ist::hand_out(*started, comm, request);
} catch (...) {
  return ist::report_exception("ist_irecv");
}

int ist_test(ist_request* request, int* completed, ist_status* status) try {
  if (request == nullptr || completed == nullptr)
    return ist::report(IST_ERR_ARGUMENT, "ist_test: request and completed must not be null");
  *completed = 1;
  if (*request == IST_REQUEST_NULL) {
    ist::set_empty(status, IST_ANY_SOURCE);
    return IST_OK;
  }
  const auto found = ist::look_up(*request);
  if (!found.ok()) return ist::report(ist::in_call("ist_test", found.status()));
  ist::Engine& engine = found->world->engine();
  ist::Outcome outcome;
  {
    const std::lock_guard lock(engine.lock());
    engine.progress();
    *completed = ist::Engine::complete(*engine.find(found->operation)) ? 1 : 0;
    if (*completed == 0) return IST_OK;
    outcome = engine.take(found->operation);
  }
  *request = IST_REQUEST_NULL;
  return ist::finish("ist_test", outcome, status);
} catch (...) {
  return ist::report_exception("ist_test");
}

int ist_wait(ist_request* request, ist_status* status) try {
  if (request == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_wait: request is null");
  return ist::wait_one("ist_wait", request, status);
} catch (...) {
  return ist::report_exception("ist_wait");
}

int ist_waitall(int count, ist_request* requests, ist_status* statuses) try {
  if (count < 0) return ist::report(IST_ERR_ARGUMENT, "ist_waitall: count is " + std::to_string(count));
  if (count > 0 && requests == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_waitall: requests is null");
  std::string first;
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    if (ist::wait_one("ist_waitall", &requests[i], statuses != nullptr ? &statuses[i] : nullptr) == IST_OK) continue;
    if (failed++ == 0) first = "request " + std::to_string(i) + ": " + ist_error_text();
  }
  if (failed == 0) return IST_OK;
  return ist::report(IST_ERR_IN_STATUS, std::to_string(failed) + " of " + std::to_string(count) + " failed; " + first);
} catch (...) {
  return ist::report_exception("ist_waitall");
}

int ist_barrier(ist_comm comm) try {
  const auto found = ist::look_up(comm);
  if (!found.ok()) return ist::report(ist::in_call("ist_barrier", found.status()));
  const ist::Status status = ist::barrier(found->world->engine(), found->context);
  return status.ok() ? IST_OK : ist::report(ist::in_call("ist_barrier", status));
} catch (...) {
  return ist::report_exception("ist_barrier");
}
}
