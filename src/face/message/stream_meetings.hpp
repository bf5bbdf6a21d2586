// The meetings of one world: collective calls in streams, of each communicator by kernels that meet, or by channels.
//
// Who calls this : api_stream_collective.cpp; the world owns one.
// Threads        : any; of each communicator one call at a time, as for all collective calls.
// Ownership      : owns the seats, until the world ends; looks at engine and channels, which outlive it.
// Errors         : returned, naming communicator and rank.
//
// Preparing is a collective call of its own: the ranks tell each other where their mailboxes are, and then whether they could open the
// others'. Where each rank has a device of its own, kernels meet. Where some share one, no kernel may wait for another rank's; then all
// send to the communicator's rank 0 through channels, and hear from it. Either way vectors are combined from left to right, in the
// order of ranks, so that the bits are the same.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "collective/nccl_stream.hpp"
#include "face/message/stream_channels.hpp"
#include "memory/meetings.hpp"

namespace ist {

// What a communicator has for its calls in streams.
class StreamTable {
 public:
  int device() const { return seat_->device(); }

 private:
  friend class StreamMeetings;
  struct Spoke {  // to another rank, and from it; of rank 0 to all others, of those to rank 0
    int member = 0;
    ChannelEnd* sends = nullptr;
    ChannelEnd* receives = nullptr;
  };
  std::unique_ptr<MeetingSeat> seat_;
  bool by_channels_ = false;
  bool used_ = false;
  bool freed_ = false;
  std::vector<Spoke> spokes_;
  std::string name_;           // of the communicator
  std::string differs_;        // where kernels gave up: what other ranks gave otherwise, as far as that was compared
  int own_ = 0;                // this rank
  std::vector<Rank> members_;  // the world's
  NcclStream nccl_;            // of long calls, where kernels meet
  std::mutex preparing_;
  std::atomic<bool> ready_{false};
};

class StreamMeetings {
 public:
  StreamMeetings(Engine& engine, StreamChannels& channels) : engine_(engine), channels_(channels) {}
  ~StreamMeetings();
  StreamMeetings(const StreamMeetings&) = delete;
  StreamMeetings& operator=(const StreamMeetings&) = delete;

  // Ready for a stream on its device; made ready, with all other ranks, where it is not, unless the stream is being captured. `beside`:
  // as Channels::find_stream(). `long_calls`: with NCCL's communicator, where NCCL carries such calls; if any rank says so, all make it.
  Result<StreamTable*> ready(const Communicator& comm, std::uint64_t stream, const Piece* beside, bool long_calls);
  // Is a call of that length one that NCCL carries, by what all ranks know?
  static bool is_long(const Communicator& comm, const MeetingCall& call);
  // What is to be told by a call before it does anything.
  Status trouble(const Communicator& comm, StreamTable& table) const;
  // Puts the call into the stream.
  struct Put {
    std::uint64_t stream = 0;
    const StreamNote* note = nullptr;  // what the call is, where that is compared
  };
  Status put(const Communicator& comm, StreamTable& table, const Put& put, const MeetingCall& call);
  // The communicator is freed: no call comes any more.
  void forget(const Communicator& comm);
  // From the watcher: no lock, no driver call.
  void look_at_board();
  // Ends whatever still waits, and tells of it.
  Status close();

 private:
  StreamTable& table(const Communicator& comm);
  Status prepare(const Communicator& comm, StreamTable& table, const Result<StreamPlace>& place, std::uint64_t stream,
                 bool long_calls);
  Status agree(const Communicator& comm, const StreamTable& table, const Status& opened, bool& long_calls) const;
  Status open_nccl(const Communicator& comm, StreamTable& table);
  Result<ChannelCard> take_seat(const Communicator& comm, StreamTable& table, const Result<StreamPlace>& place);
  Status open_spokes(const Communicator& comm, StreamTable& table, std::uint64_t stream);
  Status through_rank_0(const Communicator& comm, StreamTable& table, const Put& put, const MeetingCall& call);
  Status meet(StreamTable& table, const Put& put, const MeetingCall& call);
  Status send(const StreamTable::Spoke& spoke, const Put& put, std::uint64_t address, Bytes size);
  Status receive(const StreamTable::Spoke& spoke, const Put& put, std::uint64_t address, Bytes size);
  std::string unlike(StreamTable& table) const;
  Result<bool> by_nccl(const Communicator& comm, StreamTable& table, std::uint64_t stream, const MeetingCall& call);
  void start_breaking_off();
  void break_off();
  Status everyone_is_there(const std::vector<Rank>& members) const;

  Engine& engine_;
  StreamChannels& channels_;
  std::mutex mutex_;                                                        // guards the list
  std::unordered_map<std::uint32_t, std::unique_ptr<StreamTable>> tables_;  // by context
  // NCCL's kernels that wait for a rank that is gone are ended by a thread, since that takes the engine's lock and a driver's calls.
  std::thread breaking_off_;
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<bool> ends_{false};
};

}  // namespace ist
