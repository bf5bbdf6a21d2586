#include "boot/pair_sockets.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "base/log.hpp"
#include "boot/blob.hpp"
#include "boot/frame.hpp"
#include "boot/gather_hub.hpp"
#include "boot/interrupt.hpp"

namespace ist {
namespace {

constexpr std::uint64_t kHelloLimit = 64;

struct Address {
  sockaddr_un data{};
  socklen_t length = 0;
};

// A leading zero byte makes the address abstract.
Address abstract_address(const std::string& name) {
  Address address;
  address.data.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.data.sun_path - 1);
  std::memcpy(address.data.sun_path + 1, name.data(), length);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

Result<FileDescriptor> unix_socket() {
  FileDescriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket.valid()) return system_error("socket(AF_UNIX)");
  return socket;
}

Status check_user(int socket, Rank peer) {
  ucred other{};
  socklen_t length = sizeof other;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) != 0) return system_error("getsockopt(SO_PEERCRED)");
  if (other.uid == ::geteuid()) return {};
  return {IST_ERR_BOOT, "rank " + std::to_string(peer.value) + " (pid " + std::to_string(other.pid) + ") runs as uid " +
                            std::to_string(other.uid) + ", this process as uid " + std::to_string(::geteuid()) +
                            "; the ranks of a job on one host must belong to one user"};
}

}  // namespace

Result<PairListener> PairListener::open() {
  auto socket = unix_socket();
  if (!socket.ok()) return socket.status();
  char name[64];
  std::snprintf(name, sizeof name, "isthmus-%016llx%016llx", static_cast<unsigned long long>(random_number()),
                static_cast<unsigned long long>(random_number()));
  const Address address = abstract_address(name);
  if (::bind(socket->get(), reinterpret_cast<const sockaddr*>(&address.data), address.length) != 0)
    return system_error("bind of an abstract Unix socket");
  if (::listen(socket->get(), 4096) != 0) return system_error("listen on a Unix socket");
  return PairListener{std::move(*socket), PairAddress{name, random_number()}};
}

Result<std::vector<FileDescriptor>> PairListener::accept(const std::vector<Rank>& ranks, Deadline deadline) {
  std::vector<FileDescriptor> sockets(ranks.size());
  std::vector<FrameSocket> unknown;
  std::size_t missing = ranks.size();
  while (missing > 0) {
    std::vector<pollfd> entries{{socket_.get(), POLLIN, 0}};
    for (const FrameSocket& one : unknown) entries.push_back({one.descriptor(), POLLIN, 0});
    if (::poll(entries.data(), entries.size(), interrupt::milliseconds(deadline)) <= 0 && interrupt::over(deadline)) {
      std::vector<int> absent;
      for (std::size_t i = 0; i < ranks.size(); ++i)
        if (!sockets[i].valid()) absent.push_back(ranks[i].value);
      return Status{IST_ERR_BOOT, ranks_text(absent) + " of this host did not connect in time; did they end?"};
    }
    FileDescriptor fresh{::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!fresh.valid() && (errno == EMFILE || errno == ENFILE))
      return system_error("one socket for each of " + std::to_string(ranks.size() + 1) +
                          " ranks of this host; raise ulimit -n");
    if (fresh.valid()) unknown.emplace_back(std::move(fresh), kHelloLimit);
    for (FrameSocket& one : unknown) {
      one.read_some();
      const auto hello = one.next();
      if (!hello && !one.closed() && one.malformed().empty()) continue;
      BlobReader reader{hello ? std::string_view{hello->payload} : std::string_view{}};
      const Rank peer{static_cast<std::int32_t>(reader.number())};
      const auto found = std::find(ranks.begin(), ranks.end(), peer);
      const bool ours = hello && hello->token == address_.token && !reader.bad() && found != ranks.end();
      FileDescriptor socket = one.release();
      if (!ours) {
        log::info("turned away a stranger at this rank's Unix socket");
        continue;
      }
      IST_TRY(check_user(socket.get(), peer));
      FileDescriptor& place = sockets[static_cast<std::size_t>(found - ranks.begin())];
      if (!place.valid()) --missing;
      place = std::move(socket);
    }
    std::erase_if(unknown, [](const FrameSocket& one) { return one.descriptor() < 0; });
  }
  return sockets;
}

Result<FileDescriptor> connect_pair(Rank mine, Rank peer, const PairAddress& address, Deadline deadline) {
  auto socket = unix_socket();
  if (!socket.ok()) return socket.status();
  const Address where = abstract_address(address.name);
  while (::connect(socket->get(), reinterpret_cast<const sockaddr*>(&where.data), where.length) != 0) {
    // EAGAIN: the listener's queue is full for the moment.
    if (errno != EAGAIN && errno != EINTR)
      return Status{IST_ERR_BOOT, system_error("connect to the Unix socket of rank " + std::to_string(peer.value)).text() +
                                      "; it may have ended"};
    if (interrupt::over(deadline))
      return Status{IST_ERR_BOOT, "rank " + std::to_string(peer.value) + " did not accept a connection in time"};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  IST_TRY(check_user(socket->get(), peer));
  Frame hello;
  hello.type = FrameType::hello;
  hello.token = address.token;
  hello.payload = BlobWriter{}.number(static_cast<std::uint64_t>(mine.value)).take();
  FrameSocket sender{std::move(*socket)};
  sender.queue(hello);
  if (!sender.flush(deadline))
    return Status{IST_ERR_BOOT, "rank " + std::to_string(peer.value) + " hung up while connecting; it may have ended"};
  return sender.release();
}

}  // namespace ist
