// One thread per world that sleeps on the peers' sockets and process descriptors and marks those that are gone.
//
// Who calls this : face/message/world.
// Threads        : owns one; it makes no driver call and takes no lock of the library.
// Ownership      : looks at Peers and AbortBoard, which outlive it.
// Errors         : a peer whose process cannot be watched is watched by its socket alone.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/abort_board.hpp"
#include "boot/peers.hpp"

namespace ist {

class Watcher {
 public:
  struct Hooks {
    std::function<bool(Rank)> has_left;  // did that rank leave in order before it hung up?
    // The death that a rank that has left knew of, or kNobody. Its socket may be closed before that of the dead one is: a
    // process that ends closes its sockets one after the other, and does not hurry.
    std::function<Rank(Rank)> death_told_by;
    std::function<void()> wake;  // something was marked: wake whoever sleeps
  };
  static Result<std::unique_ptr<Watcher>> start(const Peers& peers, AbortBoard& board, Hooks hooks);
  ~Watcher();

 private:
  Watcher(const Peers& peers, AbortBoard& board, Hooks hooks) : peers_(peers), board_(board), hooks_(std::move(hooks)) {}
  void run();
  const Peers& peers_;
  AbortBoard& board_;
  Hooks hooks_;
  FileDescriptor stop_;                    // eventfd
  std::vector<FileDescriptor> processes_;  // pidfd by rank
  std::thread thread_;
};

}  // namespace ist
