// Isthmus, C++ interface: communicators, and messages between their ranks.
//
// Who calls this : isthmus.hpp includes it.
// Threads        : as in C: every call from any thread; one request is used by one thread at a time.
// Ownership      : Comm is a shared view, freed with its last copy; Message owns and moves.
// Errors         : Error, with the code and the library's text. Destructors never throw.
#ifndef ISTHMUS_COMM_HPP
#define ISTHMUS_COMM_HPP

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "isthmus/gather.hpp"
#include "isthmus/queue.h"

namespace isthmus {

// A message that a matched probe took: only this object receives it. One that is dropped unreceived is received and lost, so
// that its sender does not wait for ever.
class [[nodiscard]] Message {
 public:
  Message(Message&& other) noexcept
      : world_(std::move(other.world_)), handle_(std::exchange(other.handle_, IST_MESSAGE_NULL)), status_(other.status_) {}
  Message& operator=(Message&&) = delete;
  ~Message() {
    if (handle_ != IST_MESSAGE_NULL) ist_mrecv(ist_host(nullptr), 0, IST_BYTE, &handle_, IST_STATUS_IGNORE);
  }
  // Source, tag and bytes.
  const Status& status() const noexcept { return status_; }
  Status recv(const Buffer& buffer, std::int64_t count, Type type) {
    ist_status status{};
    detail::check(ist_mrecv(buffer.c(), count, type, &handle_, &status));
    return Status(status);
  }
  template <Receivable R>
  Status recv(R&& data) {
    const auto region = detail::region_of(data);
    return recv(region.buffer, region.count, region.type);
  }
  Request irecv(const Buffer& buffer, std::int64_t count, Type type) {
    Request request;
    detail::check(ist_imrecv(buffer.c(), count, type, &handle_, &request.handle_));
    request.world_ = world_;
    return request;
  }
  template <Lasting R>
  requires Receivable<R> Request irecv(R&& data) {
    const auto region = detail::region_of(data);
    return irecv(region.buffer, region.count, region.type);
  }

 private:
  friend class Comm;
  Message(detail::SharedWorld world, ist_message handle, const ist_status& status)
      : world_(std::move(world)), handle_(handle), status_(status) {}
  detail::SharedWorld world_;
  ist_message handle_;
  Status status_;
};

namespace detail {

// Frees a communicator that was created, with its last copy.
class CommOwner {
 public:
  CommOwner(SharedWorld world, ist_comm comm) : world_(std::move(world)), comm_(comm) {}
  CommOwner(const CommOwner&) = delete;
  CommOwner& operator=(const CommOwner&) = delete;
  ~CommOwner() { ist_comm_free(&comm_); }

 private:
  SharedWorld world_;
  ist_comm comm_;
};

}  // namespace detail

class Cart;

// Ranks in an order of their own and the messages between them; copies share one communicator, and keep its world alive.
//
// `data` is anything contiguous in host memory; a Buffer, with a count and a type, is memory of any kind. Its collective calls
// are in collective.hpp and gather.hpp.
class Comm : public Gathers {
 public:
  // No communicator, until one is assigned: every call is an Error with IST_ERR_HANDLE.
  Comm() = default;
  int rank() const { return ask(ist_comm_rank); }
  int size() const { return ask(ist_comm_size); }
  // Among the ranks on this host: what one needs to choose a device.
  int local_rank() const { return ask(ist_comm_local_rank); }
  int local_size() const { return ask(ist_comm_local_size); }
  // The rank in the world's communicator.
  int world_rank(int rank) const {
    int found = 0;
    detail::check(ist_comm_world_rank(comm_, rank, &found));
    return found;
  }
  std::string name() const {
    char text[256];
    detail::check(ist_comm_name(comm_, text, sizeof text));
    return text;
  }
  ist_comm c() const noexcept { return comm_; }
  // False: no communicator, as split() gives to ranks of no colour.
  explicit operator bool() const noexcept { return comm_ != IST_COMM_NULL; }

  // Collective.
  Comm dup() const {
    return made([&](ist_comm* out) { return ist_comm_dup(comm_, out); });
  }
  Comm split(int color, int key = 0) const {
    return made([&](ist_comm* out) { return ist_comm_split(comm_, color, key, out); });
  }
  Comm split_local(int key = 0) const {
    return made([&](ist_comm* out) { return ist_comm_split_local(comm_, key, out); });
  }
  // Collective over the listed ranks alone; tags are 0 to 2^30 - 1.
  Comm create_group(std::span<const int> ranks, int tag = 0) const {
    return made(
        [&](ist_comm* out) { return ist_comm_create_group(comm_, static_cast<int>(ranks.size()), ranks.data(), tag, out); });
  }
  // A grid over the first ranks; an empty one for the rest.
  Cart cart(std::span<const int> dims, std::span<const int> periods) const;

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

