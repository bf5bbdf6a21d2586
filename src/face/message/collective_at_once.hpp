// The short ways of collective calls that wait: host memory, and ranks that all see what each of them says (collective/shared_steps.hpp).
//
// Who calls this : api_collective.cpp, api_reduce.cpp, api_gather.cpp.
// Threads        : as of the calls: one at a time per communicator.
// Ownership      : none.
// Errors         : of the call, reported. Whatever is out of the ordinary on this rank, a wrong argument among it, takes the long way, which says
//                  what is wrong, and is the same to the other ranks.
//
// What a plan is for, kinds of memory and orders in which steps may be done, is not needed here, and took 0.3 us where a line of a cache takes 0.075
// from one processor to the other (AMD EPYC, Zen 3, 2026-11-28).
#pragma once

#include <optional>

#include "collective/shared_steps.hpp"
#include "face/message/at_once.hpp"
#include "face/message/collective_calls.hpp"

namespace ist {

// A collective call of the usual kind.
struct BriefCall {
  const char* name;
  Plan::Call what;
  ChosenCall chosen;
  int detail = 0;
};

// Does such a call, all of it so many bytes, go through shared memory by what all ranks know?
inline bool is_shared(const Communicator& comm, const BriefCall& call, Bytes all) {
  return comm.algorithm(call.chosen, all, Combiner{}.commutative) == Algorithm::shared &&
         !comm.may_go_by_nccl(call.chosen, all);
}

// Null: not a communicator of such calls.
[[gnu::always_inline]] inline const Communicator* find_brief(ist_comm handle) {
  const Communicator* const comm = find_again(handle);
  return comm != nullptr && comm->is_brief() && !Range::told() ? comm : nullptr;
}

// The buffer in host memory, its bytes and its communicator.
struct BriefBuffer {
  const Communicator* comm = nullptr;  // null: anything else
  std::byte* address = nullptr;
  Bytes size;
};
[[gnu::always_inline]] inline BriefBuffer brief_buffer(const Data& data, ist_comm handle) {
  const Ordinary found = ordinary(data, handle);
  if (found.comm == nullptr || found.size == Bytes{} || !found.comm->is_brief() || Range::told()) [[unlikely]]
    return {};
  return {found.comm, address_of(data), found.size};
}

inline bool overlap(const BriefBuffer& one, const BriefBuffer& other) {
  return shared_bytes(host_piece(one.address, one.size), host_piece(other.address, other.size)) > Bytes{};
}

// `steps`, void(SharedCall&): what this rank says and takes.
template <class Steps>
int make_at_once(const Communicator& comm, const BriefCall& call, Bytes all, const Combiner& combiner, const Steps& steps) {
  SharedLane& lane = *comm.lane();
  const std::uint64_t number = comm.count_call();
  lane.come_to(number);
  lane.note(number, Plan::note_of(call.what, all, call.detail));
  if (call.what != Plan::Call::barrier) comm.note(Algorithm::shared);
  SharedCall shared{lane, number, combiner};
  shared.at_once();
  steps(shared);
  Status ended = shared.end();
  if (ended.ok()) [[likely]]
    return IST_OK;
  Outcome outcome;
  outcome.status = std::move(ended);
  return finish(call.name, outcome, comm.scope().group.get(), nullptr);
}

// Each of these: nothing, where nothing was done.
inline std::optional<int> barrier_at_once(ist_comm handle) {
  const Communicator* const comm = find_brief(handle);
  if (comm == nullptr || !comm->shares_barrier()) return {};
  return make_at_once(*comm, {"ist_barrier", Plan::Call::barrier, {}}, {}, {},
                      [](SharedCall& call) { shared::barrier(call); });
}

inline std::optional<int> bcast_at_once(const Data& data, int root, ist_comm handle) {
  const BriefBuffer buffer = brief_buffer(data, handle);
  const BriefCall what{"ist_bcast", Plan::Call::bcast, ChosenCall::bcast, root};
  if (buffer.comm == nullptr || root < 0 || root >= buffer.comm->size() || !is_shared(*buffer.comm, what, buffer.size))
    return {};
  return make_at_once(*buffer.comm, what, buffer.size, {},
                      [&](SharedCall& call) { shared::bcast(call, buffer.address, buffer.size, root); });
}

// One of the library's operations, of a type that has it.
inline bool is_ordinary(ist_op op, ist_type type) {
  const auto number = reinterpret_cast<std::uintptr_t>(op);
  return number - 1 < kReductions && applies(static_cast<Reduction>(number), family_of(type));
}

struct ReduceArguments {
  const ist_buffer& send;
  const ist_buffer& recv;
  std::int64_t count;
  ist_type type;
  ist_op op;
};

// root: a rank, or SharedLane::kEverybody.
inline std::optional<int> reduce_at_once(const ReduceArguments& given, const BriefCall& what, int root, ist_comm handle) {
  const bool in_place = is_in_place(given.send);
  const BriefBuffer send = brief_buffer({in_place ? given.recv : given.send, given.count, given.type}, handle);
  if (send.comm == nullptr || !is_ordinary(given.op, given.type) || !is_shared(*send.comm, what, send.size)) return {};
  const bool wants = root == SharedLane::kEverybody || send.comm->rank() == root;
  if (root >= send.comm->size() || (in_place && !wants)) return {};
  BriefBuffer recv = send;
  if (!in_place && wants) {
    recv = brief_buffer({given.recv, given.count, given.type}, handle);
    if (recv.comm == nullptr || overlap(send, recv)) return {};
  }
  const Combiner combiner{static_cast<Reduction>(reinterpret_cast<std::uintptr_t>(given.op)), given.type};
  return make_at_once(*send.comm, what, send.size, combiner,
                      [&](SharedCall& call) { shared::reduce(call, send.address, recv.address, send.size, root); });
}

inline std::optional<int> reduce_to_root_at_once(const ReduceArguments& given, int root, ist_comm handle) {
  if (root < 0) return {};
  return reduce_at_once(given, {"ist_reduce", Plan::Call::reduce, ChosenCall::reduce, root}, root, handle);
}
inline std::optional<int> allreduce_at_once(const ReduceArguments& given, ist_comm handle) {
  return reduce_at_once(given, {"ist_allreduce", Plan::Call::allreduce, ChosenCall::allreduce}, SharedLane::kEverybody,
                        handle);
}

// Equal parts, `count` elements of each rank.
struct BriefParts {
  const ist_buffer& send;
  const ist_buffer& recv;
  std::int64_t count;
  ist_type type;
};
struct BriefExchange {
  BriefBuffer send;
  BriefBuffer recv;  // without a communicator: anything else
  Division parts;
};
// sends_all: one part for each rank, not one for all.
inline BriefExchange exchanged(const BriefParts& given, bool sends_all, const BriefCall& what, ist_comm handle) {
  const Communicator* const comm = find_brief(handle);
  // So many that no product overflows.
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  if (comm == nullptr || given.count <= 0 || given.count > kMost) return {};
  const BriefBuffer recv = brief_buffer({given.recv, given.count * comm->size(), given.type}, handle);
  const BriefBuffer send =
      brief_buffer({given.send, sends_all ? given.count * comm->size() : given.count, given.type}, handle);
  if (recv.comm == nullptr || send.comm == nullptr || !is_shared(*comm, what, recv.size) || overlap(send, recv)) return {};
  return {send, recv, Division::even({static_cast<std::uint64_t>(given.count), size_of(given.type)}, comm->size())};
}

inline std::optional<int> allgather_at_once(const BriefParts& given, ist_comm handle) {
  const BriefCall what{"ist_allgather", Plan::Call::allgather, ChosenCall::allgather};
  const BriefExchange all = exchanged(given, false, what, handle);
  if (all.recv.comm == nullptr) return {};
  return make_at_once(*all.recv.comm, what, all.recv.size, {}, [&](SharedCall& call) {
    shared::allgather(call, all.send.address, all.recv.address, all.parts, true);
  });
}

inline std::optional<int> alltoall_at_once(const BriefParts& given, ist_comm handle) {
  const BriefCall what{"ist_alltoall", Plan::Call::alltoall, ChosenCall::alltoall};
  const BriefExchange all = exchanged(given, true, what, handle);
  if (all.recv.comm == nullptr) return {};
  return make_at_once(*all.recv.comm, what, all.recv.size, {},
                      [&](SharedCall& call) { shared::alltoall(call, all.send.address, all.recv.address, all.parts); });
}

}  // namespace ist
