// Collective calls on objects, but for reductions: their lengths first, then their bytes, on a communicator that nothing else uses for such calls.
#include <array>
#include <functional>
#include <new>
#include <numeric>

#include "collective.hpp"
#include "errors.hpp"
#include "objects.hpp"

namespace isthmus_python {
namespace {

using namespace nb::literals;
using Counts = std::vector<std::int64_t>;

// Two calls of the library, the second of which needs what the first brought. All ranks make them in one order: so one whose caller
// a signal has called away in between is finished before a later one begins.
class ObjectExchange final : public Operation {
 public:
  using Step = std::function<int(ObjectExchange&, ist_request*)>;
  ObjectExchange(std::shared_ptr<Channels> channels, std::vector<nb::bytes> pickled)
      : channels_(whole(std::move(channels))), pickled_(std::move(pickled)) {}
  // Its place is behind those of the communicator that have one.
  void line_up(Step first, Step second) {
    steps_ = {std::move(first), std::move(second)};
    turn_ = channels_->object_calls++;
  }
  bool staged() const override { return true; }
  ist_comm comm() const { return channels_->heads; }
  // Room for so many bytes; without memory a buffer that the library refuses, so that the other ranks hear of it.
  ist_buffer room(std::int64_t size) {
    received_.reset(new (std::nothrow) char[static_cast<std::size_t>(size) + 1]);
    ist_buffer place = ist_host(received_.get());
    if (!received_) place.kind = 0xfffffffeU;
    return place;
  }
  nb::object load(std::int64_t from, std::int64_t size) const {
    const nb::object view = nb::steal(PyMemoryView_FromMemory(received_.get() + from, size, PyBUF_READ));
    if (!view.is_valid()) nb::raise_python_error();
    return nb::module_::import_("pickle").attr("loads")(view);
  }

  std::int64_t length = 0;  // of this rank's bytes
  Counts lengths;           // of all
  Counts places;
  void place() {
    places.resize(lengths.size());
    std::exclusive_scan(lengths.begin(), lengths.end(), places.begin(), std::int64_t{0});
  }
  std::int64_t total() const { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }
  const char* bytes = nullptr;  // to send

 protected:
  bool step(Outcome& outcome) override {
    if (channels_->object_calls_over.load(std::memory_order_acquire) != turn_ || !steps_made(outcome)) return false;
    channels_->object_calls_over.fetch_add(1, std::memory_order_release);
    return true;
  }

 private:
  bool steps_made(Outcome& outcome) {
    while (flight_.look(outcome)) {  // an empty one is complete
      if (outcome.code != IST_OK || next_ == steps_.size()) return true;
      flight_ = Flight{};
      outcome.code = steps_[next_++](*this, flight_.out());
      if (outcome.code == IST_OK) continue;
      outcome.text = ist_error_text();
      return true;
    }
    return false;
  }

