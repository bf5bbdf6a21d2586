// C calls that move parts between ranks without combining them.
#include <limits>

#include "face/message/collective_at_once.hpp"
#include "face/message/errors.hpp"
#include "face/message/given_parts.hpp"

namespace ist {
namespace {

// A buffer of one part per rank: `count` elements each, or by counts and displacements.
struct PartsArgument {
  const char* name;
  const ist_buffer& buffer;
  std::int64_t count;
  const std::int64_t* counts;
  const std::int64_t* displs;
  bool varied;  // counts and displs, not count

  Division layout(CollectiveCall& call, ist_type type) const {
    if (varied) return call.layout(name, counts, displs, type);
    const auto each = elements_of(count, type);
    std::int64_t all = count;
    // So many that their product is no number are more than any buffer holds.
    const bool counted = each.ok() && !__builtin_mul_overflow(count, std::int64_t{call.size()}, &all);
    if (counted && elements_of(all, type).ok()) return Division::even(*each, call.size());
    call.fail(each.ok() ? Status{IST_ERR_OVERFLOW, std::string{name} + ": " + std::to_string(count) + " elements of " +
                                                       std::to_string(size_of(type).value) + " bytes for each of " +
                                                       std::to_string(call.size()) + " ranks are more than any buffer holds"}
                        : Status{each.status().code(), std::string{name} + ": " + each.status().text()});
    return Division::even({0, size_of(type)}, call.size());
  }
};
PartsArgument equal(const char* name, const ist_buffer& buffer, std::int64_t count) {
  return {name, buffer, count, nullptr, nullptr, false};
}
PartsArgument varied(const char* name, const ist_buffer& buffer, const std::int64_t* counts, const std::int64_t* displs) {
  return {name, buffer, 0, counts, displs, true};
}

// One part of this rank's own.
struct PartArgument {
  const char* name;
  const ist_buffer& buffer;
  std::int64_t count;

