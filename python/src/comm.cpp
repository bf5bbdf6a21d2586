#include "comm.hpp"

#include <nanobind/stl/optional.h>

#include <array>
#include <utility>

#include "barrier.hpp"
#include "collective.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "halo.hpp"
#include "heap.hpp"
#include "persistent.hpp"
#include "view_layout.hpp"
#include "wait.hpp"
#include "window.hpp"

namespace isthmus_python {
namespace {

int asked(int (*call)(ist_comm, int*), ist_comm comm) {
  int answer = 0;
  check(call(comm, &answer));
  return answer;
}

// By the call for layouts that stands beside the one for contiguous buffers.
int start_view(Call call, const ViewLayout& layout, Message& made, int peer, int tag, ist_comm comm) {
  if (const int code = layout.commit(); code != IST_OK) return code;
  const auto start = call == ist_isend ? ist_isend_layout : ist_irecv_layout;
  return start(made.region().place, 1, layout.get(), peer, tag, comm, made.out());
}

}  // namespace

std::shared_ptr<Operation> start(Call call, Region region, int peer, int tag, const Channels& on) {
  std::optional<ViewLayout> layout;
  if (region.view) layout.emplace(region);
  auto made = std::make_shared<Message>(std::move(region));
  int code = IST_OK;
  {
    const LetGo without_gil{on.session->inside()};
    const Region& named = made->region();
    code = layout ? start_view(call, *layout, *made, peer, tag, on.user)
                  : call(named.place, named.units(), named.type, peer, tag, on.user, made->out());
  }
  check(code);
  return made;
}

StatusView finish(const std::shared_ptr<Session>& session, const std::shared_ptr<Operation>& operation) {
  Request pending{session, operation};
  try {
    pending.wait();
  } catch (nb::python_error&) {
    if (operation->staged() && !operation->complete()) session->go_on(*operation);
    throw;
  }
  return StatusView(operation->outcome());
}

StatusView exchange(const Channels& on, Half out, Half in) {
  Request received{on.session, start(ist_irecv, std::move(in.region), in.peer, in.tag, on)};
  std::shared_ptr<Operation> sending;
  try {
    sending = start(ist_isend, std::move(out.region), out.peer, out.tag, on);
  } catch (nb::python_error&) {
    received.cancel();  // or it would take a message that is meant for another one
    throw;
  }
  Request sent{on.session, std::move(sending)};
  wait_for(*on.session, std::array{received.operation(), sent.operation()});
  received.wait();
  sent.wait();
  return StatusView(received.operation()->outcome());
}

void Channels::free_later() {
  if (session->closed()) return;
  for (ist_comm* each : {&bodies, &heads, &user}) {
    const ist_comm gone = std::exchange(*each, IST_COMM_NULL);
    if (gone != IST_COMM_NULL && (each != &user || owns_user)) session->free_later(gone);
  }
}

nb::object Comm::make(const std::shared_ptr<Session>& session, ist_comm handle, bool owned) {
  return nb::cast(Comm(channels_of(session, handle, owned)));
}

namespace {

// Collective: the two of its own. They go with it, also where a signal has ended the wait for them.
int add_own(Channels& made) {
  int code = ist_comm_dup(made.user, &made.heads);
  if (code == IST_OK) code = ist_comm_dup(made.user, &made.bodies);
  if (code != IST_ERR_UNREACHABLE) return code;
  made.apart = ist_error_text();
  return IST_OK;
}

std::shared_ptr<Channels> counted(std::shared_ptr<Channels> made) {
  made->rank = asked(ist_comm_rank, made->user);
  made->size = asked(ist_comm_size, made->user);
  return made;
}

}  // namespace

std::shared_ptr<Channels> Comm::channels_of(const std::shared_ptr<Session>& session, ist_comm handle, bool owned) {
  auto made = std::make_shared<Channels>(session);
  made->user = handle;
  made->owns_user = owned;
  call_of_all(
      session, [made] { return add_own(*made); }, [made](int) { made->free_later(); });
  return counted(std::move(made));
}

std::shared_ptr<Channels> create_from(const std::shared_ptr<Channels>& from, const Creation& create) {
  from->session->sweep();  // frees those that were dropped
  auto made = std::make_shared<Channels>(from->session);
  made->owns_user = true;
  const auto call = [create, from, made] {  // which keeps what it works on, should it be left behind
    const int code = create(from->user, &made->user);
    return code == IST_OK && made->user != IST_COMM_NULL ? add_own(*made) : code;
  };
  call_of_all(from->session, call, [made](int) { made->free_later(); });
  return made->user == IST_COMM_NULL ? nullptr : counted(std::move(made));
}

std::shared_ptr<Channels> whole(std::shared_ptr<Channels> channels) {
  if (!channels->apart.empty()) raise(IST_ERR_UNREACHABLE, channels->apart);
  return channels;
}

const Channels& Comm::known() const {
  if (!channels_) raise(IST_ERR_HANDLE, "the communicator was freed; make another one");
  return *channels_;
}

const std::shared_ptr<Channels>& Comm::open() const {
  known().session->world();
  return channels_;
}

int Comm::local_rank() const { return asked(ist_comm_local_rank, open()->user); }

int Comm::local_size() const { return asked(ist_comm_local_size, open()->user); }

std::string Comm::text() const {
  if (!channels_) return "<isthmus.Comm, freed>";
  return "<isthmus.Comm, rank " + std::to_string(rank()) + " of " + std::to_string(size()) + ">";
}

void Comm::send(nb::handle buffer, int dest, int tag, Count count) const {
  const auto& on = open();
  finish(on->session, start(ist_isend, to_region(buffer, Access::read, count, Views::taken), dest, tag, *on));
}

StatusView Comm::recv(nb::handle buffer, int source, int tag, Count count) const {
  const auto& on = open();
  return finish(on->session, start(ist_irecv, to_region(buffer, Access::write, count, Views::taken), source, tag, *on));
}

nb::object Comm::isend(nb::handle buffer, int dest, int tag, Count count) const {
  const auto& on = open();
  on->session->sweep();  // for programs that drop their requests and never wait
  auto started = start(ist_isend, to_region(buffer, Access::read, count, Views::taken), dest, tag, *on);
  return nb::cast(new Request(on->session, std::move(started)), nb::rv_policy::take_ownership);
}

nb::object Comm::irecv(nb::handle buffer, int source, int tag, Count count) const {
  const auto& on = open();
  on->session->sweep();  // for programs that drop their requests and never wait
  auto started = start(ist_irecv, to_region(buffer, Access::write, count, Views::taken), source, tag, *on);
  return nb::cast(new Request(on->session, std::move(started)), nb::rv_policy::take_ownership);
}

StatusView Comm::sendrecv(nb::handle send_buffer, int dest, nb::handle recv_buffer, int source, int send_tag, int recv_tag,
                          Count send_count, Count recv_count) const {
  const auto& on = open();
  // Both are looked at before either starts, so that a wrong one leaves nothing behind.
  Region out = to_region(send_buffer, Access::read, send_count, Views::taken);
  Region in = to_region(recv_buffer, Access::write, recv_count, Views::taken);
  return exchange(*on, {std::move(out), dest, send_tag}, {std::move(in), source, recv_tag});
}

void Comm::barrier() const {
  const auto& on = open();
  finish(on->session, std::make_shared<Barrier>(on));
}

void bind_comm(nb::module_& module) {
  using namespace nb::literals;
  constexpr int any = IST_ANY_SOURCE;
  Bound<Comm> comm(module, "Comm",
                   "Ranks that exchange messages. A buffer is any object with memory; see the documentation.");
  comm.def_prop_ro("rank", &Comm::rank)
      .def_prop_ro("size", &Comm::size)
      .def_prop_ro("local_rank", &Comm::local_rank, "Rank among the ranks of this host.")
      .def_prop_ro("local_size", &Comm::local_size)
      .def("send", &Comm::send, "buffer"_a.none(), "dest"_a, "tag"_a = 0, nb::kw_only(), "count"_a = nb::none(),
           "Returns when the buffer may be used again. count: so many elements of it.")
      .def("recv", &Comm::recv, "buffer"_a.none(), "source"_a = any, "tag"_a = IST_ANY_TAG, nb::kw_only(),
           "count"_a = nb::none(), "Receives into the buffer; a shorter message is no error.")
      .def("isend", &Comm::isend, "buffer"_a.none(), "dest"_a, "tag"_a = 0, nb::kw_only(), "count"_a = nb::none(),
           nb::sig("def isend(self, buffer: object, dest: int, tag: int = 0, *, count: int | None = None) -> Request"))
      .def("irecv", &Comm::irecv, "buffer"_a.none(), "source"_a = any, "tag"_a = IST_ANY_TAG, nb::kw_only(),
           "count"_a = nb::none(),
           nb::sig(
               "def irecv(self, buffer: object, source: int = -1, tag: int = -1, *, count: int | None = None) -> Request"))
      .def("sendrecv", &Comm::sendrecv, "send_buffer"_a.none(), "dest"_a, "recv_buffer"_a.none(), "source"_a = any,
           nb::kw_only(), "send_tag"_a = 0, "recv_tag"_a = IST_ANY_TAG, "send_count"_a = nb::none(),
           "recv_count"_a = nb::none(), "Sends one buffer and receives into the other, both at once.")
      .def("barrier", &Comm::barrier, "Returns when every rank has come to it.")
      .def("send_object", &Comm::send_object, "object"_a.none(), "dest"_a, "tag"_a = 0,
           "Sends anything that pickle can write; recv_object and irecv_object receive it, and no buffer call does.")
      .def("recv_object", &Comm::recv_object, "source"_a = any, "tag"_a = IST_ANY_TAG, nb::kw_only(),
           "status"_a = nb::none(),
           nb::sig("def recv_object(self, source: int = -1, tag: int = -1, *, status: Status | None = None) -> typing.Any"),
           "Unpickling runs what the sender wrote: only between ranks that trust each other. status: filled in.")
      .def("isend_object", &Comm::isend_object, "object"_a.none(), "dest"_a, "tag"_a = 0,
           nb::sig("def isend_object(self, object: object, dest: int, tag: int = 0) -> Request"))
      .def("ssend_object", &Comm::ssend_object, "object"_a.none(), "dest"_a, "tag"_a = 0,
           "As send_object, and returns when a receive has taken it.")
      .def("issend_object", &Comm::issend_object, "object"_a.none(), "dest"_a, "tag"_a = 0,
           nb::sig("def issend_object(self, object: object, dest: int, tag: int = 0) -> Request"))
      .def("irecv_object", &Comm::irecv_object, "source"_a = any, "tag"_a = IST_ANY_TAG,
           nb::sig("def irecv_object(self, source: int = -1, tag: int = -1) -> ObjectRequest"))
      .def("sendrecv_object", &Comm::sendrecv_object, "object"_a.none(), "dest"_a, "source"_a = any, nb::kw_only(),
           "send_tag"_a = 0, "recv_tag"_a = IST_ANY_TAG, "status"_a = nb::none(),
           nb::sig("def sendrecv_object(self, object: object, dest: int, source: int = -1, *, send_tag: int = 0, "
                   "recv_tag: int = -1, status: Status | None = None) -> typing.Any"))
      .def("__repr__", &Comm::text);
  bind_more(comm);
  bind_probes(comm);
  bind_streams(comm);
  bind_queues(comm);
  bind_persistent_calls(comm);
  bind_collectives(comm);
  bind_stream_collectives(comm);
  bind_object_collectives(comm);
  bind_carts(module, comm);
  bind_heaps(module, comm);
  bind_windows(module, comm);
  bind_halos(module, comm);
}

}  // namespace isthmus_python
