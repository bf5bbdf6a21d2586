// What the collective calls have in common: what all ranks must agree on is checked before anything is sent; what only this
// rank has wrong is told to the others.
//
// Who calls this : api_collective.cpp, api_reduce.cpp, api_gather.cpp.
// Threads        : as of the calls: one at a time per communicator.
// Ownership      : none.
// Errors         : reported with the call's name.
#pragma once

#include <isthmus/collective.h>

#include "base/ranges.hpp"
#include "collective/collectives.hpp"
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

// One collective call under way: the plan, and the buffers of this rank.
class CollectiveCall {
 public:
  CollectiveCall(World& world, Plan& plan) : world_(world), plan_(plan) {}
  Plan& plan() { return plan_; }
  int size() const { return plan_.size(); }
  bool is(int root) const { return plan_.rank() == root; }
  // The memory of an argument. One that cannot be used fails the call here, and the others hear of it.
  Piece piece(const char* name, const ist_buffer& buffer, Bytes size);
  // Parts of a buffer by the user's counts and places; those given as null fail the call.
  Division layout(const char* name, const std::int64_t* counts, const std::int64_t* displs, ist_type type);
  // Parts one after the other.
  Division layout(const char* name, const std::int64_t* counts, ist_type type);
  void fail(const Status& why) { plan_.fail(why); }

 private:
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

// `check`, Status(const Communicator&): of what all ranks give alike; nothing is sent if it fails. `fill`,
// void(CollectiveCall&): this rank's part.
template <class Check, class Fill>
int run_collective(const Asked& asked, const Check& check, const Fill& fill) {
  const Range range(asked.call);
  const Entered in = enter(asked);
  if (in.comm == nullptr) return in.code;
  if (const Status alike = check(*in.comm); !alike.ok()) return refuse(asked, alike);
  Plan plan{*in.comm, asked.call, asked.waits};
  CollectiveCall call{*in.world, plan};
  fill(call);
  return leave(asked, in, plan);
}

bool is_in_place(const ist_buffer& buffer);
Result<Elements> elements_of(std::int64_t count, ist_type type);
Status check_root(int root, const Communicator& comm);

}  // namespace ist
