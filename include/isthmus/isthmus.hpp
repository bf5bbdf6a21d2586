// Isthmus, C++ interface: a header-only face of isthmus.h with owners, views, spans and exceptions.
//
// Who calls this : applications in C++20. The exported symbols are those of the C interface alone.
// Threads        : as in C: every call from any thread; one Request is used by one thread at a time.
// Ownership      : World, Memory and Request own and move; Comm and Buffer are copied freely. Whatever came from a World
//                  holds it, so the world is left when the last of them is gone, in whatever order they are destroyed.
// Errors         : Error, with the code and the library's text. Destructors never throw.
#ifndef ISTHMUS_ISTHMUS_HPP
#define ISTHMUS_ISTHMUS_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "isthmus/isthmus.h"

namespace isthmus {

using Code = ist_code;
using Type = ist_type;

enum class Kind : std::uint32_t {
  automatic = IST_KIND_AUTO,
  host = IST_KIND_HOST,
  cuda = IST_KIND_CUDA,
  opencl = IST_KIND_OPENCL
};

inline constexpr int any_source = IST_ANY_SOURCE;
inline constexpr int any_tag = IST_ANY_TAG;
inline constexpr int proc_null = IST_PROC_NULL;

class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& text) : std::runtime_error(text), code_(static_cast<Code>(code)) {}
  Code code() const noexcept { return code_; }
  const char* name() const noexcept { return ist_code_name(code_); }

 private:
  Code code_;
};

namespace detail {

inline void check(int code) {
  if (code != IST_OK) throw Error(code, ist_error_text());
}

class WorldOwner {
 public:
  WorldOwner() { check(ist_world_create(&world_)); }
  WorldOwner(const WorldOwner&) = delete;
  WorldOwner& operator=(const WorldOwner&) = delete;
  ~WorldOwner() { ist_world_destroy(&world_); }
  ist_world get() const noexcept { return world_; }

 private:
  ist_world world_ = IST_WORLD_NULL;
};
using SharedWorld = std::shared_ptr<const WorldOwner>;

template <class T>
constexpr Type type_for() noexcept {
  if constexpr (std::is_same_v<T, char>) return IST_CHAR;
  if constexpr (std::is_same_v<T, float>) return IST_FLOAT;
  if constexpr (std::is_same_v<T, double>) return IST_DOUBLE;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? IST_INT8 : IST_UINT8;
    if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? IST_INT16 : IST_UINT16;
    if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? IST_INT32 : IST_UINT32;
    if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? IST_INT64 : IST_UINT64;
  }
  return IST_BYTE;
}

}  // namespace detail

// What can travel: objects whose bytes are their value. An address means nothing to another process.
template <class T>
concept Element =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<std::remove_all_extents_t<T>> && !std::is_member_pointer_v<T> &&
    !std::is_null_pointer_v<T> && !std::is_volatile_v<T> && !std::ranges::view<std::remove_cv_t<T>>;

// The C type of T; a struct, an enum or a bool travels as IST_BYTE, sizeof(T) of them for each.
template <Element T>
inline constexpr Type type_of = detail::type_for<std::remove_cv_t<T>>();

// A contiguous range in host memory to send from: std::span, std::vector, std::array, a C array.
template <class R>
concept Sendable = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Element<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
// One to receive into: its elements can be written.
template <class R>
concept Receivable = Sendable<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
// One that is still there when a non-blocking call has returned: an lvalue or a view, not a temporary container.
template <class R>
concept Lasting = std::ranges::borrowed_range<R>;

// What a completed operation has to say.
class Status {
 public:
  Status() = default;
  explicit Status(const ist_status& status) : status_(status) {}
  int source() const noexcept { return status_.source; }
  int tag() const noexcept { return status_.tag; }
  Code code() const noexcept { return static_cast<Code>(status_.code); }
  std::int64_t bytes() const noexcept { return status_.bytes; }
  const char* carrier() const noexcept { return ist_carrier_name(status_.carrier); }
  // Whole elements received.
  template <Element T>
  std::int64_t count() const noexcept {
    return status_.bytes / static_cast<std::int64_t>(sizeof(T));
  }

 private:
  ist_status status_{proc_null, any_tag, IST_OK, IST_CARRIER_NONE, 0};
};

// A place in some memory; a view, which never frees. The handle does not know whether its memory may be written.
class Buffer {
 public:
  Buffer(const ist_buffer& buffer) : buffer_(buffer) {}  // NOLINT(google-explicit-constructor): the same thing in C
  static Buffer host(const void* address) { return ist_host(address); }
  static Buffer cuda(const void* address, void* stream = nullptr) { return ist_cuda(address, stream); }
  static Buffer opencl(void* mem, std::size_t offset, void* queue) { return ist_opencl(mem, offset, queue); }
  static Buffer automatic(const void* address) { return ist_auto(address); }
  Buffer at(std::size_t bytes) const { return ist_buffer_at(buffer_, bytes); }
  Kind kind() const noexcept { return static_cast<Kind>(buffer_.kind); }
  const ist_buffer& c() const noexcept { return buffer_; }

