// NCCL for calls in users' streams: a communicator of its own, made by the first call that it is to carry.
//
// Who calls this : face/message/stream_meetings, one for each communicator.
// Threads        : one call at a time, as of collective calls; break_off() from another one.
// Ownership      : holds its team; looks at engine and Nccl, which outlive it.
// Errors         : returned, with NCCL's words. Where it cannot be made, on whatever rank, it is off on all.
//
// It is apart from the team of ist_allreduce and the like, since NCCL wants the calls on one communicator in one order on all ranks.
#pragma once

#include <memory>

#include "collective/nccl_call.hpp"

namespace ist {

class NcclStream {
 public:
  // Is a call with so many bytes NCCL's, by what all ranks know? `combiner`: of a reduction, else null.
  static bool suits(const Communicator& comm, const Combiner* combiner, Bytes bytes);

  bool fresh() const { return !team_; }
  bool off() const { return off_; }
  // Collective. Afterwards it is there, or off, on all ranks alike; an error: neither, since a rank was lost.
  Status open(const Communicator& comm, int device);
  // Puts the call into the stream, and comes back when NCCL has done so.
  Status put(const NcclWork& work, std::uint64_t stream);
  // The next three take the engine's lock. Ends what still waits in streams.
  void break_off(Engine& engine, const Status& why);
  // No call comes any more: NCCL's communicator ends when every rank has said so and what is in streams is over. May be asked again,
  // since nobody tells when that is.
  void retire(Engine& engine);
  // No call comes any more, and what is not over is ended. Tells why anything was ended, now or before.
  Status end(Engine& engine);

 private:
  Status wait_for_opening(const Communicator& comm);
  Status lost() const;

  std::shared_ptr<NcclTeam> team_;  // comes under the engine's lock, since break_off() may be called at any time
  bool off_ = false;
};

}  // namespace ist
