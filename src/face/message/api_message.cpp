// C calls that send and receive.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "base/ranges.hpp"
#include "face/message/at_once.hpp"
#include "face/message/errors.hpp"
#include "request/type_check.hpp"

namespace ist {
namespace {

int hand_out(const Started& started, ist_comm comm, ist_request* request) {
  // A send that needed no operation is complete: the null request says so.
  *request = started.done ? IST_REQUEST_NULL : request_handle(comm, started.id);
  return IST_OK;
}

struct SendArguments {
  Data data;
  int dest;
  int tag;
  ist_comm comm;
};

// Not on the short way, whose instructions are counted.
[[gnu::noinline]] int send_the_long_way(const char* call, const SendArguments& given, bool synchronous) {
  const Range range(call);
  const auto started = start_send(given.data, given.dest, given.tag, given.comm, {synchronous, true});
  if (!started.ok()) return report(in_call(call, started.status()));
  return finish_blocking(call, *started, nullptr);
}

// As send_the_long_way().
[[gnu::noinline]] int start_send_the_long_way(const char* call, const SendArguments& given, bool synchronous,
                                              ist_request* request) {
  if (request == nullptr) return report(IST_ERR_ARGUMENT, std::string{call} + ": request is null");
  *request = IST_REQUEST_NULL;
  const Range range(call);
  const auto started =
      start_send(given.data, given.dest, given.tag, given.comm, {.synchronous = synchronous, .in_windows = true});
  if (!started.ok()) return report(in_call(call, started.status()));
  return hand_out(*started, given.comm, request);
}

// As send_the_long_way().
[[gnu::noinline]] int receive_the_long_way(const Data& data, int source, int tag, ist_comm comm, ist_status* status,
                                           OperationId posted) {
  const Range range("ist_recv");
  if (posted.value != 0) return finish_blocking("ist_recv", {look_up(comm)->world, posted, false}, status);
  const auto what = receiving(data, source, tag, comm);
  if (!what.ok()) return report(in_call("ist_recv", what.status()));
  return receive_and_finish("ist_recv", *what, status);
}

// As send_the_long_way().
[[gnu::noinline]] int start_receive_the_long_way(const Data& data, int source, int tag, ist_comm comm,
                                                 ist_request* request) {
  if (request == nullptr) return report(IST_ERR_ARGUMENT, "ist_irecv: request is null");
  *request = IST_REQUEST_NULL;
  const Range range("ist_irecv");
  auto started = start_receive(data, source, tag, comm);
  if (!started.ok()) return report(in_call("ist_irecv", started.status()));
  if (started->done) {
    // From nobody: the status has to say so when the request is waited for.
    const std::lock_guard lock(started->world->engine().lock());
    const auto id = started->world->engine().start_complete(from_nobody());
    if (!id.ok()) return report(in_call("ist_irecv", id.status()));
    *started = {started->world, *id, false};
  }
  return hand_out(*started, comm, request);
}

// What the two halves of a call are called in errors.
struct Halves {
  const char* send;
  const char* receive;
};

// A receive into device memory may be refused, because its stream is being captured: so before the message is on its way, which may wait for a
// rank that was refused the same.
int receive_and_send(const Halves& call, const SendArguments& out, const Receiving& in, ist_status* status) {
  const auto receive = start_receive(in);
  if (!receive.ok()) return report(in_call(call.receive, receive.status()));
  Half receives{call.receive, *receive};
  const auto send = start_send(out.data, out.dest, out.tag, out.comm, {false, true});
  if (!send.ok()) return report(in_call(call.send, send.status()));
  const int sent = finish_blocking(call.send, *send, nullptr);
  return finish_receive_after(sent, receives, status);
}

int send_and_receive(const Halves& call, const SendArguments& out, const Data& in, int source, int tag, ist_status* status) {
  const auto what = receiving(in, source, tag, out.comm);
  if (!what.ok()) return report(in_call(call.receive, what.status()));
  if (what->piece.kind != KindId::host) return receive_and_send(call, out, *what, status);
  if (send_at_once(out.data, out.dest, out.tag, out.comm, true)) return receive_and_finish(call.receive, *what, status);
  const auto send = start_send(out.data, out.dest, out.tag, out.comm, {false, true});
  if (!send.ok()) return report(in_call(call.send, send.status()));
  // A small message has gone already: only the receive is left to wait for.
  if (send->done) return receive_and_finish(call.receive, *what, status);
  Half sends{call.send, *send};
  const auto receive = start_receive(*what);
  if (!receive.ok()) {
    static_cast<void>(sends.finish(nullptr));
    return report(in_call(call.receive, receive.status()));
  }
  Half receives{call.receive, *receive};
  const int sent = sends.finish(nullptr);
  return finish_receive_after(sent, receives, status);
}

// Memory for the length of a call, of the kind and on the device of a piece, and as long.
class Scratch {
 public:
  static Result<Scratch> like(const Piece& piece, World& world) {
    if (piece.kind == KindId::host)
      return Scratch{std::make_unique_for_overwrite<std::byte[]>(piece.size.value), piece.size};
    MemoryKind& kind = *world.kinds().find(piece.kind);
    const auto made = kind.allocate(std::max(piece.device, 0), piece.size);
    if (!made.ok()) return made.status();
    return Scratch{kind, *made};
  }
  Scratch(Scratch&& other) noexcept
      : host_(std::move(other.host_)), kind_(std::exchange(other.kind_, nullptr)), piece_(other.piece_) {}
  ~Scratch() {
    if (kind_ != nullptr) kind_->release_later(piece_);
  }
  const Piece& piece() const { return piece_; }

