// Collective calls that CUDA streams carry out: what is put into a stream returns at once.
#include <isthmus/stream.h>

#include "collective.hpp"
#include "stream.hpp"

namespace isthmus_python {
namespace {

// What is combined, and where to; the elements are those of whichever is a buffer.
struct Two {
  Region send;
  Region recv;
  ist_type type = IST_BYTE;
  std::int64_t units = 0;
};

Two two_of(nb::handle send, nb::handle recv) {
  Two made;
  const bool in_place = nb::isinstance<InPlace>(send);
  if (in_place && recv.is_none()) throw nb::value_error("IN_PLACE was given, and no buffer that has the input");
  made.recv.place = ist_host(nullptr);
  if (!recv.is_none()) made.recv = to_region(recv, Access::write);
  made.send.place = ist_in_place();
  if (!in_place) made.send = to_region(send, Access::read);
  const Region& typed = in_place ? made.recv : made.send;
  if (!in_place && !recv.is_none() && (made.send.type != made.recv.type || made.send.count != made.recv.count))
    throw nb::value_error("the two buffers differ in type or length; they must be alike");
  made.type = typed.type;
  made.units = typed.units();
  return made;
}

ist_op of_library(const Reducer& op) {
  if (op.function.is_valid())
    throw nb::value_error(
        "a function of Python's runs on the processor, and no stream can; give one of the library's operations");
  return op.op;
}

void prepare_collectives_on(const Comm& comm, nb::handle stream) {
  void* const where = to_stream(stream);
  call_on(*comm.open(), [&](ist_comm on) { return ist_prepare_collectives_on(where, on); });
}

void barrier_on(const Comm& comm, nb::handle stream) {
  void* const where = to_stream(stream);
  call_on(*comm.open(), [&](ist_comm on) { return ist_barrier_on(where, on); });
}

void bcast_on(const Comm& comm, nb::handle stream, nb::handle buffer, int root) {
  const auto& on = comm.open();
  const Region region = to_region(buffer, on->rank == root ? Access::read : Access::write);
  void* const where = to_stream(stream);
  call_on(*on, [&](ist_comm user) { return ist_bcast_on(where, region.place, region.units(), region.type, root, user); });
}

void reduce_on(const Comm& comm, nb::handle stream, nb::handle send, nb::handle recv, const Reducer& op, int root) {
  const Two both = two_of(send, recv);
  require_reducible(both.recv.owner.is_valid() ? both.recv : both.send, op);
  const ist_op with = of_library(op);
  void* const where = to_stream(stream);
  call_on(*comm.open(), [&](ist_comm on) {
    return ist_reduce_on(where, both.send.place, both.recv.place, both.units, both.type, with, root, on);
  });
}

void allreduce_on(const Comm& comm, nb::handle stream, nb::handle send, nb::handle recv, const Reducer& op) {
  const Two both = two_of(send, recv);
  require_reducible(both.recv.owner.is_valid() ? both.recv : both.send, op);
  const ist_op with = of_library(op);
  void* const where = to_stream(stream);
  call_on(*comm.open(), [&](ist_comm on) {
    return ist_allreduce_on(where, both.send.place, both.recv.place, both.units, both.type, with, on);
  });
}

}  // namespace

void bind_stream_collectives(Bound<Comm>& comm) {
  using namespace nb::literals;
  const auto stream = "stream"_a.none();
  const auto op = "op"_a = Reducer{IST_SUM, "SUM"};
  comm.def(
          "prepare_collectives_on", &prepare_collectives_on, stream,
          "Prepares barrier_on, bcast_on, reduce_on and allreduce_on, long ones by NCCL as well, so that all of them return "
          "at once; every rank calls it. Otherwise the first of them, and the first long one, wait for all ranks.")
      .def("barrier_on", &barrier_on, stream,
           "Later work of the CUDA stream begins when every rank's stream has come here; returns at once.")
      .def("bcast_on", &bcast_on, stream, "buffer"_a.none(), "root"_a = 0,
           "The root's buffer to everybody's, when the streams come to it; returns at once.")
      .def("reduce_on", &reduce_on, stream, "send"_a.none(), "recv"_a.none(), op, "root"_a = 0,
           nb::sig("def reduce_on(self, stream: object | None, send: object, recv: object | None, op: Operation = ..., "
                   "root: int = 0) "
                   "-> None"),
           "As reduce, when the streams come to it, with an operation of the library's; returns at once.")
      .def("allreduce_on", &allreduce_on, stream, "send"_a.none(), "recv"_a.none(), op,
           nb::sig("def allreduce_on(self, stream: object | None, send: object, recv: object, op: Operation = ...) -> None"),
           "The same result on every rank.");
}

}  // namespace isthmus_python
