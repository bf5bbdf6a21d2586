// C calls that move parts between ranks by layouts.
#include <isthmus/layout_collective.h>

#include "face/message/errors.hpp"
#include "face/message/given_parts.hpp"
#include "face/message/laid_sides.hpp"

namespace ist {
namespace {

using Given = LaidSide::Given;
using Parts = LaidSide::Parts;

Given one(const char* name, const ist_buffer& buffer, std::int64_t count, ist_layout layout) {
  return {name, buffer, Parts::one, count, layout};
}
Given equal(const char* name, const ist_buffer& buffer, std::int64_t count, ist_layout layout) {
  return {name, buffer, Parts::equal, count, layout};
}
Given varied(const char* name, const ist_buffer& buffer, const std::int64_t* counts, const std::int64_t* displs,
             ist_layout layout) {
  return {name, buffer, Parts::varied, 0, layout, counts, displs};
}
Given each(const char* name, const ist_buffer& buffer, const std::int64_t* counts, const std::int64_t* displs,
           const ist_layout* layouts) {
  return {name, buffer, Parts::each, 0, IST_LAYOUT_NULL, counts, displs, layouts};
}

// Bytes that all ranks give alike, compared where the setting check is 1.
GivenAlike alike(Bytes bytes, int root = 0) {
  GivenAlike given = given_alike(IST_OP_NULL, IST_BYTE, static_cast<std::int64_t>(bytes.value), root);
  given.type = GivenAlike::kLayout;
  return given;
}

// The types of a part, of which all are the same; none where the side is in place.
TypeNote types_of(const Given& side) {
  if (is_in_place(side.buffer)) return {};
  const SharedLayout types = types_of(LaidData{side.buffer, side.count, side.layout});
  return types == nullptr ? TypeNote{} : note_of(*types);
}
GivenAlike with_types(GivenAlike given, const Given& part, const Given* own) {
  given.types = types_of(part);
  if (own != nullptr) given.own = types_of(*own);
  return given;
}

bool varies(const Given& side) { return side.parts == Parts::varied || side.parts == Parts::each; }

// A part where they differ.
PartNote part_note(const Given& side, int rank) {
  const bool each = side.parts == Parts::each;
  if (!varies(side)) return note_of_part(types_of(LaidData{side.buffer, side.count, side.layout}));
  if (side.counts == nullptr || (each && side.layouts == nullptr)) return {};
  return note_of_part(types_of(LaidData{side.buffer, side.counts[rank], each ? side.layouts[rank] : side.layout}));
}
auto part_notes(const Given& side) {
  return [&side](int rank) { return part_note(side, rank); };
}

// A side that this rank does not look at, or whose input is in place, is not looked for.
Status find(LaidSide& side, const Communicator& comm, bool written, bool matters = true) {
  return matters && !is_in_place(side.buffer()) ? side.find(comm.size(), written) : Status{};
}

// Part and whole must agree where one rank has both.
void check_own_bytes(CollectiveCall& call, const Piece& own, const Division& parts) {
  const Bytes place = parts.elements(call.plan().rank()).bytes();
  if (own.size == place) return;
  call.fail({IST_ERR_TRUNCATE, "this rank's own part has " + std::to_string(own.size.value) + " bytes, and its place " +
                                   std::to_string(place.value)});
}

Division as_one_part(const Piece& own) { return Division::even({own.size.value, Bytes{1}}, 1); }

int bcast(const Asked& asked, const Given& given, int root) {
  LaidSide data(given);
  return run_collective(
      asked, [&](const Communicator&) { return with_types(alike(data.size(), root), given, nullptr); },
      [&](const Communicator& comm) -> Status {
        IST_TRY(check_root(root, comm));
        return data.find(comm.size(), comm.rank() != root);
      },
      [&](CollectiveCall& call) {
        const bool sends = call.is(root);
        const Piece bytes = data.bytes(call, sends ? data.all() : LaidSide::Range{}, !sends);
        plan_bcast(call.plan(), bytes, {bytes.size.value, Bytes{1}}, root);
      });
}

// The bytes of one rank's part, by what it has of them.
Bytes part_bytes(const LaidSide& whole, const LaidSide& own, bool has_whole) {
  if (!has_whole) return own.size();
  return whole.varies() ? Bytes{} : whole.division().elements(0).bytes();
}

int gather(const Asked& asked, const Given& from, const Given& to, int root) {
  LaidSide send(from), recv(to);
  return run_collective(
      asked,
      [&](const Communicator& comm) -> GivenHere {
        const bool has_whole = comm.rank() == root;
        if (varies(to))
          return {alike({}, root),
                  parts_to_root(comm, root, part_note(from, root), is_in_place(from.buffer), part_notes(to))};
        const Bytes bytes = part_bytes(recv, send, has_whole);
        return has_whole ? with_types(alike(bytes, root), to, &from) : with_types(alike(bytes, root), from, nullptr);
      },
      [&](const Communicator& comm) -> Status {
        IST_TRY(check_root(root, comm));
        const bool is_root = comm.rank() == root;
        IST_TRY(is_root ? find(send, comm, false) : send.find(comm.size(), false));
        return find(recv, comm, true, is_root);
      },
      [&](CollectiveCall& call) {
        const bool alike = !varies(to);
        if (!call.is(root)) return plan_gather(call.plan(), {root, alike, send.bytes(call, send.all(), false), {}, {}});
        const bool in_place = is_in_place(send.buffer());
        const Piece whole = recv.bytes(call, in_place ? recv.part(root) : LaidSide::Range{}, true);
        const Piece own = in_place ? recv.division().of(whole, root) : send.bytes(call, send.all(), false);
        check_own_bytes(call, own, recv.division());
        if (!in_place) call.keep_apart(own, as_one_part(own), whole, recv.division());
        plan_gather(call.plan(), {root, alike, own, whole, recv.division(), in_place});
      });
}

int scatter(const Asked& asked, const Given& from, const Given& to, int root) {
  LaidSide send(from), recv(to);
  return run_collective(
      asked,
      [&](const Communicator& comm) -> GivenHere {
        const bool has_whole = comm.rank() == root;
        if (varies(from))
          return {alike({}, root), parts_of_root(comm, root, part_note(to, root), is_in_place(to.buffer), part_notes(from))};
        const Bytes bytes = part_bytes(send, recv, has_whole);
        return has_whole ? with_types(alike(bytes, root), from, &to) : with_types(alike(bytes, root), to, nullptr);
      },
      [&](const Communicator& comm) -> Status {
        IST_TRY(check_root(root, comm));
        const bool is_root = comm.rank() == root;
        IST_TRY(find(send, comm, false, is_root));
        return is_root ? find(recv, comm, true) : recv.find(comm.size(), true);
      },
      [&](CollectiveCall& call) {
        const bool alike = !varies(from);
        if (!call.is(root)) return plan_scatter(call.plan(), {root, alike, recv.bytes(call, {}, true), {}, {}});
        const bool in_place = is_in_place(recv.buffer());
        const Piece whole = send.bytes(call, send.all(), false);
        const Piece own = in_place ? send.division().of(whole, root) : recv.bytes(call, {}, true);
        check_own_bytes(call, own, send.division());
        if (!in_place) call.keep_apart(whole, send.division(), own, as_one_part(own));
        plan_scatter(call.plan(), {root, alike, own, whole, send.division(), in_place});
      });
}

int allgather(const Asked& asked, const Given& from, const Given& to) {
  LaidSide send(from), recv(to);
  return run_collective(
      asked,
      [&](const Communicator& comm) -> GivenHere {
        if (!varies(to)) return with_types(alike(recv.division().elements(0).bytes()), to, &from);
        std::vector<std::int64_t> bytes;
        for (int r = 0; r < comm.size(); ++r)
          bytes.push_back(static_cast<std::int64_t>(recv.division().elements(r).bytes().value));
        GivenAlike all = alike({});
        all.list(bytes.data(), comm.size());
        const PartNote own = part_note(is_in_place(from.buffer) ? to : from, comm.rank());
        return {all, GivenParts{part_of_each(comm, [&](int) { return own; }), part_of_each(comm, part_notes(to))}};
      },
      [&](const Communicator& comm) -> Status {
        IST_TRY(find(send, comm, false));
        return recv.find(comm.size(), true);
      },
      [&](CollectiveCall& call) {
        const bool in_place = is_in_place(send.buffer());
        const int rank = call.plan().rank();
        const Piece whole = recv.bytes(call, in_place ? recv.part(rank) : LaidSide::Range{}, true);
        const Piece own = in_place ? recv.division().of(whole, rank) : send.bytes(call, send.all(), false);
        check_own_bytes(call, own, recv.division());
        if (!in_place) call.keep_apart(own, as_one_part(own), whole, recv.division());
        plan_allgather(call.plan(), own, whole, recv.division(), in_place);
      });
}

int alltoall(const Asked& asked, const Given& from, const Given& to) {
  LaidSide send(from), recv(to);
  return run_collective(
      asked,
      [&](const Communicator& comm) -> GivenHere {
        if (!varies(to)) return with_types(alike(recv.division().elements(0).bytes()), to, &from);
        const Given& sent = is_in_place(from.buffer) ? to : from;
        return {alike({}), GivenParts{part_of_each(comm, part_notes(sent)), part_of_each(comm, part_notes(to))}};
      },
      [&](const Communicator& comm) -> Status {
        IST_TRY(find(send, comm, false));
        return recv.find(comm.size(), true);
      },
      [&](CollectiveCall& call) {
        const bool in_place = is_in_place(send.buffer());
        const Division& received = recv.division();
        const Piece into = recv.bytes(call, in_place ? recv.all() : LaidSide::Range{}, true);
        const Division& sent = in_place ? received : send.division();
        const Piece out = in_place ? into : send.bytes(call, send.all(), false);
        check_own_bytes(call, sent.of(out, call.plan().rank()), received);
        if (!in_place) call.keep_apart(out, sent, into, received);
        plan_alltoall(call.plan(), out, sent, into, received, in_place);
      });
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_bcast_layout(ist_buffer buffer, int64_t count, ist_layout layout, int root, ist_comm comm) try {
  return ist::bcast(ist::blocking("ist_bcast_layout", comm), ist::one("buffer", buffer, count, layout), root);
} catch (...) {
  return ist::report_exception("ist_bcast_layout");
}

int ist_ibcast_layout(ist_buffer buffer, int64_t count, ist_layout layout, int root, ist_comm comm,
                      ist_request* request) try {
  return ist::bcast(ist::nonblocking("ist_ibcast_layout", comm, request), ist::one("buffer", buffer, count, layout), root);
} catch (...) {
  return ist::report_exception("ist_ibcast_layout");
}

int ist_gather_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv, int64_t recv_count,
                      ist_layout recv_layout, int root, ist_comm comm) try {
  return ist::gather(ist::blocking("ist_gather_layout", comm), ist::one("send", send, send_count, send_layout),
                     ist::equal("recv", recv, recv_count, recv_layout), root);
} catch (...) {
  return ist::report_exception("ist_gather_layout");
}

int ist_igather_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv, int64_t recv_count,
                       ist_layout recv_layout, int root, ist_comm comm, ist_request* request) try {
  return ist::gather(ist::nonblocking("ist_igather_layout", comm, request), ist::one("send", send, send_count, send_layout),
                     ist::equal("recv", recv, recv_count, recv_layout), root);
} catch (...) {
  return ist::report_exception("ist_igather_layout");
}

int ist_gatherv_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                       const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout, int root,
                       ist_comm comm) try {
  return ist::gather(ist::blocking("ist_gatherv_layout", comm), ist::one("send", send, send_count, send_layout),
                     ist::varied("recv", recv, recv_counts, recv_displs, recv_layout), root);
} catch (...) {
  return ist::report_exception("ist_gatherv_layout");
}

