// Isthmus in kernels: what lies where in a team's synchronisation area. Written once; sizes and offsets follow from it.
//
// Who calls this : crew.cuh, packets.cuh, barrier.cuh and calls.cuh.
// Threads        : each word says who writes it; nobody else does.
// Ownership      : the team's; zeroed when the team is made, never reset.
// Errors         : none.
//
// Per part: the control, whose words others push, and one row for each PE of the team, with what that PE sends here in packets.
#ifndef ISTHMUS_DEVICE_AREA_CUH
#define ISTHMUS_DEVICE_AREA_CUH

#include "isthmus/device/words.cuh"
#include "isthmus/team.h"

namespace ist::device {

inline constexpr int kMaxPes = 1024;     // of one team that uses anything of the area
inline constexpr int kMaxBlocks = 4096;  // of a grid that makes a call together
inline constexpr int kFlatPes = 8;       // up to so many tell each other directly; more meet at PE 0

// Channels that a program may use: one for long messages, and some for short ones. A message of n bytes takes 2 n in packets.
inline constexpr int kChannels = 4;
inline constexpr std::uint64_t kLongest = 16384;
inline constexpr std::uint64_t kShortest = 4096;   // capacity of the short ones
inline constexpr std::uint64_t kCallBytes = 4096;  // of a collective call, to each PE
inline constexpr int kCallChannel = kChannels;     // the collective calls' own
inline constexpr std::uint64_t kSlots = 2;         // messages of a channel that may be under way

IST_DEVICE_NUMBER std::uint64_t capacity_of(int channel) { return channel == 0 ? kLongest : kShortest; }
IST_DEVICE_NUMBER std::uint64_t channel_offset(int channel) {
  return channel == 0 ? 0 : kSlots * 2 * (kLongest + static_cast<std::uint64_t>(channel - 1) * kShortest);
}
inline constexpr std::uint64_t kRowBytes = channel_offset(kCallChannel) + kSlots * 2 * kCallBytes;

// Pushed by one other PE each; in lines of their own, so that whoever polls one is not held up by stores into another.
struct PeerWords {
  alignas(64) std::uint64_t arrived;           // barriers that this PE has come to
  alignas(64) std::uint32_t taken[kChannels];  // by channel: the last message that it has read of those sent from here
  std::uint32_t finished;                      // collective calls that it is through with
};

struct alignas(128) Control {
  PeerWords peers[kMaxPes];
  std::uint64_t released;                     // by PE 0, where it gathers: barriers that all have come to
  alignas(64) std::uint64_t barriers;         // by the own PE: barriers that all its blocks have come to
  std::uint32_t calls;                        // by the own PE: collective calls that it has begun
  alignas(64) std::uint64_t in[kMaxBlocks];   // by the block of that number
  alignas(64) std::uint64_t out[kMaxBlocks];  // by block 0
  // Of gatherings of a grid's blocks, without other PEs (crew.cuh): which, and how it went.
  alignas(64) std::uint64_t come[kMaxBlocks];  // by the block of that number
  alignas(64) std::uint64_t gone;              // by block 0
  std::uint64_t gatherings;                    // by block 0: how many all blocks have come to
};

inline constexpr std::uint64_t kUnit = IST_TEAM_SYNC_BYTES(0) / 2;
static_assert(sizeof(PeerWords) == 128, "two lines for each peer");
static_assert(sizeof(Control) <= 2 * kUnit, "the control has to fit into what IST_TEAM_SYNC_BYTES has beside the rows");
static_assert(kRowBytes == kUnit, "the rows have to fit into what IST_TEAM_SYNC_BYTES has for each PE");
static_assert(IST_TEAM_SYNC_BYTES(7) == 2 * kUnit + 7 * kRowBytes, "control and rows fill the area");

IST_DEVICE_CODE unsigned char* part_of(const ist_team_view& view, int pe) {
  // A stride may be a difference of any two addresses: it goes round as the product does.
  return view.base + static_cast<std::uint64_t>(static_cast<std::int64_t>(pe)) * view.stride;
}
IST_DEVICE_CODE Control& control_of(const ist_team_view& view, int pe) {
  return *reinterpret_cast<Control*>(part_of(view, pe) + view.sync);
}
// Where, in the part of `at`, the packets of PE `from` lie.
IST_DEVICE_CODE Pair* slot_of(const ist_team_view& view, int at, int from, int channel, std::uint32_t sequence) {
  const std::uint64_t slot = (sequence % kSlots) * 2 * capacity_of(channel);
  return reinterpret_cast<Pair*>(part_of(view, at) + view.sync + 2 * kUnit + static_cast<std::uint64_t>(from) * kRowBytes +
                                 channel_offset(channel) + slot);
}

}  // namespace ist::device

#endif
