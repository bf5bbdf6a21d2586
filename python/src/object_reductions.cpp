// Reductions of objects: everybody's, combined where the result is wanted, in the order of ranks.
//
// So what the function raises is raised where it was called, and no other rank waits for it.
#include "collective.hpp"
#include "objects.hpp"
#include "reducer.hpp"

namespace isthmus_python {
namespace {

using namespace nb::literals;

// What combines two objects: a function, or one of the library's operations by its name. Raises before anything is sent.
nb::object combiner(nb::handle op) {
  const nb::module_ module = nb::module_::import_("isthmus._reduction");
  if (nb::isinstance<Reducer>(op)) return module.attr("of_objects")(nb::cast<Reducer&>(op).name);
  if (PyCallable_Check(op.ptr()) == 0)
    throw nb::type_error("the operation is none, and cannot be called; give isthmus.SUM or a function of two objects");
  return nb::borrow(op);
}

nb::object folded(const nb::list& objects, int count, const nb::object& combine) {
  nb::object all = objects[0];
  for (int i = 1; i < count; ++i) all = combine(all, objects[static_cast<std::size_t>(i)]);
  return all;
}

nb::object reduce_object(const Comm& self, nb::handle object, nb::handle op, int root) {
  const nb::object combine = combiner(op);
  const nb::object everybody = gather_object(self, object, root);
  return everybody.is_none() ? nb::none() : folded(nb::cast<nb::list>(everybody), self.size(), combine);
}

nb::object allreduce_object(const Comm& self, nb::handle object, nb::handle op) {
  const nb::object combine = combiner(op);
  return folded(allgather_object(self, object), self.size(), combine);
}

nb::object scan_object(const Comm& self, nb::handle object, nb::handle op) {
  const nb::object combine = combiner(op);
  return folded(allgather_object(self, object), self.rank() + 1, combine);
}

nb::object exscan_object(const Comm& self, nb::handle object, nb::handle op) {
  const nb::object combine = combiner(op);
  const nb::list everybody = allgather_object(self, object);
  return self.rank() == 0 ? nb::none() : folded(everybody, self.rank(), combine);
}

}  // namespace

void bind_object_reductions(Bound<Comm>& comm) {
  const auto op = "op"_a = Reducer{IST_SUM, "SUM"};
  comm.def("reduce_object", &reduce_object, "object"_a.none(), op, "root"_a = 0,
           nb::sig(
               "def reduce_object(self, object: object, op: Operation | collections.abc.Callable[[typing.Any, typing.Any], "
               "typing.Any] = ..., root: int = 0) -> typing.Any"),
           "Everybody's objects combined on the root, from the left to the right in the order of ranks; None elsewhere. op: "
           "one of the "
           "library's, which does to objects what Python's operator of that name does, or a function of two objects.")
      .def("allreduce_object", &allreduce_object, "object"_a.none(), op,
           nb::sig("def allreduce_object(self, object: object, op: Operation | collections.abc.Callable[[typing.Any, "
                   "typing.Any], typing.Any] = ...) -> typing.Any"),
           "The same on every rank, each of which combines for itself.")
      .def(
          "scan_object", &scan_object, "object"_a.none(), op,
          nb::sig("def scan_object(self, object: object, op: Operation | collections.abc.Callable[[typing.Any, typing.Any], "
                  "typing.Any] = ...) -> typing.Any"),
          "Of the ranks up to this one.")
      .def("exscan_object", &exscan_object, "object"_a.none(), op,
           nb::sig(
               "def exscan_object(self, object: object, op: Operation | collections.abc.Callable[[typing.Any, typing.Any], "
               "typing.Any] = ...) -> typing.Any"),
           "Of the ranks before this one; None on rank 0.");
}

}  // namespace isthmus_python
