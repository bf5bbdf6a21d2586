// The rest of Comm: synchronous sends, an exchange in place, and communicators made of others.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <array>

#include "comm.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "memory.hpp"

namespace isthmus_python {
namespace {

nb::object created(const std::shared_ptr<Channels>& from, const Creation& create) {
  auto made = create_from(from, create);
  return made ? nb::cast(Comm(std::move(made))) : nb::none();
}

int prepare_ahead(ist_buffer buffer, std::int64_t count, ist_type type, int peer, int, ist_comm comm, ist_request* request) {
  return ist_iprepare(buffer, count, type, peer, comm, request);
}

}  // namespace

void Comm::ssend(nb::handle buffer, int dest, int tag, Count count) const {
  const auto& on = open();
  finish(on->session, start(ist_issend, to_region(buffer, Access::read, count), dest, tag, *on));
}

nb::object Comm::issend(nb::handle buffer, int dest, int tag, Count count) const {
  const auto& on = open();
  auto started = start(ist_issend, to_region(buffer, Access::read, count), dest, tag, *on);
  return nb::cast(new Request(on->session, std::move(started)), nb::rv_policy::take_ownership);
}

// The contents go out of a copy, in memory of the same kind.
StatusView Comm::sendrecv_replace(nb::handle buffer, int dest, int source, int send_tag, int recv_tag, Count count) const {
  const auto& on = open();
  const Region into = to_region(buffer, Access::write, count);
  const bool device = into.place.kind == IST_KIND_CUDA || into.place.kind == IST_KIND_OPENCL;
  const nb::object copy =
      nb::cast(new Memory(on->session, device ? name_of(into.place.kind) : "host",
                          static_cast<std::size_t>(std::max<std::int64_t>(into.bytes(), 1)), IST_OWN_DEVICE),
               nb::rv_policy::take_ownership);
  Region out = into;
  out.place = to_region(copy, Access::read).place;
  out.owner = copy;
  int code = IST_OK;
  {
    const LetGo without_gil{on->session->inside()};
    code = ist_memory_copy(on->session->handle(), out.place, into.place, static_cast<std::size_t>(into.bytes()));
  }
  check(code);
  return exchange(*on, {std::move(out), dest, send_tag}, {into, source, recv_tag});
}

void Comm::prepare(nb::handle buffer, int peer, Count count) const {
  const auto& on = open();
  finish(on->session, start(prepare_ahead, to_region(buffer, Access::read, count), peer, 0, *on));
}

nb::object Comm::iprepare(nb::handle buffer, int peer, Count count) const {
  const auto& on = open();
  auto started = start(prepare_ahead, to_region(buffer, Access::read, count), peer, 0, *on);
  return nb::cast(new Request(on->session, std::move(started)), nb::rv_policy::take_ownership);
}

nb::object Comm::dup() const { return created(open(), ist_comm_dup); }

nb::object Comm::split(std::optional<int> color, int key) const {
  if (color && *color < 0)
    raise(IST_ERR_ARGUMENT, "split: color is " + std::to_string(*color) + "; give 0 or more, or None for no communicator");
  const int chosen = color.value_or(IST_UNDEFINED);
  return created(open(), [chosen, key](ist_comm from, ist_comm* made) { return ist_comm_split(from, chosen, key, made); });
}

nb::object Comm::split_local(int key) const {
  return created(open(), [key](ist_comm from, ist_comm* made) { return ist_comm_split_local(from, key, made); });
}

nb::object Comm::create_group(const nb::iterable& ranks, int tag) const {
  std::vector<int> listed;
  for (const nb::handle each : ranks) listed.push_back(nb::cast<int>(each));
  return created(open(), [listed, tag](ist_comm from, ist_comm* made) {
    return ist_comm_create_group(from, static_cast<int>(listed.size()), listed.data(), tag, made);
  });
}

void Comm::free() {
  if (!channels_) return;
  open();
  if (!channels_->owns_user) raise(IST_ERR_HANDLE, "free: the world's own communicators cannot be freed");
  const auto session = channels_->session;
  channels_.reset();
  session->sweep();
}

int Comm::world_rank(int rank) const {
  int answer = 0;
  check(ist_comm_world_rank(open()->user, rank, &answer));
  return answer;
}

std::string Comm::name() const {
  std::array<char, 256> text{};
  check(ist_comm_name(open()->user, text.data(), text.size()));
  return text.data();
}

std::string Comm::explain(nb::handle buffer, int dest, Count count) const {
  const auto& on = open();
  const Region what = to_region(buffer, Access::read, count);
  std::string text;
  std::size_t needed = 0;
  do {
    text.resize(needed);
    int code = IST_OK;
    {
      const LetGo without_gil{on->session->inside()};
      code = ist_explain(what.place, what.units(), what.type, dest, on->user, text.data(), text.size(), &needed);
    }
    check(code);
  } while (needed > text.size());
  text.resize(needed - 1);
  return text;
}

void bind_more(Bound<Comm>& comm) {
  using namespace nb::literals;
  comm.def("ssend", &Comm::ssend, "buffer"_a.none(), "dest"_a, "tag"_a = 0, nb::kw_only(), "count"_a = nb::none(),
           "As send, and returns only when the matching receive has begun.")
      .def("issend", &Comm::issend, "buffer"_a.none(), "dest"_a, "tag"_a = 0, nb::kw_only(), "count"_a = nb::none(),
           nb::sig("def issend(self, buffer: object, dest: int, tag: int = 0, *, count: int | None = None) -> Request"))
      .def("sendrecv_replace", &Comm::sendrecv_replace, "buffer"_a.none(), "dest"_a, "source"_a = IST_ANY_SOURCE,
           nb::kw_only(), "send_tag"_a = 0, "recv_tag"_a = IST_ANY_TAG, "count"_a = nb::none(),
           "Sends the buffer's contents and receives into their place.")
      .def("prepare", &Comm::prepare, "buffer"_a.none(), "peer"_a, nb::kw_only(), "count"_a = nb::none(),
           "Opens device memory ahead of the first message; the peer calls it, too, with its own buffer.")
      .def("iprepare", &Comm::iprepare, "buffer"_a.none(), "peer"_a, nb::kw_only(), "count"_a = nb::none(),
           nb::sig("def iprepare(self, buffer: object, peer: int, *, count: int | None = None) -> Request"))
      .def("dup", &Comm::dup, nb::sig("def dup(self) -> Comm"),
           "The same ranks, whose messages never meet those of this one. Collective; freed when it is dropped, as all that "
           "follow.")
      .def("split", &Comm::split, "color"_a = nb::none(), "key"_a = 0,
           nb::sig("def split(self, color: int | None = None, key: int = 0) -> Comm | None"),
           "One communicator per color, ranks in the order of key; None to ranks without a color. Collective.")
      .def("split_local", &Comm::split_local, "key"_a = 0, nb::sig("def split_local(self, key: int = 0) -> Comm"),
           "One communicator per host. Collective.")
      .def("create_group", &Comm::create_group, "ranks"_a, "tag"_a = 0,
           nb::sig("def create_group(self, ranks: collections.abc.Iterable[int], tag: int = 0) -> Comm"),
           "Of the listed ranks, in that order. Collective over them alone; tags, 0 to 2**30 - 1, keep apart calls of "
           "overlapping lists that are under way at once.")
      .def("free", &Comm::free, "Lets go of it now, as dropping does; operations that were started on it go on. Local.")
      .def("world_rank", &Comm::world_rank, "rank"_a, "The rank in the world's communicator of a rank of this one.")
      .def("explain", &Comm::explain, "buffer"_a.none(), "dest"_a, nb::kw_only(), "count"_a = nb::none(),
           "How a message of this buffer would be carried now, and why, in lines for people. Nothing is sent.")
      .def_prop_ro("name", &Comm::name, "What errors call it.");
}

}  // namespace isthmus_python
