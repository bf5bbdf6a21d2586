// The ranks of the world, and a connected Unix socket to each one on this host, over which descriptors are passed.
//
// Who calls this : face/message/world at start; path/shm for its segments and rings; boot/watcher.
// Threads        : send_descriptor and take_descriptor under the world's lock; the watcher only looks for hang-ups.
// Ownership      : owns the sockets; a descriptor taken belongs to the taker.
// Errors         : IST_ERR_BOOT; a peer with another uid is refused, naming both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "boot/boot.hpp"

namespace ist {

struct Peer {
  Rank rank;
  std::string host;     // name, for error texts
  std::string boot_id;  // equal on ranks that share a kernel
  int pid = 0;
  bool local = false;  // shares this host's kernel and may exchange descriptors
  int cores = 0;       // processors this rank may run on
  std::string about;   // what it said of itself
};

class Peers {
 public:
  // What a rank says beside who it is; what it means is its readers' affair.
  struct Words {
    std::string about;    // of itself, heard by every rank: Peer::about
    std::string for_all;  // of all ranks, and only rank 0's are heard: heard()
  };
  // Collective. Abstract Unix addresses: nothing appears in the file system.
  static Result<std::unique_ptr<Peers>> connect(Boot& boot, const Settings& settings, const Words& given = {});

  Rank rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }
  const Peer& at(Rank rank) const { return peers_[static_cast<std::size_t>(rank.value)]; }
  // Ranks on this host, this one included, ascending.
  const std::vector<Rank>& local() const { return local_; }
  // What rank 0 said for all.
  const std::string& heard() const { return heard_; }
  // More local ranks than processors: waits must give way.
  bool oversubscribed() const { return oversubscribed_; }
  // This rank's share of the processors that it may run on, at least 1.
  int processors() const { return processors_; }

  // `purpose` tells descriptors apart on the other side (a segment, a ring).
  Status send_descriptor(Rank to, std::uint32_t purpose, int descriptor);
  // The same without waiting; false: there is no room for it now.
  Result<bool> try_send_descriptor(Rank to, std::uint32_t purpose, int descriptor);
  // The next descriptor of that purpose from that rank: waits at most `seconds`, none if it did not come. Descriptors of
  // other purposes that come first are kept.
  Result<std::optional<FileDescriptor>> take_descriptor(Rank from, std::uint32_t purpose, double seconds);
  // The id of a local peer's process as this process sees it; 0: in another namespace.
  int process(Rank rank) const;
  // Connected socket to a local peer, -1 for this rank and for other hosts.
  int socket(Rank rank) const { return sockets_[static_cast<std::size_t>(rank.value)].get(); }

 private:
  struct Waiting {
    std::uint32_t purpose;
    FileDescriptor descriptor;  // none: it was lost
  };
  Peers() = default;
  Rank rank_;
  std::vector<Peer> peers_;
  std::vector<Rank> local_;
  std::string heard_;
  bool oversubscribed_ = false;
  int processors_ = 1;
  std::vector<FileDescriptor> sockets_;
  std::vector<std::vector<Waiting>> waiting_;  // by rank, arrived ahead of their taker
};

}  // namespace ist
