// Python's World and Comm.
//
// Who calls this : module.cpp binds the classes.
// Threads        : the caller holds the GIL, which every call that may take long lets go of.
// Ownership      : World and Comm hold the session; a Comm holds its communicators, as do its operations under way.
// Errors         : raised.
#pragma once

#include <atomic>
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
  ~Channels();

  std::shared_ptr<Session> session;
  ist_comm user = IST_COMM_NULL;
  ist_comm heads = IST_COMM_NULL;
  ist_comm bodies = IST_COMM_NULL;
  bool owns_user = false;
  int rank = 0;
  int size = 1;
  std::atomic<std::uint32_t> objects_sent{0};
  std::atomic<std::uint32_t> barriers{0};
};

class Comm {
 public:
  // Collective over `handle`.
  static nb::object make(const std::shared_ptr<Session>& session, ist_comm handle, bool owned);
  explicit Comm(std::shared_ptr<Channels> channels) : channels_(std::move(channels)) {}

  int rank() const { return channels_->rank; }
  int size() const { return channels_->size; }
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
  StatusView probe(int source, int tag) const;
  nb::object iprobe(int source, int tag) const;  // None where no message is there

  nb::object dup() const;
  nb::object split(std::optional<int> color, int key) const;
  nb::object split_local(int key) const;
  nb::object create_group(const nb::iterable& ranks, int tag) const;
  int world_rank(int rank) const;
  std::string name() const;

  void send_object(nb::handle object, int dest, int tag) const;
  nb::object recv_object(int source, int tag, StatusView* status) const;
  nb::object isend_object(nb::handle object, int dest, int tag) const;
  nb::object irecv_object(int source, int tag) const;
  nb::object sendrecv_object(nb::handle object, int dest, int source, int send_tag, int recv_tag, StatusView* status) const;

  // The channels of a world that is open.
  const std::shared_ptr<Channels>& open() const;

 private:
  std::shared_ptr<Channels> channels_;
};

using Call = int (*)(ist_buffer, std::int64_t, ist_type, int, int, ist_comm, ist_request*);
std::shared_ptr<Operation> start(Call call, Region region, int peer, int tag, const Channels& on);
// Waits for it, and gives what it says; an interrupted one goes on, kept by the session.
StatusView finish(const std::shared_ptr<Session>& session, const std::shared_ptr<Operation>& operation);

void bind_comm(nb::module_& module);
void bind_more(nb::class_<Comm>& comm);
void bind_world(nb::module_& module);
void bind_objects(nb::module_& module);

}  // namespace isthmus_python
