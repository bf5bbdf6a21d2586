// Isthmus, C++ interface: operations under way, one by one and in sets.
//
// Who calls this : isthmus.hpp includes it.
// Threads        : as in C: every call from any thread; one request is used by one thread at a time.
// Ownership      : Request and PersistentRequest own and move; each holds its world.
// Errors         : Error, with the code and the library's text. Destructors never throw.
#ifndef ISTHMUS_REQUEST_HPP
#define ISTHMUS_REQUEST_HPP

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "isthmus/buffer.hpp"

namespace isthmus {

class Collectives;
class Comm;
class Layout;
class Message;
namespace detail {
template <class R>
class Handles;
inline constexpr ist_status no_status{proc_null, any_tag, IST_OK, IST_CARRIER_NONE, 0};
// Is an object being destroyed because an exception passes that was thrown since it was made?
class Unwinding {
 public:
  bool passes() const noexcept { return std::uncaught_exceptions() > before_; }

 private:
  int before_ = std::uncaught_exceptions();
};
}  // namespace detail

// What a call on an OpenCL queue waits for, and where its event goes: so many cl_events, and null or the place of one.
struct QueueEvents {
  std::uint32_t waits = 0;
  const void* wait_list = nullptr;
  void* event = nullptr;
};

// An operation that was started.
//
// The destructor waits for it and drops an error: the buffer the operation was given must not die under the library, and
// a destructor must not throw. Call wait() to learn how it went. Where nobody answers, the destructor stays until the peer
// sends, leaves or dies, as wait() does. But not where an exception passes, which must come to be seen: there it cancels first, so
// that it waits neither for a message that nobody has sent nor for a receive of the peer's. A collective call is given up as ist_cancel()
// says: its buffers may die, and the other ranks are told.
class [[nodiscard]] Request {
 public:
  Request() = default;
  Request(Request&& other) noexcept
      : world_(std::move(other.world_)),
        operation_(std::move(other.operation_)),
        handle_(std::exchange(other.handle_, IST_REQUEST_NULL)) {}
  Request& operator=(Request&& other) noexcept {
    Request taken(std::move(other));
    std::swap(world_, taken.world_);
    std::swap(operation_, taken.operation_);
    std::swap(handle_, taken.handle_);
    return *this;
  }
  ~Request() {
    if (!pending()) return;
    if (unwinding_.passes()) ist_cancel(handle_);
    ist_wait(&handle_, IST_STATUS_IGNORE);
  }
  // Started and not yet seen complete. An empty request is complete.
  bool pending() const noexcept { return handle_ != IST_REQUEST_NULL; }
  Status wait() {
    ist_status status = detail::no_status;
    finish(ist_wait(&handle_, &status));
    return Status(status);
  }
  // Nothing while it is under way.
  std::optional<Status> test() {
    ist_status status = detail::no_status;
    int completed = 0;
    const int code = ist_test(&handle_, &completed, &status);
    if (code == IST_OK && completed == 0) return std::nullopt;
    finish(code);
    return Status(status);
  }
  // Gives up a receive that no message has matched, a send that is not under way, or this rank's part in a collective call: it must still
  // be waited for, and its status says so. What ist_cancel() says of sends and calls holds here.
  void cancel() { detail::check(ist_cancel(handle_)); }
  // Lets go: the operation completes without anybody being told. Its buffer, and the function of a
  // reduction, must live until it has.
  void release() {
    if (pending()) detail::check(ist_request_free(&handle_));
    let_go();
  }

 private:
  friend class Collectives;
  friend class Comm;
  friend class Layout;
  template <class>
  friend class LayoutCollectives;
  friend class Message;
  template <class R>
  friend class detail::Handles;

  // The library empties the handle of what has completed, also of what has failed.
  void finish(int code) {
    if (!pending()) let_go();
    detail::check(code);
  }
  void came_back(ist_request handle) noexcept {
    handle_ = handle;
    if (!pending()) let_go();
  }
  void let_go() noexcept {
    world_.reset();
    operation_.reset();
  }

  detail::SharedWorld world_;
  std::shared_ptr<const void> operation_;  // a reduction's, of the user's
  ist_request handle_ = IST_REQUEST_NULL;
  detail::Unwinding unwinding_;
};

// A send or receive that is started as often as wanted. The destructor waits for the last start, or gives it up, as that of Request does.
class PersistentRequest {
 public:
  PersistentRequest() = default;
  PersistentRequest(PersistentRequest&& other) noexcept
      : world_(std::move(other.world_)), handle_(std::exchange(other.handle_, IST_REQUEST_NULL)) {}
  PersistentRequest& operator=(PersistentRequest&& other) noexcept {
    PersistentRequest taken(std::move(other));
    std::swap(world_, taken.world_);
    std::swap(handle_, taken.handle_);
    return *this;
  }
  ~PersistentRequest() {
    if (handle_ == IST_REQUEST_NULL) return;
    // To cancel what is inactive would be an error, whose text took the place of the one that the exception may have left.
    int over = 1;
    if (unwinding_.passes() && ist_test(&handle_, &over, IST_STATUS_IGNORE) == IST_OK && over == 0) ist_cancel(handle_);
    ist_wait(&handle_, IST_STATUS_IGNORE);
    ist_request_free(&handle_);
  }
  void start() { detail::check(ist_start(&handle_)); }
  Status wait() {
    ist_status status{};
    detail::check(ist_wait(&handle_, &status));
    return Status(status);
  }
  std::optional<Status> test() {
    ist_status status{};
    int completed = 0;
    detail::check(ist_test(&handle_, &completed, &status));
    if (completed == 0) return std::nullopt;
    return Status(status);
  }
  // Gives up the last start, as Request::cancel() does; an error where none is under way.
  void cancel() { detail::check(ist_cancel(handle_)); }

