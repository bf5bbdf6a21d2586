// Grids of ranks.
#include <isthmus/collective.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "comm.hpp"
#include "errors.hpp"

namespace isthmus_python {
namespace {

using namespace nb::literals;
using Numbers = std::vector<int>;

class Cart final : public Comm {
 public:
  using Comm::Comm;
  int ndims() const {
    int found = 0;
    check(ist_cart_ndims(open()->user, &found));
    return found;
  }
  Numbers dims() const { return extents().dims; }
  std::vector<bool> periods() const {
    const Numbers numbers = extents().periods;
    return {numbers.begin(), numbers.end()};
  }
  Numbers coords() const { return extents().coords; }

  Numbers cart_coords(int rank) const {
    Numbers found(static_cast<std::size_t>(ndims()));
    check(ist_cart_coords(open()->user, rank, ndims(), found.data()));
    return found;
  }
  int cart_rank(const Numbers& coords) const {
    if (coords.size() != static_cast<std::size_t>(ndims()))
      raise(IST_ERR_ARGUMENT, "cart_rank: there are " + std::to_string(coords.size()) + " coordinates; the grid has " +
                                  std::to_string(ndims()) + " dimensions");
    int found = 0;
    check(ist_cart_rank(open()->user, coords.data(), &found));
    return found;
  }
  std::pair<int, int> cart_shift(int dimension, int displacement) const {
    std::pair<int, int> found;
    check(ist_cart_shift(open()->user, dimension, displacement, &found.first, &found.second));
    return found;
  }
  nb::object cart_sub(const std::vector<bool>& remain) const {
    const Numbers left(remain.begin(), remain.end());
    auto made = create_from(open(), [left](ist_comm cart, ist_comm* created) {
      return ist_cart_sub(cart, static_cast<int>(left.size()), left.data(), created);
    });
    return nb::cast(Cart(std::move(made)));
  }
  std::string grid_text() const {
    std::string shape;
    for (const int extent : dims()) {
      if (!shape.empty()) shape += 'x';
      shape += std::to_string(extent);
    }
    return "<isthmus.Cart, rank " + std::to_string(rank()) + " of " + shape + ">";
  }

 private:
  struct Extents {
    Numbers dims, periods, coords;
  };
  Extents extents() const {
    const Numbers empty(static_cast<std::size_t>(ndims()));
    Extents found{empty, empty, empty};
    check(ist_cart_get(open()->user, ndims(), found.dims.data(), found.periods.data(), found.coords.data()));
    return found;
  }
};

nb::object cart_create(const Comm& comm, const Numbers& dims, const std::optional<std::vector<bool>>& periods,
                       bool reorder) {
  Numbers turns(dims.size());
  if (periods && periods->size() != dims.size())
    raise(IST_ERR_ARGUMENT, "cart_create: there are " + std::to_string(dims.size()) + " dims and " +
                                std::to_string(periods->size()) + " periods; give as many");
  if (periods) turns.assign(periods->begin(), periods->end());
  const auto& from = comm.open();
  auto made = create_from(from, [dims, turns, reorder](ist_comm parent, ist_comm* created) {
    return ist_cart_create(parent, static_cast<int>(dims.size()), dims.data(), turns.data(), reorder ? 1 : 0, created);
  });
  return made ? nb::cast(Cart(std::move(made))) : nb::none();
}

Numbers dims_create(int ranks, Numbers dims) {
  check(ist_dims_create(ranks, static_cast<int>(dims.size()), dims.data()));
  return dims;
}

}  // namespace

void bind_carts(nb::module_& module, Bound<Comm>& comm) {
  comm.def(
      "cart_create", &cart_create, "dims"_a, "periods"_a = nb::none(), "reorder"_a = false,
      nb::sig("def cart_create(self, dims: collections.abc.Sequence[int], periods: collections.abc.Sequence[bool] | None "
              "= None, reorder: bool = False) -> Cart | None"),
      "A grid over the first ranks, the last dimension running fastest; None to the rest. periods: which dimensions "
      "close to a ring. Collective.");
  Bound<Cart, Comm>(module, "Cart", "A communicator with a grid over its ranks.")
      .def_prop_ro("ndims", &Cart::ndims)
      .def_prop_ro("dims", &Cart::dims, "Extent of each dimension.")
      .def_prop_ro("periods", &Cart::periods, "Whether each dimension closes to a ring.")
      .def_prop_ro("coords", &Cart::coords, "Where this rank is.")
      .def("cart_coords", &Cart::cart_coords, "rank"_a, "Where a rank is.")
      .def("cart_rank", &Cart::cart_rank, "coords"_a, "Who is there; periodic dimensions are taken modulo their extent.")
      .def("cart_shift", &Cart::cart_shift, "dimension"_a, "displacement"_a,
           "Whom this rank receives from and sends to; PROC_NULL past an edge.")
      .def("cart_sub", &Cart::cart_sub, "remain"_a,
           nb::sig("def cart_sub(self, remain: collections.abc.Sequence[bool]) -> Cart"),
           "The grid of the ranks with this one's coordinates in the dimensions that do not remain, of which one must. "
           "Collective.")
      .def("__repr__", &Cart::grid_text);
  define(module, "dims_create", &dims_create, "ranks"_a, "dims"_a,
         "Balanced extents of a grid; entries that are not 0 are kept: dims_create(12, [0, 0]) gives [4, 3].");
}

}  // namespace isthmus_python
