// Messages that CUDA streams send and receive: what is put into a stream returns at once.
#include <isthmus/layout_stream.h>
#include <nanobind/stl/optional.h>

#include "stream.hpp"
#include "view_layout.hpp"

namespace isthmus_python {

void* to_stream(nb::handle stream) {
  if (stream.is_none()) return nullptr;
  if (const nb::object protocol = attribute(stream, "__cuda_stream__"); protocol.is_valid())
    return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(nb::object(protocol())[1]));
  for (const char* name : {"cuda_stream", "ptr", "handle"})
    if (const nb::object found = attribute(stream, name); found.is_valid())
      return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(found));
  std::uintptr_t number = 0;
  if (nb::try_cast<std::uintptr_t>(stream, number)) return reinterpret_cast<void*>(number);
  throw nb::type_error(("a CUDA stream is wanted, and a " + class_name(stream) +
                        " is none: give its number, or an object with __cuda_stream__, cuda_stream or ptr")
                           .c_str());
}

namespace {

void send_on(const Comm& comm, nb::handle stream, nb::handle buffer, int dest, int tag, Comm::Count count) {
  const LaidRegion from(buffer, Access::read, count);
  void* const where = to_stream(stream);
  call_on(*comm.open(), [&](ist_comm on) {
    if (!from.gaps()) return ist_send_on(where, from->place, from->units(), from->type, dest, tag, on);
    const int code = from.commit();
    return code != IST_OK ? code : ist_send_layout_on(where, from->place, 1, from.layout(), dest, tag, on);
  });
}

void recv_on(const Comm& comm, nb::handle stream, nb::handle buffer, int source, int tag, Comm::Count count) {
  const LaidRegion into(buffer, Access::write, count);
  void* const where = to_stream(stream);
  call_on(*comm.open(), [&](ist_comm on) {
    if (!into.gaps()) return ist_recv_on(where, into->place, into->units(), into->type, source, tag, on);
    const int code = into.commit();
    return code != IST_OK ? code : ist_recv_layout_on(where, into->place, 1, into.layout(), source, tag, on);
  });
}

struct Tags {
  int send;
  int recv;
};

void sendrecv_on(const Comm& comm, nb::handle stream, nb::handle send_buffer, int dest, nb::handle recv_buffer, int source,
                 const Tags& tags, Comm::Count send_count, Comm::Count recv_count) {
  const LaidRegion out(send_buffer, Access::read, send_count);
  const LaidRegion in(recv_buffer, Access::write, recv_count);
  void* const where = to_stream(stream);
  call_on(*comm.open(), [&](ist_comm on) {
    if (!out.gaps() && !in.gaps())
      return ist_sendrecv_on(where, out->place, out->units(), out->type, dest, tags.send, in->place, in->units(), in->type,
                             source, tags.recv, on);
    for (const LaidRegion* side : {&out, &in})
      if (const int code = side->commit(); code != IST_OK) return code;
    return ist_sendrecv_layout_on(where, out->place, out.count(), out.layout(), dest, tags.send, in->place, in.count(),
                                  in.layout(), source, tags.recv, on);
  });
}

void prepare_on(const Comm& comm, nb::handle stream, int partner, int tag, bool sends, bool receives) {
  void* const where = to_stream(stream);
  const int sides = (sends ? IST_SENDS : 0) + (receives ? IST_RECEIVES : 0);
  call_on(*comm.open(), [&](ist_comm on) { return ist_prepare_on(where, partner, tag, sides, on); });
}

}  // namespace

void bind_streams(Bound<Comm>& comm) {
  using namespace nb::literals;
  comm.def("send_on", &send_on, "stream"_a.none(), "buffer"_a.none(), "dest"_a, "tag"_a = 0, nb::kw_only(),
           "count"_a = nb::none(),
           "Sends when the CUDA stream comes to it, and returns at once; keep the buffer until then. recv_on alone receives "
           "it.")
      .def("recv_on", &recv_on, "stream"_a.none(), "buffer"_a.none(), "source"_a, "tag"_a = 0, nb::kw_only(),
           "count"_a = nb::none(), "Receives when the stream comes to it what send_on sends, and returns at once.")
      .def(
          "sendrecv_on",
          [](const Comm& self, nb::handle stream, nb::handle send_buffer, int dest, nb::handle recv_buffer, int source,
             int send_tag, int recv_tag, Comm::Count send_count, Comm::Count recv_count) {
            sendrecv_on(self, stream, send_buffer, dest, recv_buffer, source, {send_tag, recv_tag}, send_count, recv_count);
          },
          "stream"_a.none(), "send_buffer"_a.none(), "dest"_a, "recv_buffer"_a.none(), "source"_a, nb::kw_only(),
          "send_tag"_a = 0, "recv_tag"_a = 0, "send_count"_a = nb::none(), "recv_count"_a = nb::none(), "Both at once.")
      .def("prepare_on", &prepare_on, "stream"_a.none(), "partner"_a, "tag"_a = 0, nb::kw_only(), "sends"_a = true,
           "receives"_a = true,
           "Prepares the channels to and from a rank, as the first call of each does by itself: before a capture, or to "
           "choose "
           "when it is waited for.");
}

}  // namespace isthmus_python
