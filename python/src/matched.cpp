// Probes, and messages that a probe has set aside.
#include <nanobind/stl/optional.h>

#include "comm.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "wait.hpp"

namespace isthmus_python {
namespace {

using namespace nb::literals;

// A probe as something to wait for; a matched one takes the message out of the queue.
class Probe final : public Operation {
 public:
  enum class Of { buffers, objects };
  Probe(std::shared_ptr<Channels> channels, int source, int tag, bool matched, Of of = Of::buffers)
      : channels_(std::move(channels)), source_(source), tag_(tag), matched_(matched), of_(of) {}
  ist_message message() const { return message_; }

 protected:
  bool step(Outcome& outcome) override {
    int found = 0;
    const ist_comm comm = of_ == Of::objects ? channels_->heads : channels_->user;
    outcome.code = matched_ ? ist_improbe(source_, tag_, comm, &found, &message_, &outcome.status)
                            : ist_iprobe(source_, tag_, comm, &found, &outcome.status);
    if (outcome.code != IST_OK) outcome.text = ist_error_text();
    return found != 0 || outcome.code != IST_OK;
  }

 private:
  std::shared_ptr<Channels> channels_;
  int source_;
  int tag_;
  bool matched_;
  Of of_;
  ist_message message_ = IST_MESSAGE_NULL;
};

// What it found, once complete.
StatusView answer(const Probe& probe) {
  const Outcome& outcome = probe.outcome();
  if (outcome.code != IST_OK) raise(outcome.code, outcome.text);
  return StatusView(outcome);
}

std::shared_ptr<Probe> wait_for_message(const Comm& comm, int source, int tag, bool matched,
                                        Probe::Of of = Probe::Of::buffers) {
  const auto& on = comm.open();
  auto probe = std::make_shared<Probe>(on, source, tag, matched, of);
  const std::shared_ptr<Operation> waited_for = probe;
  wait_for(*on->session, {&waited_for, 1});
  return probe;
}

class Matched {
 public:
  Matched(std::shared_ptr<Session> session, const Probe& found)
      : session_(std::move(session)), message_(found.message()), status_(answer(found)) {}
  Matched(const Matched&) = delete;
  Matched& operator=(const Matched&) = delete;

  // What nobody receives is received into nothing, so that a sender that waits for it goes on.
  ~Matched() {
    if (message_ == IST_MESSAGE_NULL || session_->closed() || inside_function > 0) return;
    Region nothing;
    nothing.place = ist_host(nullptr);
    auto lost = std::make_shared<Message>(std::move(nothing));
    {
      const LetGo without_gil{session_->inside()};
      if (ist_imrecv(lost->region().place, 0, IST_BYTE, &message_, lost->out()) != IST_OK) return;
      lost->advance();
    }
    session_->keep(lost);
  }

  nb::object irecv(nb::handle buffer, std::optional<std::int64_t> count) {
    return nb::cast(new Request(session_, started(buffer, count)), nb::rv_policy::take_ownership);
  }
  StatusView recv(nb::handle buffer, std::optional<std::int64_t> count) { return finish(session_, started(buffer, count)); }
  const StatusView& status() const { return status_; }
  std::string text() const {
    return std::string("<isthmus.Message, ") + (message_ == IST_MESSAGE_NULL ? "received" : status_.text()) + ">";
  }

 private:
  std::shared_ptr<Operation> started(nb::handle buffer, std::optional<std::int64_t> count) {
    session_->require_open();
    if (message_ == IST_MESSAGE_NULL)
      raise(IST_ERR_HANDLE, "the message was received already; mprobe and improbe give the next one");
    auto made = std::make_shared<Message>(to_region(buffer, Access::write, count));
    int code = IST_OK;
    {
      const LetGo without_gil{session_->inside()};
      const Region& named = made->region();
      code = ist_imrecv(named.place, named.units(), named.type, &message_, made->out());
    }
    check(code);
    return made;
  }

  std::shared_ptr<Session> session_;
  ist_message message_;
  StatusView status_;
};

nb::object matched(const Comm& comm, const Probe& found) {
  return nb::cast(new Matched(comm.open()->session, found), nb::rv_policy::take_ownership);
}

StatusView probe(const Comm& comm, int source, int tag) { return answer(*wait_for_message(comm, source, tag, false)); }

nb::object iprobe(const Comm& comm, int source, int tag) {
  Probe looking{comm.open(), source, tag, false};
  return look_at(*comm.open()->session, looking) ? nb::cast(answer(looking)) : nb::none();
}

StatusView probe_object(const Comm& comm, int source, int tag) {
  return answer(*wait_for_message(comm, source, tag, false, Probe::Of::objects));
}

nb::object iprobe_object(const Comm& comm, int source, int tag) {
  Probe looking{comm.open(), source, tag, false, Probe::Of::objects};
  return look_at(*comm.open()->session, looking) ? nb::cast(answer(looking)) : nb::none();
}

nb::object mprobe(const Comm& comm, int source, int tag) {
  return matched(comm, *wait_for_message(comm, source, tag, true));
}

nb::object improbe(const Comm& comm, int source, int tag) {
  Probe looking{comm.open(), source, tag, true};
  return look_at(*comm.open()->session, looking) ? matched(comm, looking) : nb::none();
}

}  // namespace

void bind_matched(nb::module_& module) {
  Bound<Matched>(module, "Message", "A message that mprobe or improbe has set aside: only this object receives it.")
      .def("recv", &Matched::recv, "buffer"_a.none(), nb::kw_only(), "count"_a = nb::none(),
           "Receives it into the buffer, once.")
      .def("irecv", &Matched::irecv, "buffer"_a.none(), nb::kw_only(), "count"_a = nb::none(),
           nb::sig("def irecv(self, buffer: object, *, count: int | None = None) -> Request"))
      .def_prop_ro("status", &Matched::status, "Source, tag and bytes of the message.")
      .def("__repr__", &Matched::text);
}

void bind_probes(Bound<Comm>& comm) {
  comm.def("probe", &probe, "source"_a = IST_ANY_SOURCE, "tag"_a = IST_ANY_TAG,
           "Waits for a message of buffers that a receive would take, and leaves it there.")
      .def("iprobe", &iprobe, "source"_a = IST_ANY_SOURCE, "tag"_a = IST_ANY_TAG,
           nb::sig("def iprobe(self, source: int = -1, tag: int = -1) -> Status | None"),
           "None if there is no such message now.")
      .def("probe_object", &probe_object, "source"_a = IST_ANY_SOURCE, "tag"_a = IST_ANY_TAG,
           "As probe, of what recv_object would take. The status tells source and tag; its bytes are those of what "
           "announces the "
           "object.")
      .def("iprobe_object", &iprobe_object, "source"_a = IST_ANY_SOURCE, "tag"_a = IST_ANY_TAG,
           nb::sig("def iprobe_object(self, source: int = -1, tag: int = -1) -> Status | None"),
           "None if there is no such object now.")
      .def("mprobe", &mprobe, "source"_a = IST_ANY_SOURCE, "tag"_a = IST_ANY_TAG,
           nb::sig("def mprobe(self, source: int = -1, tag: int = -1) -> Message"),
           "As probe, and sets the message aside: no other receive takes it, in whatever thread.")
      .def("improbe", &improbe, "source"_a = IST_ANY_SOURCE, "tag"_a = IST_ANY_TAG,
           nb::sig("def improbe(self, source: int = -1, tag: int = -1) -> Message | None"),
           "As mprobe; None if there is no such message now.");
}

}  // namespace isthmus_python
