// C calls that combine what the ranks have.
#include "face/message/collective_at_once.hpp"
#include "face/message/errors.hpp"
#include "face/message/operators.hpp"

namespace ist {
namespace {

// What all ranks give alike, checked.
struct Alike {
  Elements elements;
  Combiner combiner;
  Status set(std::int64_t count, ist_type type, ist_op op) {
    const auto given = elements_of(count, type);
    if (!given.ok()) return given.status();
    const auto found = combiner_of(op, type);
    if (!found.ok()) return found.status();
    elements = *given;
    combiner = *found;
    return {};
  }
};

// `wants`: this rank gets a result.
ReductionData data_of(CollectiveCall& call, const ReduceArguments& given, const Elements& elements, bool wants) {
  ReductionData data;
  data.elements = elements;
  if (wants) data.recv = call.piece("recv", given.recv, elements.bytes());
  data.in_place = wants && is_in_place(given.send);
  data.send = data.in_place ? data.recv : call.piece("send", given.send, elements.bytes());
  if (!data.in_place) call.keep_apart(data.send, data.recv);
  return data;
}

int reduce(const Asked& asked, const ReduceArguments& given, int root) {
  Alike alike;
  return run_collective(
      asked, [&](const Communicator&) { return given_alike(given.op, given.type, given.count, root); },
      [&](const Communicator& comm) -> Status {
        IST_TRY(check_root(root, comm));
        return alike.set(given.count, given.type, given.op);
      },
      [&](CollectiveCall& call) {
        call.plan().set_combiner(alike.combiner);
        plan_reduce(call.plan(), data_of(call, given, alike.elements, call.is(root)), root);
      });
}

int allreduce(const Asked& asked, const ReduceArguments& given) {
  Alike alike;
  return run_collective(
      asked, [&](const Communicator&) { return given_alike(given.op, given.type, given.count); },
      [&](const Communicator&) { return alike.set(given.count, given.type, given.op); },
      [&](CollectiveCall& call) {
        call.plan().set_combiner(alike.combiner);
        plan_allreduce(call.plan(), data_of(call, given, alike.elements, true));
      });
}

int scan(const Asked& asked, const ReduceArguments& given, bool exclusive) {
  Alike alike;
  return run_collective(
      asked, [&](const Communicator&) { return given_alike(given.op, given.type, given.count); },
      [&](const Communicator&) { return alike.set(given.count, given.type, given.op); },
      [&](CollectiveCall& call) {
        call.plan().set_combiner(alike.combiner);
        const bool wants = !exclusive || !call.is(0) || is_in_place(given.send);
        plan_scan(call.plan(), data_of(call, given, alike.elements, wants), exclusive);
      });
}

// Counts of the parts; `same`: for every rank.
struct PartCounts {
  const std::int64_t* counts;
  std::int64_t same;
};

int reduce_scatter(const Asked& asked, const ReduceArguments& given, const PartCounts& parts) {
  Alike alike;
  std::vector<std::int64_t> counts;
  return run_collective(
      asked,
      [&](const Communicator& comm) {
        GivenAlike all = given_alike(given.op, given.type, parts.same);
        if (parts.counts != nullptr) all.list(parts.counts, comm.size());
        return all;
      },
      [&](const Communicator& comm) -> Status {
        const auto ranks = static_cast<std::size_t>(comm.size());
        if (parts.counts != nullptr) counts.assign(parts.counts, parts.counts + ranks);
        if (parts.counts == nullptr && parts.same < 0)
          return {IST_ERR_ARGUMENT, "recv_count is " + std::to_string(parts.same) + "; it must be 0 or more"};
        if (parts.counts == nullptr) counts.assign(ranks, parts.same);
        std::int64_t all = 0;
        for (const std::int64_t count : counts) {
          IST_TRY(alike.set(count, given.type, given.op));
          if (__builtin_add_overflow(all, count, &all))
            return {IST_ERR_OVERFLOW, "the counts add up to more than any buffer holds"};
        }
        return alike.set(all, given.type, given.op);
      },
      [&](CollectiveCall& call) {
        call.plan().set_combiner(alike.combiner);
        const Division layout =
            parts.counts != nullptr
                ? call.layout("recv_counts", counts.data(), given.type)
                : Division::even({static_cast<std::uint64_t>(parts.same), alike.elements.each}, call.size());
        const auto mine = layout.elements(call.plan().rank());
        const bool in_place = is_in_place(given.send);
        const Piece recv = call.piece("recv", given.recv, in_place ? alike.elements.bytes() : mine.bytes());
        const Piece send = in_place ? recv : call.piece("send", given.send, alike.elements.bytes());
        if (!in_place) call.keep_apart(send, recv);
        plan_reduce_scatter(call.plan(), send, recv, layout, in_place);
      });
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_reduce(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, int root, ist_comm comm) try {
  if (const auto done = ist::reduce_to_root_at_once({send, recv, count, type, op}, root, comm)) return *done;
  return ist::reduce(ist::blocking("ist_reduce", comm), {send, recv, count, type, op}, root);
} catch (...) {
  return ist::report_exception("ist_reduce");
}

int ist_ireduce(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, int root, ist_comm comm,
                ist_request* request) try {
  return ist::reduce(ist::nonblocking("ist_ireduce", comm, request), {send, recv, count, type, op}, root);
} catch (...) {
  return ist::report_exception("ist_ireduce");
}

int ist_allreduce(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm) try {
  if (const auto done = ist::allreduce_at_once({send, recv, count, type, op}, comm)) return *done;
  return ist::allreduce(ist::blocking("ist_allreduce", comm), {send, recv, count, type, op});
} catch (...) {
  return ist::report_exception("ist_allreduce");
}

int ist_iallreduce(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm,
                   ist_request* request) try {
  return ist::allreduce(ist::nonblocking("ist_iallreduce", comm, request), {send, recv, count, type, op});
} catch (...) {
  return ist::report_exception("ist_iallreduce");
}

int ist_reduce_scatter(ist_buffer send, ist_buffer recv, const int64_t* recv_counts, ist_type type, ist_op op,
                       ist_comm comm) try {
  if (recv_counts == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_reduce_scatter: recv_counts is null");
  if (const auto done = ist::reduce_scatter_at_once({send, recv, 0, type, op}, recv_counts, comm)) return *done;
  return ist::reduce_scatter(ist::blocking("ist_reduce_scatter", comm), {send, recv, 0, type, op}, {recv_counts, 0});
} catch (...) {
  return ist::report_exception("ist_reduce_scatter");
}

int ist_ireduce_scatter(ist_buffer send, ist_buffer recv, const int64_t* recv_counts, ist_type type, ist_op op,
                        ist_comm comm, ist_request* request) try {
  if (recv_counts == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_ireduce_scatter: recv_counts is null");
  return ist::reduce_scatter(ist::nonblocking("ist_ireduce_scatter", comm, request), {send, recv, 0, type, op},
                             {recv_counts, 0});
} catch (...) {
  return ist::report_exception("ist_ireduce_scatter");
}

int ist_reduce_scatter_block(ist_buffer send, ist_buffer recv, int64_t recv_count, ist_type type, ist_op op,
                             ist_comm comm) try {
  if (const auto done = ist::reduce_scatter_at_once("ist_reduce_scatter_block", {send, recv, recv_count, type, op}, comm))
    return *done;
  return ist::reduce_scatter(ist::blocking("ist_reduce_scatter_block", comm), {send, recv, 0, type, op},
                             {nullptr, recv_count});
} catch (...) {
  return ist::report_exception("ist_reduce_scatter_block");
}

int ist_ireduce_scatter_block(ist_buffer send, ist_buffer recv, int64_t recv_count, ist_type type, ist_op op, ist_comm comm,
                              ist_request* request) try {
  return ist::reduce_scatter(ist::nonblocking("ist_ireduce_scatter_block", comm, request), {send, recv, 0, type, op},
                             {nullptr, recv_count});
} catch (...) {
  return ist::report_exception("ist_ireduce_scatter_block");
}

int ist_scan(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm) try {
  if (const auto done = ist::scan_at_once({send, recv, count, type, op}, false, comm)) return *done;
  return ist::scan(ist::blocking("ist_scan", comm), {send, recv, count, type, op}, false);
} catch (...) {
  return ist::report_exception("ist_scan");
}

int ist_iscan(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm,
              ist_request* request) try {
  return ist::scan(ist::nonblocking("ist_iscan", comm, request), {send, recv, count, type, op}, false);
} catch (...) {
  return ist::report_exception("ist_iscan");
}

int ist_exscan(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm) try {
  if (const auto done = ist::scan_at_once({send, recv, count, type, op}, true, comm)) return *done;
  return ist::scan(ist::blocking("ist_exscan", comm), {send, recv, count, type, op}, true);
} catch (...) {
  return ist::report_exception("ist_exscan");
}

int ist_iexscan(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm,
                ist_request* request) try {
  return ist::scan(ist::nonblocking("ist_iexscan", comm, request), {send, recv, count, type, op}, true);
} catch (...) {
  return ist::report_exception("ist_iexscan");
}
}
