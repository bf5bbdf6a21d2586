#include "request.hpp"

#include "errors.hpp"
#include "gil.hpp"
#include "wait.hpp"

namespace isthmus_python {

std::string StatusView::text() const {
  return "Status(source=" + std::to_string(source()) + ", tag=" + std::to_string(tag()) +
         ", bytes=" + std::to_string(bytes()) + ", count=" + std::to_string(count()) + ", carrier='" + carrier() +
         "', code=" + std::to_string(code()) + ")";
}

Pending::Pending(std::shared_ptr<Session> session, std::shared_ptr<Operation> operation)
    : session_(std::move(session)), operation_(std::move(operation)) {
  if (operation_->staged()) session_->keep(operation_);
}

Pending::~Pending() {
  // Of a world that is being left, only the world itself may be asked.
  if (session_->closed() || !operation_->advance()) session_->keep(operation_);
}

nb::object Pending::wait() {
  if (!operation_->complete()) wait_for(*session_, {&operation_, 1});
  raise_if_failed();
  return result();
}

bool Pending::test() {
  if (!operation_->complete() && !look_at(*session_, *operation_)) return false;
  raise_if_failed();
  return true;
}

void Pending::cancel() const {
  if (operation_->complete()) return;
  if (session_->closed()) Session::raise_closed();
  const LetGo without_gil{session_->inside()};
  operation_->cancel();
}

nb::object Pending::status() const {
  return operation_->complete() ? nb::cast(StatusView(operation_->outcome())) : nb::none();
}

nb::object Pending::error() const {
  const Outcome& outcome = operation_->outcome();
  if (outcome.code == IST_OK) return {};
  return make_error(outcome.code, outcome.text, nb::cast(StatusView(outcome)));
}

void Pending::raise_if_failed() const {
  if (const nb::object failed = error(); failed.is_valid()) raise(failed);
}

std::string Pending::text() const {
  const std::string name = nb::cast<std::string>(nb::find(this).type().attr("__name__"));
  if (!operation_->complete()) return "<isthmus." + name + ", under way>";
  return "<isthmus." + name + ", complete: " + StatusView(operation_->outcome()).text() + ">";
}

nb::object Request::result() { return status(); }

namespace {

struct Several {
  explicit Several(const nb::iterable& requests) {
    for (const nb::handle each : requests) {
      owners.push_back(nb::borrow(each));
      if (!nb::isinstance<Pending>(each))
        throw nb::type_error(("one of the requests is a " + nb::cast<std::string>(each.type().attr("__name__")) +
                              "; give what isend, irecv and the like returned")
                                 .c_str());
      all.push_back(nb::cast<Pending*>(each));
      operations.push_back(all.back()->operation());
    }
  }
  std::vector<nb::object> owners;
  std::vector<Pending*> all;
  std::vector<std::shared_ptr<Operation>> operations;
};

}  // namespace

nb::tuple waitany(const nb::iterable& requests) {
  const Several several{requests};
  if (several.all.empty()) throw nb::value_error("waitany: there is no request to wait for");
  const std::size_t index = wait_for_any(*several.all.front()->session(), several.operations);
  return nb::make_tuple(index, several.all[index]->wait());
}

nb::list waitall(const nb::iterable& requests) {
  const Several several{requests};
  const auto& [owners, all, operations] = several;
  if (!all.empty()) wait_for(*all.front()->session(), operations);
  nb::list statuses;
  nb::list errors;
  bool failed = false;
  for (const Pending* each : all) {
    const nb::object error = each->error();
    failed = failed || error.is_valid();
    statuses.append(each->status());
    errors.append(error.is_valid() ? error : nb::none());
  }
  if (failed)
    raise(nb::module_::import_("isthmus._errors")
              .attr("make_waitall_error")(ist_code_name(IST_ERR_IN_STATUS), statuses, errors));
  nb::list results;
  for (Pending* each : all) results.append(each->result());
  return results;
}

void bind_requests(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<StatusView>(module, "Status", "What a completed operation has to say.")
      .def(nb::init<>())
      .def_prop_ro("source", &StatusView::source, "Rank of the sender.")
      .def_prop_ro("tag", &StatusView::tag)
      .def_prop_ro("bytes", &StatusView::bytes, "Bytes delivered.")
      .def_prop_ro("count", &StatusView::count, "Whole elements of the receive's buffer delivered.")
      .def_prop_ro("carrier", &StatusView::carrier, "How the bytes travelled: slot, cell, ring, direct, nccl or none.")
      .def_prop_ro("code", &StatusView::code, "0, or the Code of the error.")
      .def_prop_ro("cancelled", &StatusView::cancelled)
      .def("__repr__", &StatusView::text);
  nb::class_<Pending>(module, "PendingOperation", "What Request and ObjectRequest have in common.")
      .def("test", &Pending::test, "True when complete; raises if it failed. Moves every operation of the world on.")
      .def("cancel", &Pending::cancel,
           "Gives up a receive that no message has matched; wait() then returns, and its status says so. Sends go on.")
      .def_prop_ro("status", &Pending::status, nb::sig("def status(self) -> Status | None"), "None before completion.")
      .def("__repr__", &Pending::text);
  nb::class_<Request, Pending>(
      module, "Request",
      "A send or receive under way. It keeps its buffer alive until it is complete, also when it is dropped.")
      .def("wait", &Request::wait, nb::sig("def wait(self) -> Status"),
           "Waits without the GIL. Ctrl-C ends the wait, and the operation goes on.");
  module.def("waitany", &waitany, "requests"_a,
             nb::sig("def waitany(requests: collections.abc.Iterable[PendingOperation]) -> tuple[int, typing.Any]"),
             "Index and result of the first that is complete; raises if it failed. Leave it out of the next call.");
  module.def("waitall", &waitall, "requests"_a,
             nb::sig("def waitall(requests: collections.abc.Iterable[PendingOperation]) -> list"),
             "Waits for all, also when some fail, and gives what each wait() would; failures raise WaitallError.");
}

}  // namespace isthmus_python
