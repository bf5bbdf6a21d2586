// The channels of one world: which ends there are, how the two ranks of one find each other, and what has gone wrong at them.
//
// Who calls this : api_stream.cpp, and queue_channels.cpp for channels of OpenCL queues, which have no ends; the world owns one.
// Threads        : any; what the peers tell comes under the engine's lock. look_at_board() is the watcher's: it makes no driver call.
// Ownership      : owns the ends, until the world ends; looks at engine and kinds, which outlive it.
// Errors         : returned, naming channel and peer.
//
// Each end tells the other one where its half is, once: at its first use, or when the other one's card comes, whichever is first. So
// whoever uses a channel first waits only until the other rank makes some call, whatever that is.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "collective/communicator.hpp"
#include "face/message/stream_packing.hpp"
#include "memory/channels.hpp"

namespace ist {

// One direction between two ranks of a communicator.
struct ChannelName {
  const Communicator* comm = nullptr;
  Rank peer;  // of the world
  std::int32_t tag = 0;
  ChannelSide side = ChannelSide::sends;
  bool internal = false;  // of the library itself, for collective calls
};

// "the channel to rank 1 with tag 5 of communicator ..."
std::string words_for(const ChannelName& name);

class StreamChannels {
 public:
  struct Key {
    std::uint32_t context;
    std::int32_t peer;
    std::int32_t tag;
    ChannelSide side;
    bool operator==(const Key&) const = default;
  };
  static Key key_of(const ChannelName& name);
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  // `device`: this rank's own one of the CUDA kind.
  StreamChannels(Engine& engine, int device);
  ~StreamChannels();
  StreamChannels(const StreamChannels&) = delete;
  StreamChannels& operator=(const StreamChannels&) = delete;

  // This rank's own one.
  int device() const { return device_; }
  // Why there are none, or what makes them.
  Result<Channels*> kind() const;
  // This rank's end, ready for a stream on that device; made ready, where it is not, unless that stream is being captured. `beside`:
  // as Channels::find_stream().
  Result<ChannelEnd*> ready(const ChannelName& name, std::uint64_t stream, const Piece* beside);
  // Of an end that is ready: what it has for layouts.
  StreamPacking& packing(const ChannelName& name);
  // What is to be told by a call on a ready end before it does anything.
  Status trouble(const ChannelName& name, ChannelEnd& end) const;
  // Can that rank still take something?
  Status peer_is_there(const ChannelName& name) const;

  // The next four under the engine's lock. This rank uses the channel in OpenCL queues, of which the other one is told, once. An
  // error, then and ever after: one of the two uses it in streams.
  Status use_in_queues(const ChannelName& name);
  // Has the other rank said so, too?
  bool both_use_queues(const ChannelName& name);
  // How often an error of that sort has been found, which only grows, and where.
  std::uint64_t clashes() const { return clashes_; }
  Status clash_at(const Key& key);

  void look_at_board();
  // Comes back when nothing that another library still does before it is ready could wait for what is put into streams.
  void settle();
  // Ends whatever still waits, and tells of it.
  Status close();

 private:
  struct Entry {
    std::unique_ptr<ChannelEnd> end;
    std::optional<ChannelCard> theirs;
    bool refused = false;    // the other rank had no end when it was asked; it will be asked again
    bool told = false;       // what this rank uses the channel in
    bool by_queues = false;  // there will be no end
    bool internal = false;   // of the library itself
    bool clash = false;      // streams at one end, queues at the other
    std::string words;       // what errors call it
    StreamPacking packing;
    std::mutex connecting;
    std::atomic<bool> ready{false};
  };
  // Under the engine's lock.
  Entry& entry(const Key& key);
  Status open(Entry& entry, const Key& key, int device);
  static bool off_there(const Entry& entry);
  Status use_in_streams(Entry& entry, const Key& key, const ChannelName& name);
  void hear_of_queues(Entry& mine, const Key& key, const ChannelCard& card);
  void hear(Rank from, const Envelope& envelope, std::span<const std::byte> payload);
  int likely_device() const;
  Status tell(const Key& key, const ChannelCard& card);
  Status tell_of_own(Entry& mine, const Key& key, const ChannelCard& card);

  Status prepare(Entry& entry, const Key& key, const ChannelName& name, int device);
  Status may_connect(const Entry& entry, const ChannelName& name) const;
  bool has_left(Rank peer) const;
  Status connect(Entry& entry, const Key& key, const ChannelCard& theirs);
  Status wait_for_card(Entry& entry, const ChannelName& name, ChannelCard& card);
  Status ended(const std::string& words, Rank peer) const;
  std::string unlike(ChannelEnd& end, bool internal) const;

  Engine& engine_;
  const int device_;
  Channels* channels_ = nullptr;
  std::unordered_map<Key, std::unique_ptr<Entry>, Hash> entries_;
  std::uint64_t clashes_ = 0;
};

}  // namespace ist
