#include "collective.hpp"

#include <isthmus/layout_collective.h>
#include <nanobind/stl/string.h>

#include <array>
#include <deque>
#include <numeric>

#include "errors.hpp"
#include "gil.hpp"
#include "view_layout.hpp"

namespace isthmus_python {
namespace {

using namespace nb::literals;
using Started = std::shared_ptr<Operation>;
using Counts = std::vector<std::int64_t>;
using Ranks = const std::shared_ptr<Channels>&;

class Collective final : public Operation {
 public:
  explicit Collective(std::array<Region, 2> regions) : regions_(std::move(regions)) {}
  ist_request* out() { return flight_.out(); }
  bool counts() const override { return true; }

 protected:
  void awaited() override { flight_.awaited(); }
  bool step(Outcome& outcome) override {
    outcome.item_size = regions_[1].item_size;
    return flight_.look(outcome);
  }

 private:
  std::array<Region, 2> regions_;
  Flight flight_;
};

[[noreturn]] void refuse(const std::string& text) { throw nb::value_error(text.c_str()); }

// A buffer of a call; None and IN_PLACE have no elements.
struct Side {
  Region region;
  bool given = false;
  bool in_place = false;
  std::int64_t unit() const { return region.type == IST_BYTE ? region.item_size : 1; }
};

Side side(nb::handle object, Access access, Views views) {
  Side made;
  made.in_place = nb::isinstance<InPlace>(object);
  if (made.in_place)
    made.region.place = ist_in_place();
  else if (!object.is_none())
    made.region = to_region(object, access, {}, views);
  else
    made.region.place = ist_host(nullptr);
  made.given = !made.in_place && !object.is_none();
  return made;
}

struct Sides {
  Side send;
  Side recv;
  // Of the side that has one.
  const Side& typed() const { return send.given ? send : recv; }
  ist_type type() const { return typed().region.type; }
  bool have_gaps() const { return send.region.view || recv.region.view; }
};

Sides sides(nb::handle send, nb::handle recv, Views views = Views::refused) {
  Sides made{side(send, Access::read, views), side(recv, Access::write, views)};
  const Region& out = made.send.region;
  const Region& in = made.recv.region;
  if (made.send.given && made.recv.given && (out.type != in.type || out.item_size != in.item_size))
    throw nb::type_error(("the send buffer, a " + class_name(send) + " of " + element_name(out) +
                          ", and the receive buffer, a " + class_name(recv) + " of " + element_name(in) +
                          ", have elements of different types; convert one of them")
                             .c_str());
  return made;
}

// `call`: of the library, on a communicator.
template <class Call>
Started begin(Ranks on, Sides both, const Call& call) {
  on->session->sweep();  // for programs that drop their requests and never wait
  auto made = std::make_shared<Collective>(std::array<Region, 2>{std::move(both.send.region), std::move(both.recv.region)});
  int code = IST_OK;
  {
    const LetGo without_gil{on->session->inside()};
    code = call(on->user, made->out());
  }
  check(code);
  return made;
}

// `call`: of the library, with an operation.
template <class Call>
Started begin(Ranks on, Sides both, const Reducer& op, const Call& call) {
  require_reducible(both.typed().region, op);
  if (!op.function.is_valid())
    return begin(on, std::move(both), [&](ist_comm comm, ist_request* request) { return call(op.op, comm, request); });
  const Region like = both.typed().region;
  return start_with_function(on, {std::move(both.send.region), std::move(both.recv.region)}, like, op, call);
}

// The same by layouts, where one of the arrays has gaps; `call`: of the library, with a layout of a part of each, on a communicator.
template <class Call>
Started begin_laid(Ranks on, const Sides& both, std::int64_t send_parts, std::int64_t recv_parts, const Call& call) {
  static const Region kNothing;
  const ViewLayout out(both.send.given ? both.send.region : kNothing, std::max<std::int64_t>(send_parts, 1));
  const ViewLayout in(both.recv.given ? both.recv.region : kNothing, std::max<std::int64_t>(recv_parts, 1));
  check(out.commit());
  check(in.commit());
  return begin(on, both, [&](ist_comm comm, ist_request* request) { return call(out.get(), in.get(), comm, request); });
}

// Calls with a list of counts take what lies in a row.
Views views_beside(nb::handle counts) { return counts.is_none() ? Views::taken : Views::refused; }

// How many elements each of the parts has; `send` and `recv` parts, 0: not looked at here.
std::int64_t each_of(const Sides& both, std::int64_t send_parts, std::int64_t recv_parts) {
  const bool use_send = send_parts > 0 && !both.send.in_place;
  const bool use_recv = recv_parts > 0 && !both.recv.in_place;
  const std::int64_t out = both.send.region.count;
  const std::int64_t in = both.recv.region.count;
  const std::int64_t each = use_send ? out / send_parts : use_recv ? in / recv_parts : 0;
  if ((use_send && each * send_parts != out) || (use_recv && each * recv_parts != in))
    refuse("the buffers do not fit: " + std::to_string(out) + " elements to send in " + std::to_string(send_parts) +
           " equal part(s), and room for " + std::to_string(in) + " in " + std::to_string(recv_parts));
  return each * both.typed().unit();
}

// Counts and displacements, as the library counts, of a buffer's parts.
struct Parts {
  Counts counts;
  Counts displs;
};

Parts parts_of(const Side& whole, nb::handle counts, nb::handle displs, int size) {
  Parts made{to_numbers(counts), {}};
  const auto ranks = static_cast<std::size_t>(size);
  made.displs.resize(made.counts.size());
  if (displs.is_none())
    std::exclusive_scan(made.counts.begin(), made.counts.end(), made.displs.begin(), std::int64_t{0});
  else
    made.displs = to_numbers(displs);
  if (made.counts.size() != ranks || made.displs.size() != ranks)
    refuse(std::to_string(made.counts.size()) + " counts and " + std::to_string(made.displs.size()) + " displacements for " +
           std::to_string(size) + " ranks; give one for each");
  for (std::size_t i = 0; i < ranks; ++i) {
    std::int64_t& count = made.counts[i];
    std::int64_t& place = made.displs[i];
    if (count < 0 || place < 0 || (count > 0 && count > whole.region.count - place))
      refuse("part " + std::to_string(i) + ", " + std::to_string(count) + " elements from " + std::to_string(place) +
             " on, is not inside of a buffer of " + std::to_string(whole.region.count));
    count *= whole.unit();
    place *= whole.unit();
  }
  return made;
}

Started barrier(Ranks on) { return begin(on, {}, ist_ibarrier); }

Started bcast(Ranks on, nb::handle buffer, int root) {
  Sides both = sides(on->rank == root ? buffer : nb::none(), on->rank == root ? nb::none() : buffer, Views::taken);
  const Region region = both.typed().region;
  if (both.have_gaps())
    return begin_laid(on, both, 1, 1, [&](ist_layout out, ist_layout in, ist_comm comm, ist_request* request) {
      return ist_ibcast_layout(region.place, 1, on->rank == root ? out : in, root, comm, request);
    });
  return begin(on, std::move(both), [&](ist_comm comm, ist_request* request) {
    return ist_ibcast(region.place, region.units(), region.type, root, comm, request);
  });
}

Started reduce(Ranks on, nb::handle send, nb::handle recv, const Reducer& op, int root) {
  const Sides both = sides(send, recv);
  const std::int64_t count = each_of(both, 1, on->rank == root ? 1 : 0);
  return begin(on, both, op, [&](ist_op with, ist_comm comm, ist_request* request) {
    return ist_ireduce(both.send.region.place, both.recv.region.place, count, both.type(), with, root, comm, request);
  });
}

using Folding = int (*)(ist_buffer, ist_buffer, std::int64_t, ist_type, ist_op, ist_comm, ist_request*);
template <Folding kCall>
Started fold(Ranks on, nb::handle send, nb::handle recv, const Reducer& op) {
  const Sides both = sides(send, recv);
  const std::int64_t count = each_of(both, 1, 1);
  return begin(on, both, op, [&](ist_op with, ist_comm comm, ist_request* request) {
    return kCall(both.send.region.place, both.recv.region.place, count, both.type(), with, comm, request);
  });
}

Started reduce_scatter(Ranks on, nb::handle send, nb::handle recv, const Reducer& op, nb::handle counts) {
  const Sides both = sides(send, recv);
  const Side& input = both.send.in_place ? both.recv : both.send;
  Counts parts(static_cast<std::size_t>(on->size));
  if (counts.is_none()) {
    std::fill(parts.begin(), parts.end(), each_of(both, on->size, both.send.in_place ? on->size : 1));
  } else {
    parts = parts_of(input, counts, nb::none(), on->size).counts;
    const std::int64_t all = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    const std::int64_t mine = parts[static_cast<std::size_t>(on->rank)];
    if (all != input.region.units() || (!both.send.in_place && both.recv.region.units() != mine))
      refuse("the buffers do not fit the counts: there are " + std::to_string(input.region.count) +
             " elements to combine, and room for " + std::to_string(both.recv.region.count));
  }
  return begin(on, both, op, [&](ist_op with, ist_comm comm, ist_request* request) {
    return ist_ireduce_scatter(both.send.region.place, both.recv.region.place, parts.data(), both.type(), with, comm,
                               request);
  });
}

Started gather(Ranks on, nb::handle send, nb::handle recv, int root, nb::handle counts, nb::handle displs) {
  const bool whole = on->rank == root;
  const Sides both = sides(send, whole ? recv : nb::none(), views_beside(counts));
  const ist_buffer out = both.send.region.place;
  const ist_buffer in = both.recv.region.place;
  if (counts.is_none()) {
    const std::int64_t each = each_of(both, 1, whole ? on->size : 0);
    if (both.have_gaps())
      return begin_laid(on, both, 1, on->size, [&](ist_layout from, ist_layout to, ist_comm comm, ist_request* request) {
        return ist_igather_layout(out, 1, from, in, 1, to, root, comm, request);
      });
    return begin(on, both, [&](ist_comm comm, ist_request* request) {
      return ist_igather(out, each, in, each, both.type(), root, comm, request);
    });
  }
  const Parts parts = whole ? parts_of(both.recv, counts, displs, on->size) : Parts{};
  return begin(on, both, [&](ist_comm comm, ist_request* request) {
    return ist_igatherv(out, both.send.region.units(), in, parts.counts.data(), parts.displs.data(), both.type(), root, comm,
                        request);
  });
}

Started scatter(Ranks on, nb::handle send, nb::handle recv, int root, nb::handle counts, nb::handle displs) {
  const bool whole = on->rank == root;
  const Sides both = sides(whole ? send : nb::none(), recv, views_beside(counts));
  const ist_buffer out = both.send.region.place;
  const ist_buffer in = both.recv.region.place;
  if (counts.is_none()) {
    const std::int64_t each = each_of(both, whole ? on->size : 0, 1);
    if (both.have_gaps())
      return begin_laid(on, both, on->size, 1, [&](ist_layout from, ist_layout to, ist_comm comm, ist_request* request) {
        return ist_iscatter_layout(out, 1, from, in, 1, to, root, comm, request);
      });
    return begin(on, both, [&](ist_comm comm, ist_request* request) {
      return ist_iscatter(out, each, in, each, both.type(), root, comm, request);
    });
  }
  const Parts parts = whole ? parts_of(both.send, counts, displs, on->size) : Parts{};
  return begin(on, both, [&](ist_comm comm, ist_request* request) {
    return ist_iscatterv(out, parts.counts.data(), parts.displs.data(), in, both.recv.region.units(), both.type(), root,
                         comm, request);
  });
}

Started allgather(Ranks on, nb::handle send, nb::handle recv, nb::handle counts, nb::handle displs) {
  const Sides both = sides(send, recv, views_beside(counts));
  const ist_buffer out = both.send.region.place;
  const ist_buffer in = both.recv.region.place;
  if (counts.is_none()) {
    const std::int64_t each = each_of(both, 1, on->size);
    if (both.have_gaps())
      return begin_laid(on, both, 1, on->size, [&](ist_layout from, ist_layout to, ist_comm comm, ist_request* request) {
        return ist_iallgather_layout(out, 1, from, in, 1, to, comm, request);
      });
    return begin(on, both, [&](ist_comm comm, ist_request* request) {
      return ist_iallgather(out, each, in, each, both.type(), comm, request);
    });
  }
  const Parts parts = parts_of(both.recv, counts, displs, on->size);
  return begin(on, both, [&](ist_comm comm, ist_request* request) {
    return ist_iallgatherv(out, both.send.region.units(), in, parts.counts.data(), parts.displs.data(), both.type(), comm,
                           request);
  });
}

Started alltoall(Ranks on, nb::handle send, nb::handle recv, nb::handle send_counts, nb::handle send_displs,
                 nb::handle recv_counts, nb::handle recv_displs) {
  const Sides both = sides(send, recv, views_beside(recv_counts));
  const ist_buffer out = both.send.region.place;
  const ist_buffer in = both.recv.region.place;
  if (recv_counts.is_none()) {
    if (!send_counts.is_none()) refuse("alltoall has send_counts and no recv_counts: give both, or neither");
    const std::int64_t each = each_of(both, on->size, on->size);
    if (both.have_gaps())
      return begin_laid(on, both, on->size, on->size,
                        [&](ist_layout from, ist_layout to, ist_comm comm, ist_request* request) {
                          return ist_ialltoall_layout(out, 1, from, in, 1, to, comm, request);
                        });
    return begin(on, both, [&](ist_comm comm, ist_request* request) {
      return ist_ialltoall(out, in, each, both.type(), comm, request);
    });
  }
  const Parts to = parts_of(both.recv, recv_counts, recv_displs, on->size);
  if (!both.send.in_place && send_counts.is_none())
    refuse("alltoall has recv_counts and no send_counts: give both, or neither");
  const Parts from = both.send.in_place ? to : parts_of(both.send, send_counts, send_displs, on->size);
  return begin(on, both, [&](ist_comm comm, ist_request* request) {
    return ist_ialltoallv(out, from.counts.data(), from.displs.data(), in, to.counts.data(), to.displs.data(), both.type(),
                          comm, request);
  });
}

// Nanobind keeps the address of a signature.
const char* kept(std::string text) {
  static std::deque<std::string> all;
  return all.emplace_back(std::move(text)).c_str();
}

template <class... Arguments>
using Start = Started (*)(Ranks, Arguments...);

// The call that starts, and gives a request.
template <class... Arguments, class... Extra>
void bind_start(Bound<Comm>& comm, const std::string& name, Start<Arguments...> start, const std::string& parameters,
                const Extra&... extra) {
  comm.def(
      kept("i" + name),
      [start](const Comm& self, Arguments... arguments) {
        const auto& on = self.open();
        return nb::cast(new Request(on->session, start(on, arguments...)), nb::rv_policy::take_ownership);
      },
      extra..., nb::sig(kept("def i" + name + "(self" + parameters + ") -> Request")));
}

// Both: the one that waits, and the one that starts.
template <class... Arguments, class... Extra>
void bind_both(Bound<Comm>& comm, const std::string& name, Start<Arguments...> start, const std::string& parameters,
               const char* text, const Extra&... extra) {
  comm.def(
      kept(name),
      [start](const Comm& self, Arguments... arguments) {
        const auto& on = self.open();
        finish(on->session, start(on, arguments...));
      },
      extra..., nb::sig(kept("def " + name + "(self" + parameters + ") -> None")), text);
  bind_start(comm, name, start, parameters, extra...);
}

void bind_reductions(Bound<Comm>& comm) {
  const auto send = "send"_a.none();
  const auto recv = "recv"_a.none();
  const auto op = "op"_a = Reducer{IST_SUM, "SUM"};
  const std::string two = ", send: object, recv: object, op: Operation = ...";
  bind_both(comm, "reduce", &reduce, two + ", root: int = 0",
            "Combines element by element; the result on the root, elsewhere recv may be None.", send, recv, op,
            "root"_a = 0);
  bind_both(comm, "allreduce", &fold<ist_iallreduce>, two, "The same result on every rank.", send, recv, op);
  bind_both(comm, "scan", &fold<ist_iscan>, two, "Combines the ranks up to this one.", send, recv, op);
  bind_both(comm, "exscan", &fold<ist_iexscan>, two,
            "Combines the ranks before this one; rank 0's receive buffer stays as it is.", send, recv, op);
  bind_both(comm, "reduce_scatter", &reduce_scatter, two + ", *, counts: collections.abc.Iterable[int] | None = None",
            "Part r of the result to rank r: of counts[r] elements, or all of one length.", send, recv, op, nb::kw_only(),
            "counts"_a = nb::none());
}

}  // namespace

void bind_in_place(nb::module_& module) {
  Bound<InPlace>(module, "InPlace", "The class of IN_PLACE.").def("__repr__", [](const InPlace&) {
    return "isthmus.IN_PLACE";
  });
  module.attr("IN_PLACE") = nb::cast(InPlace{});
}

void bind_collectives(Bound<Comm>& comm) {
  const auto send = "send"_a.none();
  const auto recv = "recv"_a.none();
  const auto root = "root"_a = 0;
  const auto counts = "counts"_a = nb::none();
  const auto displs = "displs"_a = nb::none();
  const std::string lists =
      ", *, counts: collections.abc.Iterable[int] | None = None, displs: collections.abc.Iterable[int] | None = None";
  bind_start(comm, "barrier", &barrier, "");
  bind_both(comm, "bcast", &bcast, ", buffer: object, root: int = 0", "The root's buffer to everybody's.", "buffer"_a.none(),
            root);
  bind_reductions(comm);
  bind_both(comm, "gather", &gather, ", send: object, recv: object, root: int = 0" + lists,
            "Everybody's buffer to the root, in the order of ranks; elsewhere recv may be None. counts, displs: elements of "
            "each rank, and where they go; where there are counts, every rank gives some.",
            send, recv, root, nb::kw_only(), counts, displs);
  bind_both(comm, "scatter", &scatter, ", send: object, recv: object, root: int = 0" + lists,
            "The parts of the root's buffer to the ranks; elsewhere send may be None. counts, displs: as for gather.", send,
            recv, root, nb::kw_only(), counts, displs);
  bind_both(comm, "allgather", &allgather, ", send: object, recv: object" + lists, "Gathered on every rank.", send, recv,
            nb::kw_only(), counts, displs);
  bind_both(comm, "alltoall", &alltoall,
            ", send: object, recv: object, *, send_counts: collections.abc.Iterable[int] | None = None, "
            "send_displs: collections.abc.Iterable[int] | None = None, recv_counts: collections.abc.Iterable[int] | None = "
            "None, recv_displs: collections.abc.Iterable[int] | None = None",
            "Part r of the send buffer to rank r.", send, recv, nb::kw_only(), "send_counts"_a = nb::none(),
            "send_displs"_a = nb::none(), "recv_counts"_a = nb::none(), "recv_displs"_a = nb::none());
}

}  // namespace isthmus_python
