#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "boot/interrupt.hpp"
#include "boot/peers.hpp"

namespace ist {
namespace {

// How long a send waits for a peer that does not take what it was sent before.
constexpr double kSendPatience = 10.0;

struct Parcel {
  std::uint32_t magic = 0x49734664;  // "IsFd"
  std::uint32_t purpose = 0;
};
static_assert(sizeof(Parcel) == 8 && std::is_trivially_copyable_v<Parcel>);

struct Message {
  Parcel parcel;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};  // room for one descriptor
  iovec part{};
  msghdr header{};
  Message() {
    part = {&parcel, sizeof parcel};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
};

std::string peer_text(const Peer& peer) {
  return "rank " + std::to_string(peer.rank.value) + " (pid " + std::to_string(peer.pid) + " on " + peer.host + ")";
}

Status no_socket(const Peer& peer) {
  return {IST_ERR_UNREACHABLE, "descriptors are passed between different ranks of one host only, and " + peer_text(peer) +
                                   (peer.local ? " is this process" : " is elsewhere")};
}

Status hung_up(const Peer& peer, const char* doing) {
  return {IST_ERR_PEER_DEAD, peer_text(peer) + " closed its connection while " + doing};
}

Status lost(const Peer& peer) {
  return {IST_ERR_SYSTEM, "a descriptor from " + peer_text(peer) +
                              " was lost because this process has too many open files; raise ulimit -n"};
}

// The next parcel, none if there is none now; the purpose is set where there is one. An invalid descriptor was lost().
Result<std::optional<FileDescriptor>> receive(const Peer& peer, int socket, std::uint32_t& purpose) {
  Message message;
  const ssize_t got = ::recvmsg(socket, &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::optional<FileDescriptor>{};
  if (got < 0 && errno != ECONNRESET) return system_error("recvmsg from " + peer_text(peer));
  if (got <= 0) return hung_up(peer, "this rank waited for a descriptor of it");
  FileDescriptor taken;
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(control), sizeof descriptor);
    taken = FileDescriptor{descriptor};
  }
  const bool complete = (message.header.msg_flags & MSG_CTRUNC) == 0;
  if (got != sizeof(Parcel) || message.parcel.magic != Parcel{}.magic || (complete && !taken.valid()))
    return Status{IST_ERR_INTERNAL, peer_text(peer) + " sent something that is no descriptor"};
  purpose = message.parcel.purpose;
  return std::optional<FileDescriptor>{complete ? std::move(taken) : FileDescriptor{}};
}

}  // namespace

int Peers::process(Rank rank) const {
  ucred other{};
  socklen_t length = sizeof other;
  return ::getsockopt(socket(rank), SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 ? other.pid : 0;
}

Result<bool> Peers::try_send_descriptor(Rank to, std::uint32_t purpose, int descriptor) {
  const int link = socket(to);
  if (link < 0) return no_socket(at(to));
  Message message;
  message.parcel.purpose = purpose;
  cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
  // Eight bytes go whole or not at all. ETOOMANYREFS: descriptors of this user that nobody has taken yet reached the limit.
  if (::sendmsg(link, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
  if (errno == EPIPE || errno == ECONNRESET) return hung_up(at(to), "this rank sent it a descriptor");
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ETOOMANYREFS)
    return system_error("sendmsg of a descriptor to " + peer_text(at(to)));
  return false;
}

Status Peers::send_descriptor(Rank to, std::uint32_t purpose, int descriptor) {
  const Deadline deadline = Deadline::after(kSendPatience);
  for (;;) {
    const auto sent = try_send_descriptor(to, purpose, descriptor);
    if (!sent.ok()) return sent.status();
    if (*sent) return {};
    if (interrupt::over(deadline))
      return {IST_ERR_SYSTEM, peer_text(at(to)) + " has not taken the descriptors sent to it for " +
                                  seconds_text(kSendPatience) + "; is it stopped?"};
    pollfd entry{socket(to), POLLOUT, 0};
    if (::poll(&entry, 1, 10) > 0) ::poll(nullptr, 0, 1);
  }
}

Result<std::optional<FileDescriptor>> Peers::take_descriptor(Rank from, std::uint32_t purpose, double seconds) {
  auto& kept = waiting_[static_cast<std::size_t>(from.value)];
  const auto early = std::find_if(kept.begin(), kept.end(), [&](const Waiting& one) { return one.purpose == purpose; });
  if (early != kept.end()) {
    std::optional<FileDescriptor> taken{std::move(early->descriptor)};
    kept.erase(early);
    if (!taken->valid()) return lost(at(from));
    return taken;
  }
  const int link = socket(from);
  if (link < 0) return no_socket(at(from));
  const Deadline deadline = Deadline::after(seconds);
  for (;;) {
    std::uint32_t arrived = 0;
    auto taken = receive(at(from), link, arrived);
    if (!taken.ok()) return taken;
    if (*taken && arrived == purpose && !(*taken)->valid()) return lost(at(from));
    if (*taken && arrived == purpose) return taken;
    if (*taken) {
      kept.push_back({arrived, std::move(**taken)});
      continue;
    }
    if (interrupt::over(deadline)) return std::optional<FileDescriptor>{};
    pollfd entry{link, POLLIN, 0};
    ::poll(&entry, 1, interrupt::milliseconds(deadline));
  }
}

}  // namespace ist
