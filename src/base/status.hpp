// Success, or a code with a text written by whoever saw the error first.
//
// Who calls this : every room below the faces.
// Threads        : values.
// Ownership      : a failed Status owns its text; success owns nothing and costs one null pointer.
// Errors         : this is how they travel; nothing in the library throws across a room.
#pragma once

#include <isthmus/isthmus.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ist {

using Code = ist_code;

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text) : error_(std::make_shared<const Error>(Error{code, std::move(text)})) {}

  bool ok() const { return error_ == nullptr; }
  Code code() const { return error_ ? error_->code : IST_OK; }
  const std::string& text() const;

 private:
  struct Error {
    Code code;
    std::string text;
  };
  std::shared_ptr<const Error> error_;
};

// "pidfd_open(4711): No such process (errno 3)"; call it directly after the failing call.
Status system_error(const std::string& what);

// A value, or why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}        // NOLINT(google-explicit-constructor)
  Result(Status error) : status_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace ist

// Returns a failed Status to the caller; evaluates its argument once.
#define IST_TRY(expression)                                                                       \
  do {                                                                                            \
    if (::ist::Status ist_try_status = (expression); !ist_try_status.ok()) return ist_try_status; \
  } while (0)
