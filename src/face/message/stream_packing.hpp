// What one end of a channel has for layouts: memory of its device in which their bytes lie in a row on their way, and the forms of which the
// device keeps lists of runs.
//
// Who calls this : stream_messages.cpp; the world's StreamChannels own one for each end.
// Threads        : one at a time, as at the end itself.
// Ownership      : owns blocks and forms; all blocks, and forms of captured messages, until the world ends, since graphs may name them.
// Errors         : of allocation and copy; IST_ERR_NOT_CAPTURABLE where something is lacking that cannot be made in a capture.
#pragma once

#include <vector>

#include "layout/shape.hpp"
#include "memory/channels.hpp"
#include "memory/scratch_pool.hpp"

namespace ist {

class Engine;

class StreamPacking {
 public:
  // One message of that shape, in memory at an address for kernels of the end's device.
  struct Wanted {
    SharedShape shape;
    std::uint64_t address = 0;
    Bytes extent;
    std::int64_t origin = 0;
    bool unpacks = false;
  };
  // An end, and the stream that is to pack or unpack there.
  struct Place {
    Engine& engine;
    Channels& channels;
    const ChannelEnd& end;
    std::uint64_t stream;
  };
  // What packs or unpacks it, through the end's block. What is lacking for that is made, unless the stream is being captured.
  Result<PackWork> work_for(const Place& place, Wanted wanted);

 private:
  struct Listed {  // its runs are on the device
    SharedShape shape;
    bool captured = false;
  };
  Listed* find(const SharedShape& shape);
  Status make_block(const Place& place, Bytes size);
  Status bring_list(const Place& place, const Wanted& wanted);
  PackWork work_through_block(const ChannelEnd& end, const Wanted& wanted) const;

  std::vector<ScratchPool::Block> blocks_;  // each at least twice as long as the one before it
  std::vector<Listed> lists_;               // the one brought last is last
};

}  // namespace ist
