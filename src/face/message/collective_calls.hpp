// What the collective calls have in common: what all ranks must agree on is checked before anything is sent; what only this
// rank has wrong is told to the others.
//
// Who calls this : api_collective.cpp, api_reduce.cpp, api_gather.cpp.
// Threads        : as of the calls: one at a time per communicator.
// Ownership      : none.
// Errors         : reported with the call's name.
#pragma once

#include <isthmus/collective.h>

#include <algorithm>
#include <functional>

#include "base/ranges.hpp"
#include "collective/collectives.hpp"
#include "collective/parts_alike.hpp"
#include "face/message/calls.hpp"

namespace ist {

// A call as the user made it; without a request it waits.
struct Asked {
  const char* call;
  ist_comm comm;
  bool waits = true;
  ist_request* request = nullptr;
};
inline Asked blocking(const char* call, ist_comm comm) { return {call, comm, true, nullptr}; }
inline Asked nonblocking(const char* call, ist_comm comm, ist_request* request) { return {call, comm, false, request}; }

// Where it begins: an address, or of an OpenCL buffer the offset.
inline std::uint64_t begin_of(const Piece& piece) {
  return piece.offset.value + (piece.kind == KindId::opencl ? 0 : piece.object);
}
// So many bytes lie in both.
inline Bytes shared_bytes(const Piece& one, const Piece& other) {
  if (one.kind != other.kind || (one.kind == KindId::opencl && one.object != other.object)) return {};
  const std::uint64_t begin = std::max(begin_of(one), begin_of(other));
  const std::uint64_t end = std::min(begin_of(one) + one.size.value, begin_of(other) + other.size.value);
  return Bytes{end > begin ? end - begin : 0};
}

// Why a call that is given both as send and receive buffer is refused.
Status overlapping(const Piece& send, const Piece& recv);

// One collective call under way: the plan, and the buffers of this rank.
class CollectiveCall {
 public:
  CollectiveCall(World& world, Plan& plan) : world_(world), plan_(plan) {}
  Plan& plan() { return plan_; }
  World& world() { return world_; }
  int size() const { return plan_.size(); }
  bool is(int root) const { return plan_.rank() == root; }
  // The memory of an argument. One that cannot be used fails the call here, and the others hear of it.
  Piece piece(const char* name, const ist_buffer& buffer, Bytes size);
  // Parts of a buffer by the user's counts and places; those given as null fail the call.
  Division layout(const char* name, const std::int64_t* counts, const std::int64_t* displs, ist_type type);
  // Parts one after the other.
  Division layout(const char* name, const std::int64_t* counts, ist_type type);
  void fail(const Status& why) { plan_.fail(why); }
  // What is sent and what comes must be different memory, unless the call is in place; parts of it may lie between each other.
  void keep_apart(const Piece& send, const Piece& recv) {
    if (shared_bytes(send, recv) > Bytes{}) [[unlikely]]
      fail_for_overlap(send, recv);
  }
  void keep_apart(const Piece& send, const Division& sent, const Piece& recv, const Division& received);

 private:
  void fail_for_overlap(const Piece& send, const Piece& recv) { fail(overlapping(send, recv)); }
  World& world_;
  Plan& plan_;
};

// The communicator's world, or none and the code that the call returns.
struct Entered {
  World* world = nullptr;
  const Communicator* comm = nullptr;
  int code = IST_OK;
  Trace::Clock::time_point begun = {};  // where there is a trace
};
Entered enter(const Asked& asked);
int leave(const Asked& asked, const Entered& in, Plan& plan);
int refuse(const Asked& asked, const Status& why);

// What all ranks give alike, to be compared.
GivenAlike given_alike(ist_op op, ist_type type, std::int64_t count, int root = 0);
// All that is compared of a call.
struct GivenHere {
  GivenHere(const GivenAlike& given) : all(given) {}  // NOLINT(google-explicit-constructor): most calls have nothing more
  GivenHere(const GivenAlike& given, GivenParts given_parts) : all(given), parts(std::move(given_parts)) {}
  GivenAlike all;
  GivenParts parts;
};
// The call where the setting check is 1: ranks that cannot take part tell of theirs all the same.
int run_compared(const Asked& asked, const Entered& in, GivenHere given, const Status& alike,
                 const std::function<void(CollectiveCall&)>& fill);

// `given`, GivenHere(const Communicator&): what is compared where the setting check is 1. `check`, Status(const Communicator&): of what
// all ranks give alike; nothing is sent if it fails. `fill`, void(CollectiveCall&): this rank's part.
template <class Given, class Check, class Fill>
int run_collective(const Asked& asked, const Given& given, const Check& check, const Fill& fill) {
  const Range range(asked.call);
  const Entered in = enter(asked);
  if (in.comm == nullptr) return in.code;
  const Status alike = check(*in.comm);
  if (in.world->settings().check && in.comm->size() > 1) [[unlikely]]
    return run_compared(asked, in, given(*in.comm), alike, fill);
  if (!alike.ok()) return refuse(asked, alike);
  Plan plan{*in.comm, asked.call, asked.waits};
  CollectiveCall call{*in.world, plan};
  fill(call);
  return leave(asked, in, plan);
}

inline bool is_in_place(const ist_buffer& buffer) { return buffer.kind == ist_in_place().kind; }
Result<Elements> elements_of(std::int64_t count, ist_type type);
Status check_root(int root, const Communicator& comm);

}  // namespace ist