  // Complete when the matching receive has begun.
  void ssend(const Buffer& buffer, std::int64_t count, Type type, int dest, int tag = 0) const {
    detail::check(ist_ssend(buffer.c(), count, type, dest, tag, comm_));
  }
  Request issend(const Buffer& buffer, std::int64_t count, Type type, int dest, int tag = 0) const {
    Request request;
    detail::check(ist_issend(buffer.c(), count, type, dest, tag, comm_, &request.handle_));
    request.world_ = world_;
    return request;
  }
  Status sendrecv_replace(const Buffer& buffer, std::int64_t count, Type type, int dest, int send_tag, int source,
                          int recv_tag = any_tag) const {
    ist_status status{};
    detail::check(ist_sendrecv_replace(buffer.c(), count, type, dest, send_tag, source, recv_tag, comm_, &status));
    return Status(status);
  }
  PersistentRequest send_init(const Buffer& buffer, std::int64_t count, Type type, int dest, int tag = 0) const {
    return persistent(ist_send_init, buffer, count, type, dest, tag);
  }
  PersistentRequest ssend_init(const Buffer& buffer, std::int64_t count, Type type, int dest, int tag = 0) const {
    return persistent(ist_ssend_init, buffer, count, type, dest, tag);
  }
  PersistentRequest recv_init(const Buffer& buffer, std::int64_t count, Type type, int source, int tag = any_tag) const {
    return persistent(ist_recv_init, buffer, count, type, source, tag);
  }
  // Both ranks open each other's device memory ahead of their first message (ist_prepare).
  void prepare(const Buffer& buffer, std::int64_t count, Type type, int peer) const {
    detail::check(ist_prepare(buffer.c(), count, type, peer, comm_));
  }
  Request iprepare(const Buffer& buffer, std::int64_t count, Type type, int peer) const {
    Request request;
    detail::check(ist_iprepare(buffer.c(), count, type, peer, comm_, &request.handle_));
    request.world_ = world_;
    return request;
  }
  // What a receive would get; the message stays.
  Status probe(int source, int tag = any_tag) const {
    ist_status status{};
    detail::check(ist_probe(source, tag, comm_, &status));
    return Status(status);
  }
  std::optional<Status> iprobe(int source, int tag = any_tag) const {
    ist_status status{};
    int found = 0;
    detail::check(ist_iprobe(source, tag, comm_, &found, &status));
    if (found == 0) return std::nullopt;
    return Status(status);
  }
  Message mprobe(int source, int tag = any_tag) const {
    ist_status status{};
    ist_message message = IST_MESSAGE_NULL;
    detail::check(ist_mprobe(source, tag, comm_, &message, &status));
    return Message(world_, message, status);
  }
  std::optional<Message> improbe(int source, int tag = any_tag) const {
    ist_status status{};
    ist_message message = IST_MESSAGE_NULL;
    int found = 0;
    detail::check(ist_improbe(source, tag, comm_, &found, &message, &status));
    if (found == 0) return std::nullopt;
    return Message(world_, message, status);
  }
  // How such a message would be carried now, and why, in lines for people.
  std::string explain(const Buffer& buffer, std::int64_t count, Type type, int dest) const {
    std::size_t needed = 0;
    detail::check(ist_explain(buffer.c(), count, type, dest, comm_, nullptr, 0, &needed));
    for (std::string text;;) {
      text.resize(needed);
      detail::check(ist_explain(buffer.c(), count, type, dest, comm_, text.data(), text.size(), &needed));
      if (needed > text.size()) continue;  // another thread has changed what there is to say
      text.resize(needed - 1);
      return text;
    }
  }
  template <Sendable R>
  std::string explain(const R& data, int dest) const {
    const auto region = detail::region_of(data);
    return explain(region.buffer, region.count, region.type, dest);
  }

  // Put into a CUDA stream (a CUstream or cudaStream_t), and sent and received when it comes to them: isthmus/stream.h.
  void send_on(void* stream, const Buffer& buffer, std::int64_t count, Type type, int dest, int tag = 0) const {
    detail::check(ist_send_on(stream, buffer.c(), count, type, dest, tag, comm_));
  }
  void recv_on(void* stream, const Buffer& buffer, std::int64_t count, Type type, int source, int tag = 0) const {
    detail::check(ist_recv_on(stream, buffer.c(), count, type, source, tag, comm_));
  }
  void sendrecv_on(void* stream, const Buffer& out, std::int64_t out_count, Type out_type, int dest, int out_tag,
                   const Buffer& in, std::int64_t in_count, Type in_type, int source, int in_tag = 0) const {
    detail::check(ist_sendrecv_on(stream, out.c(), out_count, out_type, dest, out_tag, in.c(), in_count, in_type, source,
                                  in_tag, comm_));
  }
  // sides: IST_SENDS, IST_RECEIVES, or both added.
  void prepare_on(void* stream, int partner, int tag = 0, int sides = IST_SENDS + IST_RECEIVES) const {
    detail::check(ist_prepare_on(stream, partner, tag, sides, comm_));
  }
  // The same for what all ranks do together, long calls as well; in_place may be given for `send`.
  void prepare_collectives_on(void* stream) const { detail::check(ist_prepare_collectives_on(stream, comm_)); }
  void barrier_on(void* stream) const { detail::check(ist_barrier_on(stream, comm_)); }
  void bcast_on(void* stream, const Buffer& buffer, std::int64_t count, Type type, int root) const {
    detail::check(ist_bcast_on(stream, buffer.c(), count, type, root, comm_));
  }
  void reduce_on(void* stream, const Buffer& send, const Buffer& recv, std::int64_t count, Type type, const Operation& op,
                 int root) const {
    detail::check(ist_reduce_on(stream, send.c(), recv.c(), count, type, op.c(type), root, comm_));
  }
  void allreduce_on(void* stream, const Buffer& send, const Buffer& recv, std::int64_t count, Type type,
                    const Operation& op) const {
    detail::check(ist_allreduce_on(stream, send.c(), recv.c(), count, type, op.c(type), comm_));
  }

