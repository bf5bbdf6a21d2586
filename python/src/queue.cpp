// Messages that OpenCL queues send and receive: what is put into a queue returns at once.
#include <isthmus/layout_stream.h>
#include <nanobind/stl/optional.h>

#include "comm.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "view_layout.hpp"

namespace isthmus_python {
namespace {

// A number, or what pyopencl calls by int_ptr.
void* to_object(nb::handle object, const char* what) {
  std::uintptr_t number = 0;
  if (const nb::object found = attribute(object, "int_ptr"); found.is_valid())
    return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(found));
  if (nb::try_cast<std::uintptr_t>(object, number)) return reinterpret_cast<void*>(number);
  throw nb::type_error(
      (std::string(what) + " is wanted, and a " + class_name(object) + " is none: give one of pyopencl's, or its number")
          .c_str());
}

// What a call waits for, and the event that it gives: an object of pyopencl's where the program has imported that, else none.
class Events {
 public:
  explicit Events(nb::handle wait_for) {
    if (!wait_for.is_none())
      for (const nb::handle each : nb::iter(wait_for)) waits_.push_back(to_object(each, "an OpenCL event"));
    const nb::dict modules = nb::module_::import_("sys").attr("modules");
    if (modules.contains("pyopencl")) module_ = modules["pyopencl"];
  }
  std::uint32_t waits() const { return static_cast<std::uint32_t>(waits_.size()); }
  const void* list() const { return waits_.data(); }
  void* place() { return module_.is_valid() ? &event_ : nullptr; }
  nb::object event() const {
    if (event_ == nullptr) return nb::none();
    return module_.attr("Event").attr("from_int_ptr")(reinterpret_cast<std::uintptr_t>(event_), nb::arg("retain") = false);
  }

 private:
  std::vector<void*> waits_;
  nb::object module_;
  void* event_ = nullptr;
};

template <class Body>
void call(const Channels& on, const Body& body) {
  int code = IST_OK;
  {
    const LetGo without_gil{on.session->inside()};
    code = body(on.user);
  }
  check(code);
}

nb::object send_on_queue(const Comm& comm, nb::handle queue, nb::handle buffer, int dest, int tag, Comm::Count count,
                         nb::handle wait_for) {
  const LaidRegion from(buffer, Access::read, count);
  void* const where = to_object(queue, "an OpenCL queue");
  Events events{wait_for};
  call(*comm.open(), [&](ist_comm on) {
    if (!from.gaps())
      return ist_send_on_queue(where, from->place, from->units(), from->type, dest, tag, on, events.waits(), events.list(),
                               events.place());
    const int code = from.commit();
    return code != IST_OK ? code
                          : ist_send_layout_on_queue(where, from->place, 1, from.layout(), dest, tag, on, events.waits(),
                                                     events.list(), events.place());
  });
  return events.event();
}

nb::object recv_on_queue(const Comm& comm, nb::handle queue, nb::handle buffer, int source, int tag, Comm::Count count,
                         nb::handle wait_for) {
  const LaidRegion into(buffer, Access::write, count);
  void* const where = to_object(queue, "an OpenCL queue");
  Events events{wait_for};
  call(*comm.open(), [&](ist_comm on) {
    if (!into.gaps())
      return ist_recv_on_queue(where, into->place, into->units(), into->type, source, tag, on, events.waits(), events.list(),
                               events.place());
    const int code = into.commit();
    return code != IST_OK ? code
                          : ist_recv_layout_on_queue(where, into->place, 1, into.layout(), source, tag, on, events.waits(),
                                                     events.list(), events.place());
  });
  return events.event();
}

struct Tags {
  int send;
  int recv;
};

nb::object sendrecv_on_queue(const Comm& comm, nb::handle queue, nb::handle send_buffer, int dest, nb::handle recv_buffer,
                             int source, const Tags& tags, Comm::Count send_count, Comm::Count recv_count,
                             nb::handle wait_for) {
  const LaidRegion out(send_buffer, Access::read, send_count);
  const LaidRegion in(recv_buffer, Access::write, recv_count);
  void* const where = to_object(queue, "an OpenCL queue");
  Events events{wait_for};
  call(*comm.open(), [&](ist_comm on) {
    if (!out.gaps() && !in.gaps())
      return ist_sendrecv_on_queue(where, out->place, out->units(), out->type, dest, tags.send, in->place, in->units(),
                                   in->type, source, tags.recv, on, events.waits(), events.list(), events.place());
    for (const LaidRegion* side : {&out, &in})
      if (const int code = side->commit(); code != IST_OK) return code;
    return ist_sendrecv_layout_on_queue(where, out->place, out.count(), out.layout(), dest, tags.send, in->place, in.count(),
                                        in.layout(), source, tags.recv, on, events.waits(), events.list(), events.place());
  });
  return events.event();
}

void prepare_on_queue(const Comm& comm, nb::handle queue, int partner, int tag, bool sends, bool receives) {
  void* const where = to_object(queue, "an OpenCL queue");
  const int sides = (sends ? IST_SENDS : 0) + (receives ? IST_RECEIVES : 0);
  call(*comm.open(), [&](ist_comm on) { return ist_prepare_on_queue(where, partner, tag, sides, on); });
}

}  // namespace

void bind_queues(Bound<Comm>& comm) {
  using namespace nb::literals;
  comm.def("send_on_queue", &send_on_queue, "queue"_a, "buffer"_a, "dest"_a, "tag"_a = 0, nb::kw_only(),
           "count"_a = nb::none(), "wait_for"_a = nb::none(),
           "Sends when the OpenCL queue comes to it, and returns at once; keep the buffer until then. recv_on_queue alone "
           "receives it. wait_for: events of pyopencl's. Gives such an event, where the program has imported pyopencl.")
      .def("recv_on_queue", &recv_on_queue, "queue"_a, "buffer"_a, "source"_a, "tag"_a = 0, nb::kw_only(),
           "count"_a = nb::none(), "wait_for"_a = nb::none(),
           "Receives when the OpenCL queue comes to it what send_on_queue sends, and returns at once, with an event.")
      .def(
          "sendrecv_on_queue",
          [](const Comm& self, nb::handle queue, nb::handle send_buffer, int dest, nb::handle recv_buffer, int source,
             int send_tag, int recv_tag, Comm::Count send_count, Comm::Count recv_count, nb::handle wait_for) {
            return sendrecv_on_queue(self, queue, send_buffer, dest, recv_buffer, source, {send_tag, recv_tag}, send_count,
                                     recv_count, wait_for);
          },
          "queue"_a, "send_buffer"_a, "dest"_a, "recv_buffer"_a, "source"_a, nb::kw_only(), "send_tag"_a = 0,
          "recv_tag"_a = 0, "send_count"_a = nb::none(), "recv_count"_a = nb::none(), "wait_for"_a = nb::none(),
          "Both at once, with one event.")
      .def("prepare_on_queue", &prepare_on_queue, "queue"_a, "partner"_a, "tag"_a = 0, nb::kw_only(), "sends"_a = true,
           "receives"_a = true, "Waits until that rank uses the channels to and from it in queues, too.");
}

}  // namespace isthmus_python
