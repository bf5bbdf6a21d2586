#include "persistent.hpp"

#include <nanobind/stl/optional.h>

#include "errors.hpp"
#include "gil.hpp"

namespace isthmus_python {
namespace {

using namespace nb::literals;

bool same_place(const Region& one, const Region& other) {
  return one.place.kind == other.place.kind && one.place.object == other.place.object &&
         one.place.offset == other.place.offset && one.place.queue == other.place.queue &&
         one.place.flags == other.place.flags && one.type == other.type && one.bytes() == other.bytes() &&
         one.view == other.view;
}

// The call for layouts that stands beside the one for contiguous buffers.
auto for_layouts(Call init) {
  if (init == ist_recv_init) return ist_recv_layout_init;
  return init == ist_send_init ? ist_send_layout_init : ist_ssend_layout_init;
}

void make(Session& session, Persistent& persistent, Region region) {
  std::optional<ViewLayout> layout;
  if (region.view) layout.emplace(region);
  int code = IST_OK;
  {
    const LetGo without_gil{session.inside()};
    code = persistent.make(region, layout ? &*layout : nullptr);
  }
  check(code);
  persistent.place(std::move(region));
}

template <Call kInit, Access kAccess>
nb::object made(const Comm& self, nb::handle buffer, int peer, int tag, std::optional<std::int64_t> count) {
  const auto& on = self.open();
  on->session->sweep();
  auto operation = std::make_shared<Persistent>(on, kInit, peer, tag);
  make(*on->session, *operation, to_region(buffer, kAccess, count, Views::taken));
  return nb::cast(new PersistentRequest(on->session, std::move(operation), buffer, kAccess), nb::rv_policy::take_ownership);
}

void startall(const nb::iterable& requests) {
  std::vector<nb::object> owners;
  std::vector<PersistentRequest*> all;
  for (const nb::handle each : requests) {
    if (!nb::isinstance<PersistentRequest>(each))
      throw nb::type_error(("startall: one of the requests is a " + nb::cast<std::string>(each.type().attr("__name__")) +
                            ", which cannot be started; give what send_init, ssend_init and recv_init returned")
                               .c_str());
    owners.push_back(nb::borrow(each));
    all.push_back(nb::cast<PersistentRequest*>(each));
  }
  for (PersistentRequest* each : all) each->start();
}

}  // namespace

Persistent::Persistent(std::shared_ptr<Channels> channels, Call init, int peer, int tag)
    : Operation(true), channels_(std::move(channels)), init_(init), peer_(peer), tag_(tag) {}

Persistent::~Persistent() {
  if (flight_.pending()) channels_->session->free_later(*flight_.out());
}

int Persistent::make(const Region& region, const ViewLayout* layout) {
  Flight made;
  int code = layout != nullptr ? layout->commit() : IST_OK;
  if (code != IST_OK) return code;
  code = layout != nullptr ? for_layouts(init_)(region.place, 1, layout->get(), peer_, tag_, channels_->user, made.out())
                           : init_(region.place, region.units(), region.type, peer_, tag_, channels_->user, made.out());
  if (code != IST_OK) return code;
  // The old one is inactive: it looks at no memory.
  if (flight_.pending()) static_cast<void>(ist_request_free(flight_.out()));
  flight_ = made;
  return code;
}

int Persistent::start() {
  return again([&] { return ist_start(flight_.out()); });
}

bool Persistent::step(Outcome& outcome) {
  if (!flight_.look(outcome)) return false;
  outcome.item_size = region_.item_size;
  return true;
}

PersistentRequest::PersistentRequest(std::shared_ptr<Session> session, std::shared_ptr<Persistent> operation,
                                     nb::handle object, Access access)
    : Pending(std::move(session), std::move(operation)), object_(nb::borrow(object)), access_(access) {}

// The producer of device memory may have another stream by now, or must be asked again to order its work before ours. Asked at
// every start, also after one that failed: the request that there is may be for memory that its array has given back.
std::optional<Region> PersistentRequest::moved() const {
  const Region& made_for = static_cast<const Persistent&>(*operation()).region();
  if (made_for.place.kind != IST_KIND_CUDA && made_for.place.kind != IST_KIND_OPENCL) return {};
  Region now = to_region(object_, access_, {}, Views::taken);
  if (now.count < made_for.count || (now.view && now.count != made_for.count))
    throw nb::value_error(("start: the " + class_name(object_) + " has " + std::to_string(now.count) +
                           " elements by now, and the request was made for " + std::to_string(made_for.count) +
                           "; make another one")
                              .c_str());
  now.count = made_for.count;
  if (same_place(now, made_for)) return {};
  return now;
}

void PersistentRequest::start() {
  auto& persistent = static_cast<Persistent&>(*operation());
  session()->require_open();
  if (active_) raise(IST_ERR_PENDING, "start: the request is still active; wait for it before it is started again");
  session()->sweep();
  if (auto now = moved()) make(*session(), persistent, std::move(*now));
  int code = IST_OK;
  {
    const LetGo without_gil{session()->inside()};
    code = persistent.start();
  }
  check(code);
  active_ = true;
}

void bind_persistent(nb::module_& module) {
  Bound<PersistentRequest, Pending>(
      module, "PersistentRequest",
      "A send or receive that is started as often as wanted, one start at a time. It keeps its buffer; where several "
      "requests are given to a call, one that is not started is passed over.")
      .def("start", &PersistentRequest::start,
           "Begins it again, with what the buffer then holds. The stream of device memory is the one that is current now.")
      .def("wait", &PersistentRequest::wait, nb::sig("def wait(self) -> Status"),
           "Waits for the last start without the GIL; of one that is not started, what the last one came to.");
  define(module, "startall", &startall, "requests"_a,
         nb::sig("def startall(requests: collections.abc.Iterable[PersistentRequest]) -> None"),
         "Starts all, in their order.");
}

void bind_persistent_calls(Bound<Comm>& comm) {
  comm.def("send_init", &made<ist_send_init, Access::read>, "buffer"_a.none(), "dest"_a, "tag"_a = 0, nb::kw_only(),
           "count"_a = nb::none(),
           nb::sig("def send_init(self, buffer: object, dest: int, tag: int = 0, *, count: int | None = None) -> "
                   "PersistentRequest"),
           "Prepares a send; start() begins it.")
      .def("ssend_init", &made<ist_ssend_init, Access::read>, "buffer"_a.none(), "dest"_a, "tag"_a = 0, nb::kw_only(),
           "count"_a = nb::none(),
           nb::sig("def ssend_init(self, buffer: object, dest: int, tag: int = 0, *, count: int | None = None) -> "
                   "PersistentRequest"),
           "Prepares a synchronous send.")
      .def("recv_init", &made<ist_recv_init, Access::write>, "buffer"_a.none(), "source"_a = IST_ANY_SOURCE,
           "tag"_a = IST_ANY_TAG, nb::kw_only(), "count"_a = nb::none(),
           nb::sig("def recv_init(self, buffer: object, source: int = -1, tag: int = -1, *, count: int | None = None) -> "
                   "PersistentRequest"),
           "Prepares a receive.");
}

}  // namespace isthmus_python
