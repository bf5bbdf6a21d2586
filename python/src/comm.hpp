// Python's World and Comm.
//
// Who calls this : module.cpp binds the classes.
// Threads        : the caller holds the GIL, which every call that may take long lets go of.
// Ownership      : World and Comm hold the session; a Comm holds its communicators, as do its operations under way.
// Errors         : raised.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "request.hpp"

namespace isthmus_python {

// What a Comm is to the library: the communicator of its messages, and two of its own, so that objects and barriers never meet
// the user's buffers. `heads` carries what announces objects, with the user's tags; `bodies` the long ones and the barrier,
// with tags that nothing else has.
struct Channels {
  explicit Channels(std::shared_ptr<Session> of) : session(std::move(of)) {}
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;
  ~Channels() { free_later(); }
  // Those that it owns, in the next sweep.
  void free_later();

  std::shared_ptr<Session> session;
  ist_comm user = IST_COMM_NULL;
  ist_comm heads = IST_COMM_NULL;
  ist_comm bodies = IST_COMM_NULL;
  // Why the two are not there: some of its ranks are on another host. Messages of buffers between those of one go all the same.
  std::string apart;
  bool owns_user = false;
  int rank = 0;
  int size = 1;
  std::atomic<std::uint32_t> objects_sent{0};
  std::atomic<std::uint32_t> barriers{0};
  std::atomic<std::uint32_t> object_calls{0};  // collective ones, which take turns
  std::atomic<std::uint32_t> object_calls_over{0};
};

// Those with communicators of their own; the others raise IST_ERR_UNREACHABLE.
std::shared_ptr<Channels> whole(std::shared_ptr<Channels> channels);

class Comm {
 public:
  // Collective over `handle`.
  static nb::object make(const std::shared_ptr<Session>& session, ist_comm handle, bool owned);
  static std::shared_ptr<Channels> channels_of(const std::shared_ptr<Session>& session, ist_comm handle, bool owned);
  explicit Comm(std::shared_ptr<Channels> channels) : channels_(std::move(channels)) {}

  int rank() const { return known().rank; }
  int size() const { return known().size; }
  int local_rank() const;
  int local_size() const;
  std::string text() const;

  using Count = std::optional<std::int64_t>;
  void send(nb::handle buffer, int dest, int tag, Count count) const;
  StatusView recv(nb::handle buffer, int source, int tag, Count count) const;
  nb::object isend(nb::handle buffer, int dest, int tag, Count count) const;
  nb::object irecv(nb::handle buffer, int source, int tag, Count count) const;
  StatusView sendrecv(nb::handle send_buffer, int dest, nb::handle recv_buffer, int source, int send_tag, int recv_tag,
                      Count send_count, Count recv_count) const;
  void barrier() const;

  void ssend(nb::handle buffer, int dest, int tag, Count count) const;
  nb::object issend(nb::handle buffer, int dest, int tag, Count count) const;
  StatusView sendrecv_replace(nb::handle buffer, int dest, int source, int send_tag, int recv_tag, Count count) const;

  void prepare(nb::handle buffer, int peer, Count count) const;
  nb::object iprepare(nb::handle buffer, int peer, Count count) const;

  nb::object dup() const;
  nb::object split(std::optional<int> color, int key) const;
  nb::object split_local(int key) const;
  nb::object create_group(const nb::iterable& ranks, int tag) const;
  void free();
  int world_rank(int rank) const;
  std::string name() const;
  std::string explain(nb::handle buffer, int dest, Count count) const;

  void send_object(nb::handle object, int dest, int tag) const;
  nb::object recv_object(int source, int tag, StatusView* status) const;
  nb::object isend_object(nb::handle object, int dest, int tag) const;
  void ssend_object(nb::handle object, int dest, int tag) const;
  nb::object issend_object(nb::handle object, int dest, int tag) const;
  nb::object irecv_object(int source, int tag) const;
  nb::object sendrecv_object(nb::handle object, int dest, int source, int send_tag, int recv_tag, StatusView* status) const;

  // The channels of a world that is open.
  const std::shared_ptr<Channels>& open() const;

 private:
  const Channels& known() const;  // also of a world that is closed

  std::shared_ptr<Channels> channels_;  // null: freed
};

// Collective: those of a communicator that `create` makes of another, or null to ranks outside it.
using Creation = std::function<int(ist_comm, ist_comm*)>;
std::shared_ptr<Channels> create_from(const std::shared_ptr<Channels>& from, const Creation& create);

// One half of an exchange.
struct Half {
  Region region;
  int peer;
  int tag;
};
// Sends one and receives the other, both at once; the status of what was received.
StatusView exchange(const Channels& on, Half out, Half in);

using Call = int (*)(ist_buffer, std::int64_t, ist_type, int, int, ist_comm, ist_request*);
std::shared_ptr<Operation> start(Call call, Region region, int peer, int tag, const Channels& on);
// Waits for it, and gives what it says; an interrupted one goes on, kept by the session, which also makes its steps.
StatusView finish(const std::shared_ptr<Session>& session, const std::shared_ptr<Operation>& operation);

void bind_comm(nb::module_& module);
void bind_more(Bound<Comm>& comm);
void bind_probes(Bound<Comm>& comm);
void bind_streams(Bound<Comm>& comm);
void bind_stream_collectives(Bound<Comm>& comm);
void bind_queues(Bound<Comm>& comm);
void bind_matched(nb::module_& module);
void bind_carts(nb::module_& module, Bound<Comm>& comm);
void bind_world(nb::module_& module);
void bind_objects(nb::module_& module);

}  // namespace isthmus_python
