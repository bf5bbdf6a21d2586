// What the calls that send, receive and wait have in common: arguments checked, operations started, outcomes told.
//
// Who calls this : the api_*.cpp files.
// Threads        : any; each call takes the engine's lock itself.
// Ownership      : none.
// Errors         : returned with the text that the user sees, without the call's name; in_call() adds it.
#pragma once

#include <isthmus/isthmus.h>

#include <string>

#include "face/message/handles.hpp"

namespace ist {

// Buffer, count and type as the user gave them.
struct Data {
  const ist_buffer& buffer;
  std::int64_t count;
  ist_type type;
};

// A started operation: perhaps complete without ever having been one.
struct Started {
  World* world = nullptr;
  OperationId id;
  bool done = false;
};

// A communicator and a partner in it, checked; rank is one of the world, kAnySource or IST_PROC_NULL.
struct Partner {
  World* world = nullptr;
  Communicator* comm = nullptr;
  std::int32_t rank = 0;
};

// A receive, checked and not yet started.
struct Receiving {
  Partner from;
  int tag = 0;
  Piece piece;
  std::shared_ptr<const class Layout> types = nullptr;  // where types are compared
};

Status in_call(const char* call, const Status& status);
Result<Piece> to_piece(World& world, const Data& data);
// What messages of it are made of; null where that is too much for a layout.
std::shared_ptr<const Layout> types_of(std::int64_t count, const std::shared_ptr<const Layout>& layout);
std::shared_ptr<const Layout> types_of(const Data& data);
// Returns when the bytes have arrived; moves the world's messages on meanwhile.
Status copy_pieces(World& world, const Piece& to, const Piece& from);
Status finish_transfer(World& world, Transfer& transfer);
// `name`: what errors call the rank.
Result<Partner> destination(ist_comm comm, int dest, int tag, const char* name = "dest");
Result<Partner> origin(ist_comm comm, int source, int tag);
// The same without wildcards.
Result<Partner> exact_origin(ist_comm comm, int source, int tag);

Result<Started> start_send(const Data& data, int dest, int tag, ist_comm comm, SendMode mode = {});
Result<Receiving> receiving(const Data& data, int source, int tag, ist_comm comm);
Result<Started> start_receive(const Receiving& what);
Result<Started> start_receive(const Data& data, int source, int tag, ist_comm comm);
// Receives, waits, and reports as finish() does.
int receive_and_finish(const char* call, const Receiving& what, ist_status* status);

// What comes from IST_PROC_NULL.
Outcome from_nobody();
// What MPI says of a null request and of IST_PROC_NULL.
inline void set_empty(ist_status* status, int source) {
  if (status != nullptr) *status = {source, IST_ANY_TAG, IST_OK, IST_CARRIER_NONE, 0};
}
inline void set_status(ist_status* status, const Outcome& outcome, const Group* group) {
  if (status == nullptr) return;
  const bool ranks_of_group = group != nullptr && outcome.source.value >= 0;
  *status = {ranks_of_group ? group->from_world(outcome.source) : outcome.source.value, outcome.tag,
             outcome.cancelled ? IST_CANCELLED : outcome.status.code(), outcome.carrier,
             static_cast<std::int64_t>(outcome.bytes.value)};
}
inline void set_status(ist_status& status, const PlainReceive& done) {
  status = {done.group != nullptr ? done.group->from_world(Rank{done.source}) : done.source, done.tag, IST_OK,
            IST_CARRIER_SLOT, static_cast<std::int64_t>(done.bytes.value)};
}
// Fills in the status, and reports an error.
int finish(const char* call, const Outcome& outcome, ist_status* status);
// `group`: of the communicator, whether or not the outcome has it.
int finish(const char* call, const Outcome& outcome, const Group* group, ist_status* status);
int finish_blocking(const char* call, const Started& started, ist_status* status);

// One of a call's two operations: taken back, or over, where the call ends without having waited for it.
class Half {
 public:
  Half(const char* call, const Started& started) : call_(call), started_(started) {}
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;
  ~Half();
  int finish(ist_status* status) {
    waited_ = true;
    return finish_blocking(call_, started_, status);
  }

 private:
  const char* call_;
  Started started_;
  bool waited_ = false;
};

// Waits for the receive of a call whose send has ended with `sent`. Where both fail, the text tells of both: what is heard of a peer
// says that the peer's own error tells why, and that may be the other half's there.
int finish_receive_after(int sent, Half& receives, ist_status* status);

}  // namespace ist