  std::shared_ptr<Channels> channels_;
  std::vector<nb::bytes> pickled_;
  std::unique_ptr<char[]> received_;
  std::array<Step, 2> steps_;
  std::size_t next_ = 0;
  std::uint32_t turn_ = 0;
  Flight flight_;
};

void run(const std::shared_ptr<Channels>& on, const std::shared_ptr<ObjectExchange>& exchange, ObjectExchange::Step first,
         ObjectExchange::Step second) {
  exchange->line_up(std::move(first), std::move(second));
  finish(on->session, exchange);
}

std::shared_ptr<ObjectExchange> of_one(const std::shared_ptr<Channels>& on, nb::handle object) {
  nb::bytes pickled = pickle(object);
  const auto made = std::make_shared<ObjectExchange>(on, std::vector<nb::bytes>{pickled});
  made->bytes = pickled.c_str();
  made->length = static_cast<std::int64_t>(pickled.size());
  return made;
}

nb::object bcast_object(const Comm& self, nb::handle object, int root) {
  const auto& on = self.open();
  const bool is_root = on->rank == root;
  const auto exchange = is_root ? of_one(on, object) : std::make_shared<ObjectExchange>(on, std::vector<nb::bytes>{});
  run(
      on, exchange,
      [root](ObjectExchange& here, ist_request* request) {
        return ist_ibcast(ist_host(&here.length), 1, IST_INT64, root, here.comm(), request);
      },
      [root, is_root](ObjectExchange& here, ist_request* request) {
        const ist_buffer place = is_root ? ist_host(here.bytes) : here.room(here.length);
        return ist_ibcast(place, here.length, IST_BYTE, root, here.comm(), request);
      });
  return is_root ? nb::borrow(object) : exchange->load(0, exchange->length);
}

nb::list load_all(const ObjectExchange& exchange) {
  nb::list all;
  for (std::size_t i = 0; i < exchange.lengths.size(); ++i)
    all.append(exchange.load(exchange.places[i], exchange.lengths[i]));
  return all;
}

}  // namespace

nb::object gather_object(const Comm& self, nb::handle object, int root) {
  const auto& on = self.open();
  const bool is_root = on->rank == root;
  const auto exchange = of_one(on, object);
  exchange->lengths.resize(is_root ? static_cast<std::size_t>(on->size) : 0);
  run(
      on, exchange,
      [root](ObjectExchange& here, ist_request* request) {
        return ist_igather(ist_host(&here.length), 1, ist_host(here.lengths.data()), 1, IST_INT64, root, here.comm(),
                           request);
      },
      [root, is_root](ObjectExchange& here, ist_request* request) {
        here.place();
        const ist_buffer place = is_root ? here.room(here.total()) : ist_host(nullptr);
        return ist_igatherv(ist_host(here.bytes), here.length, place, here.lengths.data(), here.places.data(), IST_BYTE,
                            root, here.comm(), request);
      });
  return is_root ? nb::object(load_all(*exchange)) : nb::none();
}

nb::list allgather_object(const Comm& self, nb::handle object) {
  const auto& on = self.open();
  const auto exchange = of_one(on, object);
  exchange->lengths.resize(static_cast<std::size_t>(on->size));
  run(
      on, exchange,
      [](ObjectExchange& here, ist_request* request) {
        return ist_iallgather(ist_host(&here.length), 1, ist_host(here.lengths.data()), 1, IST_INT64, here.comm(), request);
      },
      [](ObjectExchange& here, ist_request* request) {
        here.place();
        return ist_iallgatherv(ist_host(here.bytes), here.length, here.room(here.total()), here.lengths.data(),
                               here.places.data(), IST_BYTE, here.comm(), request);
      });
  return load_all(*exchange);
}

namespace {

// One for each rank, one after the other. `who`: has them, in words.
std::shared_ptr<ObjectExchange> of_each(const std::shared_ptr<Channels>& on, nb::handle objects, const std::string& who) {
  if (objects.is_none()) throw nb::value_error((who + " needs one object for each rank, and has None").c_str());
  Counts lengths;
  std::string joined;
  for (const nb::handle each : nb::iter(objects)) {
    const nb::bytes pickled = pickle(each);
    lengths.push_back(static_cast<std::int64_t>(pickled.size()));
    joined.append(pickled.c_str(), pickled.size());
  }
  if (lengths.size() != static_cast<std::size_t>(on->size))
    throw nb::value_error((who + " has " + std::to_string(lengths.size()) + " objects for " + std::to_string(on->size) +
                           " ranks; give one for each")
                              .c_str());
  nb::bytes all(joined.data(), joined.size());
  const auto made = std::make_shared<ObjectExchange>(on, std::vector<nb::bytes>{all});
  made->lengths = std::move(lengths);
  made->bytes = all.c_str();
  return made;
}

nb::list alltoall_object(const Comm& self, nb::handle objects) {
  const auto& on = self.open();
  const auto exchange = of_each(on, objects, "alltoall_object: rank " + std::to_string(on->rank));
  exchange->place();
  const auto sent = std::make_shared<std::pair<Counts, Counts>>(exchange->lengths, exchange->places);
  run(
      on, exchange,
      [sent](ObjectExchange& here, ist_request* request) {
        return ist_ialltoall(ist_host(sent->first.data()), ist_host(here.lengths.data()), 1, IST_INT64, here.comm(),
                             request);
      },
      [sent](ObjectExchange& here, ist_request* request) {
        here.place();
        return ist_ialltoallv(ist_host(here.bytes), sent->first.data(), sent->second.data(), here.room(here.total()),
                              here.lengths.data(), here.places.data(), IST_BYTE, here.comm(), request);
      });
  return load_all(*exchange);
}

nb::object scatter_object(const Comm& self, nb::handle objects, int root) {
  const auto& on = self.open();
  const auto exchange = on->rank == root ? of_each(on, objects, "scatter_object: the root")
                                         : std::make_shared<ObjectExchange>(on, std::vector<nb::bytes>{});
  run(
      on, exchange,
      [root](ObjectExchange& here, ist_request* request) {
        return ist_iscatter(ist_host(here.lengths.data()), 1, ist_host(&here.length), 1, IST_INT64, root, here.comm(),
                            request);
      },
      [root](ObjectExchange& here, ist_request* request) {
        here.place();
        return ist_iscatterv(ist_host(here.bytes), here.lengths.data(), here.places.data(), here.room(here.length),
                             here.length, IST_BYTE, root, here.comm(), request);
      });
  return exchange->load(0, exchange->length);
}

}  // namespace

void bind_object_collectives(Bound<Comm>& comm) {
  comm.def("bcast_object", &bcast_object, "object"_a.none(), "root"_a = 0,
           nb::sig("def bcast_object(self, object: object, root: int = 0) -> typing.Any"),
           "The root's object; what the others give is not looked at.")
      .def("gather_object", &gather_object, "object"_a.none(), "root"_a = 0,
           nb::sig("def gather_object(self, object: object, root: int = 0) -> list | None"),
           "Everybody's objects on the root, in the order of ranks; None elsewhere.")
      .def("allgather_object", &allgather_object, "object"_a.none(),
           nb::sig("def allgather_object(self, object: object) -> list"), "Everybody's objects on every rank.")
      .def("scatter_object", &scatter_object, "objects"_a.none(), "root"_a = 0,
           nb::sig("def scatter_object(self, objects: collections.abc.Iterable[typing.Any] | None, root: int = 0) -> "
                   "typing.Any"),
           "This rank's of the root's objects; what the others give is not looked at.")
      .def("alltoall_object", &alltoall_object, "objects"_a.none(),
           nb::sig("def alltoall_object(self, objects: collections.abc.Iterable[typing.Any]) -> list"),
           "One object for each rank; those that all ranks had for this one, in the order of ranks.");
  bind_object_reductions(comm);
}

}  // namespace isthmus_python
