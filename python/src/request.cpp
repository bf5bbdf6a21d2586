#include "request.hpp"

#include <nanobind/stl/optional.h>

#include "errors.hpp"
#include "gil.hpp"
#include "memory.hpp"
#include "wait.hpp"

namespace isthmus_python {

std::string StatusView::text() const {
  return "Status(source=" + std::to_string(source()) + ", tag=" + std::to_string(tag()) +
         ", bytes=" + std::to_string(bytes()) + ", count=" + std::to_string(count()) + ", carrier='" + carrier() +
         "', code=" + std::to_string(code()) + ")";
}

std::optional<std::int64_t> StatusView::count_of(const std::string& typestr) const {
  const std::int64_t size = item_size_of(typestr);
  if (bytes() % size != 0) return {};
  return bytes() / size;
}

Pending::Pending(std::shared_ptr<Session> session, std::shared_ptr<Operation> operation)
    : session_(std::move(session)), operation_(std::move(operation)) {
  if (operation_->staged()) session_->keep(operation_);
}

Pending::~Pending() {
  if (operation_) let_go();
}

// Of a world that is being left, only the world itself may be asked; and inside a reduction's function, nobody.
void Pending::let_go() {
  if (!session_->closed() && inside_function == 0 && !operation_->complete()) {
    const LetGo without_gil{session_->inside()};
    if (operation_->ends_with_request()) operation_->cancel();
    operation_->advance();
  }
  if (operation_->complete())
    session_->forget(operation_);
  else
    session_->keep(operation_);
  operation_.reset();
}

const std::shared_ptr<Operation>& Pending::operation() const {
  if (!operation_) raise(IST_ERR_HANDLE, "the request was freed; use what the next call gives");
  return operation_;
}

// Of one that is over already; a world that is left has no use for it, and inside a reduction's function nobody may ask.
void Pending::tell_of_wait() const {
  if (!operation_->counts() || session_->closed() || inside_function != 0) return;
  const LetGo without_gil{session_->inside()};
  operation_->await();
}

nb::object Pending::wait() {
  const auto waited_for = operation();
  if (waited_for->complete())
    tell_of_wait();
  else
    wait_for(*session_, {&waited_for, 1});
  return collect();
}

bool Pending::test() {
  const auto looked_at = operation();
  if (!looked_at->complete() && !look_at(*session_, *looked_at)) return false;
  collect();
  return true;
}

nb::object Pending::collect() {
  told();
  if (const nb::object failed = error(); failed.is_valid()) raise(failed);
  return result();
}

void Pending::cancel() const {
  const auto cancelled = operation();
  if (cancelled->complete()) return;
  session_->require_open();
  const LetGo without_gil{session_->inside()};
  cancelled->cancel();
}

void Pending::free() {
  if (!operation_) return;
  let_go();
  forget();
  if (inside_function == 0) session_->sweep();
}

nb::object Pending::status() const {
  return operation()->complete() ? nb::cast(StatusView(operation_->outcome())) : nb::none();
}

nb::object Pending::error() const {
  const Outcome& outcome = operation()->outcome();
  if (outcome.code == IST_OK) return {};
  if (nb::object own = operation_->exception(); own.is_valid()) return own;
  return make_error(outcome.code, outcome.text, nb::cast(StatusView(outcome)));
}

std::string Pending::text() const {
  const std::string name = nb::cast<std::string>(nb::find(this).type().attr("__name__"));
  if (!operation_) return "<isthmus." + name + ", freed>";
  if (!operation_->complete()) return "<isthmus." + name + ", under way>";
  return "<isthmus." + name + ", complete: " + StatusView(operation_->outcome()).text() + ">";
}

nb::object Request::result() { return status(); }

void bind_requests(nb::module_& module) {
  using namespace nb::literals;
  Bound<StatusView>(module, "Status", "What a completed operation has to say.")
      .def(nb::init<>())
      .def_prop_ro("source", &StatusView::source, "Rank of the sender.")
      .def_prop_ro("tag", &StatusView::tag)
      .def_prop_ro("bytes", &StatusView::bytes, "Bytes delivered.")
      .def_prop_ro("count", &StatusView::count, "Whole elements of the receive's buffer delivered.")
      .def("get_count", &StatusView::count_of, "typestr"_a,
           "Whole elements of a type such as 'f8' delivered or announced; None if the bytes are no whole number of them.")
      .def_prop_ro("carrier", &StatusView::carrier,
                   "How the bytes travelled: slot, cell, ring, direct, nccl, device, mailbox or none.")
      .def_prop_ro("code", &StatusView::code, "0, or the Code of the error.")
      .def_prop_ro("cancelled", &StatusView::cancelled)
      .def("__repr__", &StatusView::text);
  Bound<Pending>(module, "PendingOperation", "What all requests have in common.")
      .def("test", &Pending::test, "True when complete; raises if it failed. Moves every operation of the world on.")
      .def("cancel", &Pending::cancel,
           "Gives up a receive that no message has matched, a send that no receive has asked for, or this rank's part in a "
           "collective call, which the others are told of; wait() then returns, and its status says so.")
      .def(
          "free", &Pending::free,
          "Lets go of it, as dropping does: what is under way goes on and keeps its buffer, and nobody is told how it ends.")
      .def_prop_ro("status", &Pending::status, nb::sig("def status(self) -> Status | None"), "None before completion.")
      .def("__repr__", &Pending::text);
  Bound<Request, Pending>(module, "Request",
                          "A send or receive under way. It keeps its buffer alive until it is complete, also when it is "
                          "dropped; it goes on only as long as the world is open.")
      .def("wait", &Request::wait, nb::sig("def wait(self) -> Status"),
           "Waits without the GIL. Ctrl-C ends the wait, and the operation goes on.");
}

}  // namespace isthmus_python
