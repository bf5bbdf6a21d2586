#include "boot/watcher.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.hpp"
#include "base/quiet_thread.hpp"

namespace ist {
namespace {

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

// A descriptor that becomes readable when the peer's process ends. It is asked of the socket, because the pid that the peer
// knows itself by may be another one here (containers), and may have been given to a new process already.
FileDescriptor process_of(int socket) {
  int descriptor = -1;
  socklen_t length = sizeof descriptor;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &length) == 0) return FileDescriptor{descriptor};
  if (errno != ENOPROTOOPT) return {};  // it has ended already: the socket tells
  // Kernels before 6.5: by the pid.
  ucred other{};
  length = sizeof other;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) != 0 || other.pid <= 0) return {};
  return FileDescriptor{static_cast<int>(::syscall(SYS_pidfd_open, other.pid, 0))};
}

}  // namespace

Result<std::unique_ptr<Watcher>> Watcher::start(const Peers& peers, AbortBoard& board, Hooks hooks) {
  std::unique_ptr<Watcher> watcher{new Watcher{peers, board, std::move(hooks)}};
  watcher->stop_ = FileDescriptor{::eventfd(0, EFD_CLOEXEC)};
  if (!watcher->stop_.valid()) return system_error("eventfd");
  watcher->processes_.resize(static_cast<std::size_t>(peers.size()));
  for (const Rank rank : peers.local()) {
    if (rank == peers.rank()) continue;
    FileDescriptor process = process_of(peers.socket(rank));
    if (!process.valid())
      log::once(log::Level::info, "processes cannot be watched here; the death of a rank is seen by its socket alone");
    watcher->processes_[static_cast<std::size_t>(rank.value)] = std::move(process);
  }
  auto thread = quiet_thread("watching the other ranks", [raw = watcher.get()] { raw->run(); });
  if (!thread.ok()) return thread.status();
  watcher->thread_ = std::move(*thread);
  return watcher;
}

Watcher::~Watcher() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

// Only ranks of this host are watched: those on other hosts have no socket here once boot is over.
void Watcher::run() {
  std::vector<pollfd> entries{{stop_.get(), POLLIN, 0}};
  std::vector<Rank> ranks;
  for (const Rank rank : peers_.local()) {
    if (rank == peers_.rank()) continue;
    // Two entries per rank. Hang-ups only: bytes in the socket belong to take_descriptor. The process is watched too, since
    // children that a dead rank has forked keep its sockets open.
    entries.push_back({peers_.socket(rank), POLLRDHUP, 0});
    entries.push_back({processes_[static_cast<std::size_t>(rank.value)].get(), POLLIN, 0});
    ranks.push_back(rank);
  }
  for (;;) {
    const int ready = ::poll(entries.data(), entries.size(), -1);
    if (ready < 0 && errno != EINTR) {
      log::warning(system_error("poll on the other ranks").text() + "; deaths will not be noticed from here on");
      return;
    }
    if (ready <= 0) continue;
    if (entries[0].revents != 0) return;
    // Deaths first: ranks that leave in the same moment do so because of the death, and that is what the others are told.
    for (const auto fate : {AbortBoard::Fate::dead, AbortBoard::Fate::left}) {
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        pollfd& socket = entries[1 + 2 * i];
        pollfd& process = entries[2 + 2 * i];
        if (socket.revents == 0 && process.revents == 0) continue;
        if (hooks_.has_left(ranks[i]) != (fate == AbortBoard::Fate::left)) continue;
        if (fate == AbortBoard::Fate::left) {
          const Rank dead = hooks_.death_told_by(ranks[i]);
          if (dead != kNobody && dead != peers_.rank()) board_.mark(dead, AbortBoard::Fate::dead);
        }
        board_.mark(ranks[i], fate);
        hooks_.wake();
        socket = {-1, 0, 0};  // poll() skips it from now on
        process = {-1, 0, 0};
      }
    }
  }
}

}  // namespace ist
