
#include <nanobind/stl/optional.h>

#include "comm.hpp"
#include "errors.hpp"
#include "exchange.hpp"
#include "gil.hpp"
#include "memory.hpp"
#include "traffic.hpp"

namespace isthmus_python {
namespace {

class World {
 public:
  explicit World(const std::string& settings)
      : World(Session::create([&](ist_world* world) { return ist_world_create_configured(settings.c_str(), world); },
                              settings)) {}
  explicit World(std::shared_ptr<Session> session) : session_(std::move(session)) {
    ist_comm comm = IST_COMM_NULL;
    check(ist_world_comm(session_->world(), &comm));
    comm_ = Comm::make(session_, comm, false);
  }
  nb::object comm() const { return comm_; }
  nb::object comm_self() {
    if (comm_self_.is_valid()) return comm_self_;
    ist_comm comm = IST_COMM_NULL;
    check(ist_world_comm_self(session_->world(), &comm));
    return comm_self_ = Comm::make(session_, comm, false);
  }
  int rank() const { return nb::cast<const Comm&>(comm_).rank(); }
  int size() const { return nb::cast<const Comm&>(comm_).size(); }
  void close() const { session_->close(); }
  bool closed() const { return session_->closed(); }

  int devices(const std::string& kind) const {
    int count = 0;
    check(ist_kind_devices(session_->world(), kind_named(kind), &count));
    return count;
  }
  nb::object allocate(const std::string& kind, std::size_t bytes, int device) const {
    return nb::cast(new Memory(session_, kind, bytes, device), nb::rv_policy::take_ownership);
  }
  nb::object register_memory(nb::handle memory) const {
    return nb::cast(new Registration(session_, memory), nb::rv_policy::take_ownership);
  }
  void copy(nb::handle to, nb::handle from) const {
    const Region target = to_region(to, Access::write);
    const Region source = to_region(from, Access::read);
    if (source.bytes() > target.bytes())
      throw nb::value_error(("copy: " + std::to_string(source.bytes()) + " bytes do not fit into " +
                             std::to_string(target.bytes()) + "; copy a part of the source, or into something larger")
                                .c_str());
    ist_world world = session_->world();
    int code = IST_OK;
    {
      const LetGo without_gil{session_->inside()};
      code = ist_memory_copy(world, target.place, source.place, static_cast<std::size_t>(source.bytes()));
    }
    check(code);
  }
  Traffic traffic(std::optional<int> peer, const std::optional<std::string>& carrier) const {
    return traffic_of(*session_, peer, carrier);
  }
  std::string text() const {
    return closed() ? "<isthmus.World, closed>"
                    : "<isthmus.World, rank " + std::to_string(rank()) + " of " + std::to_string(size()) + ">";
  }

 private:
  std::shared_ptr<Session> session_;
  nb::object comm_;
  nb::object comm_self_;  // made when it is asked for
};

// worker=True, eager_limit="32KiB": in the words that the library takes.
std::string settings_in(const nb::kwargs& settings) {
  std::string words;
  for (const auto& [name, value] : settings) {
    const nb::object plain = PyBool_Check(value.ptr()) ? nb::steal(PyNumber_Long(value.ptr())) : nb::borrow(value);
    const auto text = nb::cast<std::string>(nb::str(plain));
    if (text.find_first_of(" \t\n") != std::string::npos)
      throw nb::value_error(("the setting " + nb::cast<std::string>(nb::str(name)) + "=\"" + text +
                             "\" has spaces in it; such a value can be given in the environment only")
                                .c_str());
    words += nb::cast<std::string>(nb::str(name)) + "=" + text + " ";
  }
  return words;
}

}  // namespace

void bind_world(nb::module_& module) {
  using namespace nb::literals;
  bind_traffic(module);
  Bound<World>(module, "World",
               "All processes of the job: those of `isthmus run`, or of the variables that name one, or this one alone.")
      .def(
          "__init__", [](World* self, const nb::kwargs& settings) { new (self) World(settings_in(settings)); }, "settings"_a,
          nb::sig("def __init__(self, **settings: str | float) -> None"),
          "Settings of this world's own, above those of the environment: World(worker=True, eager_limit=\"32KiB\"). "
          "`isthmus info --settings` lists the names.")
      .def_prop_ro("comm", &World::comm, nb::sig("def comm(self) -> Comm"), "The communicator of all ranks.")
      .def_prop_ro("comm_self", &World::comm_self, nb::sig("def comm_self(self) -> Comm"),
                   "The communicator of this rank alone.")
      .def_static(
          "create_with",
          [](int rank, int size, nb::handle all_gather, const nb::kwargs& settings) {
            return nb::cast(new World(session_with(rank, size, all_gather, settings_in(settings))),
                            nb::rv_policy::take_ownership);
          },
          "rank"_a, "size"_a, "all_gather"_a, "settings"_a,
          nb::sig("def create_with(rank: int, size: int, all_gather: collections.abc.Callable[[bytes], "
                  "collections.abc.Iterable[bytes]], **settings: str | float) -> World"),
          "A world of processes that something else has started and connects: all_gather gives the bytes of all ranks, as "
          "mpi4py's comm.allgather does. Collective.")
      .def_prop_ro("rank", &World::rank)
      .def_prop_ro("size", &World::size)
      .def_prop_ro("closed", &World::closed)
      .def("close", &World::close,
           "Leaves the world. Also done when the last object of it is dropped, and at the interpreter's end.")
      .def("devices", &World::devices, "kind"_a, "Usable devices of a kind: host, cuda, opencl.")
      .def("allocate", &World::allocate, "kind"_a, "nbytes"_a, "device"_a = IST_OWN_DEVICE,
           nb::sig("def allocate(self, kind: str, nbytes: int, device: int = -1) -> Memory"),
           "Memory of a kind, on this rank's own device of it unless another is named.")
      .def(
          "register", &World::register_memory, "memory"_a, nb::sig("def register(self, memory: object) -> Registration"),
          "Page-locks host memory, such as a NumPy array, for the devices of this process: messages between it and a device "
          "then take one copy, made by the device. Takes time for each page.")
      .def("copy", &World::copy, "to"_a.none(), "source"_a.none(),
           "Copies between any two buffers of this process; returns when it is done.")
      .def("traffic", &World::traffic, "peer"_a = nb::none(), "carrier"_a = nb::none(),
           "What this rank has sent to and received from a rank of comm, or all, by one carrier, or all: slot, cell, ring, "
           "direct, nccl, device, single copy, block, mailbox.")
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> World"))
      .def(
          "__exit__", [](const World& self, nb::args) { self.close(); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def("__repr__", &World::text);
}

}  // namespace isthmus_python