 private:
  Scratch(std::unique_ptr<std::byte[]> memory, Bytes size)
      : host_(std::move(memory)), piece_(host_piece(host_.get(), size)) {}
  Scratch(MemoryKind& kind, const Piece& piece) : kind_(&kind), piece_(piece) {}
  std::unique_ptr<std::byte[]> host_;
  MemoryKind* kind_ = nullptr;
  Piece piece_;
};

// Sends a copy of the buffer, and receives into the buffer.
int replace(const SendArguments& given, int source, int recv_tag, ist_status* status) {
  constexpr const char* kCall = "ist_sendrecv_replace";
  const auto to = destination(given.comm, given.dest, given.tag);
  if (!to.ok()) return report(in_call(kCall, to.status()));
  World& world = *to->world;
  const auto piece = to_piece(world, given.data);
  if (!piece.ok()) return report(in_call(kCall, piece.status()));
  if (piece->size == Bytes{} || given.dest == IST_PROC_NULL)
    return send_and_receive({"ist_sendrecv_replace (send)", "ist_sendrecv_replace (receive)"}, given, given.data, source,
                            recv_tag, status);
  const auto copy = Scratch::like(*piece, world);
  if (!copy.ok()) return report(in_call(kCall, copy.status()));
  if (const Status copied = copy_pieces(world, copy->piece(), *piece); !copied.ok()) return report(in_call(kCall, copied));
  const auto receive = start_receive(given.data, source, recv_tag, given.comm);
  if (!receive.ok()) return report(in_call(kCall, receive.status()));
  Half receives{kCall, *receive};
  Engine& engine = world.engine();
  bool done = false;
  const auto id = [&] {
    const std::lock_guard lock(engine.lock());
    const TypeCheck::Stated types{engine.types(), [&] { return types_of(given.data); }};
    return engine.start_send(copy->piece(), Rank{to->rank}, given.tag, to->comm->scope(), &done, {false, true});
  }();
  if (!id.ok()) return report(in_call(kCall, id.status()));
  const int sent = finish_blocking(kCall, Started{&world, *id, done}, nullptr);
  return finish_receive_after(sent, receives, status);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_send(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm) try {
  if (!ist::Range::told() && ist::send_at_once({buffer, count, type}, dest, tag, comm, true)) [[likely]]
    return IST_OK;
  return ist::send_the_long_way("ist_send", {{buffer, count, type}, dest, tag, comm}, false);
} catch (...) {
  return ist::report_exception("ist_send");
}

int ist_ssend(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm) try {
  return ist::send_the_long_way("ist_ssend", {{buffer, count, type}, dest, tag, comm}, true);
} catch (...) {
  return ist::report_exception("ist_ssend");
}

int ist_recv(ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm, ist_status* status) try {
  ist::OperationId posted;
  if (!ist::Range::told() && ist::receive_at_once({buffer, count, type}, source, tag, comm, status, posted)) [[likely]]
    return IST_OK;
  return ist::receive_the_long_way({buffer, count, type}, source, tag, comm, status, posted);
} catch (...) {
  return ist::report_exception("ist_recv");
}

int ist_sendrecv(ist_buffer send_buffer, int64_t send_count, ist_type send_type, int dest, int send_tag,
                 ist_buffer recv_buffer, int64_t recv_count, ist_type recv_type, int source, int recv_tag, ist_comm comm,
                 ist_status* status) try {
  const ist::Range range("ist_sendrecv");
  return ist::send_and_receive({"ist_sendrecv (send)", "ist_sendrecv (receive)"},
                               {{send_buffer, send_count, send_type}, dest, send_tag, comm},
                               {recv_buffer, recv_count, recv_type}, source, recv_tag, status);
} catch (...) {
  return ist::report_exception("ist_sendrecv");
}

int ist_sendrecv_replace(ist_buffer buffer, int64_t count, ist_type type, int dest, int send_tag, int source, int recv_tag,
                         ist_comm comm, ist_status* status) try {
  const ist::Range range("ist_sendrecv_replace");
  return ist::replace({{buffer, count, type}, dest, send_tag, comm}, source, recv_tag, status);
} catch (...) {
  return ist::report_exception("ist_sendrecv_replace");
}

int ist_isend(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm, ist_request* request) try {
  if (request != nullptr && !ist::Range::told() && ist::send_at_once({buffer, count, type}, dest, tag, comm, false))
      [[likely]] {
    *request = IST_REQUEST_NULL;
    return IST_OK;
  }
  return ist::start_send_the_long_way("ist_isend", {{buffer, count, type}, dest, tag, comm}, false, request);
} catch (...) {
  return ist::report_exception("ist_isend");
}

int ist_issend(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm, ist_request* request) try {
  return ist::start_send_the_long_way("ist_issend", {{buffer, count, type}, dest, tag, comm}, true, request);
} catch (...) {
  return ist::report_exception("ist_issend");
}

int ist_irecv(ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm,
              ist_request* request) try {
  if (request != nullptr && !ist::Range::told() &&
      ist::start_receive_at_once({buffer, count, type}, source, tag, comm, request)) [[likely]]
    return IST_OK;
  return ist::start_receive_the_long_way({buffer, count, type}, source, tag, comm, request);
} catch (...) {
  return ist::report_exception("ist_irecv");
}
}
