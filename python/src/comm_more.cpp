// The rest of Comm: synchronous sends, probes, and communicators made of others.
#include <nanobind/stl/optional.h>

#include <array>

#include "comm.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "wait.hpp"

namespace isthmus_python {
namespace {

// A probe as something to wait for.
class Probe final : public Operation {
 public:
  Probe(std::shared_ptr<Channels> channels, int source, int tag)
      : channels_(std::move(channels)), source_(source), tag_(tag) {}

 protected:
  bool step(Outcome& outcome) override {
    int found = 0;
    outcome.code = ist_iprobe(source_, tag_, channels_->user, &found, &outcome.status);
    if (outcome.code != IST_OK) outcome.text = ist_error_text();
    return found != 0 || outcome.code != IST_OK;
  }

 private:
  std::shared_ptr<Channels> channels_;
  int source_;
  int tag_;
};

// A communicator made by a collective call; None to ranks outside it.
template <class Create>
nb::object created(const std::shared_ptr<Channels>& from, Create create) {
  ist_comm made = IST_COMM_NULL;
  int code = IST_OK;
  {
    const LetGo without_gil{from->session->inside()};
    code = create(from->user, &made);
  }
  check(code);
  return made == IST_COMM_NULL ? nb::none() : Comm::make(from->session, made, true);
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

StatusView Comm::probe(int source, int tag) const {
  const auto& on = open();
  const std::shared_ptr<Operation> looking = std::make_shared<Probe>(on, source, tag);
  wait_for(*on->session, {&looking, 1});
  const Outcome& outcome = looking->outcome();
  if (outcome.code != IST_OK) raise(outcome.code, outcome.text);
  return StatusView(outcome);
}

nb::object Comm::iprobe(int source, int tag) const {
  const auto& on = open();
  Probe looking{on, source, tag};
  if (!look_at(*on->session, looking)) return nb::none();
  const Outcome& outcome = looking.outcome();
  if (outcome.code != IST_OK) raise(outcome.code, outcome.text);
  return nb::cast(StatusView(outcome));
}

nb::object Comm::dup() const { return created(open(), ist_comm_dup); }

nb::object Comm::split(std::optional<int> color, int key) const {
  if (color && *color < 0)
    raise(IST_ERR_ARGUMENT, "split: color is " + std::to_string(*color) + "; give 0 or more, or None for no communicator");
  const int chosen = color.value_or(IST_UNDEFINED);
  return created(open(), [&](ist_comm from, ist_comm* made) { return ist_comm_split(from, chosen, key, made); });
}

nb::object Comm::split_local(int key) const {
  return created(open(), [&](ist_comm from, ist_comm* made) { return ist_comm_split_local(from, key, made); });
}

nb::object Comm::create_group(const nb::iterable& ranks, int tag) const {
  std::vector<int> listed;
  for (const nb::handle each : ranks) listed.push_back(nb::cast<int>(each));
  return created(open(), [&](ist_comm from, ist_comm* made) {
    return ist_comm_create_group(from, static_cast<int>(listed.size()), listed.data(), tag, made);
  });
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

void bind_more(nb::class_<Comm>& comm) {
  using namespace nb::literals;
  comm.def("ssend", &Comm::ssend, "buffer"_a.none(), "dest"_a, "tag"_a = 0, nb::kw_only(), "count"_a = nb::none(),
           "As send, and returns only when the matching receive has begun.")
      .def("issend", &Comm::issend, "buffer"_a.none(), "dest"_a, "tag"_a = 0, nb::kw_only(), "count"_a = nb::none(),
           nb::sig("def issend(self, buffer: object, dest: int, tag: int = 0, *, count: int | None = None) -> Request"))
      .def("probe", &Comm::probe, "source"_a = IST_ANY_SOURCE, "tag"_a = IST_ANY_TAG,
           "Waits for a message of buffers that a receive would take, and leaves it there.")
      .def("iprobe", &Comm::iprobe, "source"_a = IST_ANY_SOURCE, "tag"_a = IST_ANY_TAG,
           nb::sig("def iprobe(self, source: int = -1, tag: int = -1) -> Status | None"),
           "None if there is no such message now.")
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
           "Of the listed ranks, in that order. Collective over them alone.")
      .def("world_rank", &Comm::world_rank, "rank"_a, "The rank in the world's communicator of a rank of this one.")
      .def_prop_ro("name", &Comm::name, "What errors call it.");
}

}  // namespace isthmus_python
