// The messages of boot: a fixed header and a payload, over any stream socket.
//
// Who calls this : gather_hub (never waiting), launcher_boot and environment_boot (waiting until a deadline).
// Threads        : one at a time.
// Ownership      : a FrameSocket owns its socket.
// Errors         : what is not ours (a port scanner, another version) is malformed and says how; nothing raises SIGPIPE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_descriptor.hpp"
#include "base/status.hpp"
#include "boot/deadline.hpp"

namespace ist {

// Changes with what frames hold or mean. `isthmus run` says to the library which one it speaks (launcher_boot.hpp).
inline constexpr std::uint16_t kFrameVersion = 2;

enum class FrameType : std::uint16_t {
  contribution = 1,  // rank to hub: my blob of this round; payload is the blob
  gathered = 2,      // hub to rank: all blobs of this round
  failure = 3,       // hub to rank: this round will not complete; payload is the text
  hello = 4,         // rank to rank 0, first thing on a new connection
  welcome = 5,       // rank 0: you are in
  later = 6,         // rank 0: not now; connect again
  refused = 7,       // rank 0: you do not belong here; payload is the reason
  withdrawal = 8     // rank to hub: I do not come to this round, nor to a later one of this world; payload is the reason
};

struct Frame {
  FrameType type{};
  std::uint32_t world = 0;         // number of the world in its process, from 1
  std::uint32_t round = 0;         // number of the exchange in its world, from 1
  std::uint32_t milliseconds = 0;  // contribution: how long its rank is ready to wait
  std::uint64_t token = 0;         // names the job: rank 0's choice, 0 before the welcome
  std::string payload;
  // contribution and withdrawal: of its process
  std::uint32_t age = 0;      // milliseconds that it had run, up to a tick of 10 more than it did; 0 where that is not known
  std::uint64_t program = 0;  // what no other process of its rank has; 0 where it is not known
};

class FrameSocket {
 public:
  static constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;
  // Payloads longer than `limit` are malformed: a stranger cannot make us wait for a gigabyte.
  explicit FrameSocket(FileDescriptor socket, std::uint64_t limit = kLargest) : socket_(std::move(socket)), limit_(limit) {}
  int descriptor() const { return socket_.get(); }
  // The socket without the frames: nothing may be left unread.
  FileDescriptor release() { return std::move(socket_); }
  void set_limit(std::uint64_t limit) { limit_ = limit; }

  // Without waiting.
  void queue(const Frame& frame);
  bool has_to_write() const { return written_ < outgoing_.size(); }
  void write_some();
  void read_some();
  std::optional<Frame> next();
  // The other side hung up, or the connection broke. Frames already read can still be taken.
  bool closed() const { return closed_; }
  // Not empty: what came is not a frame of ours.
  const std::string& malformed() const { return malformed_; }

  // Waiting. None: the deadline passed, or the connection is closed or malformed (ask).
  bool flush(Deadline deadline);
  std::optional<Frame> receive(Deadline deadline);

 private:
  bool wait_for(short events, Deadline deadline);
  FileDescriptor socket_;
  std::uint64_t limit_;
  std::string incoming_;
  std::string outgoing_;
  std::size_t written_ = 0;
  bool closed_ = false;
  std::string malformed_;
};

}  // namespace ist
