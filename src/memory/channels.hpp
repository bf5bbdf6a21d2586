// Channels: messages from one rank to one other, sent and received by what is put into users' streams, without a processor's help.
//
// Who calls this : face/message/stream_channels. Who implements it: cuda/.
// Threads        : any, but for one call at a time on an end; interrupt() also from the watcher, and it makes no driver call.
// Ownership      : whoever opened an end owns it, and closes it before the kind goes; close_all() comes first. What an end gives to
//                  its peer is device memory that the peer opens.
// Errors         : returned; they name the driver's call. What kernels found wrong is told by trouble().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "memory/door.hpp"
#include "memory/piece.hpp"
#include "memory/stream_note.hpp"

namespace ist {

enum class ChannelSide : std::uint8_t { sends = 0, receives = 1 };
// What a channel is used in; the two do not meet.
enum class ChannelUse : std::uint8_t { streams = 0, queues = 1 };

// Between two devices messages of at most so many bytes are packets, each of which says itself that it is there.
inline constexpr Bytes kMostInPackets{8192};

// What one end tells the other of itself: where its half of the channel is. Both ranks run the same library.
struct ChannelCard {
  std::array<std::byte, 64> handle{};  // the driver's, of the allocation
  std::array<std::byte, 16> device{};  // its UUID
  std::uint64_t allocation = 0;        // the owner's driver's number for it
  std::uint64_t offset = 0;            // of the half in it
  std::uint64_t address = 0;           // of the half, in the owner's process
  DoorAddress door;                    // where the owner helps to try the link between the two devices
  ChannelSide side = ChannelSide::sends;
  std::uint8_t refused = 0;              // an ist_code: the rank has no end, and will have none; nothing else is told
  ChannelUse use = ChannelUse::streams;  // by queues: there is no half of it
  std::array<std::uint8_t, 5> unused{};
};
static_assert(sizeof(ChannelCard) == 136 && std::is_trivially_copyable_v<ChannelCard>);

// A user's stream, looked up.
struct StreamPlace {
  std::uint64_t stream = 0;
  int device = -1;
  bool capturing = false;
  bool own = false;  // a stream of the program's own, not one of those that each context has
};

// What the kernels of an end have met with.
struct ChannelTrouble {
  bool failed = false;  // they waited for a rank that is gone, or for a world that ends; the channel is of no more use
  bool truncated = false;
  std::uint64_t message = 0;  // of the truncation: its number from 0 on, and
  Bytes bytes;                // its length
  Bytes room;
};

class ChannelEnd {
 public:
  virtual ~ChannelEnd() = default;
  virtual const ChannelCard& card() const = 0;
  virtual int device() const = 0;
  // Opens the other half; takes milliseconds, and is not for a time when a kernel waits. Between two devices the link is tried before,
  // once: IST_ERR_UNREACHABLE where it cannot be believed, and then there is no channel between the two, now or later.
  virtual Status connect(const ChannelCard& peers) = 0;
  // Instead, where that rank has left: what it had sent is here, and what it would be told goes nowhere.
  virtual Status connect_to_nobody(const ChannelCard& peers) = 0;
  virtual bool connected() const = 0;
  // Of an end that receives: the word of its device where a counted receive leaves how many bytes it has taken.
  virtual std::uint64_t came() const = 0;
  // The last stream that was used here, which need not be looked up again; 0: none.
  std::uint64_t last_stream = 0;
  // What has gone wrong since it was asked last.
  virtual std::optional<ChannelTrouble> trouble() = 0;
  // Messages whose notes were not those of their receives, since it was asked last.
  virtual std::vector<UnlikeNotes> unlike() = 0;
};

class Meetings;

class Channels {
 public:
  virtual ~Channels() = default;
  // `beside`: a piece whose device the special streams are taken to be of. `look`: asks whether it is being captured.
  virtual Result<StreamPlace> find_stream(std::uint64_t stream, const Piece* beside, bool look) = 0;
  // The device address of a checked piece for kernels on that device; why they cannot use it, else.
  virtual Result<std::uint64_t> admit(const Piece& piece, int device) = 0;
  // Before the program's first channel or meeting, not those that other ranks have asked for: from now on it may put work into streams that waits for them.
  virtual void use_streams() = 0;
  // Then: is nobody setting himself up who might wait for what is put into streams (guests.hpp)? Before that nothing is put.
  virtual bool settled() = 0;
  // `compares`: the end receives, and notes of what messages are made of are compared there.
  virtual Result<std::unique_ptr<ChannelEnd>> open(ChannelSide side, int device, Rank own, Rank peer, bool compares) = 0;
  // Put into the stream, of connected ends on its device; `address` as admit() gave it. They come back at once.
  virtual Status send(ChannelEnd& end, std::uint64_t stream, std::uint64_t address, Bytes size) = 0;
  // `counted`: what follows in the stream finds at came() how much has come; 0 after a failure.
  virtual Status receive(ChannelEnd& end, std::uint64_t stream, std::uint64_t address, Bytes room, bool counted = false) = 0;
  struct Message {
    ChannelEnd& end;
    std::uint64_t address;
    Bytes size;
    bool counted = false;
  };
  virtual Status send_and_receive(std::uint64_t stream, const Message& out, const Message& in) = 0;
  // Of what the next message is made, put in before it; and of what the last receive of an end that compares, put in behind it.
  virtual Status tell(ChannelEnd& end, std::uint64_t stream, const StreamNote& note) = 0;
  virtual Status compare(ChannelEnd& end, std::uint64_t stream, const StreamNote& note) = 0;
  // What the ranks of a communicator do together, over the same memory (meetings.hpp).
  virtual Meetings& meetings() = 0;
  // What waits for that rank gives up.
  virtual void interrupt(Rank peer) = 0;
  // The same for all; waits until nothing of any end runs any more.
  virtual Status close_all() = 0;
};

}  // namespace ist
