// Turns in command queues: a command behind what comes before, and a second one behind a user event that the library completes.
//
// Who calls this : opencl_kind makes it; used through Queues.
// Threads        : any.
// Ownership      : a turn owns its events, and keeps the buffers of its pieces.
// Errors         : returned with the OpenCL call and the name of its error.
#pragma once

#include "memory/opencl/opencl_api.hpp"
#include "memory/queues.hpp"

namespace ist {

class OpenclQueues final : public Queues {
 public:
  explicit OpenclQueues(const OpenclApi& api) : api_(api) {}
  Status admit(std::uint64_t queue, const Piece& piece) override;
  Result<std::unique_ptr<QueueTurn>> enter(std::uint64_t queue, const QueueEvents& events, std::span<const Piece> pieces,
                                           std::function<void()> reached) override;
  Status pass(std::uint64_t queue, const QueueEvents& events) override;

 private:
  Result<cl_context> context_of(cl_command_queue queue) const;
  class Points;
  static Status first(const Points& points, const QueueEvents& events, cl_event* event);

  const OpenclApi& api_;
};

}  // namespace ist