int ist_igatherv_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                        const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout, int root,
                        ist_comm comm, ist_request* request) try {
  return ist::gather(ist::nonblocking("ist_igatherv_layout", comm, request), ist::one("send", send, send_count, send_layout),
                     ist::varied("recv", recv, recv_counts, recv_displs, recv_layout), root);
} catch (...) {
  return ist::report_exception("ist_igatherv_layout");
}

int ist_scatter_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv, int64_t recv_count,
                       ist_layout recv_layout, int root, ist_comm comm) try {
  return ist::scatter(ist::blocking("ist_scatter_layout", comm), ist::equal("send", send, send_count, send_layout),
                      ist::one("recv", recv, recv_count, recv_layout), root);
} catch (...) {
  return ist::report_exception("ist_scatter_layout");
}

int ist_iscatter_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv, int64_t recv_count,
                        ist_layout recv_layout, int root, ist_comm comm, ist_request* request) try {
  return ist::scatter(ist::nonblocking("ist_iscatter_layout", comm, request),
                      ist::equal("send", send, send_count, send_layout), ist::one("recv", recv, recv_count, recv_layout),
                      root);
} catch (...) {
  return ist::report_exception("ist_iscatter_layout");
}

int ist_scatterv_layout(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, ist_layout send_layout,
                        ist_buffer recv, int64_t recv_count, ist_layout recv_layout, int root, ist_comm comm) try {
  return ist::scatter(ist::blocking("ist_scatterv_layout", comm),
                      ist::varied("send", send, send_counts, send_displs, send_layout),
                      ist::one("recv", recv, recv_count, recv_layout), root);
} catch (...) {
  return ist::report_exception("ist_scatterv_layout");
}

