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
  const BriefCall what{"ist_barrier", Plan::Call::barrier, ChosenCall::barrier};
  if (comm == nullptr || !is_shared(*comm, what, {})) return {};
  return make_at_once(*comm, what, {}, {}, [](SharedCall& call) { shared::barrier(call); });
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

inline Combiner combiner_of(const ReduceArguments& given) {
  return {static_cast<Reduction>(reinterpret_cast<std::uintptr_t>(given.op)), given.type};
}

// Vectors of one size. In place, and of a rank that wants no result, both are the same.
struct BriefReduction {
  BriefBuffer send;  // without a communicator: anything else
  BriefBuffer recv;
};
// `wants`, bool(const Communicator&): this rank gets a result.
template <class Wants>
BriefReduction reduced(const ReduceArguments& given, ist_comm handle, const Wants& wants) {
  const bool in_place = is_in_place(given.send);
  const BriefBuffer send = brief_buffer({in_place ? given.recv : given.send, given.count, given.type}, handle);
  if (send.comm == nullptr || !is_ordinary(given.op, given.type)) return {};
  if (!wants(*send.comm)) return in_place ? BriefReduction{} : BriefReduction{send, send};
  if (in_place) return {send, send};
  const BriefBuffer recv = brief_buffer({given.recv, given.count, given.type}, handle);
  if (recv.comm == nullptr || overlap(send, recv)) return {};
  return {send, recv};
}

// root: a rank, or SharedLane::kEverybody.
inline std::optional<int> reduce_at_once(const ReduceArguments& given, const BriefCall& what, int root, ist_comm handle) {
  const auto [send, recv] = reduced(
      given, handle, [root](const Communicator& comm) { return root == SharedLane::kEverybody || comm.rank() == root; });
  if (send.comm == nullptr || root >= send.comm->size() || !is_shared(*send.comm, what, send.size)) return {};
  return make_at_once(*send.comm, what, send.size, combiner_of(given), [&, from = send, to = recv](SharedCall& call) {
    shared::reduce(call, from.address, to.address, from.size, root);
  });
}

inline std::optional<int> reduce_to_root_at_once(const ReduceArguments& given, int root, ist_comm handle) {
  if (root < 0) return {};
  return reduce_at_once(given, {"ist_reduce", Plan::Call::reduce, ChosenCall::reduce, root}, root, handle);
}
inline std::optional<int> allreduce_at_once(const ReduceArguments& given, ist_comm handle) {
  return reduce_at_once(given, {"ist_allreduce", Plan::Call::allreduce, ChosenCall::allreduce}, SharedLane::kEverybody,
                        handle);
}

