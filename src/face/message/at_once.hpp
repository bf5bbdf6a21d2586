// The short ways of the calls that send, receive and wait: small messages in host memory, and requests that are complete.
//
// Who calls this : api_message.cpp, api_requests.cpp and calls.cpp.
// Threads        : any; each takes the engine's lock itself.
// Ownership      : none.
// Errors         : none. Whatever is out of the ordinary, a wrong argument among it, takes the long way, which says what is wrong.
//
// Inline, because these calls are short and their instructions counted (tests/stress/instructions.json).
#pragma once

#include <mutex>

#include "base/ranges.hpp"
#include "face/message/calls.hpp"
#include "request/engine_at_once.hpp"

namespace ist {

// The usual arguments of a call: host memory, and nothing wrong with buffer, count, type and communicator.
struct Ordinary {
  const Communicator* comm = nullptr;  // null: they are not that
  Bytes size;
};
// Of such a buffer. Asked where the address is needed: whatever is kept meanwhile is one register less.
[[gnu::always_inline]] inline std::byte* address_of(const Data& data) {
  return reinterpret_cast<std::byte*>(data.buffer.object + data.buffer.offset);
}

[[gnu::always_inline]] inline Ordinary ordinary(const Data& data, ist_comm comm) {
  const ist_buffer& buffer = data.buffer;
  const auto type = static_cast<std::size_t>(data.type);
  // No product and no sum of such numbers overflows.
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40U;
  if (buffer.kind != IST_KIND_HOST || (buffer.flags & ~IST_BUFFER_READY) != 0 || buffer.object == 0 || type >= kTypes ||
      static_cast<std::uint64_t>(data.count) > kMostElements || ((buffer.object | buffer.offset) >> 61U) != 0) [[unlikely]]
    return {};
  return {find_again(comm), Bytes{static_cast<std::uint64_t>(data.count) * kTypeSizes[type]}};
}

// `few`: it shares a line (PairSlot::kShare).
template <bool few>
[[gnu::always_inline]] inline bool send_at_once(const Communicator& comm, const std::byte* bytes, Bytes size, int dest,
                                                int tag, bool blocking) {
  Engine& engine = comm.engine();
  if (!engine.lock().try_lock()) [[unlikely]]
    return false;
  const HeldLock lock(engine.lock());
  if (!engine.send_at_once<few>(bytes, size, comm.to_world(dest), tag, comm.scope().context, blocking)) [[unlikely]]
    return false;
  engine.move_on_others();
  return true;
}

// Out of the way of the few, whose call then calls nothing.
[[gnu::noinline]] inline bool send_more_at_once(const Communicator& comm, const std::byte* bytes, Bytes size, int dest,
                                                int tag, bool blocking) {
  return send_at_once<false>(comm, bytes, size, dest, tag, blocking);
}

// False: nothing was sent.
[[gnu::always_inline]] inline bool send_at_once(const Data& data, int dest, int tag, ist_comm comm, bool blocking) {
  const Ordinary found = ordinary(data, comm);
  if (found.comm == nullptr || tag < 0 || dest < 0 || dest >= found.comm->size()) [[unlikely]]
    return false;
  if (found.size.value <= PairSlot::kShare) [[likely]]
    return send_at_once<true>(*found.comm, address_of(data), found.size, dest, tag, blocking);
  return send_more_at_once(*found.comm, address_of(data), found.size, dest, tag, blocking);
}

inline bool may_come(const Communicator& comm, int source, int tag) {
  return tag >= IST_ANY_TAG && source >= IST_ANY_SOURCE && source < comm.size();
}

inline std::int32_t world_source(const Communicator& comm, int source) {
  return source < 0 ? source : comm.to_world(source).value;
}

// False: nothing was started.
[[gnu::always_inline]] inline bool start_receive_at_once(const Data& data, int source, int tag, ist_comm comm,
                                                         ist_request* request) {
  const Ordinary found = ordinary(data, comm);
  if (found.comm == nullptr || !may_come(*found.comm, source, tag)) [[unlikely]]
    return false;
  Engine& engine = found.comm->engine();
  if (!engine.lock().try_lock()) [[unlikely]]
    return false;
  const HeldLock lock(engine.lock());
  const Scope& scope = found.comm->scope();
  OperationId id;
  if (!engine.receive_at_once(address_of(data), found.size, {scope.context, world_source(*found.comm, source), tag},
                              scope.group.get(), id)) [[unlikely]]
    return false;
  *request = request_handle(comm, id);
  engine.move_on_others();
  return true;
}

// False: nothing was received; where an operation is `posted`, it is the receive.
[[gnu::always_inline]] inline bool receive_at_once(const Data& data, int source, int tag, ist_comm comm, ist_status* status,
                                                   OperationId& posted) {
  const Ordinary found = ordinary(data, comm);
  if (found.comm == nullptr || source < 0 || !may_come(*found.comm, source, tag)) [[unlikely]]
    return false;
  const Scope& scope = found.comm->scope();
  BriefReceive brief{address_of(data), found.size, scope.context, found.comm->to_world(source), tag, &scope};
  Engine& engine = found.comm->engine();
  if (!engine.lock().try_lock()) [[unlikely]]
    engine.lock().lock();
  const HeldLock lock(engine.lock());
  if (!engine.receive_brief(brief)) [[unlikely]] {
    posted = brief.posted;
    return false;
  }
  if (status != nullptr)
    *status = {source, brief.received_tag, IST_OK, brief.carrier, static_cast<std::int64_t>(brief.bytes.value)};
  return true;
}

// Ends requests from the first one on that are complete, or become so with one look for each; how many. It stops at whatever needs
// more: patience, the text of a failure, another world, a persistent request. One lock for all, until another thread wants it.
inline int finish_in_a_row(int count, ist_request* requests, ist_status* statuses) {
  int at = 0;
  const auto finish_null = [&] {
    set_empty(statuses != nullptr ? &statuses[at] : nullptr, IST_ANY_SOURCE);
    ++at;
  };
  while (at < count && requests[at] == IST_REQUEST_NULL) finish_null();
  if (at == count) return at;
  World* const world = operation_named(requests[at]).world;
  if (world == nullptr) return at;
  // What stands before the ids of that world. Of another one's, and of null, something is left of it.
  const std::uint64_t before = reinterpret_cast<std::uint64_t>(requests[at]) >> 56U << 56U;
  Engine& engine = world->engine();
  const std::lock_guard lock(engine.lock());
  while (at < count) {
    const OperationId id{reinterpret_cast<std::uint64_t>(requests[at]) ^ before};
    if (id.value >> 56U != 0) [[unlikely]] {
      if (requests[at] != IST_REQUEST_NULL) return at;
      finish_null();
      continue;
    }
    if (PlainReceive* const plain = engine.find_plain(id)) [[likely]] {
      if (statuses != nullptr) set_status(statuses[at], *plain);
      engine.let_go(*plain, id);
    } else {
      const Operation* const operation = engine.find_complete(id);
      if (operation == nullptr) return at;
      if (world->nccl().known().any()) [[unlikely]]
        world->nccl().known().awaited(id, false);
      set_status(statuses != nullptr ? &statuses[at] : nullptr, operation->outcome, operation->group.get());
      engine.let_go(id);
    }
    requests[at] = IST_REQUEST_NULL;
    ++at;
    if (engine.lock().contended()) return at;
  }
  return at;
}

}  // namespace ist