  // Put into an OpenCL queue (a cl_command_queue), and sent and received when it comes to them: isthmus/queue.h.
  void send_on_queue(void* queue, const Buffer& buffer, std::int64_t count, Type type, int dest, int tag = 0,
                     const QueueEvents& events = {}) const {
    detail::check(
        ist_send_on_queue(queue, buffer.c(), count, type, dest, tag, comm_, events.waits, events.wait_list, events.event));
  }
  void recv_on_queue(void* queue, const Buffer& buffer, std::int64_t count, Type type, int source, int tag = 0,
                     const QueueEvents& events = {}) const {
    detail::check(
        ist_recv_on_queue(queue, buffer.c(), count, type, source, tag, comm_, events.waits, events.wait_list, events.event));
  }
  void sendrecv_on_queue(void* queue, const Buffer& out, std::int64_t out_count, Type out_type, int dest, int out_tag,
                         const Buffer& in, std::int64_t in_count, Type in_type, int source, int in_tag = 0,
                         const QueueEvents& events = {}) const {
    detail::check(ist_sendrecv_on_queue(queue, out.c(), out_count, out_type, dest, out_tag, in.c(), in_count, in_type,
                                        source, in_tag, comm_, events.waits, events.wait_list, events.event));
  }
  void prepare_on_queue(void* queue, int partner, int tag = 0, int sides = IST_SENDS + IST_RECEIVES) const {
    detail::check(ist_prepare_on_queue(queue, partner, tag, sides, comm_));
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
  template <Sendable R>
  void ssend(const R& data, int dest, int tag = 0) const {
    const auto region = detail::region_of(data);
    ssend(region.buffer, region.count, region.type, dest, tag);
  }
  template <Lasting R>
  requires Sendable<R> Request issend(R&& data, int dest, int tag = 0)
  const {
    const auto region = detail::region_of(data);
    return issend(region.buffer, region.count, region.type, dest, tag);
  }
  template <Sendable Out, Receivable In>
  Status sendrecv(const Out& out, int dest, int out_tag, In&& in, int source, int in_tag = any_tag) const {
    const auto from = detail::region_of(out);
    const auto to = detail::region_of(in);
    return sendrecv(from.buffer, from.count, from.type, dest, out_tag, to.buffer, to.count, to.type, source, in_tag);
  }

  template <Receivable R>
  Status sendrecv_replace(R&& data, int dest, int send_tag, int source, int recv_tag = any_tag) const {
    const auto region = detail::region_of(data);
    return sendrecv_replace(region.buffer, region.count, region.type, dest, send_tag, source, recv_tag);
  }
  // The range is where it was, and as long, for as long as the request is there.
  template <Lasting R>
  requires Sendable<R> PersistentRequest send_init(R&& data, int dest, int tag = 0)
  const {
    const auto region = detail::region_of(data);
    return send_init(region.buffer, region.count, region.type, dest, tag);
  }
  template <Lasting R>
  requires Sendable<R> PersistentRequest ssend_init(R&& data, int dest, int tag = 0)
  const {
    const auto region = detail::region_of(data);
    return ssend_init(region.buffer, region.count, region.type, dest, tag);
  }
  template <Lasting R>
  requires Receivable<R> PersistentRequest recv_init(R&& data, int source, int tag = any_tag)
  const {
    const auto region = detail::region_of(data);
    return recv_init(region.buffer, region.count, region.type, source, tag);
  }

 protected:
  friend class Halo;      // halo.hpp
  friend class HaloGrid;  // halo.hpp
  template <class>
  friend class LayoutCollectives;  // layout_collective.hpp
  friend class World;
  explicit Comm(detail::SharedWorld world) {
    world_ = std::move(world);
    detail::check(ist_world_comm(world_ ? world_->get() : IST_WORLD_NULL, &comm_));
  }

  // `call` stores a new communicator.
  template <class Call>
  Comm made(const Call& call) const {
    Comm created;
    detail::check(call(&created.comm_));
    created.world_ = world_;
    if (created) created.owner_ = std::make_shared<const detail::CommOwner>(world_, created.comm_);
    return created;
  }
  template <class Init>
  PersistentRequest persistent(Init init, const Buffer& buffer, std::int64_t count, Type type, int peer, int tag) const {
    PersistentRequest request;
    detail::check(init(buffer.c(), count, type, peer, tag, comm_, &request.handle_));
    request.world_ = world_;
    return request;
  }

  std::shared_ptr<const detail::CommOwner> owner_;
};

}  // namespace isthmus
#endif