inline std::optional<int> scan_at_once(const ReduceArguments& given, bool exclusive, ist_comm handle) {
  const auto [send, recv] =
      reduced(given, handle, [exclusive](const Communicator& comm) { return !exclusive || comm.rank() > 0; });
  const BriefCall what{exclusive ? "ist_exscan" : "ist_scan", Plan::Call::scan, ChosenCall::scan, exclusive ? 1 : 0};
  if (send.comm == nullptr || !is_shared(*send.comm, what, send.size)) return {};
  return make_at_once(*send.comm, what, send.size, combiner_of(given), [&, from = send, to = recv](SharedCall& call) {
    shared::scan(call, from.address, to.address, from.size, exclusive);
  });
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
// So many that no product overflows.
inline bool is_brief_part(std::int64_t count) { return count > 0 && count <= std::int64_t{1} << 20; }
// Do send and receive buffer have one part for each rank, or one for all?
enum class Has : std::uint8_t { one, all };
inline BriefExchange exchanged(const BriefParts& given, Has sends, Has receives, ist_comm handle) {
  const Communicator* const comm = find_brief(handle);
  if (comm == nullptr || !is_brief_part(given.count)) return {};
  const auto count = [&](Has has) { return has == Has::all ? given.count * comm->size() : given.count; };
  const BriefBuffer recv = brief_buffer({given.recv, count(receives), given.type}, handle);
  const BriefBuffer send = brief_buffer({given.send, count(sends), given.type}, handle);
  if (recv.comm == nullptr || send.comm == nullptr || overlap(send, recv)) return {};
  return {send, recv, Division::even({static_cast<std::uint64_t>(given.count), size_of(given.type)}, comm->size())};
}

inline std::optional<int> allgather_at_once(const BriefParts& given, ist_comm handle) {
  const BriefCall what{"ist_allgather", Plan::Call::allgather, ChosenCall::allgather};
  const BriefExchange all = exchanged(given, Has::one, Has::all, handle);
  if (all.recv.comm == nullptr || !is_shared(*all.recv.comm, what, all.recv.size)) return {};
  return make_at_once(*all.recv.comm, what, all.recv.size, {}, [&](SharedCall& call) {
    shared::allgather(call, all.send.address, all.recv.address, all.parts, true);
  });
}

inline std::optional<int> alltoall_at_once(const BriefParts& given, ist_comm handle) {
  const BriefCall what{"ist_alltoall", Plan::Call::alltoall, ChosenCall::alltoall};
  const BriefExchange all = exchanged(given, Has::all, Has::all, handle);
  if (all.recv.comm == nullptr || !is_shared(*all.recv.comm, what, all.recv.size)) return {};
  return make_at_once(*all.recv.comm, what, all.recv.size, {},
                      [&](SharedCall& call) { shared::alltoall(call, all.send.address, all.recv.address, all.parts); });
}

// given.count: of each part. In place the result would lie on what is still to be combined: that goes the long way.
inline std::optional<int> reduce_scatter_at_once(const char* name, const ReduceArguments& given, ist_comm handle) {
  const BriefCall what{name, Plan::Call::reduce_scatter, ChosenCall::reduce_scatter};
  if (!is_ordinary(given.op, given.type)) return {};
  const BriefExchange all = exchanged({given.send, given.recv, given.count, given.type}, Has::all, Has::one, handle);
  if (all.recv.comm == nullptr || !is_shared(*all.recv.comm, what, all.send.size)) return {};
  return make_at_once(*all.recv.comm, what, all.send.size, combiner_of(given), [&](SharedCall& call) {
    shared::reduce_scatter(call, all.send.address, all.recv.address, all.parts);
  });
}
// The same of counts that are alike.
inline std::optional<int> reduce_scatter_at_once(const ReduceArguments& given, const std::int64_t* counts, ist_comm handle) {
  const Communicator* const comm = find_brief(handle);
  if (comm == nullptr) return {};
  for (int rank = 1; rank < comm->size(); ++rank)
    if (counts[rank] != counts[0]) return {};
  return reduce_scatter_at_once("ist_reduce_scatter", {given.send, given.recv, counts[0], given.type, given.op}, handle);
}

// Parts at a root: `own` everywhere, `whole` there. Equal ones.
struct BriefRooted {
  const ist_buffer& own;
  std::int64_t own_count;
  const ist_buffer& whole;
  std::int64_t whole_count;
  ist_type type;
  int root;
};
struct RootedBuffers {
  const Communicator* comm = nullptr;  // null: anything else
  std::byte* own = nullptr;            // null: in its place
  std::byte* whole = nullptr;
  Bytes each;
  Division parts;
};
inline RootedBuffers rooted(const BriefRooted& given, ist_comm handle) {
  const Communicator* const comm = find_brief(handle);
  if (comm == nullptr || given.root < 0 || given.root >= comm->size()) return {};
  const bool is_root = comm->rank() == given.root;
  const std::int64_t count = is_root ? given.whole_count : given.own_count;
  if (!is_brief_part(count)) return {};
  const bool in_place = is_root && is_in_place(given.own);
  RootedBuffers found;
  found.comm = comm;
  found.parts = Division::even({static_cast<std::uint64_t>(count), size_of(given.type)}, comm->size());
  found.each = found.parts.elements(0).bytes();
  const BriefBuffer own = in_place ? BriefBuffer{} : brief_buffer({given.own, given.own_count, given.type}, handle);
  if (!in_place && (own.comm == nullptr || own.size != found.each)) return {};
  found.own = own.address;
  if (!is_root) return found;
  const BriefBuffer whole = brief_buffer({given.whole, count * comm->size(), given.type}, handle);
  if (whole.comm == nullptr || (!in_place && overlap(own, whole))) return {};
  found.whole = whole.address;
  return found;
}

inline std::optional<int> gather_at_once(const BriefRooted& given, ist_comm handle) {
  const RootedBuffers all = rooted(given, handle);
  const BriefCall what{"ist_gather", Plan::Call::shared_gather, ChosenCall::gather, given.root};
  if (all.comm == nullptr || !is_shared(*all.comm, what, all.parts.total())) return {};
  return make_at_once(*all.comm, what, all.each, {},
                      [&](SharedCall& call) { shared::gather(call, all.own, all.whole, all.parts, given.root); });
}

inline std::optional<int> scatter_at_once(const BriefRooted& given, ist_comm handle) {
  const RootedBuffers all = rooted(given, handle);
  const BriefCall what{"ist_scatter", Plan::Call::shared_scatter, ChosenCall::scatter, given.root};
  if (all.comm == nullptr || !is_shared(*all.comm, what, all.parts.total())) return {};
  return make_at_once(*all.comm, what, all.each, {},
                      [&](SharedCall& call) { shared::scatter(call, all.whole, all.own, all.parts, given.root); });
}

}  // namespace ist
