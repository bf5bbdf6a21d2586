// Python's Request, ObjectRequest and Status, and the calls on several requests (request_set.cpp).
//
// Who calls this : comm.cpp makes requests; module.cpp binds the classes.
// Threads        : the caller holds the GIL; two threads may wait for one request.
// Ownership      : a request dropped before it is complete leaves its operation, and so its buffer, to the session; a receive of an
//                  object is cancelled.
// Errors         : isthmus.Error from wait and test, every time they are asked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bound.hpp"
#include "session.hpp"

namespace isthmus_python {

class StatusView {
 public:
  StatusView() = default;
  explicit StatusView(const Outcome& outcome) : status_(outcome.status), item_size_(outcome.item_size) {}
  int source() const { return status_.source; }
  int tag() const { return status_.tag; }
  int code() const { return status_.code; }
  bool cancelled() const { return status_.code == IST_CANCELLED; }
  std::int64_t bytes() const { return status_.bytes; }
  std::int64_t count() const { return status_.bytes / item_size_; }
  // Whole elements of a type such as "f8"; nothing if the bytes are no whole number of them.
  std::optional<std::int64_t> count_of(const std::string& typestr) const;
  const char* carrier() const { return ist_carrier_name(status_.carrier); }
  std::string text() const;

 private:
  ist_status status_ = Outcome{}.status;
  std::int64_t item_size_ = 1;
};

// Base of all requests: knows whether, not what.
class Pending {
 public:
  Pending(std::shared_ptr<Session> session, std::shared_ptr<Operation> operation);
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  virtual ~Pending();

  // What wait() gives.
  virtual nb::object result() = 0;
  nb::object wait();
  void tell_of_wait() const;
  bool test();
  void cancel() const;
  // Lets go: the operation goes on with its buffer, and the request can be used no more.
  void free();
  nb::object status() const;  // None before completion
  std::string text() const;
  // False where several are looked at and this one has nothing under way.
  virtual bool is_there() const { return true; }

  const std::shared_ptr<Session>& session() const { return session_; }
  // Raises if the request was freed.
  const std::shared_ptr<Operation>& operation() const;
  // The error the operation ended with, or an empty object.
  nb::object error() const;
  // Once complete: raises its error, or gives its result.
  nb::object collect();

 protected:
  // The user has been told of the completion.
  virtual void told() {}
  // The request was freed: lets go of what it holds besides the operation.
  virtual void forget() {}

 private:
  friend struct RequestSet;
  void let_go();
  std::shared_ptr<Session> session_;
  std::shared_ptr<Operation> operation_;
};

class Request final : public Pending {
 public:
  using Pending::Pending;
  nb::object result() override;
};

void bind_requests(nb::module_& module);
void bind_request_sets(nb::module_& module);

}  // namespace isthmus_python