int ist_iscatterv_layout(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, ist_layout send_layout,
                         ist_buffer recv, int64_t recv_count, ist_layout recv_layout, int root, ist_comm comm,
                         ist_request* request) try {
  return ist::scatter(ist::nonblocking("ist_iscatterv_layout", comm, request),
                      ist::varied("send", send, send_counts, send_displs, send_layout),
                      ist::one("recv", recv, recv_count, recv_layout), root);
} catch (...) {
  return ist::report_exception("ist_iscatterv_layout");
}

int ist_allgather_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv, int64_t recv_count,
                         ist_layout recv_layout, ist_comm comm) try {
  return ist::allgather(ist::blocking("ist_allgather_layout", comm), ist::one("send", send, send_count, send_layout),
                        ist::equal("recv", recv, recv_count, recv_layout));
} catch (...) {
  return ist::report_exception("ist_allgather_layout");
}

int ist_iallgather_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv, int64_t recv_count,
                          ist_layout recv_layout, ist_comm comm, ist_request* request) try {
  return ist::allgather(ist::nonblocking("ist_iallgather_layout", comm, request),
                        ist::one("send", send, send_count, send_layout), ist::equal("recv", recv, recv_count, recv_layout));
} catch (...) {
  return ist::report_exception("ist_iallgather_layout");
}

