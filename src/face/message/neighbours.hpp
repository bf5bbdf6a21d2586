// Which device each rank has for its own, and how messages to each go: what is told of a pair of ranks at start, and on request.
//
// Who calls this : world.cpp makes it of what every rank said; api_explain.cpp asks.
// Threads        : read-only after learn(); explain() takes the engine's lock.
// Ownership      : values; looks at settings and kinds, which outlive it.
// Errors         : a card that cannot be read is a rank without a device.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "boot/peers.hpp"
#include "memory/kinds.hpp"
#include "protocol/explain_packing.hpp"
#include "request/engine.hpp"

namespace ist {

class Neighbours {
 public:
  Neighbours(const Settings& settings, const Kinds& kinds) : settings_(settings), kinds_(kinds) {}
  // What this rank tells the others of itself, and what all have told, by rank.
  std::string card() const;
  void learn(const Peers& peers, const std::vector<std::string>& cards);
  // The UUID of the CUDA device that is a rank's own; empty: it has none.
  const std::string& device(Rank rank) const { return devices_[static_cast<std::size_t>(rank.value)]; }
  bool any_device() const {
    return std::any_of(devices_.begin(), devices_.end(), [](const std::string& device) { return !device.empty(); });
  }
  // Another rank whose own device is the same one; rank -1: there is none.
  Rank sharer(Rank rank) const { return other_with(device(rank), rank); }
  // Are the ranks of this host more than the OpenCL devices that any of them sees, but for processors? Which of those a rank will use is not known.
  bool shares_opencl() const { return shares_opencl_; }
  // One whose own is the device with that UUID.
  Rank other_with(const std::string& uuid, Rank rank) const;
  // Of one of this process's.
  std::string device(int ordinal) const;

 private:
  const Settings& settings_;
  const Kinds& kinds_;
  std::vector<std::string> devices_;
  bool shares_opencl_ = false;
};

// A message from a buffer of that class, on that device, to memory of the same kind, on the rank's own device.
struct Sending {
  MessageEnd from;
  std::string device;  // UUID; empty: none
  Bytes size;
};
Result<Explanation> explain(Engine& engine, const Neighbours& neighbours, const Sending& what, Rank to);
// Where the bytes of a layout of that memory come together on their way there, and apart on their way here; and together for a receiver whose
// memory is the host's: three tables.
Result<std::array<Explanation, 3>> explain_packing(Engine& engine, const Neighbours& neighbours, const Sending& what,
                                                   Rank to, const ExplainedLayout& layout);
// The same in a stream; `off`: why there are none, or empty.
Result<Explanation> explain_in_stream(Engine& engine, const Neighbours& neighbours, const Sending& what, Rank to,
                                      const std::string& off);

// Under ISTHMUS_LOG=info, and else nothing: one line for each other rank, which tells host, path, whether devices meet, and how a
// small and a long message go there and why.
void log_pairs(Engine& engine, const Peers& peers, const Neighbours& neighbours);

}  // namespace ist
