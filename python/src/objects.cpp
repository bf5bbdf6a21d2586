#include "objects.hpp"

#include <cstring>
#include <new>

#include "errors.hpp"
#include "gil.hpp"
#include "wait.hpp"

namespace isthmus_python {
using namespace nb::literals;

nb::bytes pickle(nb::handle object) {
  const nb::module_ module = nb::module_::import_("pickle");
  return nb::cast<nb::bytes>(module.attr("dumps")(object, "protocol"_a = module.attr("HIGHEST_PROTOCOL")));
}

namespace {

template <class Made>
std::shared_ptr<Made> started(Session& session, std::shared_ptr<Made> made, int peer, int tag) {
  int code = IST_OK;
  {
    const LetGo without_gil{session.inside()};
    code = made->start(peer, tag);
  }
  check(code);
  return made;
}

std::shared_ptr<Operation> sent(const std::shared_ptr<Channels>& on, nb::bytes pickled, int dest, int tag,
                                bool synchronous = false) {
  const auto made = std::make_shared<ObjectSend>(on, std::move(pickled), synchronous);
  try {
    return started(*on->session, made, dest, tag);
  } catch (nb::python_error&) {
    // A body without its head is received by nobody, and looks at its bytes until the world is left.
    if (made->under_way()) on->session->keep(made);
    throw;
  }
}

void fill(StatusView* status, const Pending& pending) {
  if (status != nullptr) *status = StatusView(pending.operation()->outcome());
}

}  // namespace

ObjectSend::ObjectSend(std::shared_ptr<Channels> channels, nb::bytes pickled, bool synchronous)
    : channels_(whole(std::move(channels))), pickled_(std::move(pickled)), synchronous_(synchronous) {
  const Head head{pickled_.size(), channels_->objects_sent++ & ((1U << 30) - 1), pickled_.size() <= kInside};
  std::memcpy(head_.data(), &head, sizeof head);
  if (head.inside) std::memcpy(head_.data() + sizeof head, pickled_.data(), pickled_.size());
}

int ObjectSend::start(int dest, int tag) {
  Head head;
  std::memcpy(&head, head_.data(), sizeof head);
  const std::int64_t size = static_cast<std::int64_t>(sizeof head + (head.inside ? head.length : 0));
  // The body goes first: it may be refused, where too much is under way, and whoever had its head would wait for it.
  if (!head.inside) {
    const int code = ist_isend(ist_host(pickled_.data()), static_cast<std::int64_t>(head.length), IST_BYTE, dest,
                               static_cast<int>(head.serial), channels_->bodies, body_flight_.out());
    if (code != IST_OK) return code;
  }
  const auto send = synchronous_ ? ist_issend : ist_isend;
  const int code = send(ist_host(head_.data()), size, IST_BYTE, dest, tag, channels_->heads, head_flight_.out());
  head_done_ = code != IST_OK;
  return code;
}

bool ObjectSend::step(Outcome& outcome) {
  // Both must be over before the bytes may go, whatever became of the other.
  if (!head_done_) head_done_ = head_flight_.look(outcome);
  if (!body_done_) body_done_ = body_flight_.look(outcome);
  return head_done_ && body_done_;
}

int ObjectReceive::start(int source, int tag) {
  return ist_irecv(ist_host(head_.data()), kHeadBytes, IST_BYTE, source, tag, channels_->heads, flight_.out());
}

bool ObjectReceive::take_head(Outcome& outcome) {
  headed_ = true;
  announced_ = outcome.status;
  if (outcome.code != IST_OK || !announces()) return true;
  Head head;
  std::memcpy(&head, head_.data(), sizeof head);
  announced_.bytes = static_cast<std::int64_t>(head.length);
  outcome.status = announced_;
  if (head.inside) return true;
  body_.reset(new (std::nothrow) std::byte[head.length]);
  if (!body_) {
    outcome.code = IST_ERR_MEMORY;
    outcome.text = "rank " + std::to_string(announced_.source) + " sent an object of " + std::to_string(head.length) +
                   " bytes, for which there is no memory";
    return true;
  }
  flight_ = Flight{};
  const int code = ist_irecv(ist_host(body_.get()), announced_.bytes, IST_BYTE, announced_.source,
                             static_cast<int>(head.serial), channels_->bodies, flight_.out());
  if (code == IST_OK) return false;
  outcome.code = code;
  outcome.text = ist_error_text();
  return true;
}

bool ObjectReceive::step(Outcome& outcome) {
  if (!flight_.look(outcome)) return false;
  if (!headed_) return take_head(outcome);
  outcome.status.tag = announced_.tag;
  return true;
}

nb::object ObjectReceive::load() const {
  if (!announces()) return nb::none();
  const void* from = body_ ? body_.get() : head_.data() + sizeof(Head);
  const nb::object view =
      nb::steal(PyMemoryView_FromMemory(static_cast<char*>(const_cast<void*>(from)), announced_.bytes, PyBUF_READ));
  if (!view.is_valid()) nb::raise_python_error();
  return nb::module_::import_("pickle").attr("loads")(view);
}

nb::object ObjectRequest::result() {
  if (!loaded_.is_valid()) loaded_ = static_cast<const ObjectReceive&>(*operation()).load();
  return loaded_;
}

void Comm::send_object(nb::handle object, int dest, int tag) const {
  const auto& on = open();
  Request pending{on->session, sent(on, pickle(object), dest, tag)};
  pending.wait();
}

nb::object Comm::recv_object(int source, int tag, StatusView* status) const {
  const auto& on = open();
  ObjectRequest pending{on->session, started(*on->session, std::make_shared<ObjectReceive>(on), source, tag)};
  nb::object received = pending.wait();
  fill(status, pending);
  return received;
}

nb::object Comm::isend_object(nb::handle object, int dest, int tag) const {
  const auto& on = open();
  return nb::cast(new Request(on->session, sent(on, pickle(object), dest, tag)), nb::rv_policy::take_ownership);
}

void Comm::ssend_object(nb::handle object, int dest, int tag) const {
  const auto& on = open();
  Request pending{on->session, sent(on, pickle(object), dest, tag, true)};
  pending.wait();
}

nb::object Comm::issend_object(nb::handle object, int dest, int tag) const {
  const auto& on = open();
  return nb::cast(new Request(on->session, sent(on, pickle(object), dest, tag, true)), nb::rv_policy::take_ownership);
}

nb::object Comm::irecv_object(int source, int tag) const {
  const auto& on = open();
  auto operation = started(*on->session, std::make_shared<ObjectReceive>(on), source, tag);
  return nb::cast(new ObjectRequest(on->session, std::move(operation)), nb::rv_policy::take_ownership);
}

nb::object Comm::sendrecv_object(nb::handle object, int dest, int source, int send_tag, int recv_tag,
                                 StatusView* status) const {
  const auto& on = open();
  nb::bytes pickled = pickle(object);
  // Where the send is refused the receive is dropped, and so cancelled: it would take an object that is meant for another one.
  ObjectRequest received{on->session, started(*on->session, std::make_shared<ObjectReceive>(on), source, recv_tag)};
  Request sending{on->session, sent(on, std::move(pickled), dest, send_tag)};
  wait_for(*on->session, std::array{received.operation(), sending.operation()});
  sending.wait();
  nb::object answer = received.wait();
  fill(status, received);
  return answer;
}

void bind_objects(nb::module_& module) {
  Bound<ObjectRequest, Pending>(module, "ObjectRequest",
                                "A receive of an object under way. Dropped before a message has matched it, it is "
                                "cancelled: nobody could have the object.")
      .def("wait", &ObjectRequest::wait, nb::sig("def wait(self) -> typing.Any"),
           "The object; every call gives the same one.");
}

}  // namespace isthmus_python
