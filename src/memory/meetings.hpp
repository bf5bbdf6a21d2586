// Meetings: what the ranks of a communicator do together by what is put into users' streams, without a processor's help.
//
// Who calls this : face/message/stream_meetings. Who implements it: cuda/.
// Threads        : as channels.hpp: any, but for one call at a time on a seat; Channels::interrupt() and close_all() are for these, too.
// Ownership      : whoever took a seat owns it, and gives it back before the kind goes, after Channels::close_all().
// Errors         : returned; they name the driver's call. What kernels found wrong is told by trouble().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "memory/channels.hpp"
#include "memory/reduction.hpp"

namespace ist {

// So many ranks may meet by kernels that wait for each other.
inline constexpr int kMostAtMeeting = 16;

// A kernel carries so much of a call among that many ranks; a longer one takes several, one after the other.
constexpr Bytes meeting_piece(int ranks) { return Bytes{ranks <= 4 ? 262144U : 65536U}; }

// The members of a communicator, by rank: the world's ranks; and which of them this one is.
struct Circle {
  std::vector<Rank> members;
  int own = 0;
};

// One call, of any size; addresses as Channels::admit() gave them.
struct MeetingCall {
  enum class What : std::uint8_t { barrier, bcast, reduce };
  What what = What::barrier;
  std::uint64_t from = 0;  // of a bcast, both are the buffer
  std::uint64_t to = 0;
  Bytes size;
  int root = -1;  // -1: everybody
  Reduction reduction = Reduction::sum;
  Element element = Element::uint8;
  ist_type type = IST_BYTE;  // which has that element
};

struct MeetingTrouble {
  int other_call = -1;  // the member that has made another call than this rank; -1: somebody is gone, or the world ends
};

// What one rank has for the meetings of one communicator: a mailbox, which the others open.
class MeetingSeat {
 public:
  virtual ~MeetingSeat() = default;
  virtual const ChannelCard& card() const = 0;
  virtual int device() const = 0;
  // Opens the others' mailboxes: cards by rank, all on devices of their own. As ChannelEnd::connect(), of every link.
  virtual Status connect(const std::vector<ChannelCard>& cards) = 0;
  // As ChannelEnd's.
  std::uint64_t last_stream = 0;
  // What has gone wrong, from then on for good.
  virtual std::optional<MeetingTrouble> trouble() const = 0;
  // Calls of other members whose notes were not this one's, since it was asked last.
  virtual std::vector<UnlikeNotes> unlike() = 0;
  // Room for a vector of each member, for calls that come by channels.
  virtual std::uint64_t part(int member) const = 0;
  virtual Bytes part_size() const = 0;
};

class Meetings {
 public:
  virtual ~Meetings() = default;
  virtual Result<std::unique_ptr<MeetingSeat>> take_seat(int device, const Circle& circle, bool compares) = 0;
  // Puts the call into a stream of the seat's device, and comes back at once. The seat is connected.
  virtual Status meet(MeetingSeat& seat, std::uint64_t stream, const MeetingCall& call) = 0;
  // The same for a rank that has the others' vectors in part(), at most part_size() of each: nobody is waited for.
  virtual Status combine_parts(MeetingSeat& seat, std::uint64_t stream, const MeetingCall& call) = 0;
  // What the call is that comes next, put in before it; and behind it the comparison, on a seat that compares, with what the members gave
  // of whom this one has heard in it.
  virtual Status tell(MeetingSeat& seat, std::uint64_t stream, const StreamNote& note) = 0;
  virtual Status compare(MeetingSeat& seat, std::uint64_t stream, const MeetingCall& call) = 0;
};

}  // namespace ist