 private:
  friend class Comm;
  friend class Layout;
  template <class R>
  friend class detail::Handles;
  void came_back(ist_request handle) noexcept { handle_ = handle; }

  detail::SharedWorld world_;
  ist_request handle_ = IST_REQUEST_NULL;
  detail::Unwinding unwinding_;
};

namespace detail {

// What sets are made of: Requests or PersistentRequests side by side, in a vector, an array or a span.
template <class R>
concept Requests = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    (std::is_same_v<std::ranges::range_reference_t<R>, Request&> ||
     std::is_same_v<std::ranges::range_reference_t<R>, PersistentRequest&>);

// The handles of several requests for the length of one call, and back.
template <class R>
class Handles {
 public:
  explicit Handles(std::span<R> requests) : requests_(requests), statuses_(requests.size(), no_status) {
    handles_.reserve(requests.size());
    for (const R& request : requests) handles_.push_back(request.handle_);
  }
  int count() const { return static_cast<int>(handles_.size()); }
  ist_request* handles() { return handles_.data(); }
  ist_status* statuses() { return statuses_.data(); }
  // Puts the handles back; throws what the call or the first failing request said.
  void finish(int code) {
    const std::string text = code == IST_OK ? std::string{} : ist_error_text();
    for (std::size_t i = 0; i < requests_.size(); ++i) requests_[i].came_back(handles_[i]);
    if (code == IST_ERR_IN_STATUS)
      for (const ist_status& status : statuses_)
        if (status.code != IST_OK && status.code != IST_CANCELLED) throw Error(status.code, text);
    if (code != IST_OK) throw Error(code, text);
  }
  std::vector<Status> all() const { return {statuses_.begin(), statuses_.end()}; }

 private:
  std::span<R> requests_;
  std::vector<ist_request> handles_;
  std::vector<ist_status> statuses_;
};

template <Requests R>
Handles<std::ranges::range_value_t<R>> handles_of(R& requests) {
  return Handles(std::span(std::ranges::data(requests), std::ranges::size(requests)));
}

}  // namespace detail

// Starts all; where one cannot be started, those before it are, and those behind it are not.
inline void start_all(std::span<PersistentRequest> requests) {
  detail::Handles handles(requests);
  handles.finish(ist_startall(handles.count(), handles.handles()));
}

// Waits for all, also when some fail; then throws the first failure. Statuses are in the order of the requests. Persistent ones that
// are not started count, here and below, as complete or as not there.
template <detail::Requests R>
std::vector<Status> wait_all(R&& requests) {
  auto handles = detail::handles_of(requests);
  handles.finish(ist_waitall(handles.count(), handles.handles(), handles.statuses()));
  return handles.all();
}

// A request that has completed: which, and how.
struct Completed {
  std::size_t index;
  Status status;
};

// Nothing if no request is pending.
template <detail::Requests R>
std::optional<Completed> wait_any(R&& requests) {
  auto handles = detail::handles_of(requests);
  int index = undefined;
  handles.finish(ist_waitany(handles.count(), handles.handles(), &index, handles.statuses()));
  if (index == undefined) return std::nullopt;
  return Completed{static_cast<std::size_t>(index), handles.all().front()};
}

// Nothing if none is complete now.
template <detail::Requests R>
std::optional<Completed> test_any(R&& requests) {
  auto handles = detail::handles_of(requests);
  int index = undefined;
  int completed = 0;
  handles.finish(ist_testany(handles.count(), handles.handles(), &index, &completed, handles.statuses()));
  if (index == undefined) return std::nullopt;
  return Completed{static_cast<std::size_t>(index), handles.all().front()};
}

namespace detail {

template <Requests R, class Call>
std::vector<Completed> some(R& requests, const Call& call) {
  auto handles = handles_of(requests);
  std::vector<int> indices(std::ranges::size(requests));
  int completed = 0;
  handles.finish(call(handles.count(), handles.handles(), &completed, indices.data(), handles.statuses()));
  std::vector<Completed> found;
  const auto statuses = handles.all();
  for (int i = 0; i < completed; ++i)
    found.push_back({static_cast<std::size_t>(indices[static_cast<std::size_t>(i)]), statuses[static_cast<std::size_t>(i)]});
  return found;
}

}  // namespace detail

// At least one, unless none is pending.
template <detail::Requests R>
std::vector<Completed> wait_some(R&& requests) {
  return detail::some(requests, ist_waitsome);
}
// Those that are complete now.
template <detail::Requests R>
std::vector<Completed> test_some(R&& requests) {
  return detail::some(requests, ist_testsome);
}

// Nothing, and no request changed, unless all are complete.
template <detail::Requests R>
std::optional<std::vector<Status>> test_all(R&& requests) {
  auto handles = detail::handles_of(requests);
  int completed = 0;
  handles.finish(ist_testall(handles.count(), handles.handles(), &completed, handles.statuses()));
  if (completed == 0) return std::nullopt;
  return handles.all();
}

}  // namespace isthmus
#endif