  Piece piece(CollectiveCall& call, ist_type type) const {
    const auto elements = elements_of(count, type);
    if (elements.ok()) return call.piece(name, buffer, elements->bytes());
    call.fail({elements.status().code(), std::string{name} + ": " + elements.status().text()});
    return host_piece(nullptr, Bytes{});
  }
};

// A part of a whole whose parts differ.
PartNote part_note(const PartsArgument& whole, ist_type type, int rank) {
  if (whole.counts == nullptr) return {};
  return note_of_part(types_of(Data{whole.buffer, whole.counts[rank], type}));
}
PartNote part_note(const PartArgument& own, ist_type type) {
  return note_of_part(types_of(Data{own.buffer, own.count, type}));
}

Status check_type(ist_type type) { return elements_of(0, type).status(); }

// Part and whole must agree where one rank has both.
void check_own(CollectiveCall& call, const Piece& own, const Division& layout) {
  const Bytes place = layout.elements(call.plan().rank()).bytes();
  if (own.size == place) return;
  call.fail({IST_ERR_TRUNCATE, "this rank's own part has " + std::to_string(own.size.value) + " bytes, and its place " +
                                   std::to_string(place.value)});
}

Division in_one(const Piece& own) { return Division::even({own.size.value, Bytes{1}}, 1); }

int gather(const Asked& asked, const PartArgument& send, const PartsArgument& recv, ist_type type, int root) {
  return run_collective(
      asked,
      [&](const Communicator& comm) -> GivenHere {
        const std::int64_t count = recv.varied ? 0 : comm.rank() == root ? recv.count : send.count;
        const GivenAlike all = given_alike(IST_OP_NULL, type, count, root);
        if (!recv.varied) return all;
        return {all, parts_to_root(comm, root, part_note(send, type), is_in_place(send.buffer),
                                   [&](int rank) { return part_note(recv, type, rank); })};
      },
      [&](const Communicator& comm) -> Status {
        IST_TRY(check_root(root, comm));
        return check_type(type);
      },
      [&](CollectiveCall& call) {
        const bool alike = !recv.varied;
        if (!call.is(root)) return plan_gather(call.plan(), {root, alike, send.piece(call, type), {}, {}});
        const bool in_place = is_in_place(send.buffer);
        const Division layout = recv.layout(call, type);
        const Piece whole = call.piece(recv.name, recv.buffer, layout.span());
        const Piece own = in_place ? layout.of(whole, root) : send.piece(call, type);
        check_own(call, own, layout);
        if (!in_place) call.keep_apart(own, in_one(own), whole, layout);
        plan_gather(call.plan(), {root, alike, own, whole, layout, in_place});
      });
}

int scatter(const Asked& asked, const PartsArgument& send, const PartArgument& recv, ist_type type, int root) {
  return run_collective(
      asked,
      [&](const Communicator& comm) -> GivenHere {
        const std::int64_t count = send.varied ? 0 : comm.rank() == root ? send.count : recv.count;
        const GivenAlike all = given_alike(IST_OP_NULL, type, count, root);
        if (!send.varied) return all;
        return {all, parts_of_root(comm, root, part_note(recv, type), is_in_place(recv.buffer),
                                   [&](int rank) { return part_note(send, type, rank); })};
      },
      [&](const Communicator& comm) -> Status {
        IST_TRY(check_root(root, comm));
        return check_type(type);
      },
      [&](CollectiveCall& call) {
        const bool alike = !send.varied;
        if (!call.is(root)) return plan_scatter(call.plan(), {root, alike, recv.piece(call, type), {}, {}});
        const bool in_place = is_in_place(recv.buffer);
        const Division layout = send.layout(call, type);
        const Piece whole = call.piece(send.name, send.buffer, layout.span());
        const Piece own = in_place ? layout.of(whole, root) : recv.piece(call, type);
        check_own(call, own, layout);
        if (!in_place) call.keep_apart(whole, layout, own, in_one(own));
        plan_scatter(call.plan(), {root, alike, own, whole, layout, in_place});
      });
}

int allgather(const Asked& asked, const PartArgument& send, const PartsArgument& recv, ist_type type) {
  return run_collective(
      asked,
      [&](const Communicator& comm) -> GivenHere {
        GivenAlike all = given_alike(IST_OP_NULL, type, recv.count);
        if (!recv.varied) return all;
        if (recv.counts != nullptr) all.list(recv.counts, comm.size());
        const PartNote own = is_in_place(send.buffer) ? part_note(recv, type, comm.rank()) : part_note(send, type);
        return {all, GivenParts{part_of_each(comm, [&](int) { return own; }),
                                part_of_each(comm, [&](int rank) { return part_note(recv, type, rank); })}};
      },
      [&](const Communicator&) { return check_type(type); },
      [&](CollectiveCall& call) {
        const bool in_place = is_in_place(send.buffer);
        const Division layout = recv.layout(call, type);
        const Piece whole = call.piece(recv.name, recv.buffer, layout.span());
        const Piece own = in_place ? layout.of(whole, call.plan().rank()) : send.piece(call, type);
        check_own(call, own, layout);
        if (!in_place) call.keep_apart(own, in_one(own), whole, layout);
        plan_allgather(call.plan(), own, whole, layout, in_place);
      });
}

int alltoall(const Asked& asked, const PartsArgument& send, const PartsArgument& recv, ist_type type) {
  return run_collective(
      asked,
      [&](const Communicator& comm) -> GivenHere {
        const GivenAlike all = given_alike(IST_OP_NULL, type, recv.count);
        if (!recv.varied) return all;
        const PartsArgument& sent = is_in_place(send.buffer) ? recv : send;
        return {all, GivenParts{part_of_each(comm, [&](int rank) { return part_note(sent, type, rank); }),
                                part_of_each(comm, [&](int rank) { return part_note(recv, type, rank); })}};
      },
      [&](const Communicator&) { return check_type(type); },
      [&](CollectiveCall& call) {
        const bool in_place = is_in_place(send.buffer);
        const Division received = recv.layout(call, type);
        const Piece into = call.piece(recv.name, recv.buffer, received.span());
        const Division sent = in_place ? received : send.layout(call, type);
        const Piece from = in_place ? into : call.piece(send.name, send.buffer, sent.span());
        check_own(call, sent.of(from, call.plan().rank()), received);
        if (!in_place) call.keep_apart(from, sent, into, received);
        plan_alltoall(call.plan(), from, sent, into, received, in_place);
      });
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_gather(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type, int root,
               ist_comm comm) try {
  if (const auto done = ist::gather_at_once({send, send_count, recv, recv_count, type, root}, comm)) return *done;
  return ist::gather(ist::blocking("ist_gather", comm), {"send", send, send_count}, ist::equal("recv", recv, recv_count),
                     type, root);
} catch (...) {
  return ist::report_exception("ist_gather");
}

int ist_igather(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type, int root,
                ist_comm comm, ist_request* request) try {
  return ist::gather(ist::nonblocking("ist_igather", comm, request), {"send", send, send_count},
                     ist::equal("recv", recv, recv_count), type, root);
} catch (...) {
  return ist::report_exception("ist_igather");
}

int ist_gatherv(ist_buffer send, int64_t send_count, ist_buffer recv, const int64_t* recv_counts, const int64_t* displs,
                ist_type type, int root, ist_comm comm) try {
  return ist::gather(ist::blocking("ist_gatherv", comm), {"send", send, send_count},
                     ist::varied("recv", recv, recv_counts, displs), type, root);
} catch (...) {
  return ist::report_exception("ist_gatherv");
}

int ist_igatherv(ist_buffer send, int64_t send_count, ist_buffer recv, const int64_t* recv_counts, const int64_t* displs,
                 ist_type type, int root, ist_comm comm, ist_request* request) try {
  return ist::gather(ist::nonblocking("ist_igatherv", comm, request), {"send", send, send_count},
                     ist::varied("recv", recv, recv_counts, displs), type, root);
} catch (...) {
  return ist::report_exception("ist_igatherv");
}

int ist_scatter(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type, int root,
                ist_comm comm) try {
  if (const auto done = ist::scatter_at_once({recv, recv_count, send, send_count, type, root}, comm)) return *done;
  return ist::scatter(ist::blocking("ist_scatter", comm), ist::equal("send", send, send_count), {"recv", recv, recv_count},
                      type, root);
} catch (...) {
  return ist::report_exception("ist_scatter");
}

int ist_iscatter(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type, int root,
                 ist_comm comm, ist_request* request) try {
  return ist::scatter(ist::nonblocking("ist_iscatter", comm, request), ist::equal("send", send, send_count),
                      {"recv", recv, recv_count}, type, root);
} catch (...) {
  return ist::report_exception("ist_iscatter");
}

int ist_scatterv(ist_buffer send, const int64_t* send_counts, const int64_t* displs, ist_buffer recv, int64_t recv_count,
                 ist_type type, int root, ist_comm comm) try {
  return ist::scatter(ist::blocking("ist_scatterv", comm), ist::varied("send", send, send_counts, displs),
                      {"recv", recv, recv_count}, type, root);
} catch (...) {
  return ist::report_exception("ist_scatterv");
}

int ist_iscatterv(ist_buffer send, const int64_t* send_counts, const int64_t* displs, ist_buffer recv, int64_t recv_count,
                  ist_type type, int root, ist_comm comm, ist_request* request) try {
  return ist::scatter(ist::nonblocking("ist_iscatterv", comm, request), ist::varied("send", send, send_counts, displs),
                      {"recv", recv, recv_count}, type, root);
} catch (...) {
  return ist::report_exception("ist_iscatterv");
}

int ist_allgather(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type,
                  ist_comm comm) try {
  if (send_count == recv_count)
    if (const auto done = ist::allgather_at_once({send, recv, recv_count, type}, comm)) return *done;
  return ist::allgather(ist::blocking("ist_allgather", comm), {"send", send, send_count},
                        ist::equal("recv", recv, recv_count), type);
} catch (...) {
  return ist::report_exception("ist_allgather");
}

int ist_iallgather(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type, ist_comm comm,
                   ist_request* request) try {
  return ist::allgather(ist::nonblocking("ist_iallgather", comm, request), {"send", send, send_count},
                        ist::equal("recv", recv, recv_count), type);
} catch (...) {
  return ist::report_exception("ist_iallgather");
}

int ist_allgatherv(ist_buffer send, int64_t send_count, ist_buffer recv, const int64_t* recv_counts, const int64_t* displs,
                   ist_type type, ist_comm comm) try {
  return ist::allgather(ist::blocking("ist_allgatherv", comm), {"send", send, send_count},
                        ist::varied("recv", recv, recv_counts, displs), type);
} catch (...) {
  return ist::report_exception("ist_allgatherv");
}

int ist_iallgatherv(ist_buffer send, int64_t send_count, ist_buffer recv, const int64_t* recv_counts, const int64_t* displs,
                    ist_type type, ist_comm comm, ist_request* request) try {
  return ist::allgather(ist::nonblocking("ist_iallgatherv", comm, request), {"send", send, send_count},
                        ist::varied("recv", recv, recv_counts, displs), type);
} catch (...) {
  return ist::report_exception("ist_iallgatherv");
}

int ist_alltoall(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_comm comm) try {
  if (const auto done = ist::alltoall_at_once({send, recv, count, type}, comm)) return *done;
  return ist::alltoall(ist::blocking("ist_alltoall", comm), ist::equal("send", send, count), ist::equal("recv", recv, count),
                       type);
} catch (...) {
  return ist::report_exception("ist_alltoall");
}

int ist_ialltoall(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_comm comm, ist_request* request) try {
  return ist::alltoall(ist::nonblocking("ist_ialltoall", comm, request), ist::equal("send", send, count),
                       ist::equal("recv", recv, count), type);
} catch (...) {
  return ist::report_exception("ist_ialltoall");
}

int ist_alltoallv(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, ist_buffer recv,
                  const int64_t* recv_counts, const int64_t* recv_displs, ist_type type, ist_comm comm) try {
  return ist::alltoall(ist::blocking("ist_alltoallv", comm), ist::varied("send", send, send_counts, send_displs),
                       ist::varied("recv", recv, recv_counts, recv_displs), type);
} catch (...) {
  return ist::report_exception("ist_alltoallv");
}

int ist_ialltoallv(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, ist_buffer recv,
                   const int64_t* recv_counts, const int64_t* recv_displs, ist_type type, ist_comm comm,
                   ist_request* request) try {
  return ist::alltoall(ist::nonblocking("ist_ialltoallv", comm, request),
                       ist::varied("send", send, send_counts, send_displs),
                       ist::varied("recv", recv, recv_counts, recv_displs), type);
} catch (...) {
  return ist::report_exception("ist_ialltoallv");
}
}
