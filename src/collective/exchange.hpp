// A few bytes of each rank for all of them, by ordinary messages.
//
// Who calls this : agreement.hpp, face/message/stream_meetings, face/heap, nccl_stream.cpp.
// Threads        : as of collective calls: one at a time per communicator.
// Ownership      : none.
// Errors         : of the first message that failed.
#pragma once

#include <type_traits>
#include <vector>

#include "collective/collectives.hpp"
#include "request/wait.hpp"

namespace ist {

// Collective, and waits. `call`: what errors and traces name; it stays.
template <class T>
Status exchange(const Communicator& comm, const char* call, const T& mine, std::vector<T>& all) {
  static_assert(std::is_trivially_copyable_v<T>);
  all.resize(static_cast<std::size_t>(comm.size()));
  const Bytes size{sizeof(T)};
  Plan plan{comm, call, true};
  plan_allgather(plan, host_piece(&mine, size), host_piece(all.data(), Bytes{size.value * all.size()}),
                 Division::even({1, size}, comm.size()), false);
  if (plan.walks()) return plan.end_walk();
  const auto id = plan.start();
  return id.ok() ? wait_for_own(comm.engine(), *id).status : id.status();
}

}  // namespace ist
