// Python's Request, ObjectRequest and Status.
//
// Who calls this : comm.cpp makes requests; module.cpp binds the classes.
// Threads        : the caller holds the GIL; two threads may wait for one request.
// Ownership      : a request dropped before it is complete leaves its operation, and so its buffer, to the session.
// Errors         : isthmus.Error from wait and test, every time they are asked.
#pragma once

#include <memory>
#include <vector>

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
  const char* carrier() const { return ist_carrier_name(status_.carrier); }
  std::string text() const;

 private:
  ist_status status_ = Outcome{}.status;
  std::int64_t item_size_ = 1;
};

// Base of both requests: knows whether, not what.
class Pending {
 public:
  Pending(std::shared_ptr<Session> session, std::shared_ptr<Operation> operation);
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  virtual ~Pending();

  // What wait() gives.
  virtual nb::object result() = 0;
  nb::object wait();
  bool test();
  void cancel() const;
  nb::object status() const;  // None before completion
  std::string text() const;

  const std::shared_ptr<Session>& session() const { return session_; }
  const std::shared_ptr<Operation>& operation() const { return operation_; }
  // The error the operation ended with, or an empty object.
  nb::object error() const;

 protected:
  void raise_if_failed() const;

 private:
  std::shared_ptr<Session> session_;
  std::shared_ptr<Operation> operation_;
};

class Request final : public Pending {
 public:
  using Pending::Pending;
  nb::object result() override;
};

// The results of all, in their order; every one is waited for, also when some fail.
nb::list waitall(const nb::iterable& requests);

// Index and result of the first that is complete.
nb::tuple waitany(const nb::iterable& requests);

void bind_requests(nb::module_& module);

}  // namespace isthmus_python
