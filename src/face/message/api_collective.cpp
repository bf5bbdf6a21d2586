// C calls: barrier, broadcast, and the operations of reductions.
#include "face/message/collective_at_once.hpp"
#include "face/message/errors.hpp"
#include "face/message/operators.hpp"

namespace ist {
namespace {

int barrier(const Asked& asked) {
  return run_collective(
      asked, [](const Communicator&) { return GivenAlike{}; }, [](const Communicator&) { return Status{}; },
      [](CollectiveCall& call) { plan_barrier(call.plan()); });
}

int bcast(const Asked& asked, const Data& data, int root) {
  Elements elements;
  return run_collective(
      asked, [&](const Communicator&) { return given_alike(IST_OP_NULL, data.type, data.count, root); },
      [&](const Communicator& comm) -> Status {
        IST_TRY(check_root(root, comm));
        const auto given = elements_of(data.count, data.type);
        if (given.ok()) elements = *given;
        return given.status();
      },
      [&](CollectiveCall& call) {
        plan_bcast(call.plan(), call.piece("buffer", data.buffer, elements.bytes()), elements, root);
      });
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_barrier(ist_comm comm) try {
  if (const auto done = ist::barrier_at_once(comm)) return *done;
  return ist::barrier(ist::blocking("ist_barrier", comm));
} catch (...) {
  return ist::report_exception("ist_barrier");
}

int ist_ibarrier(ist_comm comm, ist_request* request) try {
  return ist::barrier(ist::nonblocking("ist_ibarrier", comm, request));
} catch (...) {
  return ist::report_exception("ist_ibarrier");
}

int ist_bcast(ist_buffer buffer, int64_t count, ist_type type, int root, ist_comm comm) try {
  if (const auto done = ist::bcast_at_once({buffer, count, type}, root, comm)) return *done;
  return ist::bcast(ist::blocking("ist_bcast", comm), {buffer, count, type}, root);
} catch (...) {
  return ist::report_exception("ist_bcast");
}

int ist_ibcast(ist_buffer buffer, int64_t count, ist_type type, int root, ist_comm comm, ist_request* request) try {
  return ist::bcast(ist::nonblocking("ist_ibcast", comm, request), {buffer, count, type}, root);
} catch (...) {
  return ist::report_exception("ist_ibcast");
}

int ist_op_create(ist_op_function function, void* user, int commutative, ist_op* op) try {
  if (op == nullptr || function == nullptr)
    return ist::report(IST_ERR_ARGUMENT, "ist_op_create: function and op must not be null");
  *op = IST_OP_NULL;
  const auto added = ist::add_operator(function, user, commutative != 0);
  if (!added.ok()) return ist::report(ist::in_call("ist_op_create", added.status()));
  *op = *added;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_op_create");
}

int ist_op_free(ist_op* op) try {
  if (op == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_op_free: op is null");
  if (const ist::Status removed = ist::remove_operator(*op); !removed.ok())
    return ist::report(ist::in_call("ist_op_free", removed));
  *op = IST_OP_NULL;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_op_free");
}
}
