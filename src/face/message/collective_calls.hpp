// What the collective calls have in common: what all ranks must agree on is checked before anything is sent; what only this
// rank has wrong is told to the others.
//
// Who calls this : api_collective.cpp, api_reduce.cpp, api_gather.cpp.
// Threads        : as of the calls: one at a time per communicator.
// Ownership      : none.
// Errors         : reported with the call's name.
#pragma once

#include <isthmus/collective.h>

#include <functional>

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
  Layout layout(const char* name, const std::int64_t* counts, const std::int64_t* displs, ist_type type);
  // Parts one after the other.
  Layout layout(const char* name, const std::int64_t* counts, ist_type type);
  // The bytes that all parts reach.
  static Bytes span(const Layout& layout);
  void fail(const Status& why) { plan_.schedule().fail(why); }

 private:
  World& world_;
  Plan& plan_;
};

// `check`: of what all ranks give alike; nothing is sent if it fails. `fill`: this rank's part.
int run_collective(const Asked& asked, const std::function<Status(const Communicator&)>& check,
                   const std::function<void(CollectiveCall&)>& fill);

bool is_in_place(const ist_buffer& buffer);
Result<Elements> elements_of(std::int64_t count, ist_type type);
Status check_root(int root, const Communicator& comm);

}  // namespace ist