 private:
  ist_buffer buffer_;
};

namespace detail {

// A buffer, a count and a type, which every call takes.
struct Region {
  ist_buffer buffer;
  std::int64_t count;
  Type type;
};

template <class R>
Region region_of(R& range) {
  using T = std::remove_cvref_t<std::ranges::range_reference_t<R>>;
  const auto bytes = std::ranges::size(range) * sizeof(T);
  constexpr bool whole = type_of<T> != IST_BYTE;
  return {ist_host(std::ranges::data(range)), static_cast<std::int64_t>(whole ? std::ranges::size(range) : bytes),
          type_of<T>};
}

}  // namespace detail

class Comm;

// An operation that was started.
//
// The destructor waits for it and drops an error: the buffer the operation was given must not die under the library, and
// a destructor must not throw. Call wait() to learn how it went. Where nobody answers, the destructor stays until the peer
// sends, leaves or dies, as wait() does.
class [[nodiscard]] Request {
 public:
  Request() = default;
  Request(Request&& other) noexcept
      : world_(std::move(other.world_)), handle_(std::exchange(other.handle_, IST_REQUEST_NULL)) {}
  Request& operator=(Request&& other) noexcept {
    Request taken(std::move(other));
    std::swap(world_, taken.world_);
    std::swap(handle_, taken.handle_);
    return *this;
  }
  ~Request() {
    if (pending()) ist_wait(&handle_, IST_STATUS_IGNORE);
  }
  // Started and not yet seen complete. An empty request is complete.
  bool pending() const noexcept { return handle_ != IST_REQUEST_NULL; }
  Status wait() {
    ist_status status = no_status;
    finish(ist_wait(&handle_, &status));
    return Status(status);
  }
  // Nothing while it is under way.
  std::optional<Status> test() {
    ist_status status = no_status;
    int completed = 0;
    const int code = ist_test(&handle_, &completed, &status);
    if (code == IST_OK && completed == 0) return std::nullopt;
    finish(code);
    return Status(status);
  }

 private:
  friend class Comm;
  friend std::vector<Status> wait_all(std::span<Request> requests);
  static constexpr ist_status no_status{proc_null, any_tag, IST_OK, IST_CARRIER_NONE, 0};

  // The library empties the handle of what has completed, also of what has failed.
  void finish(int code) {
    if (!pending()) world_.reset();
    detail::check(code);
  }

  detail::SharedWorld world_;
  ist_request handle_ = IST_REQUEST_NULL;
};

// The ranks of a world and the messages between them; a view that keeps its world alive.
//
// `data` is anything contiguous in host memory; a Buffer, with a count and a type, is memory of any kind.
class Comm {
 public:
  int rank() const { return ask(ist_comm_rank); }
  int size() const { return ask(ist_comm_size); }
  // Among the ranks on this host: what one needs to choose a device.
  int local_rank() const { return ask(ist_comm_local_rank); }
  int local_size() const { return ask(ist_comm_local_size); }
  ist_comm c() const noexcept { return comm_; }

  void send(const Buffer& buffer, std::int64_t count, Type type, int dest, int tag = 0) const {
    detail::check(ist_send(buffer.c(), count, type, dest, tag, comm_));
  }
  Status recv(const Buffer& buffer, std::int64_t count, Type type, int source, int tag = any_tag) const {
    ist_status status{};
    detail::check(ist_recv(buffer.c(), count, type, source, tag, comm_, &status));
    return Status(status);
  }
  Request isend(const Buffer& buffer, std::int64_t count, Type type, int dest, int tag = 0) const {
    Request request;
    detail::check(ist_isend(buffer.c(), count, type, dest, tag, comm_, &request.handle_));
    request.world_ = world_;
    return request;
  }
  Request irecv(const Buffer& buffer, std::int64_t count, Type type, int source, int tag = any_tag) const {
    Request request;
    detail::check(ist_irecv(buffer.c(), count, type, source, tag, comm_, &request.handle_));
    request.world_ = world_;
    return request;
  }
  Status sendrecv(const Buffer& out, std::int64_t out_count, Type out_type, int dest, int out_tag, const Buffer& in,
                  std::int64_t in_count, Type in_type, int source, int in_tag = any_tag) const {
    ist_status status{};
    detail::check(ist_sendrecv(out.c(), out_count, out_type, dest, out_tag, in.c(), in_count, in_type, source, in_tag, comm_,
                               &status));
    return Status(status);
  }

