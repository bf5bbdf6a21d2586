// One world: everything that joins this process with its peers, put together and taken apart in the right order.
//
// Who calls this : api_*.cpp, through handles.hpp.
// Threads        : create and destroy once; the rest through the engine's lock.
// Ownership      : owns all rooms' objects of this world; members are in order of construction.
// Errors         : returned by create(), which then leaves nothing behind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/abort_board.hpp"
#include "base/settings.hpp"
#include "base/trace.hpp"
#include "boot/boot.hpp"
#include "boot/peers.hpp"
#include "boot/watcher.hpp"
#include "collective/nccl.hpp"
#include "face/heap/collective_heap.hpp"
#include "face/heap/window.hpp"
#include "face/message/comm_table.hpp"
#include "face/message/neighbours.hpp"
#include "face/message/queue_channels.hpp"
#include "face/message/stream_channels.hpp"
#include "face/message/stream_meetings.hpp"
#include "memory/kinds.hpp"
#include "memory/pinned_pool.hpp"
#include "memory/registrations.hpp"
#include "path/paths.hpp"
#include "request/engine.hpp"
#include "request/progress_thread.hpp"

namespace ist {

class World {
 public:
  // By the exchange given, or else by what the environment holds.
  static Result<std::unique_ptr<World>> create(std::unique_ptr<Boot> given = nullptr, std::string_view settings = {});
  ~World();
  // What comes first when the world is destroyed, and may still find something wrong: in work that waits in streams.
  Status end();
  // The same, and the other ranks see this one leave; what it has stays, for threads that are inside calls until the process ends.
  Status leave();
  // This is a forked child's copy, which must not end: what it said to the other ranks its parent would seem to have said.
  bool of_another_process() const;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Engine& engine() { return *engine_; }
  Kinds& kinds() { return *kinds_; }
  const Kinds& kinds() const { return *kinds_; }
  PinnedPool& pool() { return *pool_; }
  Registrations& registrations() { return *registrations_; }
  const Peers& peers() const { return *peers_; }
  Peers& peers() { return *peers_; }
  const Settings& settings() const { return settings_; }
  const Neighbours& neighbours() const { return *neighbours_; }
  Nccl& nccl() { return *nccl_; }
  // The file of the numbers by which carriers are chosen; empty: they are built in.
  const std::string& numbers() const { return numbers_; }
  CommTable& comms() { return comms_; }
  HandleTable<CollectiveHeap>& heaps() { return heaps_; }
  HandleTable<Window>& windows() { return windows_; }
  Trace* trace() { return trace_.get(); }
  StreamChannels& stream_channels() { return *stream_channels_; }
  StreamMeetings& stream_meetings() { return *stream_meetings_; }
  QueueChannels& queue_channels() { return *queue_channels_; }
  // This rank's own device of a kind.
  int own_device(const MemoryKind& kind) const;
  // Of all ranks, and of this one alone.
  const CommName& whole() const { return whole_; }
  const CommName& self() const { return self_; }
  ContextSource& contexts() { return *contexts_; }
  const std::vector<std::unique_ptr<Path>>& paths() const { return paths_; }
  // With whom this rank is to find out up to which size slots are quicker, and which both of them know to do; nobody: it is not.
  Rank slots_trial_with() const { return slots_trial_with_; }

 private:
  World();
  Status connect();
  std::vector<std::string> hear_cards();
  Status open_trace();
  void tell_cuda_of_sharers();
  void tell_of_sharers(MachineProfile& machine) const;
  void make_channels();
  Watcher::Hooks watcher_hooks();
  void make_communicators(CollectiveProfile machine);
  void hand_over_sends();
  void part();
  bool lacks_slots(const MachineProfile& machine) const;
  void choose_slots_trial(const std::vector<Rank>& lacking);
  void keep_learned_copies();

  Settings settings_;
  std::unique_ptr<Kinds> kinds_;
  std::unique_ptr<PinnedPool> pool_;
  std::unique_ptr<Registrations> registrations_;
  std::unique_ptr<Boot> boot_;
  std::unique_ptr<Trace> trace_;  // null: off
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<Nccl> nccl_;
  std::unique_ptr<Neighbours> neighbours_;
  std::string numbers_;
  std::unique_ptr<AbortBoard> board_;
  std::vector<std::unique_ptr<Path>> paths_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<StreamChannels> stream_channels_;
  std::unique_ptr<StreamMeetings> stream_meetings_;
  std::unique_ptr<QueueChannels> queue_channels_;
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<ProgressThread> progress_thread_;
  std::unique_ptr<ContextSource> contexts_;
  std::unique_ptr<LanePool> lanes_;
  CommTable comms_;
  HandleTable<CollectiveHeap> heaps_;
  HandleTable<Window> windows_;
  CommName whole_;
  CommName self_;
  Rank slots_trial_with_ = kNobody;
  bool ended_ = false;
  const int owner_;  // process
};

}  // namespace ist
