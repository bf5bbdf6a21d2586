// What Python sees of halo exchanges.
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "errors.hpp"
#include "gil.hpp"
#include "halo.hpp"
#include "wait.hpp"

namespace isthmus_python {
namespace {

using namespace nb::literals;

int named(const std::string& name, std::initializer_list<const char*> names, const char* what) {
  int number = 0;
  std::string all;
  for (const char* each : names) {
    if (name == each) return number;
    if (number++ > 0) all += ", ";
    all += each;
  }
  throw nb::value_error((std::string{what} + " is '" + name + "'; it must be one of " + all).c_str());
}

ist_halo_options options_of(int reach, const std::string& packing, const std::string& way) {
  return {sizeof(ist_halo_options), reach, named(packing, {"auto", "calls", "layouts", "loops"}, "packing"),
          named(way, {"messages", "one-sided"}, "way"), 0};
}

std::string counted(std::size_t number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// The library reads as many ranges, and entries of a layout map, as the grid has dimensions. `ndims` is 0 where cells are listed.
void require_dimensions(const HaloField& field, std::size_t number, int ndims) {
  if (field.ranges.size() == static_cast<std::size_t>(std::max(ndims, 1))) return;
  const std::string found = "field " + std::to_string(number) + " has " + counted(field.ranges.size(), "range");
  if (ndims == 0) throw nb::value_error((found + ", and where cells are listed a field has one, [(0, 0)]").c_str());
  throw nb::value_error((found + ", the grid has " + counted(static_cast<std::size_t>(ndims), "dimension") +
                         "; give isthmus.HaloField one range for each of them")
                            .c_str());
}

std::vector<Halo::Field> fields_of(const nb::iterable& given, int ndims) {
  std::vector<Halo::Field> fields;
  for (const nb::handle each : given) {
    if (!nb::isinstance<HaloField>(each))
      throw nb::type_error(("one of the fields is a " + class_name(each) +
                            "; make an isthmus.HaloField of it, with the halo's widths in each dimension of the grid: "
                            "isthmus.HaloField(array, [(1, 1), (1, 1)])")
                               .c_str());
    const auto& field = nb::cast<const HaloField&>(each);
    require_dimensions(field, fields.size(), ndims);
    fields.push_back({field.array, to_region(field.array, Access::write, {}, Views::taken), field.element, field.ranges,
                      field.layout_map});
  }
  return fields;
}

nb::object halo_grid(const Comm& comm, const std::vector<int>& dims, const std::optional<std::vector<bool>>& periods,
                     const std::optional<std::vector<int>>& process_map) {
  std::vector<int> around(dims.size(), 0);
  if ((periods && periods->size() != dims.size()) || (process_map && process_map->size() != dims.size()))
    raise(IST_ERR_ARGUMENT, "halo_grid: there are " + std::to_string(dims.size()) +
                                " dims; give as many periods, and as many entries of a process map");
  if (periods) around.assign(periods->begin(), periods->end());
  const auto& on = comm.open();
  finish_left(*on->session);
  ist_halo_grid grid = IST_HALO_GRID_NULL;
  int code = IST_OK;
  {
    const LetGo without_gil{on->session->inside()};
    code = ist_halo_grid_create(on->user, static_cast<int>(dims.size()), dims.data(), around.data(),
                                process_map ? process_map->data() : nullptr, &grid);
  }
  check(code);
  if (grid == IST_HALO_GRID_NULL) return nb::none();
  return nb::cast(new HaloGrid(on->session, grid), nb::rv_policy::take_ownership);
}

nb::object halo_of(const HaloGrid& grid, const nb::iterable& fields, int reach, const std::string& packing,
                   const std::string& way) {
  const auto options = options_of(reach, packing, way);
  const int ndims = grid.ndims();
  auto made = std::make_unique<Halo>(grid.session(), fields_of(fields, ndims), ndims, options.way == IST_HALO_ONE_SIDED);
  made->make([&](int count, const ist_halo_field* given, ist_halo* halo) {
    return ist_halo_create(grid.handle(), count, given, &options, halo);
  });
  return nb::cast(made.release(), nb::rv_policy::take_ownership);
}

nb::object halo_order(const Comm& comm, const std::vector<int>& dims, const std::optional<std::vector<bool>>& periods,
                      nb::handle buffer) {
  std::vector<int> around(dims.size(), 0);
  if (periods && periods->size() != dims.size())
    raise(IST_ERR_ARGUMENT, "halo_order: there are " + std::to_string(dims.size()) + " dims; give as many periods");
  if (periods) around.assign(periods->begin(), periods->end());
  const Region region = to_region(buffer, Access::write);
  const auto& on = comm.open();
  auto made = create_from(on, [dims, around, region](ist_comm parent, ist_comm* created) {
    return ist_halo_order(parent, static_cast<int>(dims.size()), dims.data(), around.data(), region.place, region.bytes(),
                          created);
  });
  return nb::cast(Comm(std::move(made)));
}

using Lists = std::map<int, std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>;

// Bytes of a row of the array, which is an element; rows lie one behind the other.
std::int64_t row_of(nb::handle array, const Region& region) {
  std::int64_t bytes = std::max<std::int64_t>(region.item_size, 1);
  const nb::object shape = attribute(array, "shape");
  if (!shape.is_valid() || shape.is_none()) return bytes;
  const auto extents = to_numbers(shape), strides = strides_of(array, region.item_size);
  for (std::size_t d = extents.size(); d-- > 1;) bytes *= std::max<std::int64_t>(extents[d], 1);
  std::int64_t stride = region.item_size;
  for (std::size_t d = std::min(extents.size(), strides.size()); d-- > 0; stride *= extents[d])
    if (extents[d] > 1 && strides[d] != stride)
      throw nb::value_error(("halo_lists: dimension " + std::to_string(d) + " of the array has a stride of " +
                             std::to_string(strides[d]) + " bytes, and " + std::to_string(stride) +
                             " where rows lie one behind the other; give an array in C's order")
                                .c_str());
  return bytes;
}

nb::object halo_lists(const Comm& comm, const Lists& lists, const nb::iterable& arrays, const std::string& packing,
                      const std::string& way) {
  const auto options = options_of(0, packing, way);
  const auto& on = comm.open();
  std::vector<Halo::Field> fields;
  for (const nb::handle each : arrays) {
    Region region = to_region(each, Access::write);
    const std::int64_t element = row_of(each, region), elements = region.bytes() / element;
    fields.push_back({nb::borrow(each), std::move(region), element, {{0, 0, 0, elements - 1, elements}}, {}});
  }
  std::vector<int> ranks;
  std::vector<std::int64_t> send_counts, receive_counts;
  std::vector<const std::int64_t*> sends, receives;
  for (const auto& [rank, both] : lists) {
    ranks.push_back(rank);
    send_counts.push_back(static_cast<std::int64_t>(both.first.size())), sends.push_back(both.first.data());
    receive_counts.push_back(static_cast<std::int64_t>(both.second.size())), receives.push_back(both.second.data());
  }
  const ist_halo_lists all{static_cast<int>(ranks.size()), ranks.data(),   send_counts.data(), sends.data(),
                           receive_counts.data(),          receives.data()};
  auto made = std::make_unique<Halo>(on->session, std::move(fields), 0, options.way == IST_HALO_ONE_SIDED);
  made->make([&](int count, const ist_halo_field* given, ist_halo* halo) {
    return ist_halo_create_lists(on->user, &all, count, given, &options, halo);
  });
  return nb::cast(made.release(), nb::rv_policy::take_ownership);
}

void bind_grids(nb::module_& module) {
  Bound<HaloGrid>(module, "HaloGrid",
                  "A grid of ranks that data is cut over, told of in the order of the data's dimensions.")
      .def_prop_ro("ndims", &HaloGrid::ndims)
      .def_prop_ro("dims", &HaloGrid::dims, "Ranks in each dimension.")
      .def_prop_ro("periods", &HaloGrid::periods)
      .def_prop_ro("coords", &HaloGrid::coords, "Where this rank is.")
      .def("neighbour", &HaloGrid::neighbour, "direction"_a,
           "The rank that is a step of -1, 0 or 1 in each dimension away; PROC_NULL past an edge.")
      .def("halo", &halo_of, "fields"_a, nb::kw_only(), "reach"_a = 0, "packing"_a = "auto", "way"_a = "messages",
           nb::sig("def halo(self, fields: collections.abc.Iterable[HaloField], *, reach: int = 0, packing: str = 'auto', "
                   "way: str = 'messages') -> Halo"),
           "An exchange of these fields, all of which travel together; collective. reach: in how many dimensions at once a "
           "neighbour may lie, 0 for all. packing: 'auto', 'calls', 'layouts', 'loops'. way: 'messages', 'one-sided'.")
      .def("sides", &HaloGrid::sides, "field"_a, nb::kw_only(), "reach"_a = 0,
           "What kernels take to exchange the halos of a symmetric field of this shape by themselves, an ist_halo_sides, as "
           "bytes: "
           "isthmus/device/halo.cuh. reach as of halo().")
      .def("all_sides", &HaloGrid::all_sides, "field"_a, nb::kw_only(), "reach"_a = 0,
           "The same of more than 26 neighbours, an ist_halo_all_sides.")
      .def("__repr__", &HaloGrid::text);
  Bound<HaloField>(
      module, "HaloField",
      "An array with its halos, of any kind of memory. halo: (minus, plus), or (minus, plus, begin, end), of each "
      "dimension of the grid; begin and end are the first and last index of its own. A number is the width on both sides "
      "of all dimensions of the array. Order in memory is the "
      "array's; dimensions behind the grid's belong to the cell. Memory that tells no shape needs one.")
      .def(nb::init<nb::object, const HaloField::Widths&, const std::optional<std::vector<std::int64_t>>&,
                    std::optional<std::int64_t>, const std::optional<std::vector<int>>&>(),
           "array"_a, "halo"_a, nb::kw_only(), "shape"_a = nb::none(), "itemsize"_a = nb::none(),
           "layout_map"_a = nb::none(),
           nb::sig(
               "def __init__(self, array: object, halo: int | collections.abc.Sequence[collections.abc.Sequence[int]], *, "
               "shape: "
               "collections.abc.Sequence[int] | None = None, itemsize: int | None = None, layout_map: "
               "collections.abc.Sequence[int] | None = None) -> None"))
      .def_prop_ro("array", [](const HaloField& self) { return self.array; })
      .def_prop_ro(
          "ranges",
          [](const HaloField& self) {
            std::vector<std::array<std::int64_t, 5>> all;
            for (const ist_halo_range& range : self.ranges)
              all.push_back({range.minus, range.plus, range.begin, range.end, range.total_length});
            return all;
          },
          "minus, plus, begin, end, total_length of each dimension.")
      .def_prop_ro(
          "layout_map", [](const HaloField& self) { return self.layout_map; },
          "Place of each dimension by decreasing stride.");
}

}  // namespace

void bind_halos(nb::module_& module, Bound<Comm>& comm) {
  bind_grids(module);
  Bound<Halo>(module, "Halo",
              "An exchange of fields between neighbours: pack, exchange (or start_exchange and wait), unpack.")
      .def(
          "set_fields", [](Halo& self, const nb::iterable& fields) { self.set_fields(fields_of(fields, self.ndims())); },
          "fields"_a, nb::sig("def set_fields(self, fields: collections.abc.Iterable[HaloField]) -> None"),
          "Other fields from the next pack on, on all ranks alike; two that take turns cost next to nothing.")
      .def("pack", &Halo::pack,
           "Brings together what neighbours get. The stream of device memory is the one that is current now.")
      .def("exchange", &Halo::exchange, "Both halves.")
      .def("start_exchange", &Halo::start_exchange, "The first half; wait() is the second one.")
      .def("wait", &Halo::wait,
           "Until it is over. A signal (Ctrl-C) ends the wait, the exchange goes on, and wait() is next again.")
      .def("test", &Halo::test, "Instead of wait(): True where it is over, and unpack() is next.")
      .def("unpack", &Halo::unpack, "Writes what came into the halos.")
      .def("update", &Halo::update, "All three steps.")
      .def("exchange_on", &Halo::exchange_on, "stream"_a.none(),
           "All three steps when the CUDA stream comes to them; returns at once. Arrays of CUDA memory alone, exchanged by "
           "messages; keep "
           "them until then. Can be captured into a graph once it is prepared.")
      .def("prepare_on", &Halo::prepare_on, "stream"_a.none(),
           "Prepares exchange_on for the fields that are set, with all neighbours, which call it, too; needed before a "
           "capture alone.")
      .def("free", &Halo::free, "Collective where the exchange is one-sided; others are freed when they are dropped, too.")
      .def_prop_ro("text", &Halo::text, "Neighbours, bytes, and how it is packed.");
  comm.def("halo_grid", &halo_grid, "dims"_a, "periods"_a = nb::none(), "process_map"_a = nb::none(),
           nb::sig(
               "def halo_grid(self, dims: collections.abc.Sequence[int], periods: collections.abc.Sequence[bool] | None = "
               "None, process_map: collections.abc.Sequence[int] | None = None) -> HaloGrid | None"),
           "A grid of the first ranks, None to the rest; collective. dims: the grid's own, 0 for what is to be chosen. "
           "process_map: the grid's dimension for each of the data's. periods: in the data's order.")
      .def("halo_order", &halo_order, "dims"_a, "periods"_a, "buffer"_a,
           nb::sig(
               "def halo_order(self, dims: collections.abc.Sequence[int], periods: collections.abc.Sequence[bool] | None, "
               "buffer: object) -> Comm"),
           "The same ranks in an order in which those side by side in such a grid have the quickest links, as messages of "
           "all of the "
           "buffer show, whose contents are lost; collective.")
      .def("halo_lists", &halo_lists, "lists"_a, "arrays"_a, nb::kw_only(), "packing"_a = "auto", "way"_a = "messages",
           nb::sig(
               "def halo_lists(self, lists: collections.abc.Mapping[int, tuple[collections.abc.Sequence[int], "
               "collections.abc.Sequence[int]]], arrays: collections.abc.Iterable[object], *, packing: str = 'auto', way: "
               "str = 'messages') -> Halo"),
           "An exchange of listed elements, or rows, of arrays: for each neighbour those it gets and those that come from "
           "it; "
           "collective.");
}

}  // namespace isthmus_python
