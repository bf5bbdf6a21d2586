#include <nanobind/stl/optional.h>

#include "heap.hpp"

namespace isthmus_python {
namespace {

void bind_arrays(nb::module_& module) {
  using namespace nb::literals;
  Bound<SymmetricArray>(
      module, "SymmetricArray",
      "Memory of a symmetric heap, of which every PE has a copy; this is the caller's. numpy.asarray() and "
      "cupy.asarray() give views of it, which are void once the heap or its world is closed. Of an OpenCL heap it is named "
      "whole, and `opencl` is what kernels take.")
      .def_prop_ro("shape", &SymmetricArray::shape, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("typestr", &SymmetricArray::typestr)
      .def_prop_ro("nbytes", &SymmetricArray::bytes)
      .def_prop_ro("size", &SymmetricArray::count, "Elements.")
      .def_prop_ro("address", &SymmetricArray::address)
      .def_prop_ro(
          "__array_interface__", [](const SymmetricArray& self) { return self.array_interface(false); },
          nb::sig("def __array_interface__(self) -> dict[str, object]"))
      .def_prop_ro(
          "__cuda_array_interface__", [](const SymmetricArray& self) { return self.array_interface(true); },
          nb::sig("def __cuda_array_interface__(self) -> dict[str, object]"))
      .def_prop_ro(
          "opencl",
          [](nb::handle self) {
            const auto& array = nb::cast<const SymmetricArray&>(self);
            if (!array.is_opencl()) throw nb::attribute_error("opencl");
            const ist_buffer place = array.buffer(self).place;
            return nb::make_tuple(place.object, place.offset, place.queue);
          },
          nb::sig("def opencl(self) -> tuple[int, int, int]"),
          "Of an OpenCL heap: the cl_mem, the offset in it, which kernels take, and a queue of the library's, as numbers.")
      .def("at", &SymmetricArray::at_pe, "pe"_a, nb::sig("def at(self, pe: int) -> SymmetricArray"),
           "That PE's copy, for loads and stores: by the processor of a host heap, by kernels of a CUDA heap. put() and "
           "get() take "
           "the caller's own copy instead, and the PE.")
      .def("free", &SymmetricArray::free, "Collective; never done when the last reference is dropped.")
      .def("__repr__", &SymmetricArray::text);
}

using Class = Bound<Heap>;

void bind_copies(Class& heap) {
  using namespace nb::literals;
  heap.def(
          "put", [](const Heap& self, nb::handle dest, nb::handle source, int pe) { self.put(dest, source, pe, true); },
          "dest"_a, "source"_a, "pe"_a,
          "Writes source to that PE's copy of dest, a SymmetricArray or a view of one, as long as source. Either may have "
          "gaps, such as array[:, ::2]: then element by element in the order of its indices. Returns when source may be "
          "used "
          "again; seen there after quiet and a signal or barrier.")
      .def(
          "get", [](const Heap& self, nb::handle dest, nb::handle source, int pe) { self.get(dest, source, pe, true); },
          "dest"_a, "source"_a, "pe"_a,
          "Brings that PE's copy of source, a SymmetricArray or a view of one, to dest. Either may have gaps.")
      .def(
          "put_nbi", [](const Heap& self, nb::handle dest, nb::handle source, int pe) { self.put(dest, source, pe, false); },
          "dest"_a, "source"_a, "pe"_a,
          "As put, complete after quiet or barrier; until then source must stay as it is. With gaps it is put().")
      .def(
          "get_nbi", [](const Heap& self, nb::handle dest, nb::handle source, int pe) { self.get(dest, source, pe, false); },
          "dest"_a, "source"_a, "pe"_a, "As get, complete after quiet or barrier. With gaps it is get().")
      .def(
          "put_signal",
          [](const Heap& self, nb::handle dest, nb::handle source, nb::handle signal, std::uint64_t value, int pe,
             bool add) { self.put_signal(dest, source, signal, value, pe, add, true); },
          "dest"_a, "source"_a, "signal"_a, "value"_a, "pe"_a, "add"_a = false,
          "A put, and then the word `signal` of 8 bytes at the same PE is set to value, or value is added: who sees it "
          "sees the bytes.")
      .def(
          "put_signal_nbi",
          [](const Heap& self, nb::handle dest, nb::handle source, nb::handle signal, std::uint64_t value, int pe,
             bool add) { self.put_signal(dest, source, signal, value, pe, add, false); },
          "dest"_a, "source"_a, "signal"_a, "value"_a, "pe"_a, "add"_a = false,
          "As put_signal, without waiting: source must stay as it is until quiet or barrier, and the word changes once the "
          "bytes are there, at the latest then; several change theirs in any order. With gaps it is put_signal().")
      .def("fence", &Heap::fence, "What was put before is there for everybody before what is put afterwards.")
      .def("quiet", &Heap::quiet, "What was put and got before is complete, and visible to every PE.")
      .def("barrier", &Heap::barrier,
           "quiet, and then waits for all PEs. Ctrl-C ends the wait. By messages: C's ist_heap_barrier does not meet it.");
}

void bind_words(Class& heap) {
  using namespace nb::literals;
  heap.def("test", &Heap::test, "word"_a, "compare"_a, "value"_a,
           nb::sig("def test(self, word: object, compare: str, value: int) -> bool"),
           "Whether the caller's own word, a view of one integer of 4 or 8 bytes, compares so: ==, !=, >, >=, <, <=.")
      .def("wait_until", &Heap::wait_until, "word"_a, "compare"_a, "value"_a,
           nb::sig("def wait_until(self, word: object, compare: str, value: int) -> None"),
           "Until it does. Messages move on meanwhile, Ctrl-C ends the wait, and a PE that dies raises PeerDeadError.")
      .def("atomic", &Heap::atomic, "operation"_a, "word"_a, "operand"_a = 0, "pe"_a,
           nb::sig("def atomic(self, operation: str, word: object, operand: int = 0, *, pe: int) -> int"),
           "fetch, set, add, inc, swap, and, or, xor on that PE's copy of the word; gives what was there. Of a CUDA heap by "
           "a "
           "kernel on this rank's device.")
      .def("compare_swap", &Heap::compare_swap, "word"_a, "expected"_a, "wanted"_a, "pe"_a,
           nb::sig("def compare_swap(self, word: object, expected: int, wanted: int, pe: int) -> int"),
           "Writes wanted if the word is expected; gives what was there.");
}

}  // namespace

void bind_heaps(nb::module_& module, Bound<Comm>& comm) {
  using namespace nb::literals;
  bind_arrays(module);
  Class heap(
      module, "Heap",
      "A symmetric heap: of every PE, a rank of the communicator that made it, a part of one kind of memory, which all "
      "others reach without a call there. Ended by close(), which is collective, or with its world.");
  heap.def_prop_ro("pe", &Heap::pe)
      .def_prop_ro("pes", &Heap::pes)
      .def_prop_ro("kind", &Heap::kind)
      .def_prop_ro("closed", &Heap::closed)
      .def_prop_ro("room", &Heap::room, nb::sig("def room(self) -> tuple[int, int]"), "Free bytes, and the largest block.")
      .def("array", &Heap::array, "shape"_a, "typestr"_a = "u1",
           nb::sig("def array(self, shape: int | collections.abc.Sequence[int], typestr: str = 'u1') -> SymmetricArray"),
           "Zeros, at all PEs. Collective: all PEs give arrays of the same bytes. MemoryError where a PE has no room, at "
           "all.")
      .def("grow", &Heap::grow, "nbytes"_a, "To so many bytes, of which none move. Collective.")
      .def("view", &Heap::view,
           "The bytes of an ist_team_view (isthmus/team.h), which kernels take by value as their argument.")
      .def("device_view", &Heap::device_view, "device"_a = nb::none(),
           "The bytes of an ist_device_view, for kernels on that CUDA device (this rank's own unless one is given): of a "
           "heap "
           "in host memory, all of which is page-locked then, they change words by isthmus/device/host_words.cuh.")
      .def("close", &Heap::close, "Collective; the views of its arrays are void then.")
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Heap"))
      .def(
          "__exit__",
          [](Heap& self, nb::handle type, nb::args) {
            if (type.is_none()) self.close();  // another rank may not come to it otherwise
          },
          "type"_a.none(), "rest"_a, nb::sig("def __exit__(self, type: object, *rest: object) -> None"))
      .def("__repr__", &Heap::text);
  bind_copies(heap);
  bind_words(heap);
  comm.def(
      "heap",
      [](const Comm& self, const std::string& kind, std::uint64_t bytes, std::uint64_t most, int device) {
        return Heap::make(self.open(), kind, bytes, most, device);
      },
      "kind"_a, "nbytes"_a, "most"_a = 0, "device"_a = IST_OWN_DEVICE,
      nb::sig("def heap(self, kind: str, nbytes: int, most: int = 0, device: int = -1) -> Heap"),
      "A symmetric heap of nbytes of host, CUDA or OpenCL memory of each rank, which may grow to `most` (0: 64 GiB). "
      "Collective.");
}

}  // namespace isthmus_python
