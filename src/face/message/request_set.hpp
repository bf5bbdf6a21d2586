// Requests as waits and tests see them: nothing, an operation, or the last start of a persistent one.
//
// Who calls this : api_requests.cpp.
// Threads        : a request is waited for by one thread at a time; takes the engines' locks itself.
// Ownership      : looks at the caller's array, whose complete requests it empties.
// Errors         : of a handle: returned by of(). Of an operation: in its outcome.
#pragma once

#include <vector>

#include "face/message/handles.hpp"

namespace ist {

struct Awaited {
  World* world = nullptr;  // null: a null or inactive request
  OperationId request;
  OperationId operation;  // null: complete since it was started
  bool persistent = false;
};
Result<Awaited> awaited(ist_request request);
// Empties the handle, or makes the persistent request inactive.
void settle(const Awaited& done, ist_request* request);

class RequestSet {
 public:
  static Result<RequestSet> of(int count, ist_request* requests);
  // True if no request is there.
  bool nothing() const { return present_ == 0; }
  // Moves the worlds of all requests on once, and gives the positions of those that are complete then; at most `most`.
  std::vector<int> look(int most) const { return look_at_all(most).complete; }
  bool look_for_all() const { return static_cast<int>(look(present_).size()) == present_; }
  // Waits until at least one is complete, unless there is none at all.
  std::vector<int> wait_for_some(int most) const { return wait_for(1, most); }
  void wait_for_all() const { wait_for(present_, present_); }
  // The program may look at some of them, or at none.
  void tell_of_test() const;
  // The outcome of a complete one, whose handle is then settled.
  Outcome take(int position);
  const Awaited& at(int position) const { return requests_[static_cast<std::size_t>(position)]; }
  int size() const { return static_cast<int>(requests_.size()); }

 private:
  struct Look {
    std::vector<int> complete;
    bool moved = false;
    bool must_poll = false;
  };
  Look look_at_all(int most) const;
  std::vector<int> wait_for(int least, int most) const;
  bool is_complete(const Awaited& one) const;
  ist_request* handles_ = nullptr;
  std::vector<Awaited> requests_;
  std::vector<World*> worlds_;
  int present_ = 0;
};

}  // namespace ist
