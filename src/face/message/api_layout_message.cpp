// C calls that send and receive layouts.
#include <mutex>

#include "base/ranges.hpp"
#include "face/message/errors.hpp"
#include "face/message/layout_calls.hpp"
#include "request/type_check.hpp"

namespace ist {
namespace {

struct LaidMessage {
  LaidData data;
  int rank;  // destination or source
  int tag;
  ist_comm comm;
};

Result<Started> start_laid_send(const LaidMessage& given, SendMode mode) {
  const auto to = destination(given.comm, given.rank, given.tag);
  if (!to.ok()) return to.status();
  World& world = *to->world;
  const auto laid = lay(world, given.data, false);
  if (!laid.ok()) return laid.status();
  if (given.rank == IST_PROC_NULL) return Started{&world, {}, true};
  Engine& engine = world.engine();
  const auto whole = in_one_piece(*laid);
  std::unique_ptr<LaidOut> block;
  if (!whole) {
    auto made = to_be_sent(engine, work_of(*laid), Rank{to->rank}, mode);
    if (!made.ok()) return made.status();
    block = std::move(*made);
  }
  const std::lock_guard lock(engine.lock());
  bool done = false;
  const TypeCheck::Stated types{engine.types(), [&] { return types_of(given.data); }};
  const auto id = whole
                      ? engine.start_send(*whole, Rank{to->rank}, given.tag, to->comm->scope(), &done, mode)
                      : engine.start_send_laid(std::move(block), Rank{to->rank}, given.tag, to->comm->scope(), &done, mode);
  if (!id.ok()) return id.status();
  if (!mode.blocking) {
    engine.look_around();
    engine.move_on_others();
  }
  return Started{&world, *id, done};
}

// A receive that is checked, and has its block.
struct LaidReceiving {
  Partner from;
  Piece whole;
  std::unique_ptr<LaidOut> block;  // null: the bytes lie in one piece
  SharedLayout types = nullptr;    // where types are compared
};

Result<LaidReceiving> laid_receiving(const LaidMessage& given) {
  const auto from = origin(given.comm, given.rank, given.tag);
  if (!from.ok()) return from.status();
  const auto laid = lay(*from->world, given.data, true);
  if (!laid.ok()) return laid.status();
  LaidReceiving made{*from, {}, nullptr};
  if (given.rank == IST_PROC_NULL) return made;
  if (from->world->engine().types() != nullptr) made.types = types_of(given.data);
  if (const auto whole = in_one_piece(*laid)) {
    made.whole = *whole;
    return made;
  }
  auto block = to_be_received(from->world->engine(), work_of(*laid));
  if (!block.ok()) return block.status();
  made.block = std::move(*block);
  return made;
}

Result<Started> start_laid_receive(LaidReceiving what, int tag) {
  if (what.block == nullptr) return start_receive({what.from, tag, what.whole, what.types});
  Engine& engine = what.from.world->engine();
  const std::lock_guard lock(engine.lock());
  const TypeCheck::Stated types{engine.types(), [&] { return what.types; }};
  const auto id = engine.start_receive_laid(std::move(what.block), what.from.rank, tag, what.from.comm->scope());
  if (!id.ok()) return id.status();
  engine.look_around();
  engine.move_on_others();
  return Started{what.from.world, *id, false};
}

int send_laid(const char* call, const LaidMessage& given) {
  const Range range(call);
  const auto started = start_laid_send(given, {false, true});
  return started.ok() ? finish_blocking(call, *started, nullptr) : report(in_call(call, started.status()));
}

int receive_laid(const char* call, const LaidMessage& given, ist_status* status) {
  const Range range(call);
  auto what = laid_receiving(given);
  if (!what.ok()) return report(in_call(call, what.status()));
  const auto started = start_laid_receive(std::move(*what), given.tag);
  return started.ok() ? finish_blocking(call, *started, status) : report(in_call(call, started.status()));
}

int start_and_hand_out(const char* call, const LaidMessage& given, bool sends, ist_request* request) {
  if (request == nullptr) return report(IST_ERR_ARGUMENT, std::string{call} + ": request is null");
  *request = IST_REQUEST_NULL;
  const Range range(call);
  Result<Started> started = Started{};
  if (sends) {
    started = start_laid_send(given, {});
  } else {
    auto what = laid_receiving(given);
    started = what.ok() ? start_laid_receive(std::move(*what), given.tag) : Result<Started>{what.status()};
  }
  if (!started.ok()) return report(in_call(call, started.status()));
  if (started->done && sends) return IST_OK;
  if (started->done) {
    // From nobody: the status has to say so when the request is waited for.
    const std::lock_guard lock(started->world->engine().lock());
    const auto id = started->world->engine().start_complete(from_nobody());
    if (!id.ok()) return report(in_call(call, id.status()));
    *started = {started->world, *id, false};
  }
  *request = request_handle(given.comm, started->id);
  return IST_OK;
}

int send_and_receive_laid(const LaidMessage& out, const LaidMessage& in, ist_status* status) {
  constexpr const char* kSend = "ist_sendrecv_layout (send)";
  constexpr const char* kReceive = "ist_sendrecv_layout (receive)";
  const Range range("ist_sendrecv_layout");
  auto what = laid_receiving(in);
  if (!what.ok()) return report(in_call(kReceive, what.status()));
  const auto receive = start_laid_receive(std::move(*what), in.tag);
  if (!receive.ok()) return report(in_call(kReceive, receive.status()));
  Half receives{kReceive, *receive};
  const auto send = start_laid_send(out, {false, true});
  if (!send.ok()) return report(in_call(kSend, send.status()));
  const int sent = finish_blocking(kSend, *send, nullptr);
  return finish_receive_after(sent, receives, status);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_send_layout(ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag, ist_comm comm) try {
  return ist::send_laid("ist_send_layout", {{buffer, count, layout}, dest, tag, comm});
} catch (...) {
  return ist::report_exception("ist_send_layout");
}

int ist_recv_layout(ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag, ist_comm comm,
                    ist_status* status) try {
  return ist::receive_laid("ist_recv_layout", {{buffer, count, layout}, source, tag, comm}, status);
} catch (...) {
  return ist::report_exception("ist_recv_layout");
}

int ist_isend_layout(ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag, ist_comm comm,
                     ist_request* request) try {
  return ist::start_and_hand_out("ist_isend_layout", {{buffer, count, layout}, dest, tag, comm}, true, request);
} catch (...) {
  return ist::report_exception("ist_isend_layout");
}

int ist_irecv_layout(ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag, ist_comm comm,
                     ist_request* request) try {
  return ist::start_and_hand_out("ist_irecv_layout", {{buffer, count, layout}, source, tag, comm}, false, request);
} catch (...) {
  return ist::report_exception("ist_irecv_layout");
}

int ist_sendrecv_layout(ist_buffer send_buffer, int64_t send_count, ist_layout send_layout, int dest, int send_tag,
                        ist_buffer recv_buffer, int64_t recv_count, ist_layout recv_layout, int source, int recv_tag,
                        ist_comm comm, ist_status* status) try {
  return ist::send_and_receive_laid({{send_buffer, send_count, send_layout}, dest, send_tag, comm},
                                    {{recv_buffer, recv_count, recv_layout}, source, recv_tag, comm}, status);
} catch (...) {
  return ist::report_exception("ist_sendrecv_layout");
}
}
