// Messages in streams: what one half of a call needs, and what is put into the stream.
//
// Who calls this : api_stream.cpp, api_stream_layout.cpp.
// Threads        : of each end one at a time.
// Ownership      : none.
// Errors         : returned; nothing is in the stream then that another rank would meet.
#pragma once

#include "face/message/layout_calls.hpp"
#include "face/message/stream_calls.hpp"

namespace ist {

struct StreamHalf {
  int partner;
  int tag;
  ChannelSide side;
};

// A half of a call, checked, and its end ready; no end: nobody is there.
struct StreamMessage {
  World* world = nullptr;
  ChannelEnd* end = nullptr;
  std::uint64_t address = 0;
  Bytes size;
  std::optional<PackWork> work;    // of what does not lie in one piece; then address and size are its block's
  std::optional<StreamNote> note;  // where types are compared
};

// Where a half's bytes lie; `laid`: not in one piece, but so, and the piece has all of them.
struct StreamBytes {
  Piece piece;
  std::optional<Laid> laid = std::nullopt;
  SharedLayout types = nullptr;  // where types are compared
};
Result<StreamBytes> stream_bytes(World& world, const Data& data, ChannelSide side, bool nobody);
Result<StreamBytes> stream_bytes(World& world, const LaidData& data, ChannelSide side, bool nobody);

Result<Partner> stream_partner(const StreamHalf& half, ist_comm comm);
Result<StreamMessage> stream_message(const Partner& with, const StreamHalf& half, const StreamBytes& bytes,
                                     std::uint64_t stream);
// Of a buffer as the user gave it: Data or LaidData.
template <class Given>
Result<StreamMessage> stream_message(const StreamHalf& half, const Given& given, std::uint64_t stream, ist_comm comm) {
  const auto with = stream_partner(half, comm);
  if (!with.ok()) return with.status();
  auto bytes = stream_bytes(*with->world, given, half.side, with->rank == IST_PROC_NULL);
  if (!bytes.ok()) return bytes.status();
  if (with->world->settings().check) [[unlikely]]
    bytes->types = types_of(given);
  return stream_message(*with, half, *bytes, stream);
}

// Puts them in: `out`, `in`, or both at once.
Status put_in_stream(std::uint64_t stream, const StreamMessage* out, const StreamMessage* in);

template <class Given>
Status put_one(const StreamHalf& half, const Given& given, void* stream, ist_comm comm) {
  const auto ready = stream_message(half, given, number_of(stream), comm);
  if (!ready.ok()) return ready.status();
  const bool sends = half.side == ChannelSide::sends;
  return put_in_stream(number_of(stream), sends ? &*ready : nullptr, sends ? nullptr : &*ready);
}

template <class Given>
struct StreamGiven {
  StreamHalf half;
  const Given& data;
};
template <class Given>
Status put_both(const StreamGiven<Given>& out, const StreamGiven<Given>& in, void* stream, ist_comm comm) {
  const auto sends = stream_message(out.half, out.data, number_of(stream), comm);
  if (!sends.ok()) return sends.status();
  const auto receives = stream_message(in.half, in.data, number_of(stream), comm);
  return receives.ok() ? put_in_stream(number_of(stream), &*sends, &*receives) : receives.status();
}

// Prepares the channels of these sides, and for so many of a layout, where one is given.
struct StreamLayout {
  std::int64_t count;
  ist_layout layout;
};
Status prepare_streams(void* stream, int partner, int tag, int sides, ist_comm comm, const StreamLayout* layout);

}  // namespace ist