  template <Sendable R>
  void send(const R& data, int dest, int tag = 0) const {
    const auto region = detail::region_of(data);
    send(region.buffer, region.count, region.type, dest, tag);
  }
  template <Receivable R>
  Status recv(R&& data, int source, int tag = any_tag) const {
    const auto region = detail::region_of(data);
    return recv(region.buffer, region.count, region.type, source, tag);
  }
  template <Lasting R>
  requires Sendable<R> Request isend(R&& data, int dest, int tag = 0)
  const {
    const auto region = detail::region_of(data);
    return isend(region.buffer, region.count, region.type, dest, tag);
  }
  template <Lasting R>
  requires Receivable<R> Request irecv(R&& data, int source, int tag = any_tag)
  const {
    const auto region = detail::region_of(data);
    return irecv(region.buffer, region.count, region.type, source, tag);
  }
  template <Sendable Out, Receivable In>
  Status sendrecv(const Out& out, int dest, int out_tag, In&& in, int source, int in_tag = any_tag) const {
    const auto from = detail::region_of(out);
    const auto to = detail::region_of(in);
    return sendrecv(from.buffer, from.count, from.type, dest, out_tag, to.buffer, to.count, to.type, source, in_tag);
  }

  void barrier() const { detail::check(ist_barrier(comm_)); }

 private:
  friend class World;
  explicit Comm(detail::SharedWorld world) : world_(std::move(world)) {
    detail::check(ist_world_comm(world_ ? world_->get() : IST_WORLD_NULL, &comm_));
  }
  int ask(int (*question)(ist_comm, int*)) const {
    int answer = 0;
    detail::check(question(comm_, &answer));
    return answer;
  }

  detail::SharedWorld world_;
  ist_comm comm_ = IST_COMM_NULL;
};

// Waits for all, also when some fail; then throws the first failure. Statuses are in the order of the requests.
inline std::vector<Status> wait_all(std::span<Request> requests) {
  std::vector<ist_request> handles;
  handles.reserve(requests.size());
  std::vector<ist_status> statuses(requests.size(), Request::no_status);
  for (const Request& request : requests) handles.push_back(request.handle_);
  const int code = ist_waitall(static_cast<int>(handles.size()), handles.data(), statuses.data());
  const std::string text = code == IST_OK ? std::string{} : ist_error_text();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].handle_ = handles[i];
    requests[i].finish(IST_OK);
  }
  if (code == IST_ERR_IN_STATUS)
    for (const ist_status& status : statuses)
      if (status.code != IST_OK) throw Error(status.code, text);
  if (code != IST_OK) throw Error(code, text);
  return {statuses.begin(), statuses.end()};
}

// Memory that the library allocated, of any kind; freed when this goes. Nothing may be in flight on it then.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept
      : world_(std::move(other.world_)), buffer_(other.buffer_), bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    Memory taken(std::move(other));
    std::swap(world_, taken.world_);
    std::swap(buffer_, taken.buffer_);
    std::swap(bytes_, taken.bytes_);
    return *this;
  }
  ~Memory() {
    if (world_) ist_memory_free(world_->get(), buffer_);
  }
  Buffer buffer() const noexcept { return buffer_; }
  Buffer at(std::size_t bytes) const { return buffer().at(bytes); }
  std::size_t bytes() const noexcept { return bytes_; }
  // Host memory as elements; an error for any other kind, whose addresses the processor cannot follow.
  template <Element T>
  std::span<T> as_span() const {
    if (buffer_.kind != IST_KIND_HOST) throw Error(IST_ERR_KIND, "as_span() of memory that is not of the host kind");
    return {reinterpret_cast<T*>(buffer_.object + buffer_.offset), bytes_ / sizeof(T)};
  }

 private:
  friend class World;
  Memory(detail::SharedWorld world, Kind kind, int device, std::size_t bytes) : bytes_(bytes) {
    detail::check(
        ist_memory_alloc(world ? world->get() : IST_WORLD_NULL, static_cast<ist_kind>(kind), device, bytes, &buffer_));
    world_ = std::move(world);
  }

  detail::SharedWorld world_;
  ist_buffer buffer_{};
  std::size_t bytes_ = 0;
};

// All ranks of the job. Construction is collective.
class World {
 public:
  World() : owner_(std::make_shared<const detail::WorldOwner>()) {}
  World(World&&) noexcept = default;
  World& operator=(World&&) noexcept = default;

  Comm comm() const { return Comm(owner_); }
  int rank() const { return comm().rank(); }
  int size() const { return comm().size(); }
  int local_rank() const { return comm().local_rank(); }
  // How many devices of the kind this process can use; 0 if the kind is not available.
  int devices(Kind kind) const {
    int count = 0;
    detail::check(ist_kind_devices(c(), static_cast<ist_kind>(kind), &count));
    return count;
  }
  // On this rank's own device, unless another is named.
  Memory allocate(Kind kind, std::size_t bytes, int device = IST_OWN_DEVICE) const {
    return Memory(owner_, kind, device, bytes);
  }
  // Between two places of this process; returns when the bytes have arrived.
  void copy(const Buffer& to, const Buffer& from, std::size_t bytes) const {
    detail::check(ist_memory_copy(c(), to.c(), from.c(), bytes));
  }
  // Null once this World has been moved from; every call then says so.
  ist_world c() const noexcept { return owner_ ? owner_->get() : IST_WORLD_NULL; }

 private:
  detail::SharedWorld owner_;
};

}  // namespace isthmus
#endif