int ist_allgatherv_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                          const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout,
                          ist_comm comm) try {
  return ist::allgather(ist::blocking("ist_allgatherv_layout", comm), ist::one("send", send, send_count, send_layout),
                        ist::varied("recv", recv, recv_counts, recv_displs, recv_layout));
} catch (...) {
  return ist::report_exception("ist_allgatherv_layout");
}

int ist_iallgatherv_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                           const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout, ist_comm comm,
                           ist_request* request) try {
  return ist::allgather(ist::nonblocking("ist_iallgatherv_layout", comm, request),
                        ist::one("send", send, send_count, send_layout),
                        ist::varied("recv", recv, recv_counts, recv_displs, recv_layout));
} catch (...) {
  return ist::report_exception("ist_iallgatherv_layout");
}

int ist_alltoall_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv, int64_t recv_count,
                        ist_layout recv_layout, ist_comm comm) try {
  return ist::alltoall(ist::blocking("ist_alltoall_layout", comm), ist::equal("send", send, send_count, send_layout),
                       ist::equal("recv", recv, recv_count, recv_layout));
} catch (...) {
  return ist::report_exception("ist_alltoall_layout");
}

int ist_ialltoall_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv, int64_t recv_count,
                         ist_layout recv_layout, ist_comm comm, ist_request* request) try {
  return ist::alltoall(ist::nonblocking("ist_ialltoall_layout", comm, request),
                       ist::equal("send", send, send_count, send_layout), ist::equal("recv", recv, recv_count, recv_layout));
} catch (...) {
  return ist::report_exception("ist_ialltoall_layout");
}

int ist_alltoallv_layout(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, ist_layout send_layout,
                         ist_buffer recv, const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout,
                         ist_comm comm) try {
  return ist::alltoall(ist::blocking("ist_alltoallv_layout", comm),
                       ist::varied("send", send, send_counts, send_displs, send_layout),
                       ist::varied("recv", recv, recv_counts, recv_displs, recv_layout));
} catch (...) {
  return ist::report_exception("ist_alltoallv_layout");
}

int ist_ialltoallv_layout(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, ist_layout send_layout,
                          ist_buffer recv, const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout,
                          ist_comm comm, ist_request* request) try {
  return ist::alltoall(ist::nonblocking("ist_ialltoallv_layout", comm, request),
                       ist::varied("send", send, send_counts, send_displs, send_layout),
                       ist::varied("recv", recv, recv_counts, recv_displs, recv_layout));
} catch (...) {
  return ist::report_exception("ist_ialltoallv_layout");
}

int ist_alltoallw(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, const ist_layout* send_layouts,
                  ist_buffer recv, const int64_t* recv_counts, const int64_t* recv_displs, const ist_layout* recv_layouts,
                  ist_comm comm) try {
  return ist::alltoall(ist::blocking("ist_alltoallw", comm), ist::each("send", send, send_counts, send_displs, send_layouts),
                       ist::each("recv", recv, recv_counts, recv_displs, recv_layouts));
} catch (...) {
  return ist::report_exception("ist_alltoallw");
}

int ist_ialltoallw(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, const ist_layout* send_layouts,
                   ist_buffer recv, const int64_t* recv_counts, const int64_t* recv_displs, const ist_layout* recv_layouts,
                   ist_comm comm, ist_request* request) try {
  return ist::alltoall(ist::nonblocking("ist_ialltoallw", comm, request),
                       ist::each("send", send, send_counts, send_displs, send_layouts),
                       ist::each("recv", recv, recv_counts, recv_displs, recv_layouts));
} catch (...) {
  return ist::report_exception("ist_ialltoallw");
}
}
